"""`remit halt`: what a person types is what is held back."""

import sqlite3
from contextlib import closing

import pytest

from tests.unit.adapters.desk import Desk


@pytest.mark.parametrize(
    "said", ["{spec}", "scripted:script1.json", "scripted:./script1.json", "scripted:script1", "script1"]
)
def test_a_model_is_halted_and_released_as_it_was_typed_for_a_run(
    desk: Desk, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.folder)
    spec = desk.script("Hi")
    typed = said.format(spec=spec)
    assert desk.say("run", "Hi", "--engine", spec).code == 0
    halted = desk.say("halt", "--model", typed, "--why", "smoke")
    assert (halted.code, halted.err) == (0, "")
    refused = desk.say("run", "Hi", "--engine", spec, "--json")
    assert (refused.code, refused.error) == (4, "HALTED")
    assert desk.say("halt", "--lift", "--model", typed).code == 0
    assert desk.say("run", "Hi", "--engine", spec).code == 0


@pytest.mark.parametrize(
    ("selector", "is_known"),
    [
        (("--model", "script1"), True),
        (("--model", "openai:nobody"), False),
        (("--tool", "write"), True),
        (("--tool", "wirte"), False),
        (("--tenant", "acme"), True),
        (("--tenant", "amce"), False),
        (("--run", "last"), True),
        ((), True),
    ],
)
def test_a_halt_of_what_no_run_has_used_stands_and_says_so(
    desk: Desk, selector: tuple[str, ...], is_known: bool
) -> None:
    words = ("--engine", desk.script("Hi"), "--tools", desk.tools(), "--tenant", "acme")
    assert desk.say("run", "Hi", *words).code == 0
    said = desk.say("halt", *selector, "--why", "smoke")
    assert (said.code, "no run of this store has used" in said.err) == (0, not is_known)
    assert "smoke" in desk.say("halt", "--list").out


def test_a_run_that_cannot_be_read_has_used_nothing_that_anybody_knows(desk: Desk) -> None:
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("UPDATE turns SET data = x'00' WHERE seq = 0")
    said = desk.say("halt", "--model", "script1", "--why", "smoke")
    assert (said.code, "no run of this store has used" in said.err) == (0, True)


LOST = (
    "DELETE FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = 'halts') AND seq >= {kept}",
    "DELETE FROM heads WHERE run_no = (SELECT run_no FROM runs WHERE run_id = 'halts') AND seq >= {kept}",
)


def lost(desk: Desk, kept: int) -> None:
    """Lose the halts behind so many, as a database that is put back does."""
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        for query in LOST:
            connection.execute(query.format(kept=kept))
        if not kept:
            connection.execute("DELETE FROM runs WHERE run_id = 'halts'")


@pytest.mark.parametrize("kept", [0, 1, 2])
@pytest.mark.parametrize("is_logged", [True, False])
def test_while_halts_are_lost_everything_is_halted_until_a_person_accepts_the_loss(
    desk: Desk, kept: int, is_logged: bool
) -> None:
    spec = desk.script("Hi")
    waiting = desk.waiting()
    for tool in ("a", "b", "c"):
        assert desk.say("halt", "--tool", tool, "--why", "smoke").code == 0
    lost(desk, kept)
    if not is_logged:
        log = desk.home / "heads.log"
        log.write_bytes(b"".join(one for one in log.read_bytes().splitlines(True) if b'"halts"' not in one))
        if kept:
            return  # Nothing is left that tells of the rest.
    for words in (("run", "Hi", "--engine", spec), ("resume", waiting)):
        refused = desk.say(*words, "--json")
        assert (refused.code, refused.error) == (4, "HALTED"), words
        assert "is not here" in refused.values["error"]["message"]
    assert desk.say("approve", waiting).code == 3
    assert desk.notes == []
    assert desk.say("halt", "--tool", "d", "--why", "smoke", "--json").error == "HALTED"
    assert desk.say("halt", "--list").code == int(is_logged)
    assert desk.say("halt", "--lift", "--why", "all of them were known").code == 0
    listed = desk.say("halt", "--list")
    assert (listed.code, listed.out.count("smoke")) == (0, kept)
    assert desk.say("run", "Hi", "--engine", spec).code == 0
    assert desk.say("resume", waiting).code == 0
    assert desk.notes == ["hello"]


def test_a_fork_of_a_run_whose_call_was_held_back_says_that_it_was_not_sent(desk: Desk) -> None:
    waiting = desk.waiting()
    assert desk.say("halt", "--tool", "write", "--why", "smoke").code == 0
    assert desk.say("approve", waiting).code == 3
    assert desk.say("halt", "--tool", "write", "--lift").code == 0
    forked = desk.say("fork", waiting)
    assert forked.code == 3
    assert ") was held back by a halt before this run was copied, and was not sent" in forked.err
    assert "nobody knows" not in forked.err
    assert desk.notes == []
