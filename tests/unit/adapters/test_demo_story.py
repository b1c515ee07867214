"""The demo tells its story with real commands, and fails when one of them does."""

import io
import json
import sqlite3
import subprocess
import sys
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import pytest

from remit.adapters.cli.demo import story
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import RequestRejected
from tests import warm
from tests.unit.adapters.desk import Desk

# A node shows its model no more than it needs, so the instruction tells which reply is wanted.
REPLIES: list[dict[str, object]] = [
    {"when": "Which of these is it", "text": "refund"},
    {"when": "Write down as JSON", "text": '{"order_id":"4711","problem":"broken"}'},
    {"when": "Look the order up", "tool_calls": [{"name": "lookup_order", "arguments": {"order_id": "4711"}}]},
    {"when": "Pay the order back", "tool_calls": [{"name": "refund_order", "arguments": {"order_id": "4711"}}]},
    {"text": "We are sorry for the trouble. We have paid back the money for your order 4711."},
]
PROOFS = ["approve", "trace", "explain", "verify", "replay"]


def script_in(folder: Path, *, delay_ms: int = 0) -> str:
    replies = [{**reply, "delay_ms": delay_ms} for reply in REPLIES]
    (folder / "desk.script.json").write_text(json.dumps({"replies": replies}))
    return f"scripted:{folder / 'desk.script.json'}"


def typed_in(values: dict[str, object]) -> list[tuple[str, int]]:
    commands = values["commands"]
    assert isinstance(commands, list)
    return [(command["command"].split()[1], command["exit_code"]) for command in commands]


@pytest.fixture
def warm_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo types a dozen commands; `make run` plays it with starts from nothing."""
    monkeypatch.setattr(subprocess, "Popen", warm.Popen)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_starts")
def test_with_nobody_there_the_demo_decides_in_the_name_of_demo_and_says_so(desk: Desk, tmp_path: Path) -> None:
    said = desk.say("demo", "--folder", str(tmp_path / "play"), "--engine", script_in(tmp_path))
    assert said.code == 0, said.out + said.err
    assert "plays the person, as identity `demo`" in said.out
    assert "remit demo --kill" in said.out


@pytest.mark.slow
@pytest.mark.usefixtures("warm_starts")
def test_every_command_of_the_demo_is_told_to_programs_with_its_exit_code(desk: Desk, tmp_path: Path) -> None:
    said = desk.say("demo", "--folder", str(tmp_path / "play"), "--engine", script_in(tmp_path), "--json")
    assert typed_in(said.values) == [("run", 3), *((proof, 0) for proof in PROOFS)]
    assert said.values["ok"] is True


@pytest.mark.slow
def test_a_demo_that_is_killed_while_it_pays_has_paid_once(desk: Desk, tmp_path: Path) -> None:
    command = ("demo", "--folder", str(tmp_path / "play"), "--engine", script_in(tmp_path), "--kill")
    said = desk.say(*command, "--json")
    assert typed_in(said.values) == [("run", 3), ("approve", -9), ("resume", 0), *((proof, 0) for proof in PROOFS[1:])]
    with closing(sqlite3.connect(tmp_path / "play" / story.LEDGER)) as ledger:
        assert ledger.execute("SELECT order_id FROM refunds").fetchall() == [("4711",)]


def test_a_desk_that_paid_before_it_could_be_killed_is_said_to_be_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    monkeypatch.setattr(story.Desk, "_begun", lambda *_: ended)
    with closing(sqlite3.connect(tmp_path / story.LEDGER)) as ledger:
        ledger.executescript("CREATE TABLE refunds (key TEXT); INSERT INTO refunds VALUES ('k');")
    desk = story.Desk(Terminal(out := io.StringIO(), None), tmp_path, None, shown="play")
    assert (desk.kill("approve", "last"), desk.failures) == (0, 0)
    assert "play/desk.py was changed; name another --folder" in out.getvalue()


@pytest.mark.slow
def test_a_demo_whose_run_fails_says_so_and_proves_nothing(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "mute.yaml").write_text("replies: [{error: INFERENCE_ENGINE_ERROR}]")
    engine = f"scripted:{tmp_path / 'mute.yaml'}"
    said = desk.say("demo", "--folder", str(tmp_path / "play"), "--engine", engine, "--json")
    assert (said.code, said.values["ok"]) == (1, False)
    assert typed_in(said.values) == [("run", 1)]


def test_files_that_the_user_has_changed_are_kept_and_the_ledger_is_new(tmp_path: Path) -> None:
    folder = story.set_up(tmp_path / "play")
    (folder / "ticket.txt").write_text("Where is order 4712?")
    (folder / story.LEDGER).write_text("old")
    assert story.set_up(folder) == folder
    assert (folder / "ticket.txt").read_text() == "Where is order 4712?"
    assert not (folder / story.LEDGER).exists()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "play").write_text("a file")
    with pytest.raises(RequestRejected, match="play") as caught:
        story.set_up(tmp_path / "play")
    assert caught.value.code == story.FOLDER_UNUSABLE


@pytest.mark.parametrize(("code", "hint"), [(3, True), (4, False)])
def test_at_a_terminal_the_run_asks_and_may_be_left_waiting(
    monkeypatch: pytest.MonkeyPatch, desk: Desk, tmp_path: Path, code: int, hint: bool
) -> None:
    typed: list[str] = []

    def type_(self: story.Desk, *words: str, expected: Collection[int] = (0,)) -> int:
        typed.append(words[0])
        return code

    monkeypatch.setattr(story.Desk, "is_attended", True)
    monkeypatch.setattr(story.Desk, "type", type_)
    said = desk.say("demo", "--folder", str(tmp_path / "play"), "--engine", script_in(tmp_path))
    assert typed == (["run"] if hint else ["run", *PROOFS[1:]])
    assert ("play: remit approve last  or: remit reject last" in said.out) is hint


def test_a_model_that_cannot_be_asked_is_said_before_anything_is_made_or_told(desk: Desk, tmp_path: Path) -> None:
    said = desk.say("demo", "--folder", str(tmp_path / "play"), "--engine", "scripted:nothing.yaml")
    assert (said.code, said.out, len(said.err.splitlines())) == (1, "", 1)
    assert not (tmp_path / "play").exists()


def test_a_script_is_found_where_the_user_stands(monkeypatch: pytest.MonkeyPatch, desk: Desk, tmp_path: Path) -> None:
    typed: list[str] = []

    def type_(self: story.Desk, *words: str, expected: Collection[int] = (0,)) -> int:
        typed.extend(words)
        return 3

    monkeypatch.setattr(story.Desk, "is_attended", True)
    monkeypatch.setattr(story.Desk, "type", type_)
    script_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = desk.say("demo", "--folder", "play", "--engine", "scripted:desk.script.json")
    assert (said.code, said.err) == (0, "")
    assert typed[-1] == f"scripted:{tmp_path / 'desk.script.json'}"
