"""Tool calls, told as they happen."""

from itertools import count

import pytest

from remit.adapters.cli.screen.call_lines import CallTeller, short
from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import (
    Arrival,
    ChildEnded,
    ModelAnswered,
    ModelFailed,
    PauseRequested,
    ToolFailed,
    ToolReturned,
)
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, Packet, StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import (
    Answer,
    ApprovalCounted,
    CheckFailed,
    NodeEntered,
    OutcomeDoubted,
    QuestionSettled,
    RetryPlanned,
    ToolCallRefused,
)
from remit.core.journal.turn import Decision, Turn
from remit.core.record import BlobRef

HOSTILE = "\x1b[2J\u202e\u200b"
NOTHING = PauseRequested("ann")
CALL = CallTool("1.2", "c1", "look", "v", '{"place":"here"}', b"", "key", 1000, ())


PACKET = Packet(ProposedCall("c1", "write", "{}", b""), "v", "b", ("why",))
ASKED = AskHuman("3.2", AskPurpose.APPROVAL, Ending.CONFIRM_REQUIRED, 0, PACKET)
# The turns of every test follow each other, from the middle of a run on.
SEQ = count(1)


def turn(arrival: Arrival, *decisions: Decision) -> Turn:
    """A turn with this arrival and these decisions."""
    return Turn(seq=next(SEQ), at_ms=0, previous=b"", kernel=1, arrival=arrival, decisions=decisions)


def said(teller: CallTeller, arrival: Arrival, *decisions: Decision) -> list[str]:
    """The lines of a turn, without their colours."""
    return ["".join(text for text, _ in line) for line in teller.lines(turn(arrival, *decisions))]


def test_a_call_is_told_when_it_is_made_and_when_it_returns() -> None:
    teller = CallTeller()
    assert said(teller, ModelAnswered("0.1"), NodeEntered("act", "called_tools"), CALL) == [
        '  -> look {"place":"here"}'
    ]
    returned = ToolReturned("1.2", "nothing at here", b"", duration_ms=12)
    assert said(teller, returned) == ["  <- look nothing at here  12 ms"]


def test_a_call_that_failed_says_why() -> None:
    teller = CallTeller()
    said(teller, NOTHING, CALL)
    failed = ToolFailed("1.2", ErrorCode.TOOL_EXECUTION_FAILED, "ValueError: no")
    assert said(teller, failed) == ["  !! look failed (TOOL_EXECUTION_FAILED): ValueError: no"]
    assert said(teller, NOTHING, OutcomeDoubted("1.2", "ran out of time")) == ["  ?? look in doubt: ran out of time"]


def test_a_refused_call_names_the_tool_and_the_reason_as_data() -> None:
    refused = ToolCallRefused("c1", f"wipe{HOSTILE}", "TOOL_NOT_FOUND", f"no {HOSTILE}")
    (line,) = said(CallTeller(), NOTHING, refused)
    assert line.isprintable()
    assert line.startswith("  !! wipe\\x1b[2J\\u202e\\u200b refused (TOOL_NOT_FOUND): no ")


@pytest.mark.parametrize("answer", [Answer.REJECTED, Answer.EXPIRED, Answer.WITHDRAWN])
def test_a_held_call_that_gets_no_yes_is_told(answer: Answer) -> None:
    teller = CallTeller()
    assert said(teller, NOTHING, ASKED) == []
    assert said(teller, NOTHING, QuestionSettled("3.2", answer, "ann")) == [f"  !! write {answer.value} by ann"]
    said(teller, NOTHING, ASKED)
    assert said(teller, NOTHING, QuestionSettled("3.2", answer)) == [f"  !! write {answer.value}"]


def test_a_yes_is_told_by_the_call_that_follows_it() -> None:
    approved = CallTool("4.1", "c1", "write", "v", "{}", b"", "key", 1000, (), mutating=True, approved_by="ann")
    lines = said(CallTeller(), NOTHING, QuestionSettled("3.2", Answer.APPROVED, "ann"), approved)
    assert lines == ["  -> write {}  (approved by ann)"]


def test_a_no_is_told_once_by_the_refusal_that_follows_from_it() -> None:
    refused = ToolCallRefused("c1", "write", "APPROVAL_REJECTED", "ann said no")
    lines = said(CallTeller(), NOTHING, QuestionSettled("3.2", Answer.REJECTED, "ann"), refused)
    assert lines == ["  !! write refused (APPROVAL_REJECTED): ann said no"]


def test_a_run_beneath_is_told_like_a_call() -> None:
    teller = CallTeller()
    child = StartChild("1.2", "r.1.2", "do it", (), 1, 0, (), tool="helper")
    assert said(teller, NOTHING, child) == ["  -> helper do it"]
    assert said(teller, ChildEnded("1.2", Ending.SUCCESS, "done")) == ["  <- helper ended as SUCCESS: done"]


def test_a_run_beneath_that_failed_says_why_and_one_that_a_node_declares_has_its_name() -> None:
    teller = CallTeller()
    said(teller, NOTHING, StartChild("1.2", "r.1.2", "do it", (), 1, 0, (), node="replica"))
    ended = ChildEnded(
        "1.2", Ending.UNAVAILABLE_DEP, "", error=ErrorCode.INFERENCE_ENGINE_ERROR, message="it fell \x1b[2J"
    )
    assert said(teller, ended) == ["  !! replica ended as INFERENCE_ENGINE_ERROR: it fell \\x1b[2J"]
    assert said(teller, ChildEnded("1.2", Ending.TIMEOUT, "so far")) == ["  !! replica ended as TIMEOUT: so far"]


def test_a_model_that_is_asked_again_and_an_answer_that_fails_are_told() -> None:
    failed = ModelFailed("0.1", ErrorCode.INFERENCE_ENGINE_ERROR, "it fell")
    retried = RetryPlanned("0.1", 2, ErrorCode.INFERENCE_ENGINE_ERROR)
    assert said(CallTeller(), failed, retried, CheckFailed(("too long", "no"))) == [
        "  ?? the model failed (INFERENCE_ENGINE_ERROR); attempt 2 follows",
        "  !! the answer does not pass: too long; no",
    ]


def test_long_texts_are_cut_and_those_kept_elsewhere_named_by_their_size() -> None:
    assert short("x" * 50, 10) == "x" * 9 + "…"
    assert short(BlobRef(b"", 4096), 10) == "<4096 bytes>"


def test_one_of_two_approvals_and_a_question_that_is_passed_on_are_told() -> None:
    teller = CallTeller()
    said(teller, NOTHING, ASKED)
    assert said(teller, NOTHING, ApprovalCounted("3.2", f"ann{HOSTILE}")) == [
        "  ?? write approved by ann\\x1b[2J\\u202e\\u200b; another person must, too"
    ]
    assert said(teller, NOTHING, QuestionSettled("3.2", Answer.ESCALATED)) == [
        "  ?? write not answered in time; the next queue is asked"
    ]


def test_of_a_call_that_was_made_before_anybody_listened_its_outcome_is_told() -> None:
    returned = ToolReturned("1.2", "nothing at here", b"")
    assert said(CallTeller(), returned) == ["  <- a call nothing at here"]
    ended = ChildEnded("1.3", Ending.SUCCESS, "done")
    assert said(CallTeller(), ended) == ["  <- a call ended as SUCCESS: done"]
    assert said(CallTeller(), NOTHING, QuestionSettled("1.4", Answer.EXPIRED)) == ["  !! a call expired"]
    assert said(CallTeller(), NOTHING, OutcomeDoubted("1.5", "it was lost")) == ["  ?? a call in doubt: it was lost"]


def test_the_calls_of_the_next_run_are_told_by_their_own_names() -> None:
    teller = CallTeller()
    said(teller, NOTHING, CALL)
    next(SEQ)
    assert said(teller, ToolReturned("1.2", "x", b"")) == ["  <- a call x"]
