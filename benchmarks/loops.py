"""A tool loop as a whole, and how its cost grows with the length of the run."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.bare import play_bare
from benchmarks.measure import Effort, Figure, Work, compare, growth_exponent, micros_of, spread_of
from benchmarks.stage import Stage

# What the design promises for a loop of two turns, and for the growth of a run.
LOOP_MICROS_WANTED = 15
LOOP_MICROS_MAX = 30
EXPONENT_MAX = 1.05

BARE = "a bare asyncio loop"

Play = Callable[[int], Coroutine[Any, Any, object]]


@dataclass(frozen=True)
class Point:
    """A run of so many loops: its CPU time and its journal, less those of a run without any loop."""

    loops: int
    micros: float
    floor_micros: float
    journal_bytes: int


@dataclass(frozen=True)
class Growth:
    """Runs of several lengths, and the exponents with which cost grows: ours and that of the bare loop."""

    points: tuple[Point, ...]
    exponent: float
    floor_exponent: float
    spread: float


def measure_loop(effort: Effort) -> Figure:
    """A whole run through runner, dispatch and journal, per loop, against the bare loop."""
    stage = Stage()
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        return compare(
            "tool loop, two turns",
            lambda: run(stage.play(effort.loops)),
            BARE,
            lambda: run(play_bare(effort.loops)),
            operations=effort.loops,
            effort=effort,
        )


def measure_growth(effort: Effort) -> Growth:
    """Runs of growing length, measured in turn, so that a slow stretch of the machine meets all of them."""
    stage = Stage()
    sizes = (0, *effort.sizes)
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete

        def work(play: Play, size: int) -> None:
            run(play(size))

        def bytes_of(size: int) -> int:
            run(stage.play(size))
            return sum(len(data) for data in run(stage.written()))

        works: list[Work] = [partial(work, play, size) for play in (stage.play, play_bare) for size in sizes]
        rounds = [[micros_of(work, 1) for work in works] for _ in range(effort.repeats + 1)]
        columns = [list(column) for column in zip(*rounds[1:], strict=True)]  # The first round warms up.
        journals = [bytes_of(size) for size in sizes]
    ours, bare = columns[: len(sizes)], columns[len(sizes) :]
    micros, floor_micros = beyond_nothing(ours), beyond_nothing(bare)
    rows = zip(effort.sizes, micros, floor_micros, journals[1:], strict=True)
    return Growth(
        tuple(Point(size, mine, floor, written - journals[0]) for size, mine, floor, written in rows),
        growth_exponent(effort.sizes, micros),
        growth_exponent(effort.sizes, floor_micros),
        spread_of(ours[-1]),
    )


def beyond_nothing(columns: list[list[float]]) -> list[float]:
    """The best of each column, less that of the first: what a run costs before its first loop is not growth."""
    nothing, *best = [min(column) for column in columns]
    return [value - nothing for value in best]
