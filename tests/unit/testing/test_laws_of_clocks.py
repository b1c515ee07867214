"""The law of clocks: what counts as waiting, whose waiting it is, and where nobody can tell."""

import pytest

from remit.core.failure import Ending
from remit.core.journal import arrivals
from remit.core.journal.commands import StartChild
from remit.core.limits.budget import Budget
from remit.testing.laws_of_clocks import covered_ms, no_clock_stands_for_work
from remit.testing.runs import SimulatedRun
from remit.testing.scenarios import tools
from remit.testing.scripts import in_turn, says
from remit.testing.trouble import CALM, Faults
from remit.testing.world import SimulatedWorld
from tests.unit.kernel.builders import Run, manifest_of, wants

MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("spans", "covered"),
    [([], 0), ([(10, 30)], 20), ([(10, 30), (20, 40)], 30), ([(50, 60), (10, 20)], 20), ([(10, 90), (20, 30)], 80)],
)
def test_time_is_covered_once_however_many_waited_in_it(spans: list[tuple[int, int]], covered: int) -> None:
    assert covered_ms(spans, 100) == covered


def test_nothing_is_covered_after_the_moment_that_is_asked_about() -> None:
    assert covered_ms([(10, 30), (20, 500), (300, 400)], 100) == 90


def held_for(how_ms: int, *, waited_ms: int, is_lost: bool = False) -> Run:
    """A run with a minute whose child was known to wait for so long, and says that all of it was waiting."""
    run = Run(manifest_of(budget=Budget(wall_clock_ms=MINUTE_MS)))
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0].id
    run.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED), after_ms=0)
    ended = arrivals.ChildEnded(child, Ending.SUCCESS, "done", tokens_bound=25, stood_ms=waited_ms)
    run.take(arrivals.ChildLost(child) if is_lost else ended, after_ms=how_ms)
    return run


def judged(parent: Run, *, child: Run | None = None, faults: Faults = CALM) -> list[str]:
    """What the law says of a run in a world that knows its child, or does not."""
    world = SimulatedWorld(model=in_turn(says("done")), tools=tools(), faults=faults)
    known = {"run": parent.journal}
    if child is not None:
        known[parent.all(StartChild)[0].run_id] = child.journal
    world.journal.kept._runs.update(known)
    return list(no_clock_stands_for_work(world, SimulatedRun("run", parent.journal)))


def asking_for(how_ms: int) -> Run:
    """A child that asks a person, who takes so long."""
    run = Run()
    run.proposes(wants("write"))
    run.approves(after_ms=how_ms)
    return run


def test_a_child_that_really_waited_gives_its_parent_that_time() -> None:
    assert judged(held_for(5 * MINUTE_MS, waited_ms=5 * MINUTE_MS), child=asking_for(5 * MINUTE_MS)) == []


def test_a_child_that_says_it_waited_and_did_not_is_found_out() -> None:
    (found,) = judged(held_for(5 * MINUTE_MS, waited_ms=5 * MINUTE_MS), child=asking_for(MINUTE_MS))
    assert found == f"turn 3 orders CallModel after {3 * MINUTE_MS + 20 - 10} ms too many of work"


def test_of_a_lost_child_nobody_knows_how_long_it_waited() -> None:
    assert judged(held_for(5 * MINUTE_MS, waited_ms=0, is_lost=True), child=asking_for(MINUTE_MS)) == []


def test_a_child_whose_journal_is_nowhere_is_believed() -> None:
    assert judged(held_for(5 * MINUTE_MS, waited_ms=5 * MINUTE_MS)) == []


def test_a_child_that_still_waits_has_waited_until_now() -> None:
    parent, child = Run(), Run()
    parent.proposes(wants("ask_child"))
    child.proposes(wants("write"))
    parent.take(arrivals.ChildSuspended(parent.open(StartChild)[0].id, Ending.CONFIRM_REQUIRED))
    assert judged(parent, child=child) == []


def test_moments_are_not_compared_where_the_clock_jumps() -> None:
    run = held_for(5 * MINUTE_MS, waited_ms=5 * MINUTE_MS)
    assert judged(run, child=asking_for(MINUTE_MS), faults=Faults(clock_jump=0.1)) == []
