"""What subscribers cost: the first one, two hundred of them, and one in another process.

Rule 1: a model takes 50 ms, so a turn takes 25 at least; what subscribers add is CPU time, shown as a share of the 50 ms.
Rule 2: being told is measured apart from reading: the driver of a run pays for the one, and the other is done meanwhile.
Rule 3: a watcher in another process is timed by the clock: from the moment that a turn bears until it was heard of.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.silent import REQUEST, TERMS, SilentModel, expect_success, look
from remit.assemble import Settings, opened_system, system_in_memory
from remit.core.run.inference import ModelRequest, ModelResult
from remit.core.run.run_events import Subject
from remit.inference.engine import StreamHandler
from remit.orchestrate.bus.subscription import Subscription
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.registry import Registry

MODEL_MS = 50
MANY = 200
LOOPS, REPEATS = 20, 5
# Turns that a watcher in another process is timed on; each loop has two.
WATCHED_LOOPS, WATCHED_MODEL_MS = 250, 5

MICROS_PER_MS = 1_000
# What is wanted: a share of the time of the model, and how soon a watcher elsewhere hears of a turn.
SHARE_MAX, HEARD_MS_MAX = 0.05, 50


class SlowModel(SilentModel):
    """The same model, which takes its time."""

    def __init__(self, loops: int, takes_ms: int) -> None:
        super().__init__(loops)
        self._takes_s = takes_ms / 1000

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """The next call, or the answer, after a while."""
        await asyncio.sleep(self._takes_s)
        return await super().infer(request, on_chunk)


@dataclass(frozen=True)
class Subscribers:
    """CPU microseconds of a turn: without a subscriber, what one and many add, told alone and reading, how soon it is heard."""

    alone: float
    told: dict[int, float]
    read: dict[int, float]
    heard_ms: tuple[float, ...]

    def heard(self, share: float) -> float:
        """Within how many milliseconds this share of the turns was heard of."""
        return sorted(self.heard_ms)[min(len(self.heard_ms) - 1, int(share * len(self.heard_ms)))]


def slow_kit(loops: int, takes_ms: int) -> Kit:
    """Runs of so many loops, each with one call that reads."""
    return engine_kit(SlowModel(loops, takes_ms), Registry([look]))


def measure_subscribers() -> Subscribers:
    """Everything."""
    alone = _best(0, is_reading=False)
    told = {count: _best(count, is_reading=False) - alone for count in (1, MANY)}
    read = {count: _best(count, is_reading=True) - alone - told[count] for count in (1, MANY)}
    with TemporaryDirectory() as folder:
        return Subscribers(alone, told, read, tuple(asyncio.run(_heard(Path(folder) / "store"))))


def _best(count: int, *, is_reading: bool) -> float:
    return min(asyncio.run(_turn_micros(count, is_reading=is_reading)) for _ in range(REPEATS))


async def _turn_micros(count: int, *, is_reading: bool) -> float:
    """CPU microseconds of a turn of a run with so many subscribers."""
    system = system_in_memory()
    try:
        kit = slow_kit(LOOPS, MODEL_MS)
        began = time.process_time_ns()
        run = await system.start(REQUEST, kit, TERMS)
        ears = [system.subscribe(Subject(run.id), since=-1) for _ in range(count)]
        readers = [asyncio.create_task(_read(ear)) for ear in ears if is_reading]
        response = await system.result(run.id)
        turns = len(await system.store.journal.read(run.id))
        spent = time.process_time_ns() - began
        expect_success(response)
        for ear in ears:
            ear.close()
        heard = await asyncio.gather(*readers)
        assert all(number == turns for number in heard), f"of {turns} turns, {heard} were heard"
    finally:
        await system.close()
    return spent / 1000 / turns


async def _read(ear: Subscription) -> int:
    return len([event async for event in ear])


async def _heard(home: Path) -> list[float]:
    """How many milliseconds after its moment each turn of another process was heard of."""
    heard: list[float] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    async with opened_system(Settings(home)) as system, system.subscribe(Subject(), since=-1) as ear:
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.subscribers", str(home), env=environment
        )
        async for event in ear:
            assert event.turn is not None, "no pieces were asked for"
            heard.append(time.time_ns() / 1_000_000 - event.turn.at_ms)
            if len(heard) == 2 * WATCHED_LOOPS:
                break
        await writer.wait()
    return heard


async def _write(home: Path) -> None:
    """What the other process does."""
    async with opened_system(Settings(home)) as system:
        expect_success(await system.run(REQUEST, slow_kit(WATCHED_LOOPS, WATCHED_MODEL_MS), TERMS))


def subscriber_lines(found: Subscribers) -> Iterator[str]:
    """The figures for people."""
    yield f"subscribers, on a run whose model takes {MODEL_MS} ms; CPU µs a turn, and the share of {MODEL_MS} ms"
    yield f"  a turn with nobody               {found.alone:8.0f}"
    for count in (1, MANY):
        told, read = found.told[count], found.read[count]
        yield f"  {count:3} told of it                  + {told:8.0f}   {told / MODEL_MS / MICROS_PER_MS:6.2%}"
        yield f"  {count:3} reading it, meanwhile       + {read:8.0f}   {read / MODEL_MS / MICROS_PER_MS:6.2%}"
    median, late = statistics.median(found.heard_ms), found.heard(0.99)
    yield f"  heard of in another process: median {median:.1f} ms, 99th percentile {late:.1f} ms, of {len(found.heard_ms)} turns"
    yield f"  wanted: at most {SHARE_MAX:.0%} told, and {HEARD_MS_MAX} ms at the 99th percentile"


def main() -> None:
    """Measure and print; with a folder, be the other process."""
    if sys.argv[1:]:
        asyncio.run(_write(Path(sys.argv[1])))
        return
    print(*subscriber_lines(measure_subscribers()), sep="\n")


if __name__ == "__main__":
    main()
