"""Laws of plans and votes for any budget and any number of replicas, with the real kernel and nothing around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.failure import ANSWERED, Ending
from remit.core.journal import arrivals
from remit.core.journal.commands import CallCode, StartChild
from remit.core.journal.rulings import VoteCounted
from remit.core.limits.budget import COUNTERS, Budget
from remit.core.work.values import CONVERTIBLE, ValueKind, is_convertible
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from tests.unit.kernel.builders import manifest_of
from tests.unit.kernel.plans import SCHEMA, PlanRun, code_step, plan_of

ENDINGS = (Ending.SUCCESS, Ending.SUCCESS, Ending.IMPOSSIBLE, Ending.BUDGET_EXHAUSTED, Ending.TIMEOUT)


def voting(n: int, *, budget: Budget = Budget(), early_stop: bool = False, is_parallel: bool = False) -> PlanRun:
    redundancy = Redundancy(n, early_stop=early_stop, is_parallel=is_parallel)
    return PlanRun(manifest_of(graph=redundant_graph(SCHEMA, "", redundancy), budget=budget))


@given(
    n=st.integers(1, 5),
    is_parallel=st.booleans(),
    steps=st.integers(0, 60),
    tool_calls=st.integers(0, 20),
    child_runs=st.integers(0, 8),
)
def test_whatever_replicas_spend_they_stay_within_their_parent_and_leave_it_the_steps_to_its_end(
    n: int, is_parallel: bool, steps: int, tool_calls: int, child_runs: int
) -> None:
    budget = Budget(steps=steps, tool_calls=tool_calls, child_runs=child_runs)
    run = voting(n, budget=budget, is_parallel=is_parallel)
    while run.state.end.ending is None and run.open(StartChild):
        assert all(run.state.spending.left[dimension] >= 0 for dimension in COUNTERS)
        child = run.open(StartChild)[0]
        run.take(arrivals.ChildEnded(child.id, Ending.SUCCESS, "a", child.lease))
    if run.open(CallCode):
        run.elects(0, len(run.state.children.ended), 1_000_000)
        # Preparing, each visit of a replica with the vote after it, and the check.
        needed = 4 if is_parallel else 2 * n + 2
        assert run.state.end.ending is Ending.SUCCESS or steps < needed
    assert run.state.end.ending is not None
    assert all(run.state.used[d] <= run.state.spending.caps[d] for d in COUNTERS)


@given(endings=st.lists(st.sampled_from(ENDINGS), min_size=1, max_size=6), is_parallel=st.booleans())
def test_a_vote_is_counted_exactly_when_more_than_half_answered(endings: list[Ending], is_parallel: bool) -> None:
    run = voting(len(endings), is_parallel=is_parallel)
    for ending in endings:
        run.ends(ending, text="a")
    answered = sum(ending in ANSWERED for ending in endings)
    assert bool(run.open(CallCode)) == (2 * answered > len(endings))
    if run.open(CallCode):
        run.elects(answered - 1, 1, 500_000)
        assert run.last(VoteCounted).answered == answered
    assert run.state.end.ending is not None


@given(endings=st.lists(st.sampled_from(ENDINGS), min_size=1, max_size=8), settles_after=st.integers(2, 9))
def test_an_early_vote_never_starts_a_replica_that_cannot_matter(endings: list[Ending], settles_after: int) -> None:
    run, n, answered = voting(len(endings), early_stop=True), len(endings), 0
    for place, ending in enumerate(endings):
        assert len(run.all(StartChild)) == place + 1
        run.ends(ending, text="a")
        answered += ending in ANSWERED
        if run.open(CallCode):
            run.elects(0, 1, 500_000, is_settled=answered >= settles_after)
        if run.state.end.ending is not None:
            break
        # A candidate is asked again only where it can still be decided.
        assert 2 * (answered + n - place - 1) > n
    assert run.state.end.ending is not None


@pytest.mark.parametrize("takes", [*ValueKind, ""])
@given(kind=st.sampled_from([*ValueKind, "riddle"]))
def test_a_step_runs_on_exactly_the_kinds_that_can_be_made_into_what_it_takes(takes: str, kind: str) -> None:
    run = PlanRun(manifest_of(graph=plan_of(code_step("a"), code_step("b", "a", takes=takes))))
    run.gives("something", kind)
    is_fit = kind in set(ValueKind) and is_convertible(kind, takes)
    assert bool(run.open(CallCode)) == is_fit
    if takes and kind in set(ValueKind):
        assert is_fit == (ValueKind(kind) in CONVERTIBLE[ValueKind(takes)])
