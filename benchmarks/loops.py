"""A tool loop as a whole, and how its cost grows with the length of the run.

Both are measured in a process of their own (`python -m benchmarks.loops EFFORT` prints them as JSON), as the figures of
other frameworks were: what else was measured before leaves its traces in the interpreter and in the processor's caches.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from benchmarks.bare import play_bare
from benchmarks.measure import Effort, Figure, Work, compare, growth_exponent, in_turn, spread_of
from benchmarks.stage import Stage

# What the design promises for a loop of two turns, and for the growth of a run.
LOOP_MICROS_WANTED = 15
LOOP_MICROS_MAX = 30
EXPONENT_MAX = 1.05
# The loop is the figure that everything else is compared with, and a repeat of it is short: so many times more of them find
# a quiet moment on a machine that others use.
PATIENCE = 8


@dataclass(frozen=True)
class Point:
    """A run of so many loops: its journal, and its CPU time and that of the bare loop as every repeat found them."""

    loops: int
    journal_bytes: int
    taken: tuple[float, ...]
    floor_taken: tuple[float, ...]


@dataclass(frozen=True)
class Growth:
    """Runs of several lengths. The first has no loop at all: what it costs is no growth and is taken off the others."""

    nothing: Point
    points: tuple[Point, ...]

    @property
    def micros(self) -> list[float]:
        """What each length costs beyond nothing."""
        return [min(point.taken) - min(self.nothing.taken) for point in self.points]

    @property
    def floor_micros(self) -> list[float]:
        """What the bare loop costs beyond nothing."""
        return [min(point.floor_taken) - min(self.nothing.floor_taken) for point in self.points]

    @property
    def bytes_per_loop(self) -> list[float]:
        """What each loop adds to the journal."""
        return [(point.journal_bytes - self.nothing.journal_bytes) / point.loops for point in self.points]

    @property
    def exponent(self) -> float:
        """With which power of the number of loops the cost grows."""
        return growth_exponent([point.loops for point in self.points], self.micros)

    @property
    def floor_exponent(self) -> float:
        """The same for the bare loop: what the machine alone makes of a longer run."""
        return growth_exponent([point.loops for point in self.points], self.floor_micros)

    @property
    def spread(self) -> float:
        """How far the median repeat of the longest run lies above its best."""
        return spread_of(self.points[-1].taken)


def measure_alone(effort: Effort) -> tuple[Figure, Growth]:
    """The loop and its growth, in a fresh interpreter that has done nothing else."""
    command = [sys.executable, "-m", "benchmarks.loops", msgspec.json.encode(effort).decode()]
    told = subprocess.run(command, check=True, capture_output=True).stdout
    return msgspec.json.decode(told, type=tuple[Figure, Growth])


def measure_loop(effort: Effort) -> Figure:
    """A whole run through runner, dispatch and journal, per loop, against the bare loop."""
    stage = Stage()
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        return compare(
            "tool loop, two turns",
            lambda: run(stage.play(effort.loops)),
            "a bare asyncio loop",
            lambda: run(play_bare(effort.loops)),
            operations=effort.loops,
            effort=effort,
        )


def measure_growth(effort: Effort) -> Growth:
    """Runs of growing length, ours and bare ones, all of them in turn."""
    stage = Stage()
    sizes = (0, *effort.sizes)
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete

        def ours(size: int) -> Work:
            return lambda: run(stage.play(size))

        def bare(size: int) -> Work:
            return lambda: run(play_bare(size))

        def bytes_of(size: int) -> int:
            run(stage.play(size))
            return sum(len(data) for data in run(stage.written()))

        columns = in_turn([*map(ours, sizes), *map(bare, sizes)], effort)
        journals = [bytes_of(size) for size in sizes]
    rows = zip(sizes, journals, columns[: len(sizes)], columns[len(sizes) :], strict=True)
    nothing, *points = [Point(size, journal, taken, floor) for size, journal, taken, floor in rows]
    return Growth(nothing, tuple(points))


def growth_together(rounds: Sequence[Growth]) -> Growth:
    """One growth from the growth that several rounds found."""
    nothing, *points = [
        points_together(same) for same in zip(*((growth.nothing, *growth.points) for growth in rounds), strict=True)
    ]
    return Growth(nothing, tuple(points))


def points_together(rounds: Sequence[Point]) -> Point:
    """One point from the same point of several rounds."""
    first = rounds[0]
    taken = tuple(micros for point in rounds for micros in point.taken)
    floor_taken = tuple(micros for point in rounds for micros in point.floor_taken)
    return Point(first.loops, first.journal_bytes, taken, floor_taken)


def main(said: str) -> None:
    """Measure with the effort that was said, and print what came of it."""
    effort = msgspec.json.decode(said, type=Effort)
    patient = replace(effort, repeats=effort.repeats * PATIENCE)
    print(msgspec.json.encode((measure_loop(patient), measure_growth(effort))).decode())


if __name__ == "__main__":
    main(sys.argv[1])
