"""Decisions are matched with the calls they are about, whatever ids the calls have."""

from typing import Any

import pytest

from remit.core.failure import Ending, Refusal
from remit.core.journal.commands import (
    AskHuman,
    AskPurpose,
    CallTool,
    Packet,
    ReconcileTool,
    SetTimer,
    StartChild,
    TimerPurpose,
)
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import Answer, FallbackChosen, QuestionSettled, ToolCallRefused
from remit.orchestrate.facts.decided_calls import NOBODY, Ordered, Proposals


def call(call_id: str = "x", tool: str = "pay", mark: bytes = b"1") -> ProposedCall:
    return ProposedCall(call_id, tool, "{}", mark)


def orders(command_id: str, one: ProposedCall | None = None) -> CallTool:
    one = one or call()
    return CallTool(command_id, one.call_id, one.tool, "", "{}", one.arguments_hash, "key", 1, ())


def asks(command_id: str, one: ProposedCall | None = None, about: str = "") -> AskHuman:
    packet = Packet(one or call(), "", "", (), about=about)
    return AskHuman(command_id, AskPurpose.APPROVAL, Ending.CONFIRM_REQUIRED, 1, packet)


def refuses(one: ProposedCall | None = None) -> ToolCallRefused:
    one = one or call()
    return ToolCallRefused(one.call_id, one.tool, Refusal.NOT_OFFERED, "", one.arguments_hash)


def brought(*calls: ProposedCall, names: tuple[str, ...] = ("a", "b", "c")) -> Proposals:
    proposals = Proposals()
    proposals.bring(calls, names[: len(calls)])
    return proposals


def named(proposals: Proposals, *decisions: Any) -> list[str]:
    return [name for _, name in proposals.decided(decisions)]


def test_calls_that_look_alike_are_decided_in_their_order() -> None:
    proposals = brought(call(), call(), call())
    assert named(proposals, orders("1.1"), asks("1.2"), refuses()) == ["a", "b", "c"]
    assert proposals.ordered("1.1") == Ordered("a", "pay")
    assert proposals.asked("1.2") == "b"


def test_a_decision_is_about_the_call_with_its_id_its_tool_and_its_arguments() -> None:
    calls = (call(mark=b"1"), call(mark=b"2"), call("y", "mail"))
    assert named(brought(*calls), orders("1.1", calls[2]), refuses(calls[1]), asks("1.2", calls[0])) == ["c", "b", "a"]
    assert named(brought(*calls), orders("1.1", call("z")), orders("1.2", call("y"))) == []


def test_a_call_that_nobody_judged_has_no_name_and_is_not_taken_for_another() -> None:
    proposals = brought(call(), call(), names=("", "b"))
    assert named(proposals, refuses(), orders("1.1")) == ["b"]


def test_what_was_undecided_is_over_when_other_calls_come() -> None:
    proposals = brought(call())
    proposals.bring((call("y"),), ("b",))
    assert named(proposals, refuses(), refuses(call("y"))) == ["b"]


def test_the_answer_to_a_question_is_about_the_call_it_holds() -> None:
    proposals = brought(call(), call())
    named(proposals, asks("1.1"), asks("1.2"))
    assert named(proposals, QuestionSettled("1.2", Answer.APPROVED), orders("2.1")) == ["b"]
    assert named(proposals, QuestionSettled("1.1", Answer.EXPIRED), refuses()) == ["a"]
    assert (proposals.asked("1.1"), proposals.asked("1.2")) == ("", "")


def test_a_question_that_is_passed_on_or_asked_anew_holds_the_same_call() -> None:
    proposals = brought(call())
    named(proposals, asks("1.1"))
    assert named(proposals, QuestionSettled("1.1", Answer.ESCALATED), asks("2.1")) == ["a"]
    assert named(proposals, QuestionSettled("2.1", Answer.WITHDRAWN), asks("3.1")) == ["a"]
    assert proposals.asked("3.1") == "a"


def test_a_withdrawn_question_says_nothing_of_other_calls() -> None:
    proposals = brought(call(), call("y"))
    named(proposals, asks("1.1"))
    settled = QuestionSettled("1.1", Answer.WITHDRAWN)
    assert named(proposals, settled, refuses(call("y"))) == ["b"]
    assert named(brought(call()), QuestionSettled("9.9", Answer.APPROVED), orders("1.1")) == ["a"]


def test_changed_arguments_are_another_call_in_the_same_place() -> None:
    proposals = brought(call())
    named(proposals, asks("1.1"))
    proposals.change("1.1", "changed")
    changed = call(mark=b"other")
    assert named(proposals, QuestionSettled("1.1", Answer.APPROVED), orders("2.1", changed)) == ["changed"]


def test_a_tool_that_stands_in_performs_the_same_call() -> None:
    proposals = brought(call())
    named(proposals, orders("1.1"))
    assert named(proposals, FallbackChosen("1.1", "twin"), orders("2.1", call(tool="twin"))) == ["a"]
    assert proposals.ordered("2.1") == Ordered("a", "twin")
    assert named(proposals, FallbackChosen("9.9", "twin"), orders("3.1", call(tool="twin"))) == []


def test_an_inquiry_is_answered_for_the_command_it_is_about() -> None:
    proposals = brought(call())
    named(
        proposals, orders("1.1"), ReconcileTool("2.1", "1.1", "pay", "key", 1), ReconcileTool("2.2", "9", "pay", "", 1)
    )
    assert (proposals.ordered("2.1"), proposals.ordered("2.2")) == (Ordered("a", "pay"), NOBODY)


@pytest.mark.parametrize(
    "decision",
    [
        asks("1.1", about="0.9"),
        AskHuman("1.1", AskPurpose.QUESTION, Ending.MISSING_INFO, 1),
        SetTimer("1.1", 1, TimerPurpose.RETRY),
        StartChild("1.1", "run.1.1", "", (), 0, 0, (), node="step"),
    ],
)
def test_what_is_about_no_call_is_passed_over(decision: Any) -> None:
    proposals = brought(call())
    assert named(proposals, decision) == []
    assert named(proposals, orders("2.1")) == ["a"]


def test_a_question_of_the_model_and_a_child_it_asked_for_are_calls() -> None:
    asking, child = call("q", "ask_user"), call("h", "helper")
    proposals = brought(asking, child)
    question = AskHuman("1.1", AskPurpose.QUESTION, Ending.MISSING_INFO, 1, call_id="q", tool="ask_user")
    started = StartChild("1.2", "run.1.2", "", (), 0, 0, (), "h", "helper", b"1")
    assert named(proposals, question, started) == ["a", "b"]
    assert proposals.ordered("1.1") == Ordered("a", "ask_user")


def test_a_caller_that_knows_more_says_what_performs_a_command() -> None:
    proposals = Proposals()
    proposals.order("1.1", Ordered("", "read_diary"))
    assert proposals.ordered("1.1") == Ordered("", "read_diary")
