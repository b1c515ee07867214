"""A thousand runs at once, in memory, through the facade: how many a second, and how much memory they take.

Memory is measured in a process of its own (`python -m benchmarks.many KIND RUNS LOOPS` prints bytes), since a process
never gives back its peak.
"""

import asyncio
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.bare import play_bare
from benchmarks.measure import Effort, Figure
from benchmarks.silent import REQUEST, TERMS, expect_success, reading_kit
from benchmarks.whole import Play, Spent, Watch, cpu_figure, spent_in_turn
from remit.assemble import system_in_memory

RUNS_PER_SECOND_WANTED = 10_000
MEGABYTES_WANTED = 60

Together = Callable[[int, int], Awaitable[None]]

_STATUS = Path("/proc/self/status")
HELD, PEAK = "VmRSS:", "VmHWM:"


@dataclass(frozen=True)
class Peak:
    """By how many bytes the memory of a process grew at most, with runs of ours and with bare ones."""

    ours_bytes: int
    floor_bytes: int


async def ours_together(runs: int, loops: int) -> None:
    """So many runs of so many loops at once."""
    system = system_in_memory()
    kit = reading_kit(loops)
    for response in await asyncio.gather(*[system.run(REQUEST, kit, TERMS) for _ in range(runs)]):
        expect_success(response)
    await system.close()


async def bare_together(runs: int, loops: int) -> None:
    """The same with bare loops."""
    await asyncio.gather(*[play_bare(loops) for _ in range(runs)])


KINDS: Mapping[str, Together] = MappingProxyType({"ours": ours_together, "bare": bare_together})


def measure_many(effort: Effort) -> Figure:
    """CPU microseconds of one of many runs, against bare ones."""
    ours, bare = spent_in_turn(
        [_play(together, effort.runs, effort.run_loops) for together in KINDS.values()], effort.run_repeats
    )
    name = f"one of {effort.runs:,} runs of {effort.run_loops} loops"
    return cpu_figure(name, ours, "bare asyncio", bare, effort.runs)


def _play(together: Together, runs: int, loops: int) -> Play:
    def play() -> Spent:
        with asyncio.Runner() as runner, Watch() as watch:
            runner.get_loop().run_until_complete(together(runs, loops))
        return watch.spent

    return play


def measure_peak(effort: Effort) -> Peak:
    """The memory of both, each in a process of its own."""
    ours, bare = (_grown_elsewhere(kind, effort.runs, effort.run_loops) for kind in KINDS)
    return Peak(ours, bare)


def _grown_elsewhere(kind: str, runs: int, loops: int) -> int:
    command = [sys.executable, "-m", "benchmarks.many", kind, str(runs), str(loops)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def grown_bytes(kind: str, runs: int, loops: int) -> int:
    """By how much so many runs let this process grow at most. One run goes first, so that code does not count."""
    asyncio.run(_awaited(KINDS[kind](1, loops)))
    before = memory_bytes(HELD)
    asyncio.run(_awaited(KINDS[kind](runs, loops)))
    return memory_bytes(PEAK) - before


async def _awaited(work: Awaitable[None]) -> None:
    await work


def memory_bytes(line_name: str) -> int:
    """The memory that this process holds now, or the most it has held so far."""
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # What the system tells of a process's resources begins with its parent's peak; these lines do not.
    (line,) = [line for line in _STATUS.read_text().splitlines() if line.startswith(line_name)]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(grown_bytes(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
