"""`remit halt`: what a person types is what is held back."""

import sqlite3
from contextlib import closing

import pytest

from tests.unit.adapters.desk import Desk


@pytest.mark.parametrize("said", ["{spec}", "scripted:script1.json", "scripted:./script1.json", "scripted:script1", "script1"])
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
