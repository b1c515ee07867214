"""The wall clock: a deadline that stands still while a person is waited for."""

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.commands import CallModel, CallTool, SetTimer, StartChild, TimerPurpose
from remit.core.limits.budget import Budget, Dimension
from remit.core.work.graph import Node, NodeKind
from remit.kernel.budget.wall_clock import deadline_at_ms, deadline_beneath, is_past_deadline, waited_by
from remit.kernel.graph.condition_view import clock_ms_used
from tests.simulation.scenarios import LEASE
from tests.unit.kernel.builders import BEGINS_AT_MS, Run, in_line, manifest_of, wants, with_deadline

MINUTE_MS = 60_000


def minute_long() -> Run:
    return Run(manifest_of(budget=Budget(wall_clock_ms=MINUTE_MS)))


def test_a_run_whose_time_is_up_ends_with_the_timer() -> None:
    run = minute_long()
    run.rings(TimerPurpose.DEADLINE)
    assert (run.state.end.ending, run.state.end.error) == (Ending.TIMEOUT, ErrorCode.CANCELLED_TIMEOUT)
    assert (
        run.state.end.message
        == f"the deadline at {BEGINS_AT_MS + MINUTE_MS} ms has passed, wall_clock_ms_max={MINUTE_MS}"
    )


def test_a_run_past_its_deadline_orders_nothing_even_before_the_timer_fires() -> None:
    run = minute_long()
    run.proposes(wants("look"))
    run.take(arrivals.ToolReturned(run.open(CallTool)[0].id, "{}", b"evidence"), after_ms=MINUTE_MS)
    assert run.state.end.ending is Ending.TIMEOUT
    assert run.now(CallModel) == []


def test_a_millisecond_before_the_deadline_everything_goes_on() -> None:
    run = minute_long()
    run.take(arrivals.FeedbackGiven("ada", "hurry"), after_ms=MINUTE_MS - 1)
    assert run.state.end.ending is None
    run.take(arrivals.FeedbackGiven("ada", "hurry"), after_ms=1)
    assert run.state.end.ending is Ending.TIMEOUT


def test_a_run_that_starts_late_ends_at_once() -> None:
    run = Run(with_deadline(manifest_of(), BEGINS_AT_MS))
    assert run.state.end.ending is Ending.TIMEOUT
    assert run.all(CallModel) == []


def test_the_deadline_moves_along_while_a_person_is_asked() -> None:
    run = minute_long()
    run.proposes(wants("write"))
    run.approves(after_ms=3_600_000)
    assert run.state.end.ending is None
    assert run.state.clock.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + 3_600_000
    assert run.state.clock.stood_ms == 3_600_000


def test_the_deadline_moves_along_while_the_run_is_paused() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"), after_ms=0)
    run.take(arrivals.ResumeRequested("ada"), after_ms=3_600_000)
    assert run.state.clock.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + 3_600_000


def test_two_reasons_to_stand_still_count_the_time_once() -> None:
    run = minute_long()
    run.proposes(wants("write"))
    run.take(arrivals.PauseRequested("ada"), after_ms=1_000)
    run.rejects()
    run.take(arrivals.ResumeRequested("ada"), after_ms=1_000)
    assert run.state.clock.stood_ms == 1_000 + 10 + 1_000


def test_the_time_is_never_up_while_the_clock_stands_still() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"))
    run.now_ms += 10 * MINUTE_MS
    tally = run.tally()
    assert not is_past_deadline(tally)
    assert deadline_at_ms(tally) == run.state.clock.deadline_at_ms + 10 * MINUTE_MS


def test_a_deadline_timer_that_fires_while_the_clock_stands_still_is_set_again_when_it_runs() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"))
    run.rings(TimerPurpose.DEADLINE)
    assert run.open(SetTimer) == []
    run.take(arrivals.ResumeRequested("ada"))
    timer = run.open(SetTimer)[0]
    assert (timer.purpose, timer.due_at_ms) == (TimerPurpose.DEADLINE, run.state.clock.deadline_at_ms)


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
    assert run.state.end.ending is None
    assert run.open(SetTimer)[0].due_at_ms == BEGINS_AT_MS + MINUTE_MS + 1_000


def test_a_pause_that_comes_too_late_does_not_save_the_run() -> None:
    run = minute_long()
    run.take(arrivals.PauseRequested("ada"), after_ms=MINUTE_MS)
    assert run.state.end.ending is Ending.TIMEOUT


def test_a_child_started_after_a_long_wait_for_a_person_gets_the_deadline_that_stood_still() -> None:
    ask = Node("ask", NodeKind.HUMAN, prompt="Which city?")
    child = Node("child", NodeKind.CHILD, prompt="go", lease=LEASE)
    run = Run(manifest_of(graph=in_line(ask, child)))
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "Rome", 20), after_ms=3_600_000)
    assert run.open(StartChild)[0].deadline_at_ms == run.state.clock.deadline_at_ms > run.now_ms


def test_a_child_that_begins_later_than_it_was_ordered_has_the_time_that_its_run_has_then() -> None:
    run = minute_long()
    run.proposes(wants("ask_child"))
    ordered = run.open(StartChild)[0].deadline_at_ms
    assert deadline_beneath(run.state, run.now_ms) == ordered
    run.take(arrivals.PauseRequested("ada"), after_ms=0)
    assert deadline_beneath(run.state, run.now_ms + 3_600_000) == ordered + 3_600_000
    run.take(arrivals.ResumeRequested("ada"), after_ms=3_600_000)
    assert deadline_beneath(run.state, run.now_ms) == run.state.clock.deadline_at_ms == ordered + 3_600_000
    assert deadline_beneath(run.state, run.now_ms, timeout_ms=5) == run.now_ms + 5
    assert deadline_beneath(run.state, run.now_ms, timeout_ms=2 * MINUTE_MS) == ordered + 3_600_000


def test_the_deadline_moves_along_while_a_child_waits_for_a_person() -> None:
    run = minute_long()
    run.proposes(wants("ask_child"))
    run.take(arrivals.ChildSuspended(run.open(StartChild)[0].id, Ending.CONFIRM_REQUIRED))
    run.now_ms += 3_600_000
    run.heard_from_child()
    assert run.state.end.ending is None
    assert run.state.clock.stood_ms == 3_600_000 + 10
    assert run.state.clock.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + 3_600_000 + 10


def test_the_clock_stands_still_until_the_last_child_that_waits_has_ended() -> None:
    fan = Node("fan", NodeKind.MAP, prompt="go", children=2, lease=LEASE, visits_max=1)
    run = Run(manifest_of(graph=in_line(fan)))
    for child in run.open(StartChild):
        run.take(arrivals.ChildSuspended(child.id, Ending.CONFIRM_REQUIRED))
    run.heard_from_child()
    assert run.state.clock.is_standing
    run.heard_from_child()
    assert not run.state.clock.is_standing


def with_child_held(run: Run, number: int = 1) -> str:
    """Start a child that waits for a person at once; the command that started it."""
    run.proposes(wants("ask_child", number))
    child = run.open(StartChild)[0].id
    run.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED), after_ms=0)
    return child


def ends(run: Run, child: str, *, stood_ms: int, after_ms: int) -> None:
    ended = arrivals.ChildEnded(child, Ending.SUCCESS, "found it", tokens_bound=25, stood_ms=stood_ms)
    run.take(ended, after_ms=after_ms)


def test_what_a_child_worked_after_it_had_waited_is_time_of_its_parent() -> None:
    run = minute_long()
    ends(run, with_child_held(run), stood_ms=3_600_000, after_ms=3_600_000 + 20_000)
    assert run.state.clock.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + 3_600_000
    assert (run.state.clock.stood_ms, run.state.clock.supposed_ms, run.state.clock.standstill) == (3_600_000, 0, None)
    assert clock_ms_used(run.tally()) == 10 + 20_000


def test_a_run_whose_child_worked_until_the_time_was_up_ends_in_the_turn_that_tells_it() -> None:
    run = minute_long()
    ends(run, with_child_held(run), stood_ms=1_000, after_ms=1_000 + MINUTE_MS)
    assert run.state.end.ending is Ending.TIMEOUT
    assert run.now(CallModel) == []


def test_children_that_wait_briefly_and_work_long_do_not_stretch_the_time_of_their_parent() -> None:
    run = Run(manifest_of(budget=Budget(wall_clock_ms=600_000)))
    for number in range(4):
        if run.state.end.ending is None:
            ends(run, with_child_held(run, number), stood_ms=5, after_ms=591_000)
    assert run.state.end.ending is Ending.TIMEOUT
    assert run.now_ms - BEGINS_AT_MS < 2 * 600_000


def test_a_child_that_does_not_say_how_long_it_waited_is_taken_to_have_waited_all_the_time() -> None:
    run = minute_long()
    ends(run, with_child_held(run), stood_ms=-1, after_ms=3_600_000)
    assert (run.state.clock.stood_ms, run.state.clock.supposed_ms) == (3_600_000, 3_600_000)
    assert (run.state.end.ending, waited_by(run.state)) == (None, 0)


def test_the_timer_is_set_for_the_deadline_that_is_left_once_the_child_has_told() -> None:
    run = minute_long()
    child = with_child_held(run)
    run.rings(TimerPurpose.DEADLINE)
    assert run.open(SetTimer) == []
    stood_ms = run.now_ms - BEGINS_AT_MS - 1_010
    ends(run, child, stood_ms=stood_ms, after_ms=1_000)
    (timer,) = run.open(SetTimer)
    assert timer.due_at_ms == run.state.clock.deadline_at_ms == BEGINS_AT_MS + MINUTE_MS + stood_ms


def test_a_pause_while_a_child_works_counts_and_is_not_added_to_what_the_child_waited() -> None:
    run = minute_long()
    child = with_child_held(run)
    run.take(arrivals.PauseRequested("ada"), after_ms=1_000)
    run.take(arrivals.ResumeRequested("ada"), after_ms=7_000)
    ends(run, child, stood_ms=5_000, after_ms=2_000)
    assert run.state.clock.stood_ms == 7_000


def test_waiting_that_a_parent_heard_of_only_after_a_pause_is_counted_once() -> None:
    run = minute_long()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0].id
    run.take(arrivals.PauseRequested("ada"), after_ms=0)
    run.take(arrivals.ResumeRequested("ada"), after_ms=4_000)
    run.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED), after_ms=0)
    # It waited all the while, and two seconds more.
    ends(run, child, stood_ms=6_000, after_ms=30_000)
    assert run.state.clock.stood_ms == 6_000


def test_a_question_that_is_open_when_the_last_child_has_ended_lets_the_clock_stand_on() -> None:
    run = minute_long()
    run.proposes(wants("ask_child", 1), wants("write", 2, call_id="call2"))
    child = run.open(StartChild)[0].id
    run.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED), after_ms=1_000)
    ends(run, child, stood_ms=500, after_ms=2_000)
    assert (run.state.clock.is_standing, run.state.clock.stood_ms) == (True, 3_000)
    run.approves(after_ms=4_000)
    assert (run.state.clock.is_standing, run.state.clock.stood_ms) == (False, 7_000)


def test_a_child_that_is_started_as_another_has_told_waits_on_its_own_account() -> None:
    first, second = (Node(name, NodeKind.CHILD, prompt="go", lease=LEASE) for name in ("first", "second"))
    run = Run(manifest_of(graph=in_line(first, second), budget=Budget(wall_clock_ms=MINUTE_MS)))
    for waited_ms in (3_600_000, 1_800_000):
        child = run.open(StartChild)[0].id
        run.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED), after_ms=0)
        ends(run, child, stood_ms=waited_ms, after_ms=waited_ms + 1_000)
    assert run.state.clock.stood_ms == 3_600_000 + 1_800_000


def test_a_run_that_ends_while_a_child_waits_did_not_work_and_does_not_claim_to_know() -> None:
    run = minute_long()
    with_child_held(run)
    run.take(arrivals.CancelRequested("ada"), after_ms=3_600_000)
    assert (run.state.end.ending, run.state.clock.stood_ms, waited_by(run.state)) == (Ending.USER_CANCEL, 3_600_000, 0)
    assert (run.state.clock.standstill, run.state.children.stood_before) == (None, {})


def test_what_a_run_waited_itself_is_known() -> None:
    run = minute_long()
    run.proposes(wants("write"))
    run.approves(after_ms=5_000)
    run.take(arrivals.CancelRequested("ada"))
    assert waited_by(run.state) == 5_000


def test_the_clock_is_a_cap_of_the_budget() -> None:
    assert minute_long().state.spending.caps[Dimension.WALL_CLOCK_MS] == MINUTE_MS
