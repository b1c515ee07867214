"""Measuring what sets a stage first, waits for a disk, or uses threads: whole runs, rather than single operations.

Rule 1: only what stands between start and end of the watch counts; opening a store and closing it does not.
Rule 2: CPU time is that of the whole process, its threads included. Wall time is taken beside it, and speaks where a
        disk is waited for: on a busy machine it says little.
Rule 3: several of them take turns, and of each the best repeat counts.
"""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from benchmarks.measure import MICROS_PER_SECOND, Figure


@dataclass(frozen=True)
class Spent:
    """Microseconds of CPU and of the clock on the wall."""

    cpu_micros: float
    wall_micros: float


class Watch:
    """Measures what happens inside a `with`."""

    spent = Spent(0, 0)

    def __enter__(self) -> "Watch":
        gc.collect()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        self.spent = Spent(cpu * MICROS_PER_SECOND, wall * MICROS_PER_SECOND)


Play = Callable[[], Spent]


def spent_in_turn(plays: Sequence[Play], repeats: int) -> list[tuple[Spent, ...]]:
    """What each play spent, as often as wanted, one play after the other. The first of each warms up and is forgotten."""
    for play in plays:
        play()
    return list(zip(*([play() for play in plays] for _ in range(repeats)), strict=True))


def cpu_figure(name: str, taken: Sequence[Spent], floor: str, floor_taken: Sequence[Spent], operations: int) -> Figure:
    """CPU time per operation."""
    return Figure(
        name,
        floor,
        tuple(spent.cpu_micros / operations for spent in taken),
        tuple(spent.cpu_micros / operations for spent in floor_taken),
    )


def wall_figure(name: str, taken: Sequence[Spent], floor: str, floor_taken: Sequence[Spent], operations: int) -> Figure:
    """Wall time per operation."""
    return Figure(
        name,
        floor,
        tuple(spent.wall_micros / operations for spent in taken),
        tuple(spent.wall_micros / operations for spent in floor_taken),
    )
