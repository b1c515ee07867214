"""A person at the terminal of a run is asked what it asks; elsewhere the run waits."""

import sys

import pytest

from tests.unit.adapters.desk import Desk, Screen, calls
from tests.unit.adapters.talk import CTRL_C, Talker


@pytest.fixture
def talker(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Talker:
    return Talker(desk, monkeypatch)


def writing(desk: Desk, *texts: str) -> tuple[object, ...]:
    """A run that wants to write notes, one after the other."""
    script = desk.script(*(calls("write", text=text) for text in texts), "Written.")
    return ("run", "Write it", "--engine", script, "--tools", desk.tools())


def test_a_yes_at_the_terminal_lets_the_run_go_on_in_the_same_command(talker: Talker) -> None:
    screen = talker.types("y", command=writing(talker.desk, "hello"))
    assert (talker.code, talker.desk.notes) == (0, ["hello"])
    assert '  -> write {"text":"hello"}  (approved by ' in screen
    assert "  <- write hello" in screen
    assert screen.endswith("\nWritten.\n")
    assert "answer with" not in screen


def test_every_question_of_a_run_is_asked_and_a_no_is_told_with_its_reason(talker: Talker) -> None:
    screen = talker.types("y", "n not today", command=writing(talker.desk, "one", "two"))
    assert (talker.code, talker.desk.notes) == (0, ["one"])
    assert "!! write refused (APPROVAL_REJECTED)" in screen
    assert "not today" in screen
    assert "this answer follows a call of write that did not succeed" in screen
    assert "ended as PARTIAL_SUCCESS: " in screen


def test_what_a_model_says_after_a_no_is_no_answer(talker: Talker) -> None:
    screen = talker.types("n", command=writing(talker.desk, "hello"))
    assert (talker.code, talker.desk.notes) == (4, [])
    assert "ended as PERMISSION_DENIED: " in screen
    assert "what the model said last is not accepted as an answer" in screen


@pytest.mark.parametrize("said", ["l", CTRL_C])
def test_a_question_that_is_left_open_is_not_shown_again_but_how_to_answer_it(talker: Talker, said: str) -> None:
    screen = talker.types(said, command=writing(talker.desk, "hello"))
    assert (talker.code, talker.desk.notes) == (3, [])
    assert screen.count('write(text="hello")') == 1
    assert "waits for a person: CONFIRM_REQUIRED" in screen
    assert "     answer with: remit approve" in screen


def test_a_resumed_run_asks_again_and_all_of_it_is_shown_on_demand(talker: Talker) -> None:
    run_id = talker.desk.waiting()
    screen = talker.types("f", "y", command=("resume", run_id, "--by", "ann"))
    assert (talker.code, talker.desk.notes) == (0, ["hello"])
    assert '     text = "hello"\n' in screen
    assert "(approved by ann)" in screen


def test_a_question_is_shown_in_full_where_that_is_wanted(talker: Talker) -> None:
    screen = talker.types("l", command=(*writing(talker.desk, "hello"), "--full"))
    assert '     text = "hello"\n' in screen


def test_an_answer_that_is_refused_is_told_and_the_question_stays_open(talker: Talker) -> None:
    boundary = talker.desk.file("strict.yaml", "name: strict\nextends: standard\nself_approval: false\n")
    command = (*writing(talker.desk, "hello"), "--boundary", boundary)
    screen = talker.types("y", command=command)
    assert (talker.code, talker.desk.notes) == (3, [])
    assert "error SELF_APPROVAL" in screen


@pytest.mark.parametrize("hidden", ["stdin", "stderr"])
def test_nobody_is_asked_who_does_not_see_the_question_or_cannot_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    screens = {name: Screen() for name in ("stdin", "stdout", "stderr") if name != hidden}
    for name, screen in screens.items():
        monkeypatch.setattr(sys, name, screen)
    assert desk.say(*writing(desk, "hello")).code == 3
    monkeypatch.undo()
    assert "allow it?" not in "".join(screen.getvalue() for screen in screens.values())


def test_calls_of_a_run_that_is_approved_elsewhere_are_told_at_the_terminal(talker: Talker) -> None:
    run_id = talker.desk.waiting()
    screen = talker.types(command=("approve", run_id, "--by", "ann"))
    assert '  -> write {"text":"hello"}  (approved by ann)' in screen
