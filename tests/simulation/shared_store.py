"""A store that several simulated processes share: it suspends at every await, its leases have owners, and it looks who writes.

Rule 1: it is the poorest there is: one entry of one log is written at a time (backend/folded), so whatever is decided over
        several logs can be cut off or overtaken between any two of them.
Rule 2: every caller waits a number of turns of the loop that the seed says, before and after.
Rule 3: a lease belongs to a process. It dies with that, or lasts for a time that is renewed and then goes to the next that asks.
Rule 4: a process that has left the store writes nothing. What breaks these rules is noted, and is for the laws to judge.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from remit.backend.folded.log import RUN, LogEntry
from remit.backend.folded.log_copy import LogCopy
from remit.backend.folded.store import FoldedStore
from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.seals import MemorySeals
from remit.core.journal.commands import Command
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    InboxEntry,
    Place,
    RunListing,
    StoreUnusable,
    Stretch,
    Warrant,
)
from remit.core.record import Record
from remit.orchestrate.ports import Journal

T = TypeVar("T")

# Waits for a number of turns of the loop that the seed says.
Pause = Callable[[], Awaitable[None]]


# How far apart the places of a poor log are, so that no place is taken for a number.
_APART = 3


class PoorLog:
    """A log that can do the least: it takes one entry at a time, behind the last one that was seen, and keeps it in memory."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self._stands: dict[str, Place] = {}

    async def append(self, name: str, data: bytes, after: Place) -> Place:
        """Write the next entry of a log that stands at `after`."""
        if self._stands.get(name, START) != after:
            raise AppendConflict(name)
        place = _APART * len(self.entries) + 2
        self.entries.append(LogEntry(place, name, data))
        self._stands[name] = place
        return place

    async def news(self, after: Place) -> list[LogEntry]:
        """The entries of all logs after a place, oldest first."""
        return self.entries[(after + 1) // _APART :]


class Lease(Record):
    """Who drives a run, under which token, and until when; 0 is as long as its holder lives."""

    holder: str
    token: int
    until_s: float = 0.0


class Ground:
    """What outlives every process."""

    def __init__(self) -> None:
        self.log = PoorLog()
        self.blobs = MemoryBlobs()
        self.seals = MemorySeals()
        self.leases: dict[str, Lease] = {}
        # How many leases there were, and which of them each run had.
        self.leased = 0
        self.tokens: dict[str, list[int]] = {}
        # Who wrote which turn under which token, by the place of the turn.
        self.writers: dict[Place, tuple[str, int]] = {}
        self.written_at_s: dict[Place, float] = {}
        # What no store should see, in words, with the run.
        self.offences: list[tuple[str, str, str]] = []
        self._replica = LogCopy(self.log)

    def look(self) -> LogCopy:
        """What the logs come to, for those who look from outside and wait for nothing."""
        at_once(self._replica.refresh())
        return self._replica

    def run_ids(self) -> Sequence[str]:
        """Every run that has a turn."""
        return at_once(self.look().journal.names())

    def turns(self, run_id: str) -> Sequence[bytes]:
        """The turns of a run."""
        return at_once(self.look().journal.read(run_id))

    def letters(self) -> Sequence[tuple[InboxEntry, tuple[str, str] | None]]:
        """Whatever was left for runs, and what became of it."""
        found = self.look().letters.items()
        return [(InboxEntry(number, letter.run_id, letter.data), letter.outcome) for number, letter in found]

    def crash(self, process: str) -> None:
        """Free what a process held, unless that has a time of its own."""
        self.leases = {
            run_id: lease for run_id, lease in self.leases.items() if lease.until_s or lease.holder != process
        }


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What something comes to that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("memory waits for nothing")


class SharedStore(FoldedStore):
    """The store as one process has it open."""

    def __init__(self, ground: Ground, process: str, pause: Pause, lease_ms: int = 0) -> None:
        self.ground = ground
        self.process = process
        self.pause = pause
        self.is_closed = False
        self.under_way = 0
        super().__init__(SlowLog(self), SharedLeases(self, lease_ms), SlowBlobs(self), ground.seals)
        self.journal: Journal = WatchedJournal(self, self.journal)  # type: ignore[assignment]

    async def close(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Leave, with nothing in hand."""
        if self.under_way:
            self.offend(
                "a_store_is_closed_when_nobody_asks_it", "", f"was closed with {self.under_way} questions under way"
            )
        for run_id, lease in self.ground.leases.items():
            if lease.holder == self.process:
                self.offend("nothing_outlives_closing", run_id, "was closed and still held the run")
        await self.pause()
        self.is_closed = True
        self.ground.crash(self.process)

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Something is asked of the store, which may not be closed meanwhile."""
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1

    def offend(self, law: str, run_id: str, what: str) -> None:
        """Note what no process may do."""
        self.ground.offences.append((law, run_id, f"{self.process} {what}"))


class SlowLog:
    """The log of all, which takes its time."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def append(self, name: str, data: bytes, after: Place) -> Place:
        """Write an entry."""
        store = self._store
        await store.pause()
        if store.is_closed:
            if name.startswith(RUN):
                store.offend("nothing_is_written_after_closing", name.removeprefix(RUN), "wrote a turn")
            raise StoreUnusable("STORE_CLOSED", f"the store of {store.process} is closed")
        place = await store.ground.log.append(name, data, after)
        store.ground.written_at_s[place] = _now_s()
        await store.pause()
        return place

    async def news(self, after: Place) -> list[LogEntry]:
        """What is new; others may write before the caller goes on."""
        with self._store.asked():
            found = await self._store.ground.log.news(after)
            await self._store.pause()
        return found


class WatchedJournal:
    """The journal of a process, of which it is noted under which token it wrote which turn."""

    def __init__(self, store: SharedStore, journal: Journal) -> None:
        self._store = store
        self._journal = journal

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
        """Write a turn."""
        place = await self._journal.append(run_id, data, after, barrier, listing, warrant, orders)
        self._store.ground.writers[place] = (self._store.process, 0 if warrant is None else warrant.token)
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns of a run."""
        return await self._journal.read(run_id, after=after)


class SlowBlobs:
    """Long texts."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes."""
        await self._store.pause()
        await self._store.ground.blobs.put(digest, data)

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest."""
        with self._store.asked():
            await self._store.pause()
            return await self._store.ground.blobs.get(digest)


class SharedLeases:
    """Who drives which run: as long as its process lives, or for a time that is renewed."""

    def __init__(self, store: SharedStore, lasts_ms: int) -> None:
        self._store = store
        self.lasts_ms = lasts_ms

    async def take(self, run_id: str) -> int | None:
        """Take a run without a holder, or whose lease was not renewed in time."""
        ground = self._store.ground
        await self._store.pause()
        if self._holder(run_id) is not None:
            return None
        ground.leased += 1
        token = ground.leased
        ground.tokens.setdefault(run_id, []).append(token)
        ground.leases[run_id] = Lease(self._store.process, token, self._until_s())
        await self._store.pause()
        return token

    async def renew(self, run_id: str, token: int) -> bool:
        """Hold a run for longer; one that is late may do so until another has taken it."""
        await self._store.pause()
        is_ours = self._is_current(run_id, token)
        if is_ours:
            self._store.ground.leases[run_id] = Lease(self._store.process, token, self._until_s())
        await self._store.pause()
        return is_ours

    async def release(self, run_id: str, token: int) -> None:
        """Let it go; a lock that dies with its process is let go in it, without waiting."""
        if self.lasts_ms:
            await self._store.pause()
        if self._is_current(run_id, token):
            del self._store.ground.leases[run_id]

    async def is_held(self, run_id: str) -> bool:
        """Whether a process holds a run."""
        await self._store.pause()
        return self._holder(run_id) is not None

    def _holder(self, run_id: str) -> Lease | None:
        lease = self._store.ground.leases.get(run_id)
        return None if lease is None or 0 < lease.until_s <= _now_s() else lease

    def _is_current(self, run_id: str, token: int) -> bool:
        lease = self._store.ground.leases.get(run_id)
        return lease is not None and lease.token == token

    def _until_s(self) -> float:
        return _now_s() + self.lasts_ms / 1000 if self.lasts_ms else 0.0


def _now_s() -> float:
    return asyncio.get_running_loop().time()
