"""The wall clock: a deadline that stands still while a person is waited for."""

from remit.core import arrivals
from remit.core.budget import Budget, Dimension
from remit.core.commands import CallModel, CallTool, SetTimer, StartChild, TimerPurpose
from remit.core.failure import Ending, ErrorCode
from remit.core.graph import Node, NodeKind
from remit.kernel.clock import deadline_at_ms, is_past_deadline
from remit.testing.scenarios import LEASE
from tests.unit.kernel.builders import BEGINS_AT_MS, Run, in_line, manifest_of, wants, with_deadline

MINUTE_MS = 60_000


def minute_long() -> Run:
    return Run(manifest_of(budget=Budget(wall_clock_ms=MINUTE_MS)))


def test_a_run_whose_time_is_up_ends_with_the_timer() -> None:
    run = minute_long()
    run.rings(TimerPurpose.DEADLINE)
    assert (run.state.ending, run.state.error) == (Ending.TIMEOUT, ErrorCode.CANCELLED_TIMEOUT)
    assert (
        run.state.message == f"the deadline at {BEGINS_AT_MS + MINUTE_MS} ms has passed, wall_clock_ms_max={MINUTE_MS}"
    )


def test_a_run_past_its_deadline_orders_nothing_even_before_the_timer_fires() -> None:
    run = minute_long()
    run.proposes(wants("look"))
    run.take(arrivals.ToolReturned(run.open(CallTool)[0].id, "{}", b"evidence"), after_ms=MINUTE_MS)
    assert run.state.ending is Ending.TIMEOUT
    assert run.now(CallModel) == []


def test_a_millisecond_before_the_deadline_everything_goes_on() -> None:
    run = minute_long()
    run.take(arrivals.FeedbackGiven("ada", "hurry"), after_ms=MINUTE_MS - 1)
    assert run.state.ending is None
    run.take(arrivals.FeedbackGiven("ada", "hurry"), after_ms=1)
    assert run.state.ending is Ending.TIMEOUT


def test_a_run_that_starts_late_ends_at_once() -> None:
    run = Run(with_deadline(manifest_of(), BEGINS_AT_MS))
    assert run.state.ending is Ending.TIMEOUT
    assert run.all(CallModel) == []


def test_the_deadline_moves_along_while_a_person_is_asked() -> None:
    run = minute_long()
    run.proposes(wants("write"))
    run.approves(after_ms=3_600_000)
    assert run.state.ending is None
    assert run.state.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + 3_600_000
    assert run.state.stood_ms == 3_600_000


def test_the_deadline_moves_along_while_the_run_is_paused() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"), after_ms=0)
    run.take(arrivals.ResumeRequested("ada"), after_ms=3_600_000)
    assert run.state.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + 3_600_000


def test_two_reasons_to_stand_still_count_the_time_once() -> None:
    run = minute_long()
    run.proposes(wants("write"))
    run.take(arrivals.PauseRequested("ada"), after_ms=1_000)
    run.rejects()
    run.take(arrivals.ResumeRequested("ada"), after_ms=1_000)
    assert run.state.stood_ms == 1_000 + 10 + 1_000


def test_the_time_is_never_up_while_the_clock_stands_still() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"))
    run.now_ms += 10 * MINUTE_MS
    tally = run.tally()
    assert not is_past_deadline(tally)
    assert deadline_at_ms(tally) == run.state.deadline_at_ms + 10 * MINUTE_MS


def test_a_deadline_timer_that_fires_while_the_clock_stands_still_is_set_again_when_it_runs() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"))
    run.rings(TimerPurpose.DEADLINE)
    assert run.open(SetTimer) == []
    run.take(arrivals.ResumeRequested("ada"))
    timer = run.open(SetTimer)[0]
    assert (timer.purpose, timer.due_at_ms) == (TimerPurpose.DEADLINE, run.state.deadline_at_ms)


def test_a_deadline_timer_that_still_runs_is_not_set_twice() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ResumeRequested("ada"))
    assert len(run.open(SetTimer)) == 1


def test_a_deadline_timer_that_fires_early_is_set_for_the_moment_that_counts() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"), after_ms=0)
    run.take(arrivals.ResumeRequested("ada"), after_ms=1_000)
    run.rings(TimerPurpose.DEADLINE)
    assert run.state.ending is None
    assert run.open(SetTimer)[0].due_at_ms == BEGINS_AT_MS + MINUTE_MS + 1_000


def test_a_pause_that_comes_too_late_does_not_save_the_run() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"), after_ms=MINUTE_MS)
    assert run.state.ending is Ending.TIMEOUT


def test_a_child_started_after_a_long_wait_for_a_person_gets_the_deadline_that_stood_still() -> None:
    ask = Node("ask", NodeKind.HUMAN, prompt="Which city?")
    child = Node("child", NodeKind.CHILD, prompt="go", lease=LEASE)
    run = Run(manifest_of(graph=in_line(ask, child)))
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "Rome", 20), after_ms=3_600_000)
    assert run.open(StartChild)[0].deadline_at_ms == run.state.deadline_at_ms > run.now_ms


def test_the_deadline_moves_along_while_a_child_waits_for_a_person() -> None:
    run = minute_long()
    run.proposes(wants("ask_child"))
    run.take(arrivals.ChildSuspended(run.open(StartChild)[0].id, Ending.CONFIRM_REQUIRED))
    run.now_ms += 3_600_000
    run.heard_from_child()
    assert run.state.ending is None
    assert run.state.stood_ms == 3_600_000 + 10
    assert run.state.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + 3_600_000 + 10


def test_the_clock_stands_still_until_the_last_child_that_waits_has_ended() -> None:
    fan = Node("fan", NodeKind.MAP, prompt="go", children=2, lease=LEASE, visits_max=1)
    run = Run(manifest_of(graph=in_line(fan)))
    for child in run.open(StartChild):
        run.take(arrivals.ChildSuspended(child.id, Ending.CONFIRM_REQUIRED))
    run.heard_from_child()
    assert run.state.is_standing
    run.heard_from_child()
    assert not run.state.is_standing


def test_the_clock_is_a_cap_of_the_budget() -> None:
    assert minute_long().state.caps[Dimension.WALL_CLOCK_MS] == MINUTE_MS
