"""Measuring: CPU time, the best of several repeats, and always a floor beside it.

Rule 1: time is CPU time of this process, so that waiting for a busy machine does not count.
Rule 2: of several repeats the best counts; whatever disturbs a repeat only ever makes it slower.
Rule 3: a figure and its floor take turns, so that a slow stretch of the machine meets both.
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

    repeats: int
    # A repeat does its work as often as fits: long against the clock's grain, short enough to find a quiet stretch.
    window_us: float
    loops: int
    sizes: tuple[int, ...]
    graph_stages: int
    imports: int


FULL = Effort(
    repeats=40,
    window_us=4_000,
    loops=200,
    sizes=(10, 20, 50, 100, 200, 500),
    graph_stages=331,
    imports=9,
)


@dataclass(frozen=True)
class Figure:
    """Microseconds of one operation, those of its floor, and how far the median repeat lay above the best."""

    name: str
    micros: float
    floor: str
    floor_micros: float
    spread: float

    @property
    def ratio(self) -> float:
        """How many floors the operation costs."""
        return self.micros / self.floor_micros if self.floor_micros else math.inf


def compare(name: str, work: Work, floor: str, floor_work: Work, *, operations: int, effort: Effort) -> Figure:
    """Measure two pieces of work in turn; each does so many operations whenever it is called."""
    calls, floor_calls = calls_in(work, effort.window_us), calls_in(floor_work, effort.window_us)
    taken: list[float] = []
    floor_taken: list[float] = []
    for _ in range(effort.repeats):
        taken.append(micros_of(work, calls) / operations)
        floor_taken.append(micros_of(floor_work, floor_calls) / operations)
    return Figure(name, min(taken), floor, min(floor_taken), spread_of(taken))


def calls_in(work: Work, window_us: float) -> int:
    """How often the work fits into the window. The call that finds out also warms everything up."""
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
    # What a disturbed run makes negative is as good as nothing; a logarithm needs something.
    logs = [math.log(max(value, 1e-9)) for value in micros]
    return statistics.linear_regression([math.log(size) for size in sizes], logs).slope
