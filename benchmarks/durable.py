"""Runs on the embedded store, on a real disk: what a loop costs, what it leaves behind, and how a run is read again."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bare_store import FULL, NORMAL, play_committing, play_grouped, play_one_by_one
from benchmarks.measure import Effort, Figure, compare
from benchmarks.silent import REQUEST, TERMS, expect_success, reading_kit, writing_kit
from benchmarks.whole import Play, Spent, Watch, cpu_figure, spent_in_turn, wall_figure
from remit.assemble import Settings, open_store, system_on
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.facade import System

LOOP_RATIO_WANTED = 1.3
LOOP_BYTES_WANTED = 2_048
RUNS_PER_SECOND_WANTED = 2_000
RESUME_MICROS_WANTED = 2_000

# Loops that share a commit where commits are grouped.
GROUP = 10


@dataclass(frozen=True)
class Left:
    """What runs of several lengths leave on the disk for each of their loops, once the store is closed."""

    loops: tuple[int, ...]
    bytes_per_loop: tuple[float, ...]


def measure_durable_loop(effort: Effort) -> list[Figure]:
    """CPU microseconds of a loop in a long run, against bare loops that commit."""
    loops = effort.durable_loops
    plays = [
        _in_folder(partial(_play_long, loops=loops)),
        _in_folder(partial(play_committing, loops=loops, synchronous=FULL)),
        _in_folder(partial(play_committing, loops=loops, synchronous=NORMAL)),
        _in_folder(partial(play_committing, loops=loops, synchronous=FULL, loops_per_commit=GROUP)),
    ]
    ours, *floors = spent_in_turn(plays, effort.run_repeats)
    names = ("a commit a loop, FULL", "a commit a loop, NORMAL", f"a commit every {GROUP} loops, FULL")
    name = f"durable loop, {loops} loops"
    return [cpu_figure(name, ours, floor, taken, loops) for floor, taken in zip(names, floors, strict=True)]


def measure_durable_runs(effort: Effort) -> list[Figure]:
    """Wall microseconds of one of many short runs that end on a synced disk, and of those a person has to allow."""
    runs = effort.durable_runs
    plays = [
        _in_folder(partial(_play_many, runs=runs)),
        _in_folder(partial(_play_approved, runs=runs)),
        _in_folder(partial(play_one_by_one, runs=runs, loops=1)),
        _in_folder(partial(play_grouped, runs=runs, loops=1)),
    ]
    ours, approved, alone, grouped = spent_in_turn(plays, effort.run_repeats)
    return [
        wall_figure(f"one of {runs} runs, one barrier", ours, "a synced commit a run", alone, runs),
        wall_figure(f"one of {runs} runs, one barrier", ours, "commits grouped", grouped, runs),
        wall_figure("with an approved write: three barriers", approved, "commits grouped", grouped, runs),
    ]


def measure_left(effort: Effort) -> Left:
    """Bytes on the disk, less those of a run without any loop."""
    sizes = effort.durable_sizes
    nothing, *left = [_left_by(loops) for loops in (0, *sizes)]
    return Left(sizes, tuple((size - nothing) / loops for size, loops in zip(left, sizes, strict=True)))


def measure_resume(effort: Effort) -> Figure:
    """Reading a run back until it could go on, as another process would, against reading its rows."""
    loops = effort.resume_loops
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        settings = Settings(Path(folder) / "store")
        system, other = system_on(open_store(settings)), system_on(open_store(settings))
        run_id = run(system.run(REQUEST, reading_kit(loops), TERMS)).run_id
        with closing(sqlite3.connect(settings.home / "remit.db")) as connection:
            figure = compare(
                f"resume a run of {loops} loops",
                lambda: run(other.state_of(run_id)),
                "reading its rows",
                lambda: connection.execute("SELECT data FROM turns ORDER BY turn_no").fetchall(),
                operations=1,
                effort=effort,
            )
        run(other.close())
        run(system.close())
    return figure


def _in_folder(play: Callable[[Path], Spent]) -> Play:
    """The play, each time in a new folder."""

    def played() -> Spent:
        with TemporaryDirectory() as folder:
            return play(Path(folder))

    return played


def _on_store(home: Path, play: Callable[[System], Coroutine[Any, Any, None]]) -> Spent:
    """Watch a play on a store; it is opened before and closed after."""
    with asyncio.Runner() as runner:
        system = system_on(open_store(Settings(home / "store")))
        # The key is made on first use, once in the life of a store.
        runner.run(_one_run(system))
        with Watch() as watch:
            runner.run(play(system))
        runner.run(system.close())
    return watch.spent


async def _one_run(system: System, loops: int = 0) -> None:
    expect_success(await system.run(REQUEST, reading_kit(loops), TERMS))


def _play_long(home: Path, loops: int) -> Spent:
    return _on_store(home, lambda system: _one_run(system, loops))


def _play_many(home: Path, runs: int) -> Spent:
    async def play(system: System) -> None:
        kit = reading_kit(1)
        for response in await asyncio.gather(*[system.run(REQUEST, kit, TERMS) for _ in range(runs)]):
            expect_success(response)

    return _on_store(home, play)


def _play_approved(home: Path, runs: int) -> Spent:
    async def play(system: System) -> None:
        kit = writing_kit(1)

        async def run() -> None:
            asked = await system.run(REQUEST, kit, TERMS)
            assert asked.waiting_for is not None, "a write waits for a person"
            (packet,) = asked.waiting_for.packet_ids
            await system.signal(UserSignal("1", Signal.APPROVE, asked.run_id, "bench", payload={"packet_id": packet}))
            expect_success(await system.result(asked.run_id))

        await asyncio.gather(*[run() for _ in range(runs)])

    return _on_store(home, play)


def _left_by(loops: int) -> int:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        _play_long(home, loops)
        return sum(path.stat().st_size for path in (home / "store").iterdir())
