"""Measuring: CPU time, the best of many repeats, and always a floor beside it.

Rule 1: time is CPU time of this process, so that waiting for a busy machine does not count.
Rule 2: of many repeats the best counts; whatever disturbs a repeat only ever makes it slower.
Rule 3: a figure and its floor take turns, and every benchmark has several rounds, so that no slow stretch of the
        machine, short or long, falls on one figure alone.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Work = Callable[[], object]

MICROS_PER_SECOND = 1_000_000


@dataclass(frozen=True)
class Effort:
    """How much a measurement is repeated, and how large the runs and graphs in it are."""

    rounds: int
    # Repeats in each round; of the imports, which take longest, there are fewer.
    repeats: int
    import_repeats: int
    # A repeat does its work as often as fits: long against the clock's grain, short enough to find a quiet moment.
    window_us: float
    loops: int
    sizes: tuple[int, ...]
    graph_stages: int
    # Whole runs take longer: fewer repeats in each round, after one that warms up.
    run_repeats: int
    runs: int
    run_loops: int
    durable_loops: int
    durable_sizes: tuple[int, ...]
    durable_runs: int
    resume_loops: int
    cancels: int


FULL = Effort(
    rounds=4,
    repeats=12,
    import_repeats=3,
    window_us=4_000,
    loops=200,
    sizes=(10, 20, 50, 100, 200, 500),
    graph_stages=331,
    run_repeats=2,
    runs=1_000,
    run_loops=5,
    durable_loops=500,
    durable_sizes=(50, 200, 500),
    durable_runs=200,
    resume_loops=200,
    cancels=3,
)


@dataclass(frozen=True)
class Figure:
    """Microseconds of one operation and of its floor, as every repeat found them."""

    name: str
    floor: str
    taken: tuple[float, ...]
    floor_taken: tuple[float, ...]

    @property
    def micros(self) -> float:
        """The best repeat of the operation."""
        return min(self.taken)

    @property
    def floor_micros(self) -> float:
        """The best repeat of the floor."""
        return min(self.floor_taken)

    @property
    def ratio(self) -> float:
        """How many floors the operation costs."""
        return self.micros / self.floor_micros if self.floor_micros else math.inf

    @property
    def spread(self) -> float:
        """How far the median repeat lies above the best, as a share of the best."""
        return spread_of(self.taken)


def together(rounds: Sequence[Figure]) -> Figure:
    """One figure from the same figure of several rounds."""
    first = rounds[0]
    taken = tuple(micros for figure in rounds for micros in figure.taken)
    return Figure(first.name, first.floor, taken, tuple(micros for figure in rounds for micros in figure.floor_taken))


def compare(name: str, work: Work, floor: str, floor_work: Work, *, operations: int, effort: Effort) -> Figure:
    """Measure two pieces of work in turn; each does so many operations whenever it is called."""
    taken, floor_taken = in_turn([work, floor_work], effort)
    return Figure(
        name,
        floor,
        tuple(micros / operations for micros in taken),
        tuple(micros / operations for micros in floor_taken),
    )


def in_turn(works: Sequence[Work], effort: Effort) -> list[tuple[float, ...]]:
    """Microseconds of one call of each work, as often as the effort says, one work after the other."""
    # What earlier benchmarks left behind stays out of the collector's sight, or it would be charged to this one.
    gc.collect()
    gc.freeze()
    calls = [calls_in(work, effort.window_us) for work in works]
    repeats = [
        [micros_of(work, times) for work, times in zip(works, calls, strict=True)] for _ in range(effort.repeats)
    ]
    gc.unfreeze()
    return list(zip(*repeats, strict=True))


def calls_in(work: Work, window_us: float) -> int:
    """How often the work fits into the window. Finding out also warms everything up."""
    micros_of(work, 1)
    once = micros_of(work, 1)
    return max(1, int(window_us / once)) if once else 1


def micros_of(work: Work, calls: int) -> float:
    """CPU microseconds of one call, averaged over so many. Garbage of earlier work is not collected on its time."""
    gc.collect()
    began = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - began) * MICROS_PER_SECOND / calls


def spread_of(taken: Sequence[float]) -> float:
    """How far the median lies above the best, as a share of the best."""
    best = min(taken)
    return statistics.median(taken) / best - 1 if best else 0.0


def growth_exponent(sizes: Sequence[int], micros: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms: 1 is linear, 2 is quadratic."""
    # A disturbed run can seem to cost less than nothing, and a logarithm needs something.
    logs = [math.log(max(value, 1e-9)) for value in micros]
    return statistics.linear_regression([math.log(size) for size in sizes], logs).slope
