"""A run that has no step or no time left stands still until a person releases more, where its boundary says so."""

import pytest

from remit.core.failure import ArrivalFault, Ending
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import AskHuman, AskPurpose, CallModel, CallTool, TimerPurpose
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import Budget, Dimension
from remit.core.record import replace
from remit.core.run.manifest import EarlierEffect, Origin
from remit.core.work.goal import Goal, RequiredAction
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import Run, manifest_of, wants

STEPS, CLOCK = int(Dimension.STEPS), int(Dimension.WALL_CLOCK_MS)
MINUTE_MS = 60_000


def asking(name: str, budget: Budget, **says: object) -> Run:
    boundary = replace(Boundary("b", exhaustion=((name, Exhaustion.ASK),)), **says)
    return Run(manifest_of(boundary=boundary, budget=budget))


def out_of_steps(**says: object) -> Run:
    """A run whose model wants a tool and has no step left for it."""
    run = asking("steps", Budget(steps=2), **says)
    run.proposes(wants("look"))
    return run


def out_of_time(*, reviews: int = 20) -> Run:
    """A run whose time is up while its model thinks."""
    run = asking("wall_clock_ms", Budget(wall_clock_ms=MINUTE_MS, human_reviews=reviews))
    run.now_ms += MINUTE_MS + 5
    run.rings(TimerPurpose.DEADLINE)
    return run


def agrees(run: Run) -> None:
    assert run.state == fold_journal(run.journal)


@pytest.mark.req("4.29")
def test_a_run_without_steps_asks_for_half_as_many_and_goes_where_it_was_going() -> None:
    run = out_of_steps()
    asked = run.question()
    assert (asked.purpose, asked.releases) == (AskPurpose.RELEASE, ((STEPS, 1),))
    assert asked.question == "steps is spent: 2 were given. Release 1 more?"
    assert (run.open(CallTool), run.state.end.ending) == ([], None)
    assert asked.escalation is not None
    assert asked.escalation.queue == "budget"
    run.approves()
    assert [call.tool for call in run.now(CallTool)] == ["look"]
    assert (run.state.place.parked, run.state.spending.caps[STEPS]) == (None, 3)
    run.returns()
    run.approves()
    run.says("seen")
    run.approves()
    assert run.state.end.ending is Ending.SUCCESS
    agrees(run)


def test_what_was_released_in_the_same_turn_counts_as_given() -> None:
    run = Run(
        manifest_of(
            boundary=Boundary("b", exhaustion=(("steps", Exhaustion.ASK),)),
            budget=Budget(steps=2),
            goal=Goal("look", required_actions=(RequiredAction("look"),)),
        )
    )
    run.says("seen")
    run.approves()
    assert run.question().question == "steps is spent: 3 were given. Release 1 more?"


def test_steps_are_released_as_often_as_reviews_allow() -> None:
    run = asking("steps", Budget(steps=2, human_reviews=1))
    run.proposes(wants("look"))
    run.approves()
    run.returns()
    assert (run.state.end.ending, run.state.spending.caps[STEPS]) == (Ending.BUDGET_EXHAUSTED, 3)


@pytest.mark.parametrize("run", [out_of_steps(), out_of_time()])
def test_a_no_to_more_ends_the_run_as_exhausted(run: Run) -> None:
    run.rejects()
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert "ada released nothing" in run.state.end.message
    agrees(run)


@pytest.mark.parametrize("run", [out_of_steps(), out_of_time()])
def test_silence_ends_the_run_as_exhausted(run: Run) -> None:
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    agrees(run)


def test_a_cap_of_zero_forbids_and_asks_nobody() -> None:
    run = asking("steps", Budget(steps=0))
    assert (run.state.end.ending, run.all(AskHuman)) == (Ending.BUDGET_EXHAUSTED, [])


@pytest.mark.req("4.29")
def test_a_run_out_of_time_stands_still_and_keeps_what_comes_back() -> None:
    run = out_of_time()
    asked = run.question()
    ((dimension, amount),) = asked.releases
    late_ms = run.state.at_ms - run.state.clock.deadline_at_ms
    assert (dimension, amount) == (CLOCK, late_ms + 1 + MINUTE_MS // 2)
    run.now_ms += 10 * MINUTE_MS
    run.proposes(wants("look"))
    assert (run.open(CallTool), run.state.end.ending) == ([], None)
    assert run.state.place.parked is not None
    run.now_ms += 10 * MINUTE_MS
    run.approves()
    assert [call.tool for call in run.now(CallTool)] == ["look"]
    assert run.state.clock.deadline_at_ms == run.state.at_ms + MINUTE_MS // 2 + 1
    assert run.state.spending.caps[CLOCK] == MINUTE_MS + amount
    agrees(run)
    run.returns()
    run.now_ms += MINUTE_MS
    run.says("seen too late")
    assert run.question().releases[0][0] == CLOCK
    agrees(run)


def test_time_that_is_released_while_the_model_still_thinks_asks_it_only_once() -> None:
    run = out_of_time()
    run.approves()
    assert (run.now(CallModel), len(run.open(CallModel))) == ([], 1)
    run.says("done")
    assert run.state.end.ending is Ending.SUCCESS
    agrees(run)


def test_what_is_decided_when_the_time_is_up_waits_as_well() -> None:
    run = asking("wall_clock_ms", Budget(wall_clock_ms=MINUTE_MS))
    run.now_ms += MINUTE_MS
    run.proposes(wants("look"))
    assert (run.open(CallTool), run.question().purpose) == ([], AskPurpose.RELEASE)
    run.approves()
    assert len(run.now(CallTool)) == 1


def test_where_nobody_may_be_asked_the_time_is_up() -> None:
    assert out_of_time(reviews=0).state.end.ending is Ending.TIMEOUT


def test_a_run_that_waits_for_steps_can_be_cancelled_paused_and_resumed() -> None:
    run = out_of_steps()
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ResumeRequested("ada"))
    assert (run.open(CallTool), run.now(rulings.OutcomeParked) != []) == ([], True)
    agrees(run)
    run.approves()
    assert len(run.now(CallTool)) == 1
    cancelled = out_of_steps()
    cancelled.take(arrivals.CancelRequested("ada"))
    assert cancelled.state.end.ending is Ending.USER_CANCEL


def test_a_run_out_of_time_that_kept_nothing_can_be_paused_and_resumed() -> None:
    run = out_of_time()
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ResumeRequested("ada"))
    assert (run.state.end.ending, run.state.place.parked) == (None, None)


def test_only_whom_the_boundary_names_releases_budget() -> None:
    run = out_of_steps(release_by=("ann",))
    for by, fault in (("bob", ArrivalFault.NOT_RELEASING), ("\u0430nn", ArrivalFault.NAME_CONFUSABLE)):
        assert run.fault_of(arrivals.ApprovalGiven(run.question().id, by)) is fault
    run.approves(by="Ann")
    assert len(run.now(CallTool)) == 1


def test_a_fork_of_a_frozen_run_asks_for_the_same(  # the origin did nothing since
) -> None:
    run = out_of_steps()
    first = run.turns[0].arrival
    assert isinstance(first, arrivals.RunStarted)
    origin = Origin("origin", seq=run.state.seq, by="dan")
    fork = Run(replace(first.manifest, forked_from=origin, earlier=(EarlierEffect("origin"),)))
    fork.proposes(wants("look"))
    fork.take(arrivals.RunForked("dan"))
    fork.take(arrivals.ResumeRequested("dan"))
    assert fork.open(CallTool) == []
    fork.approves()
    assert len(fork.now(CallTool)) == 1
    agrees(fork)
