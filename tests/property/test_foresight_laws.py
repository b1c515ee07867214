"""Laws of foreseeing: whatever went wrong in a world, no run that succeeded is stopped by what was learned from it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.foresight import judged_again
from remit.core.failure import Ending
from remit.core.limits.budget import COUNTERS
from remit.core.limits.foresight import RUNS_MIN, Foresight, Milestone, needed_after
from remit.core.record import replace
from remit.observe.cost.like_runs import course_of, foresight_of, shortfall_in
from remit.observe.linked_turns import History, read_history, states
from tests.simulation.scenarios import PLAYED_SEEDS, played_world

# A handful of worlds: some of their runs succeed.
SEEDS = st.lists(st.integers(0, PLAYED_SEEDS - 1), min_size=1, max_size=4, unique=True)
AMOUNTS = st.dictionaries(st.sampled_from([int(dimension) for dimension in COUNTERS]), st.integers(1, 99), max_size=4)


def milestone(least: dict[int, int], more: dict[int, int]) -> Milestone:
    """One whose most is nowhere less than its least."""
    most = {dimension: least.get(dimension, 0) + more.get(dimension, 0) for dimension in {*least, *more}}
    return Milestone(tuple(sorted(least.items())), tuple(sorted(most.items())))


MILESTONES = st.builds(milestone, AMOUNTS, AMOUNTS)
COURSES = st.lists(st.lists(MILESTONES, min_size=1, max_size=4).map(tuple), min_size=1, max_size=6)


def successes(seeds: list[int]) -> list[History]:
    """The runs of these worlds that succeeded, children and forks among them."""
    worlds = [played_world(seed) for seed in seeds]
    runs = [world.run(run_id) for world in worlds for run_id in world.run_ids()]
    return [read_history(run.run_id, run.journal) for run in runs if run.ending is Ending.SUCCESS]


def learned(histories: list[History]) -> Foresight | None:
    """What these runs say together, as if they were enough and alike."""
    foresight = foresight_of((course_of(states(history)) for history in histories), runs_min=1)
    return None if foresight is None else replace(foresight, runs=RUNS_MIN)


@pytest.mark.slow
@settings(max_examples=40)
@given(SEEDS)
def test_no_success_is_lost_by_what_was_learned_from_it(seeds: list[int]) -> None:
    histories = successes(seeds)
    foresight = learned(histories)
    if foresight is not None:
        for history in histories:
            assert shortfall_in(states(history), foresight) is None


@pytest.mark.slow
@settings(max_examples=40)
@given(SEEDS)
def test_the_kernel_stops_no_run_by_what_was_learned_from_it(seeds: list[int]) -> None:
    histories = successes(seeds)
    foresight = learned(histories)
    if foresight is not None:
        for history in histories:
            assert judged_again(history, foresight).end.ending is Ending.SUCCESS


@pytest.mark.slow
def test_enough_worlds_succeed_for_this_to_mean_something() -> None:
    histories = successes(list(range(90)))
    assert len(histories) > 10
    assert max(len(course_of(states(history))) for history in histories) > 1


@given(COURSES)
def test_together_runs_need_at_least_what_each_does_and_at_most_what_any_does(
    courses: list[tuple[Milestone, ...]],
) -> None:
    foresight = foresight_of(courses, runs_min=1)
    assert foresight is not None
    assert len(foresight.milestones) == max(map(len, courses))
    for course in courses:
        for together, own in zip(foresight.milestones, course, strict=False):
            assert all(amount <= dict(own.least)[dimension] for dimension, amount in together.least)
            assert all(amount <= dict(together.most)[dimension] for dimension, amount in own.most)
            assert all(amount <= dict(together.most)[dimension] for dimension, amount in together.least)


@given(COURSES, st.integers(0, 6))
def test_what_is_needed_is_in_the_order_of_the_dimensions(courses: list[tuple[Milestone, ...]], answers: int) -> None:
    foresight = foresight_of(courses, runs_min=1)
    assert foresight is not None
    needed = needed_after(replace(foresight, runs=RUNS_MIN), answers)
    assert list(needed) == sorted(needed)
