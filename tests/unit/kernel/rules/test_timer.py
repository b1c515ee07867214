"""A moment has come: to try again, to take silence for a no, or to stop because the time is up."""

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import AskHuman, CallModel, CallTool, SetTimer, TimerPurpose
from tests.unit.kernel.builders import Run, wants


def test_a_timer_is_settled_when_it_fires() -> None:
    run = Run()
    run.breaks()
    timer = next(timer for timer in run.open(SetTimer) if timer.purpose is TimerPurpose.RETRY)
    run.rings(TimerPurpose.RETRY)
    assert run.now(rulings.CommandSettled) == [rulings.CommandSettled(timer.id)]
    assert run.fault_of(arrivals.TimerFired(timer.id)) is ArrivalFault.DUPLICATE


def test_a_retry_asks_again_without_entering_the_node_again() -> None:
    run = Run()
    run.breaks()
    run.rings(TimerPurpose.RETRY)
    assert len(run.open(CallModel)) == 1
    assert run.path() == ["prepare", "think"]


def test_a_retry_that_is_due_during_a_pause_waits_for_the_resume() -> None:
    run = Run()
    run.breaks()
    run.take(arrivals.PauseRequested("ada"))
    run.rings(TimerPurpose.RETRY)
    assert run.open(CallModel) == []
    run.take(arrivals.ResumeRequested("ada"))
    assert run.open(CallModel)[0].attempt == 2


def test_the_timer_of_an_answered_question_is_heard_no_more() -> None:
    run = Run()
    run.proposes(wants("write"))
    timer = next(timer for timer in run.open(SetTimer) if timer.purpose is TimerPurpose.APPROVAL)
    run.approves()
    assert run.fault_of(arrivals.TimerFired(timer.id)) is ArrivalFault.DUPLICATE


def test_a_timer_that_fires_too_soon_does_not_cut_an_approval_short() -> None:
    run = Run()
    run.proposes(wants("write"))
    question = run.question()
    timer = next(timer for timer in run.open(SetTimer) if timer.purpose is TimerPurpose.APPROVAL)
    run.take(arrivals.TimerFired(timer.id), after_ms=1)
    assert run.open(AskHuman) == [question]
    again = run.now(SetTimer)[0]
    assert (again.due_at_ms, again.about, again.purpose) == (timer.due_at_ms, question.id, TimerPurpose.APPROVAL)
    run.rings(TimerPurpose.APPROVAL)
    assert run.open(AskHuman) == []


def test_the_deadline_ends_the_run() -> None:
    run = Run()
    run.rings(TimerPurpose.DEADLINE)
    assert run.state.end.ending is Ending.TIMEOUT


@pytest.mark.parametrize("is_begun", [False, True])
def test_the_deadline_doubts_a_call_unless_it_certainly_had_not_begun(is_begun: bool) -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    (call,) = run.open(CallTool)
    timer = next(timer for timer in run.open(SetTimer) if timer.purpose is TimerPurpose.DEADLINE)
    fired = arrivals.TimerFired(timer.id, () if is_begun else (call.id,))
    # The clock stood still while a person was asked.
    run.take(fired, after_ms=2 * (timer.due_at_ms - run.now_ms))
    assert run.state.end.ending is Ending.TIMEOUT
    assert list(run.state.commands.doubted) == ([call.id] if is_begun else [])
    if not is_begun:
        settled = rulings.CallSettled(call.id, rulings.Rung.OBSERVED, code=ErrorCode.CANCELLED_SIGNAL)
        assert settled in run.now(rulings.CallSettled)
