"""A store that several simulated processes share: it suspends at every await, its leases have owners, and it looks who writes.

Rule 1: it is the poorest there is: one entry of one log is written at a time (backend/folded), so whatever is decided over
        several logs can be cut off or overtaken between any two of them.
Rule 2: every caller waits a number of turns of the loop that the seed says, before and after.
Rule 3: a lease belongs to a process. It dies with that, or lasts for a time that is renewed and then goes to the next that asks.
Rule 4: a process that has left the store writes nothing. What breaks these rules is noted, and is for the laws to judge.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from math import inf
from random import Random
from typing import Any, TypeVar

from remit.backend.folded.log import HALT_LOG, INBOX, RUN, LogEntry
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
    Topic,
    Warrant,
)
from remit.core.record import Record
from remit.orchestrate.ports import Bell, Journal

T = TypeVar("T")

# Waits for a number of turns of the loop that the seed says.
Pause = Callable[[], Awaitable[None]]


# How many rings of a bell are lost, how many come twice, and how late they are at most.
_RINGS_LOST, _RINGS_DOUBLED, _RING_S_MAX = 0.3, 0.15, 0.3
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


class Hold:
    """One lease as it was had: from when until when a process held a run, and when it knew that it does no longer."""

    __slots__ = ("from_s", "known_s", "process", "token", "until_s")

    def __init__(self, process: str, token: int, from_s: float) -> None:
        self.process = process
        self.token = token
        self.from_s = from_s
        self.until_s = inf
        self.known_s = inf

    def end(self, at_s: float, *, is_known: bool) -> None:
        """Let it be over, unless it is."""
        self.until_s = min(self.until_s, at_s)
        if is_known:
            self.known_s = min(self.known_s, at_s)


class TornBell:
    """A bell of chance: of its rings some are lost, some come twice, and all come late, in whichever process listens."""

    # So long that what a lost ring would have told comes late enough to be seen.
    look_ms = 1_000

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._ears: dict[Topic, list[tuple[Callable[[bytes], None], Context]]] = {topic: [] for topic in Topic}
        self.rings = 0

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Have a listener called in its own process."""
        ear = (hear, copy_context())
        self._ears[topic].append(ear)
        return lambda: self._ears[topic].remove(ear)

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Ring for every listener, as the seed says."""
        for hear, context in tuple(self._ears[topic]):
            draw = self._chance.random()
            for _ in range(0 if draw < _RINGS_LOST else 2 if draw > 1 - _RINGS_DOUBLED else 1):
                self.rings += 1
                after_s = self._chance.random() ** 3 * _RING_S_MAX
                asyncio.get_running_loop().call_later(after_s, hear, word, context=context)

    def is_heard(self, topic: Topic) -> bool:
        """Whether a topic has a listener."""
        return bool(self._ears[topic])


class Ground:
    """What outlives every process."""

    def __init__(self, bell: TornBell | None = None) -> None:
        # None where no process is ever rung.
        self.bell = bell
        self.log = PoorLog()
        self.blobs = MemoryBlobs()
        self.seals = MemorySeals()
        self.leases: dict[str, Lease] = {}
        # How many leases there were, and which of them each run had.
        self.leased = 0
        self.tokens: dict[str, list[int]] = {}
        # Who held each run, one after another; and which processes are gone, because they crashed or left.
        self.holds: dict[str, list[Hold]] = {}
        self.gone: set[str] = set()
        # When each lease was known to its holder, and when each process renewed one last, or whether it does so just now.
        # Leases that are just being taken, or let go, are not renewed.
        self.taken_s: dict[int, float] = {}
        self.renewed_s: dict[str, float] = {}
        self.renewing: Counter[str] = Counter()
        self.passing: set[int] = set()
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
        self.gone.add(process)
        for holds in self.holds.values():
            if holds[-1].process == process:
                holds[-1].end(_now_s(), is_known=True)
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
        if ground.bell is not None:
            self.bell: Bell = ground.bell  # type: ignore[assignment]

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
        if store.ground.bell is not None:
            if name.startswith(RUN):
                store.ground.bell.ring(Topic.TURNS)
            elif name == HALT_LOG or name.startswith(INBOX):
                store.ground.bell.ring(Topic.POST)
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
        self._expect_renewals(run_id)
        holds = ground.holds.setdefault(run_id, [])
        for hold in holds[-1:]:
            hold.end(_now_s(), is_known=False)
        holds.append(Hold(self._store.process, token, _now_s()))
        ground.leases[run_id] = Lease(self._store.process, token, self._until_s())
        ground.passing.add(token)
        await self._store.pause()
        ground.passing.discard(token)
        ground.taken_s[token] = _now_s()
        return token

    async def renew(self, run_id: str, token: int) -> bool:
        """Hold a run for longer; one that is late may do so until another has taken it."""
        ground, process = self._store.ground, self._store.process
        ground.renewed_s[process] = _now_s()
        ground.renewing[process] += 1
        await self._store.pause()
        is_ours = self._is_current(run_id, token)
        if is_ours:
            ground.leases[run_id] = Lease(process, token, self._until_s())
        await self._store.pause()
        ground.renewed_s[process] = _now_s()
        ground.renewing[process] -= 1
        if not is_ours:
            self._end_hold(run_id, token)
        return is_ours

    async def release(self, run_id: str, token: int) -> None:
        """Let it go; a lock that dies with its process is let go in it, without waiting."""
        self._store.ground.passing.add(token)
        if self.lasts_ms:
            await self._store.pause()
        if self._is_current(run_id, token):
            self._end_hold(run_id, token)
            del self._store.ground.leases[run_id]

    async def is_held(self, run_id: str) -> bool:
        """Whether a process holds a run."""
        await self._store.pause()
        return self._holder(run_id) is not None

    def _holder(self, run_id: str) -> Lease | None:
        lease = self._store.ground.leases.get(run_id)
        return None if lease is None or 0 < lease.until_s <= _now_s() else lease

    def _expect_renewals(self, run_id: str) -> None:
        """Note a living process whose lease has gone to another, although it had the time to renew it and did not try."""
        ground, lease = self._store.ground, self._store.ground.leases.get(run_id)
        if (
            lease is None
            or lease.holder in ground.gone
            or lease.token in ground.passing
            or ground.renewing[lease.holder]
        ):
            return
        lasts_s = self.lasts_ms / 1000
        known_s = max(ground.taken_s[lease.token], lease.until_s - lasts_s)
        # A holder that knew of it for most of its time, and has asked for nothing since.
        if lease.until_s - known_s > lasts_s * 0.7 and ground.renewed_s.get(lease.holder, 0.0) < known_s:
            what = f"took it from {lease.holder}, which lives and has renewed nothing while its lease lasted"
            self._store.offend("a_living_process_renews_its_leases", run_id, what)

    def _end_hold(self, run_id: str, token: int) -> None:
        """Note that the holder knows that a lease of it is over."""
        for hold in self._store.ground.holds.get(run_id, ()):
            if hold.token == token:
                hold.end(_now_s(), is_known=True)

    def _is_current(self, run_id: str, token: int) -> bool:
        lease = self._store.ground.leases.get(run_id)
        return lease is not None and lease.token == token

    def _until_s(self) -> float:
        return _now_s() + self.lasts_ms / 1000 if self.lasts_ms else 0.0


def _now_s() -> float:
    return asyncio.get_running_loop().time()
