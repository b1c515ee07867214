"""`remit explain` says in one sentence what became of a run."""

import pytest

from remit.adapters.cli.screen.terminal import Terminal
from tests.unit.adapters.desk import Desk


@pytest.mark.req("4.43")
def test_explain_says_one_sentence_from_allowed_to_because(desk: Desk) -> None:
    desk.waiting()
    desk.say("approve", "last")
    said = desk.say("explain", "last")
    (sentence,) = said.out.splitlines()
    parts = [
        "was allowed",
        "chose",
        "called write once",
        "spent",
        "updated its state from 1 verified",
        "ended as SUCCESS",
    ]
    assert [sentence.index(part) for part in parts] == sorted(sentence.index(part) for part in parts)
    assert desk.say("explain", "last", "--json").values["sentence"] == sentence


def test_at_a_terminal_a_sentence_is_broken_between_words(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.ended()
    whole = desk.say("explain", "last").out
    monkeypatch.setattr(Terminal, "is_a_terminal", True)
    monkeypatch.setattr(Terminal, "columns", 40)
    lines = desk.say("explain", "last").out.splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) + "\n" == whole
