"""Every command that is pointed at a cluster speaks of the cluster, never of the folder beside it; a backup of it is whole."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from remit.adapters.cli.main import EXIT_USAGE, main
from remit.adapters.cli.table import command_entries
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING
from tests.e2e.command import Answer, Remit
from tests.e2e.house import calls, says
from tests.nats_server import clear

TOOLS = """
from pathlib import Path
from remit import tool

HERE = Path(__file__).parent

@tool(effect="write", verify=lambda arguments, result: result == "noted")
def note(text: str) -> str:
    \"\"\"Note a text.\"\"\"
    with (HERE / "notes").open("a") as file:
        file.write(text + "\\n")
    return "noted"
"""
LONG = "long words " * 400

# What they do needs no store, has one of its own, goes on until it is ended, or is the like of what is asked below.
OTHERS = [
    "demo",
    "dev",
    "gateway",
    "channel cli",
    "channel hook",
    "chat",
    "constrain",
    "guard",
    "run",
    "resume",
    "worker loop",
    "worker model",
    "worker tools",
    "import",
    "models list",
    "models add",
    "models show",
    "boundary check",
    "boundary show",
    "boundary diff",
    "graph check",
    "graph draw",
    "completion",
    "queues drain",
    "keys admit",
    "keys account",
    "keys revoke",
    "grants give",
    "reject",
]

# What is asked of the store, and what only that of the cluster can answer: in the place of {…} stands what is on the cluster.
ASKED = [
    ("runs", "{ended}"),
    ("show last", "{waits}"),
    ("trace last", "{waits}"),
    ("explain {ended}", "1,100 of 60,000 output_tokens"),
    ("cost {ended}", "1,100"),
    ("verify {ended} --json", '"ok": true'),
    ("verify --all", "all 2 are"),
    ("replay {ended}", "{ended}"),
    ("export {waits} --output {folder}/run.jsonl", "{waits}"),
    ("approvals", "{waits}"),
    ("grants list", "no grant stands"),
    ("grants revoke none", "GRANT_UNKNOWN"),
    ("queues", "1"),
    ("queues ack {ended}", "{ended}"),
    ("quotas", "quota"),
    ("rebuild", "2 runs"),
    ("doctor", "nats://"),
    ("keys", "did:key:"),
    ("worker letters", "no dead letters"),
    ("restore --all", "nothing is in doubt"),
    ("halt --tool other --why test", "halted"),
    ("halt --list", "other"),
    ("signal {waits} feedback hello", "{waits} heard"),
    ("redact {ended} --pattern any --why test", "{ended}"),
    ("fork {ended} --at 1", "{ended} cannot be forked at turn 1"),
    ("approve {packet}", "Noted."),
    ("gc --older-than 9", "0 runs"),
    ("delete {ended}", "{ended}"),
]


class Both:
    """A folder with one run, and a cluster with two others: one has ended, one waits."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.remit = folder, clear(), Remit(folder)
        self.remit.write(TOOLS, [says("Here.")])
        self.here = self.remit.run_here().values["run_id"]
        self.remit.write(TOOLS, [says(LONG)])
        self.ended = self.remit.run_here("--store", self.store).values["run_id"]
        self.remit.write(TOOLS, [calls("note", {"text": "x"}), says("Noted.")])
        begun = self.remit.run_here("--store", self.store)
        assert begun.exit_code == EXIT_WAITING
        self.waits, self.packet = begun.values["run_id"], begun.values["waiting_for"]["packet_ids"][0]

    def filled(self, words: str) -> str:
        return words.format(folder=self.folder, ended=self.ended, waits=self.waits, packet=self.packet)


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(tmp_path)


def by_environment(monkeypatch: pytest.MonkeyPatch, both: Both, *words: str) -> Answer:
    """What a command answers that is told of folder and cluster by its environment."""
    monkeypatch.setenv("REMIT_STORE", both.store)
    monkeypatch.setenv("REMIT_HOME", str(both.remit.home))
    return said(*words)


def said(*words: str) -> Answer:
    """What the command line answers."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return Answer(code, out.buffer.getvalue().decode(), err.getvalue())


def test_every_command_is_tried_on_a_cluster_or_needs_none() -> None:
    tried = {
        entry.words for entry in command_entries() for words, _ in ASKED if f"{words} ".startswith(f"{entry.words} ")
    }
    assert {entry.words for entry in command_entries()} - tried - set(OTHERS) == {"backup", "trust"}


@pytest.mark.parametrize("is_said", [True, False], ids=["option", "environment"])
def test_what_is_asked_of_a_cluster_is_answered_from_it(
    both: Both, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, expected in ASKED:
        asked = both.filled(words).split()
        heard = both.remit.here(*asked, "--store", both.store) if is_said else by_environment(monkeypatch, both, *asked)
        told = heard.out + heard.err
        assert both.here not in told, (words, heard)
        assert both.filled(expected) in told, (words, heard)
    assert both.here in both.remit.here("runs").out, "nothing was done to the folder"


@pytest.mark.parametrize("is_said", [True, False], ids=["option", "environment"])
def test_a_backup_of_a_cluster_holds_the_cluster_and_goes_back_into_one(
    both: Both, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, home = both.folder / "copy", ("--home", str(both.remit.home))
    said("halt", "--tool", "other", "--why", "a test", *home, "--store", both.store)
    given = (*home, "--store", both.store)
    made = said("backup", str(to), *given) if is_said else by_environment(monkeypatch, both, "backup", str(to))
    assert (made.exit_code, made.out.startswith("2 runs, ")) == (EXIT_OK, True), made
    assert f"remit import {to} --store" in made.out
    monkeypatch.delenv("REMIT_STORE", raising=False)
    there = (*home, "--store", clear())
    for turns in (4, 0):
        back = said("import", str(to), "--json", *there)
        assert (back.exit_code, back.values["runs"], back.values["turns"]) == (EXIT_OK, 2, turns), back
    for place in (("--home", str(to)), there):
        listed = said("runs", *place).out
        assert (both.here in listed, both.ended in listed, both.waits in listed) == (False, True, True), place
        assert said("verify", "--all", *place).exit_code == EXIT_OK
        assert LONG.strip() in said("show", both.ended, "--json", *place).out
        assert "other" in said("halt", "--list", *place).out
    assert said("approve", both.packet, "--json", *there).values["terminal_code"] == "SUCCESS"
    assert (both.folder / "notes").read_text() == "x\n"


def test_an_older_backup_is_not_written_over_what_went_on(both: Both) -> None:
    older, later = str(both.folder / "older"), str(both.folder / "later")
    there = ("--home", str(both.remit.home), "--store", both.store)
    assert said("backup", older, *there).exit_code == EXIT_OK
    assert said("approve", both.packet, *there).exit_code == EXIT_OK
    assert said("backup", later, *there).exit_code == EXIT_OK
    assert said("import", older, *there).error_code == "IMPORT_DIFFERS"
    brought = said("import", later, "--home", older, "--json")
    assert (brought.exit_code, brought.values["turns"] > 0) == (EXIT_OK, True), brought
    assert "SUCCESS" in said("show", both.waits, "--home", older).out


def test_what_has_no_meaning_on_a_cluster_is_refused_with_the_way_that_has_one(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    for refused in (both.remit.here("trust", "--store", both.store), by_environment(monkeypatch, both, "trust")):
        assert (refused.exit_code, refused.error_code) == (EXIT_USAGE, "TRUST_NEEDS_FOLDER")
        assert "REMIT_TRUST" in refused.err
    assert by_environment(monkeypatch, both, "trust", str(both.remit.home)).exit_code == EXIT_OK
    assert both.remit.here("demo", "--store", both.store).error_code == "USAGE"
    assert both.remit.here("run", "Hi.", "--store", "http://127.0.0.1:4222").exit_code == EXIT_FAILED
