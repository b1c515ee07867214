"""Crashing on purpose: a process that kills itself at a chosen moment of a run, on a real store.

Rule 1: a crash is SIGKILL: nothing is caught, flushed, closed or released.
Rule 2: moments are counted. A run that was not crashed tells how many there are, and then each can be chosen.
Rule 3: whatever a store acknowledged is told to the outside before the next moment, so a crash cannot hide it.
Rule 4: fork from a process that has no threads and has opened no store; the forked process opens its own.
"""

import asyncio
import os
import select
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import NamedTuple

from remit.core.journal.commands import Command
from remit.core.journal.storage import Barrier, Place, RunListing, Stretch, Warrant
from remit.orchestrate.ports import (
    Bell,
    Blobs,
    Catalogue,
    Checkup,
    Feed,
    HaltLog,
    HeadLog,
    Inbox,
    Index,
    Journal,
    Leases,
    Ledger,
    Receipts,
    Redactions,
    Retention,
    Seals,
    SigningKey,
    Snapshots,
    Store,
)

# A forked run that has not ended by then hangs.
FORK_S_MAX = 60

_BROKE = 1
_PIECE_BYTES = 65_536


class Moment(StrEnum):
    """When a process may be killed. `during` is after the commit, before anybody was told of it."""

    BEFORE_APPEND = "before_append"
    DURING_APPEND = "during_append"
    AFTER_APPEND = "after_append"
    AFTER_EFFECT = "after_effect"


class Position(NamedTuple):
    """The moment of a kind with this number, counted from 0."""

    moment: Moment
    number: int


def kill_this_process() -> None:
    """Die as if the power button of this process had been pressed."""
    os.kill(os.getpid(), signal.SIGKILL)


class Fuse:
    """Counts the moments that pass, and kills at one of them; without a position it only counts."""

    def __init__(self, position: Position | None = None, *, kill: Callable[[], None] = kill_this_process) -> None:
        self.passed: Counter[Moment] = Counter()
        self._position = position
        self._kill = kill
        # Tools in threads pass moments, too.
        self._lock = Lock()

    def passes(self, moment: Moment) -> None:
        """Say that a moment has come."""
        with self._lock:
            position = Position(moment, self.passed[moment])
            self.passed[moment] += 1
        if position == self._position:
            self._kill()

    def positions(self) -> list[Position]:
        """Every moment that has passed."""
        return [Position(moment, number) for moment in Moment for number in range(self.passed[moment])]


# Told of every append that returned: the run, where it stands, the bytes of the turn.
OnKept = Callable[[str, int, bytes], None]


class CrashingJournal:
    """A journal in front of a real one that passes the moments of every append."""

    def __init__(self, journal: Journal, fuse: Fuse, on_kept: OnKept) -> None:
        self._journal = journal
        self._fuse = fuse
        self._on_kept = on_kept

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        """Append, passing every moment."""
        self._fuse.passes(Moment.BEFORE_APPEND)
        append = self._journal.append(run_id, data, after, barrier, listing, warrant, orders)
        writing = asyncio.ensure_future(append)
        # In the first tick the store is asked, in the second it commits; a sync takes longer than that.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self._fuse.passes(Moment.DURING_APPEND)
        place = await writing
        self._on_kept(run_id, place, data)
        self._fuse.passes(Moment.AFTER_APPEND)
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """What the real one holds."""
        return await self._journal.read(run_id, after=after)


class CrashingStore:
    """A store whose journal may kill the process."""

    def __init__(self, store: Store, fuse: Fuse, on_kept: OnKept) -> None:
        self._store = store
        self.journal: Journal = CrashingJournal(store.journal, fuse, on_kept)
        self.feed: Feed = store.feed
        self.bell: Bell = store.bell
        self.blobs: Blobs = store.blobs
        self.snapshots: Snapshots = store.snapshots
        self.catalogue: Catalogue = store.catalogue
        self.index: Index = store.index
        self.log: HeadLog = store.log
        self.ledger: Ledger = store.ledger
        self.inbox: Inbox = store.inbox
        self.leases: Leases = store.leases
        self.halts: HaltLog = store.halts
        self.receipts: Receipts = store.receipts
        self.seals: Seals = store.seals
        self.retention: Retention = store.retention
        self.redactions: Redactions = store.redactions
        self.checkup: Checkup = store.checkup
        self.key: SigningKey | None = store.key

    async def close(self) -> None:
        """Close the real one."""
        await self._store.close()


# Says a line to the process that forked; what was said before a crash arrives.
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Forked:
    """What a forked process said, and how it ended."""

    said: tuple[str, ...]
    status: int

    @property
    def was_killed(self) -> bool:
        """Whether it died by SIGKILL."""
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    @property
    def has_ended_well(self) -> bool:
        """Whether it came to its end."""
        return os.waitstatus_to_exitcode(self.status) == 0


def in_fork(work: Callable[[Tell], None], *, kill_after_s: float = FORK_S_MAX) -> Forked:
    """Do work in a forked process, and hear what it says until it has ended, has killed itself, or is killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover: the forked process ends without leaving a measurement
        os.close(reading)
        _do(work, writing)
    os.close(writing)
    try:
        said = _heard(reading, pid, time.monotonic() + kill_after_s)
    finally:
        os.close(reading)
        _, status = os.waitpid(pid, 0)
    return Forked(tuple(said.decode().splitlines()), status)


def _heard(reading: int, pid: int, deadline_s: float) -> bytes:
    """Everything a process says until it is gone; when its time is up it is killed."""
    said = b""
    while True:
        left_s = deadline_s - time.monotonic()
        if not select.select([reading], [], [], max(left_s, 0))[0]:
            os.kill(pid, signal.SIGKILL)
            deadline_s += FORK_S_MAX
        elif piece := os.read(reading, _PIECE_BYTES):
            said += piece
        else:
            return said


def _do(work: Callable[[Tell], None], writing: int) -> None:  # pragma: no cover: see in_fork
    try:
        work(lambda line: _say(writing, line))
    except BaseException:  # noqa: BLE001  # whatever it was, the parent must learn it, and the copy must not live on
        _say(writing, traceback.format_exc().rstrip())
        os._exit(_BROKE)
    os._exit(0)


def _say(writing: int, text: str) -> None:  # pragma: no cover: see in_fork
    data = f"{text}\n".encode()
    while data:
        data = data[os.write(writing, data) :]
