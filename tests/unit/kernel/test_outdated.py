"""Questions that were asked before more was known: they are withdrawn and asked anew, with what is true now."""

import pytest

from remit.core.failure import ArrivalFault
from remit.core.journal.arrivals import ApprovalGiven, Happened, PauseRequested, ResumeRequested, ToolReturned
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, packet_version
from remit.core.journal.rulings import Answer, QuestionSettled
from remit.core.limits.budget import Dimension
from tests.unit.kernel.builders import Run, lawful
from tests.unit.kernel.rules.test_host import held, hosted, proposed

UNKNOWN = "its outcome is not known"


def asked(run: Run, purpose: AskPurpose = AskPurpose.APPROVAL) -> AskHuman:
    (question,) = [one for one in run.open(AskHuman) if one.purpose is purpose]
    return question


def reasons(run: Run, purpose: AskPurpose = AskPurpose.APPROVAL) -> str:
    packet = asked(run, purpose).packet
    assert packet is not None
    return "; ".join(packet.reasons)


def test_a_held_call_is_told_of_the_outcome_that_came_meanwhile() -> None:
    run = Run(hosted())
    proposed(run, "write")
    before = held(run, call_id="again")
    assert UNKNOWN in reasons(run)
    spent = run.used(Dimension.HUMAN_REVIEWS), run.reserved(Dimension.HUMAN_REVIEWS)
    run.returns()
    assert UNKNOWN not in reasons(run)
    assert "committed" in reasons(run)
    (settled,) = run.now(QuestionSettled)
    assert (settled.command_id, settled.answer) == (before.id, Answer.WITHDRAWN)
    now = asked(run)
    assert (now.expires_at_ms, now.packet and now.packet.call) == (
        before.expires_at_ms,
        before.packet and before.packet.call,
    )
    assert sum(spent) == run.used(Dimension.HUMAN_REVIEWS) + run.reserved(Dimension.HUMAN_REVIEWS), "it is one review"
    lawful(run)


def test_a_yes_is_to_what_was_shown() -> None:
    run = Run(hosted())
    proposed(run, "write")
    before = held(run, call_id="again")
    assert before.packet is not None
    run.returns()
    late = ApprovalGiven(before.id, "ada", packet=packet_version(before.packet))
    assert run.fault_of(late) is ArrivalFault.DUPLICATE
    stale = ApprovalGiven(asked(run).id, "ada", packet=packet_version(before.packet))
    assert run.fault_of(stale) is ArrivalFault.PACKET_CHANGED
    run.approves()
    lawful(run)


@pytest.mark.parametrize("happened", [Happened.YES, Happened.NO])
def test_a_doubt_that_was_cleared_up_is_told_no_more(happened: Happened) -> None:
    run = Run(hosted())
    proposed(run, "write")
    run.loses()
    held(run, call_id="again")
    assert "is in doubt" in reasons(run)
    run.judges(happened)
    assert "is in doubt" not in reasons(run)
    assert UNKNOWN not in reasons(run)
    lawful(run)


def test_a_question_about_an_outcome_is_told_of_another_one() -> None:
    run = Run(hosted())
    for call_id in ("first", "second"):
        proposed(run, "write", call_id=call_id)
    second = run.open(CallTool)[1].id
    run.loses()
    assert UNKNOWN in reasons(run, AskPurpose.OUTCOME)
    before = asked(run, AskPurpose.OUTCOME)
    run.take(ToolReturned(second, '{"ok": true}', b"evidence", 50))
    assert asked(run, AskPurpose.OUTCOME) != before
    assert "committed" in reasons(run, AskPurpose.OUTCOME)
    run.judges(Happened.NO)
    lawful(run)


def test_what_is_about_another_tool_or_a_read_stays() -> None:
    run = Run(hosted())
    proposed(run, "put")
    proposed(run, "look", call_id="look")
    before = held(run, call_id="held")
    run.returns("look")
    run.returns("put")
    assert asked(run) == before
    lawful(run)


def test_a_paused_run_asks_anew_when_it_is_resumed() -> None:
    run = Run(hosted())
    proposed(run, "write")
    before = held(run, call_id="again")
    run.take(PauseRequested("ada"))
    run.returns()
    assert asked(run) == before, "while the run is paused nothing is asked"
    run.take(ResumeRequested("ada"))
    assert asked(run) != before
    assert "committed" in reasons(run)
    lawful(run)


def test_a_question_whose_reasons_hold_is_not_asked_anew() -> None:
    run = Run(hosted())
    before = held(run, call_id="held")
    run.take(PauseRequested("ada"))
    run.take(ResumeRequested("ada"))
    assert asked(run) == before
    lawful(run)
