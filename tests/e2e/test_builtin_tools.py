"""Builtin tools in real runs: named on the command line, used by a model, resumed by another process elsewhere."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from remit.adapters.cli.main import EXIT_USAGE
from remit.core.failure import EXIT_OK, EXIT_WAITING
from remit.tool.builtin.builtin_tools import BUILTIN_UNKNOWN, BUILTIN_VALUE_INVALID
from remit.tool.loader import TOOL_SOURCE_MISSING
from tests.e2e.command import Remit, remit_in
from tests.e2e.house import calls, says

PLACE = "builtin:clock,calculator,files=./notes,sqlite_query=shop.db,http_get"


@pytest.fixture
def remit(tmp_path: Path) -> Iterator[Remit]:
    with remit_in(tmp_path / "work") as found:
        (found.folder / "notes").mkdir()
        (found.folder / "notes" / "a.txt").write_text("a lamp\n")
        (found.folder / "secret.txt").write_text("outside")
        with closing(sqlite3.connect(found.folder / "shop.db")) as connection:
            connection.executescript("CREATE TABLE ware (name TEXT); INSERT INTO ware VALUES ('lamp');")
        yield found


def traced(remit: Remit, run_id: str) -> str:
    return remit("trace", run_id).out


@pytest.mark.slow
def test_a_model_uses_the_tools_that_the_command_line_names(remit: Remit) -> None:
    remit.write(
        replies=[
            calls("calculator", {"expression": "0.1 + 0.2"}),
            calls("clock", {"zone": "Europe/Berlin"}),
            calls("list_files"),
            calls("search_files", {"text": "LAMP"}),
            calls("read_file", {"path": "a.txt"}),
            calls("sqlite_tables"),
            calls("sqlite_query", {"sql": "SELECT name FROM ware"}),
            says("done"),
        ]
    )
    done = remit.start_run("--tools", PLACE).answer()
    assert done.exit_code == EXIT_OK, done
    told = traced(remit, done.values["run_id"])
    for expected in (
        '{"result":"0.3","is_exact":true}',
        '"zone":"Europe/Berlin"',
        '{"path":"a.txt","kind":"file","size_bytes":7}',
        '{"path":"a.txt","line":1,"text":"a lamp"}',
        '"lines_total":1',
        '{"name":"ware","kind":"table","columns":[{"name":"name","type":"TEXT"}]}',
        '"rows":[["lamp"]]',
    ):
        assert expected in told, told
    assert "failed" not in told


@pytest.mark.slow
def test_what_a_compromised_model_tries_becomes_an_observation_and_nothing_else(remit: Remit) -> None:
    remit.write(
        replies=[
            # Before anything was read: later on, a person would be asked about them.
            calls("http_get", {"url": "http://169.254.169.254/latest/meta-data/"}),
            calls("http_get", {"url": "http://2130706433/"}),
            calls("http_get", {"url": "file:///etc/passwd"}),
            calls("read_file", {"path": "../secret.txt"}),
            calls("read_file", {"path": "/etc/passwd"}),
            calls("sqlite_query", {"sql": "DELETE FROM ware"}),
            calls("sqlite_query", {"sql": "ATTACH '/tmp/other.db' AS other"}),
            calls("calculator", {"expression": "9**9**9"}),
            says("nothing worked"),
        ]
    )
    done = remit.start_run("--tools", PLACE).answer()
    assert done.exit_code == EXIT_OK, done
    told = traced(remit, done.values["run_id"])
    for code in (
        "FILE_PATH_INVALID",
        "SQLITE_REFUSED",
        "CALCULATOR_TOO_LARGE",
        "HTTP_HOST_REFUSED",
        "HTTP_URL_INVALID",
    ):
        assert code in told, told
    assert "committed" not in told
    assert "outside" not in told
    with closing(sqlite3.connect(remit.folder / "shop.db")) as connection:
        assert connection.execute("SELECT count(*) FROM ware").fetchone() == (1,)


@pytest.mark.slow
def test_a_write_waits_for_a_person_and_is_done_by_a_process_in_another_folder(remit: Remit) -> None:
    remit.write(replies=[calls("write_file", {"path": "new/b.txt", "text": "written\n"}), says("done")])
    waiting = remit.start_run("--tools", PLACE).answer()
    assert waiting.exit_code == EXIT_WAITING, waiting
    target = remit.folder / "notes" / "new" / "b.txt"
    assert not target.exists()
    elsewhere = Remit(remit.folder.parent)
    elsewhere.home = remit.home
    approval = json.loads(elsewhere("approvals", "--json").out.splitlines()[0])
    approved = elsewhere("approve", approval["id"], "--json")
    assert approved.exit_code == EXIT_OK, approved
    elsewhere("resume", waiting.values["run_id"], "--json")
    assert target.read_text() == "written\n"
    assert "committed" in traced(elsewhere, waiting.values["run_id"])


@pytest.mark.slow
def test_a_run_whose_root_is_gone_stays_open_and_says_so(remit: Remit) -> None:
    remit.write(replies=[calls("write_file", {"path": "b.txt", "text": "x"}), says("done")])
    waiting = remit.start_run("--tools", "builtin:files=./notes").answer()
    (remit.folder / "notes").rename(remit.folder / "moved")
    failed = remit("resume", waiting.values["run_id"], "--json")
    assert failed.error_code == TOOL_SOURCE_MISSING, failed
    (remit.folder / "moved").rename(remit.folder / "notes")
    assert remit("resume", waiting.values["run_id"], "--json").exit_code == EXIT_WAITING


@pytest.mark.parametrize(
    ("place", "code", "word"),
    [
        ("builtin:", BUILTIN_UNKNOWN, "sqlite_query=FILE"),
        ("builtin:clok", BUILTIN_UNKNOWN, "did you mean 'clock'"),
        ("builtin:files", BUILTIN_VALUE_INVALID, "files=./notes"),
        ("builtin:files=/", BUILTIN_VALUE_INVALID, "whole disk"),
        ("builtin:sqlite_query=none.db", BUILTIN_VALUE_INVALID, "none.db"),
        ("builtin:http_get=localhost", BUILTIN_VALUE_INVALID, "localhost"),
    ],
)
def test_a_place_that_makes_no_sense_is_refused_with_the_way_out(
    remit: Remit, place: str, code: str, word: str
) -> None:
    remit.write(replies=[says("done")])
    failed = remit.run_here("--tools", place)
    assert failed.exit_code == EXIT_USAGE
    assert failed.error_code == code
    assert word in failed.out
