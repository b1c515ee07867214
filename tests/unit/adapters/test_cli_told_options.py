"""What a run is told besides its prompt: instructions, and files with evidence."""

import io
import sys
from pathlib import Path

import pytest

from remit.adapters.cli.demo import story
from tests.unit.adapters.desk import Desk
from tests.unit.adapters.talk import Talker

GRAPH = Path(story.__file__).with_name("desk.graph.yaml")


def told(desk: Desk) -> str:
    """Everything that the last run was told, and what was found for it."""
    return desk.say("show", "last", "--turn", "0").out + desk.say("show", "last", "--turn", "1").out


@pytest.mark.req("1.6")
def test_instructions_are_a_text_or_a_file(desk: Desk) -> None:
    for system in ("Talk like a pirate.", f"@{desk.file('pirate.txt', 'Talk like a pirate.')}"):
        assert desk.say("run", "Hi", "--engine", desk.script("Arr."), "--system", system).code == 0
        assert "Talk like a pirate." in told(desk)


@pytest.mark.req("1.6")
def test_evidence_is_read_from_files_named_and_numbered(desk: Desk) -> None:
    files = [desk.file("hours.txt", "We open at nine."), desk.file("notes.csv", "a,b")]
    options = [word for file in files for word in ("--context", file)]
    assert desk.say("run", "Lamps?", "--engine", desk.script("Yes."), *options).code == 0
    shown = told(desk)
    assert "hours.txt, untrusted): We open at nine." in shown
    assert "[2] (" in shown


def test_of_long_evidence_what_fits_the_question_is_taken(desk: Desk) -> None:
    book = "\n\n".join([*(f"Chapter {n} is about nothing much." + " x" * 400 for n in range(30)), "The lamp is green."])
    file = desk.file("book.md", book)
    assert desk.say("run", "Colour of the lamp?", "--engine", desk.script("Green."), "--context", file).code == 0
    assert "The lamp is green." in told(desk)


def test_evidence_may_come_from_stdin(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"We open at nine.")))
    assert desk.say("run", "When?", "--engine", desk.script("At nine."), "--context", "-").code == 0
    assert "[1] (stdin, untrusted): We open at nine." in told(desk)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--system", "@nope.txt"), "PROMPT_UNREADABLE", "cannot be read"),
        (("--system", "  "), "PROMPT_UNREADABLE", "says nothing"),
        (("--context", "nope.txt"), "CONTEXT_UNREADABLE", "cannot be read"),
        (("--context", "-", "--context", "-"), "USAGE", "stdin can be read once"),
        (("--mode", "plan", "--plan", "p.yaml", "--context", "x"), "USAGE", "is nothing a plan reads"),
        (("--context", "{long}"), "DOCUMENT_INVALID", "split it"),
        (("--graph", "{graph}", "--context", "{long}"), "USAGE", "is nothing that graph 'support desk' reads"),
    ],
)
def test_what_cannot_be_told_is_wrong_usage_and_makes_no_store(
    desk: Desk, options: tuple[str, ...], code: str, words: str
) -> None:
    files = {"long": desk.file("long.txt", "x" * 5_000_001), "graph": str(GRAPH)}
    said = desk.say(
        "run", "Hi", "--engine", desk.script("Hi."), *(option.format(**files) for option in options), "--json"
    )
    assert (said.code, said.error) == (2, code), said.out
    assert words in said.values["error"]["message"]
    assert not desk.home.exists()


def test_a_chat_is_told_the_same_and_names_it_to_a_user_who_leaves(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = desk.file("hours.txt", "We open at nine.")
    options = ("--system", "Be short.", "--context", file)
    seen = Talker(desk, monkeypatch).says("When do you open?", options=options)
    assert f"--system 'Be short.' --context {file} --home {desk.home}\n" in seen
    shown = told(desk)
    assert "Be short." in shown
    assert "hours.txt, untrusted): We open at nine." in shown
