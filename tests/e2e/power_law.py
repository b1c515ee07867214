"""Lose the power at any point: the errand is traced, the disk rebuilt as it would be, and the store opened again.

    python -m tests.e2e.power_law errand FOLDER [MUTANT]            the process that is traced
    python -m tests.e2e.power_law errand-with-two FOLDER            the same, with a second holder of the store
    python -m tests.e2e.power_law errand-after-a-kill FOLDER        the same, after another process was killed
    python -m tests.e2e.power_law check FOLDER TRACE all|marked PART PARTS     prints one JSON object

The traced process says in a file of its own, outside the store, what it was promised: strace sees that in its place
among the writes and syncs.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, NamedTuple

from remit.backend.embedded.disk import checkpoints
from remit.backend.embedded.disk.syncer import Syncer, Waiting
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RemitError
from remit.core.journal.arrivals import ApprovalGiven, ApprovalRefused, OutcomeJudged, QuestionAnswered
from remit.core.journal.codec import decode_turn, hash_turn
from remit.core.journal.commands import CallTool
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import SignedHead, StoreUnusable
from remit.core.run.signals import UserSignal
from tests.e2e import errand
from tests.e2e.crash_law import Kept, Place, Stage, begin, go_on, journals, kept_as, preload, prove
from tests.e2e.crashing import Fuse, Moment, Position, Tell, in_fork
from tests.e2e.disk import EVERYTHING, NOTHING, Disk, Phase, Survival, by_chance, read_trace
from tests.e2e.errand import RUN, Ledger

STORE, LEDGER, PROMISES = "store", "ledger", "promises"
SAID_BY_PEOPLE = (ApprovalGiven, ApprovalRefused, OutcomeJudged, QuestionAnswered)
# Small enough that the WAL is moved and begun anew several times within one errand.
WAL_BYTES_MAX = 100_000
CHECK_S_MAX = 300
# A disk that takes longer to sync than anybody takes to look, and a tool that takes longer than all of that.
SLOW_DISK_S, SLOW_TOOL_S = 0.1, 1.0
# The append with which the idempotent call is approved, and thereby ordered.
FIRST_APPROVAL = Position(Moment.DURING_APPEND, 7)
# What is rebuilt is opened hundreds of times and never has to last; a file system in memory spares the disk.
MEMORY = Path("/dev/shm")
# At so many of the points the errand is also finished with what a seed has left.
FINISH_BY_SEED_EVERY = 3
# No reader looks at more of them.
FAULTS_MAX = 20


class PromisingStage(Stage):
    """A stage that writes down what it was promised, at the moment it is."""

    def __init__(self, folder: Path) -> None:
        self._promises = os.open(folder / PROMISES, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        super().__init__(Place(folder / STORE, Ledger(folder / LEDGER)), Fuse(), self._kept)

    def promised(self, what: str, *values: object) -> None:
        """Write a promise down."""
        os.write(self._promises, json.dumps([what, *values]).encode() + b"\n")

    def _kept(self, run_id: str, seq: int, data: bytes) -> None:
        turn = decode_turn(data)
        is_weighty = isinstance(turn.arrival, SAID_BY_PEOPLE) or any(
            isinstance(decision, RunEnded) or (isinstance(decision, CallTool) and decision.mutating)
            for decision in turn.decisions
        )
        if is_weighty:
            self.promised("kept", *kept_as(run_id, seq, data))

    async def say(self, signal: UserSignal) -> None:  # type: ignore[explicit-override]  # typing.override is of 3.12
        """Tell a run something, and note that it was heard."""
        await super().say(signal)
        self.promised("heard", signal.run_id)


async def play(folder: Path) -> None:
    """Play the errand in two sittings, with a clean end between them, and checkpoints on the way."""
    checkpoints.WAL_BYTES_MAX = WAL_BYTES_MAX
    first = PromisingStage(folder)
    response = await first.system.run(errand.request(), first.kit)
    assert response.waiting_for is not None
    await first.system.close()
    second = PromisingStage(folder)
    response = await second.play()
    second.promised("ended", RUN, str(response.terminal_code))
    await second.system.close()


async def play_with_two(folder: Path) -> None:
    """Play the errand with a second holder of the store, through whom people speak, on a disk that is slow to sync."""
    slow_down_the_disk()
    driving, speaking = PromisingStage(folder), PromisingStage(folder)
    driving.kit = errand.kit(driving.place.ledger, lambda _: None, slow_s=SLOW_TOOL_S)
    await driving.system.submit(errand.request(), driving.kit)
    async with asyncio.timeout(CHECK_S_MAX):
        while not await speaking.asked():  # noqa: ASYNC110  # what another holder of the store does has no event here
            await asyncio.sleep(SLOW_DISK_S / 10)
    await speaking.answer(await speaking.asked())
    response = await driving.attend()
    driving.promised("ended", RUN, str(response.terminal_code))
    await speaking.system.close()
    await driving.system.close()


def play_after_a_kill(folder: Path) -> None:
    """Kill a process after it committed an approval and before that was synced; another goes on with the errand."""
    place = Place(folder / STORE, Ledger(folder / LEDGER))

    def begin_slowly(tell: Tell) -> None:
        slow_down_the_disk()
        begin(place, Fuse(FIRST_APPROVAL))(tell)

    assert in_fork(begin_slowly).was_killed

    async def go_on_with_it() -> None:
        stage = PromisingStage(folder)
        response = await stage.play()
        stage.promised("ended", RUN, str(response.terminal_code))
        await stage.system.close()

    finished = in_fork(lambda _: asyncio.run(go_on_with_it()))
    assert finished.has_ended_well, finished.said


def slow_down_the_disk() -> None:
    """Let every sync that this program asks for take a while."""
    fdatasync, pause = os.fdatasync, Event()

    def slowly(fd: int) -> None:
        pause.wait(SLOW_DISK_S)
        fdatasync(fd)

    os.fdatasync = slowly  # type: ignore[assignment]


def _sync_nothing() -> None:
    """No turn is ever synced, but when SQLite does so for itself."""
    os.fdatasync = lambda fd: None


def _sync_no_names() -> None:
    """Neither the key nor any folder is ever synced."""
    os.fsync = lambda fd: None


def _log_heads_first() -> None:
    """heads.log is written before the turns it speaks of are on the disk."""
    sync = Syncer._sync

    def hasty(self: Syncer, waiting: Sequence[Waiting], unlogged: Sequence[SignedHead]) -> StoreUnusable | None:
        if waiting:
            self._log.append([head for _, head in waiting if head is not None])
        return sync(self, waiting, unlogged)

    Syncer._sync = hasty  # type: ignore[method-assign]


# Faults of the house that only a power loss shows, and what is then found.
MUTANTS: Mapping[str, tuple[Callable[[], None], str]] = {
    "syncs_nothing": (_sync_nothing, "was acknowledged and is lost"),
    "syncs_no_names": (_sync_no_names, "does not verify"),
    "logs_heads_first": (_log_heads_first, "HEAD_BEYOND_JOURNAL"),
}


@dataclass(slots=True)
class Promises:
    """What had been promised, and what had happened in the world, when the power went."""

    kept: list[Kept] = field(default_factory=list)
    heard: dict[str, int] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    world: list[bytes] = field(default_factory=list)

    def take(self, line: bytes) -> None:
        """Hear one more."""
        match json.loads(line):
            case ["kept", run_id, seq, link]:
                self.kept.append(Kept(run_id, seq, link))
            case ["heard", run_id]:
                self.heard[run_id] = self.heard.get(run_id, 0) + 1
            case ["ended", run_id, ending]:
                self.ended[run_id] = ending

    def ordered(self) -> Iterator[tuple[str, int]]:
        """The turns that ordered what was attempted in the world, read off the keys."""
        for line in self.world:
            entry = json.loads(line)
            if entry["what"] == "attempt":
                run_id, _, command_id = entry["key"].rpartition(":")
                yield run_id, int(command_id.split(".")[0])


class Point(NamedTuple):
    """A point at which the power may go: whether something was promised or done just before it."""

    number: int
    is_marked: bool


def points(folder: Path, trace: Path, disk: Disk, promises: Promises) -> Iterator[Point]:
    """Follow a trace, and stop after every change of the disk, every sync and every promise."""
    number = 0
    for phase, call_number, call in read_trace(trace.read_text().splitlines()):
        is_marked = False
        if call.descriptor in (str(folder / PROMISES), str(folder / LEDGER)):
            if phase is not Phase.BEGINS or call.name != "write":
                continue
            is_marked = True
            if call.descriptor.endswith(PROMISES):
                promises.take(call.texts[0])
            else:
                promises.world.append(call.texts[0])
        elif not disk.take(phase, call_number, call):
            continue
        yield Point(number, is_marked)
        number += 1


async def broken_promises(home: Path, promises: Promises) -> list[str]:
    """Open what is left of a store, and say what is missing or wrong."""
    try:
        store = EmbeddedStore.open(home)
    except RemitError as error:
        return [f"it does not open: {error!r}"]
    found = []
    turns = await journals(store)
    for run_id, seq, link in promises.kept:
        if seq >= len(turns.get(run_id, ())) or hash_turn(turns[run_id][seq]).hex() != link:
            found.append(f"turn {seq} of {run_id} was acknowledged and is lost")
    for run_id, seq in promises.ordered():
        if seq >= len(turns.get(run_id, ())):
            found.append(f"turn {seq} of {run_id} ordered what was done and is lost")
    for run_id, times in promises.heard.items():
        arrivals = [decode_turn(data).arrival for data in turns.get(run_id, ())]
        if sum(isinstance(arrival, SAID_BY_PEOPLE) for arrival in arrivals) < times:
            found.append(f"{run_id} has forgotten what a person said")
    for run_id, ending in promises.ended.items():
        entry = await store.catalogue.entry(run_id)
        if entry is None or entry.ending != ending:
            found.append(f"{run_id} has forgotten its ending")
    try:
        await prove(store, turns)
    except (AssertionError, RemitError) as error:
        found.append(f"it does not verify: {error}")
    await store.close()
    return found


class Wanted(NamedTuple):
    """Which points are looked at: those of one of so many parts, or only the marked ones of them."""

    part: int
    parts: int
    only_marked: bool

    def has(self, point: Point) -> bool:
        """Whether a point is one of them."""
        return point.number % self.parts == self.part and (point.is_marked or not self.only_marked)


def check(folder: Path, trace: Path, scratch: Path, wanted: Wanted) -> dict[str, Any]:
    """Lose the power at every point that is wanted; at marked ones the errand then goes on to its end."""

    def look(tell: Tell) -> None:
        disk, promises = Disk(folder), Promises()
        count = losses = faults = 0
        for point in points(folder, trace, disk, promises):
            if not wanted.has(point) or faults > FAULTS_MAX:
                continue
            count += 1
            for name, survival in _survivals(point):
                losses += 1
                home = scratch / "rebuilt"
                disk.rebuild(home, survival)
                for fault in asyncio.run(broken_promises(home / STORE, promises)):
                    tell(f"point {point.number}, {name}: {fault}")
                    faults += 1
                shutil.rmtree(home)
        tell(json.dumps([count, losses, sorted(sys.modules)]))

    looked = in_fork(look, kill_after_s=CHECK_S_MAX)
    if not looked.has_ended_well:
        return {"points": 0, "losses": 0, "faults": ["\n".join(looked.said)]}
    count, losses, modules = json.loads(looked.said[-1])
    preload(modules)
    faults = list(looked.said[:-1])
    if not faults:
        faults += finish(folder, trace, scratch, wanted)
    return {"points": count, "losses": losses, "faults": faults}


def finish(folder: Path, trace: Path, scratch: Path, wanted: Wanted) -> Iterator[str]:
    """At every marked point that is wanted, let another process finish the errand with what is left."""
    disk, promises = Disk(folder), Promises()
    for point in points(folder, trace, disk, promises):
        if not point.is_marked or not wanted.has(point):
            continue
        for name, survival in _survivals(point)[: 1 + (point.number % FINISH_BY_SEED_EVERY == 0)]:
            top = scratch / "finished"
            disk.rebuild(top, survival)
            ledger = Ledger(top / LEDGER)
            ledger.path.write_bytes(b"".join(promises.world))
            finished = in_fork(go_on(Place(top / STORE, ledger), promises.kept, 1))
            if not finished.has_ended_well:
                yield f"point {point.number}, {name}, then finished: " + " | ".join(finished.said[-30:])
            shutil.rmtree(top)


def _survivals(point: Point) -> Sequence[tuple[str, Survival]]:
    """What may have survived at a point beyond what must."""
    by_seed = (f"seed {point.number}", by_chance(point.number))
    return (("nothing unsynced", NOTHING), by_seed, *((("everything", EVERYTHING),) if point.is_marked else ()))


def main(arguments: Sequence[str]) -> None:
    """Play or check, as the arguments say."""
    match arguments:
        case ["errand", folder]:
            asyncio.run(play(Path(folder)))
        case ["errand-with-two", folder]:
            asyncio.run(play_with_two(Path(folder)))
        case ["errand-after-a-kill", folder]:
            play_after_a_kill(Path(folder))
        case ["errand", folder, mutant]:
            MUTANTS[mutant][0]()
            asyncio.run(play(Path(folder)))
        case ["check", folder, trace, "all" | "marked" as which, part, parts]:
            wanted = Wanted(int(part), int(parts), which == "marked")
            with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
                found = check(Path(folder), Path(trace), Path(scratch), wanted)
            print(json.dumps(found))  # noqa: T201
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
