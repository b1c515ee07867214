"""Every kind of arrival is told again as the report it came from; completing it gives the very arrival."""

from typing import Any, get_args

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival, Election
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.tools import ToolCall
from remit.core.record import Text, replace
from remit.core.run.inference import ModelResult
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_schema import MESSAGE_CHARS_MAX, Violation
from remit.orchestrate.executors import reports
from remit.orchestrate.facts.facts import SPOKEN
from remit.orchestrate.history.retold import REPORTED, report_behind, with_words_of

# Kinds that are reported as they stand: facts make their texts fit, which changes nothing in one that is fit, or
# complete nothing at all.
AS_THEY_STAND = {
    *SPOKEN,
    arrivals.ModelFailed,
    arrivals.ToolOutcomeLost,
    arrivals.TimerFired,
    arrivals.ChildSuspended,
    arrivals.ChildLost,
}
USAGE = TokenUsage(prompt_tokens=5, output_tokens=2)
CALL = ProposedCall("c", "t", "{}", b"hash", (Violation("/n", "type", '1.0 is not of type "string"'),))


def read(text: Text) -> str:
    return text if isinstance(text, str) else "long"


def answered(*calls: ProposedCall) -> arrivals.ModelAnswered:
    return arrivals.ModelAnswered("0.1", calls=calls)


def with_message(message: str, keyword: str = "type") -> ProposedCall:
    return replace(CALL, violations=(Violation("/n", keyword, message),))


def test_every_kind_of_arrival_is_told_again_or_stands_for_itself() -> None:
    assert {*REPORTED, *AS_THEY_STAND, arrivals.RunStarted} == set(get_args(Arrival))
    assert not set(REPORTED) & AS_THEY_STAND


@pytest.mark.parametrize(
    ("arrival", "report"),
    [
        (arrivals.ToolFailed("0.1", "TOOL_TIMEOUT", "slow"), reports.ToolBroke("0.1", "TOOL_TIMEOUT", "slow")),  # type: ignore[arg-type]
        (arrivals.ContextFound("0.1", "found"), reports.ContextSaid("0.1", "found")),
        (arrivals.ContextFound("0.1", "found", relevance_ppm=5), reports.ContextSaid("0.1", "found", 5)),
        (
            arrivals.ChildEnded(
                "0.1", Ending.IMPOSSIBLE, "no", ((0, 5),), 20, ErrorCode.INFERENCE_ENGINE_ERROR, "down", USAGE
            ),
            reports.ChildSaid(
                "0.1", Ending.IMPOSSIBLE, "no", ((0, 5),), ErrorCode.INFERENCE_ENGINE_ERROR, "down", USAGE
            ),
        ),
        (
            arrivals.ChildEnded("0.1", Ending.SUCCESS, "yes", stood_ms=7),
            reports.ChildSaid("0.1", Ending.SUCCESS, "yes", stood_ms=7),
        ),
        (
            arrivals.CodeReturned("0.1", "[1]", kind="json", election=Election(0, 2, 7)),
            arrivals.CodeReturned("0.1", "[1]", kind="json", election=Election(0, 2, 7)),
        ),
        (arrivals.CodeReturned("0.1", calls=(CALL,)), reports.CodeProposed("0.1", (ToolCall("c", "t", {}),))),
        (
            arrivals.ModelAnswered("0.1", "yes", model="another"),
            reports.ModelSaid("0.1", ModelResult("yes", model="another")),
        ),
        (arrivals.QuestionAnswered("0.1", "ada", "yes"), reports.PersonSaid("ada", "yes", "0.1")),
        (arrivals.FeedbackGiven("ada", "more"), reports.PersonSaid("ada", "more")),
        (arrivals.ApprovalGiven("0.1", "ada"), reports.PersonApproved("0.1", "ada")),
        (arrivals.ApprovalGiven("0.1", "ada", CALL), reports.PersonApproved("0.1", "ada", {})),
        (arrivals.TimerFired("0.1"), arrivals.TimerFired("0.1")),
        (
            arrivals.ModelAnswered("0.1", "yes", offered=("t",)),
            reports.ModelSaid("0.1", ModelResult("yes"), offered=("t",)),
        ),
    ],
)
def test_a_report_holds_texts_and_no_facts(arrival: Arrival, report: Any) -> None:
    assert report_behind(arrival, read) == report


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('1.0 is not of type "string"', '1 is not of type "string"'),
        ("-0.0 is too much", "0 is too much"),
        ("x" * MESSAGE_CHARS_MAX, "y"),
    ],
)
def test_words_that_only_spell_a_number_differently_are_taken_from_the_record(was: str, now: str) -> None:
    recorded, completed = answered(with_message(was)), answered(with_message(now))
    assert with_words_of(recorded, completed) == recorded
    proposed = arrivals.CodeReturned("0.1", calls=(with_message(was),))
    assert with_words_of(proposed, replace(proposed, calls=(with_message(now),))) == proposed
    given = arrivals.ApprovalGiven("0.1", "ada", with_message(was))
    assert with_words_of(given, replace(given, modified=with_message(now))) == given


def test_words_that_say_something_else_are_not() -> None:
    for now in (with_message("2 is too much"), with_message("1.0 is not", "maximum"), replace(CALL, violations=())):
        completed = answered(now)
        assert with_words_of(answered(CALL), completed) is completed


def test_arrivals_that_are_the_same_or_not_alike_at_all_stay_as_completed() -> None:
    for recorded, completed in (
        (answered(CALL), answered(CALL)),
        (answered(CALL), answered()),
        (arrivals.ApprovalGiven("0.1", "ada", CALL), arrivals.ApprovalGiven("0.1", "ada", CALL)),
        (arrivals.ApprovalGiven("0.1", "ada", CALL), arrivals.ApprovalGiven("0.1", "ada")),
        (answered(CALL), arrivals.TimerFired("0.1")),
    ):
        assert with_words_of(recorded, completed) is completed
