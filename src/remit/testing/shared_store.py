"""A store that several simulated processes share: it suspends at every await, its leases have owners, and it looks who writes.

Rule 1: whoever asks anything of it waits a number of turns of the loop that the seed says, before and after.
Rule 2: a lease belongs to a process. It dies with that, or it lasts for a time that is renewed and then goes to whoever asks.
        A turn is written under the token of the lease of its run, and none under an older token follows it.
Rule 3: whoever has left the store writes nothing. What breaks these rules is noted, and is for the laws to judge.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.checkup import MemoryCheckup
from remit.backend.memory.halts import MemoryHalts
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.receipts import MemoryReceipts
from remit.backend.memory.redactions import MemoryRedactions
from remit.backend.memory.retention import MemoryRetention
from remit.backend.memory.seals import MemorySeals
from remit.backend.memory.snapshots import MemorySnapshots
from remit.core.arrivals import RunTaken
from remit.core.codec import decode_turn
from remit.core.queue import Receipt, ReceiptKind
from remit.core.quota import Charge, Committed, Limit
from remit.core.record import Record
from remit.core.storage import Barrier, InboxEntry, Listing, RunEntry, SignedHead, Snapshot, Warrant

T = TypeVar("T")

# Waits for a number of turns of the loop that the seed says.
Pause = Callable[[], Awaitable[None]]


class Lease(Record):
    """Who drives a run, under which token, and until when; 0 is as long as its holder lives."""

    holder: str
    token: int
    until_s: float = 0.0


class Ground:
    """What outlives every process."""

    def __init__(self) -> None:
        self.inbox = MemoryInbox()
        self.journal = MemoryJournal(inbox=self.inbox)
        self.blobs = MemoryBlobs()
        self.snapshots = MemorySnapshots()
        self.receipts = MemoryReceipts()
        self.halts = MemoryHalts()
        self.seals = MemorySeals()
        self.leases: dict[str, Lease] = {}
        # The token under which a run was taken up last; and how many leases there were.
        self.tokens: dict[str, int] = {}
        self.leased = 0
        # Whatever was left for runs, settled or not.
        self.entries: list[InboxEntry] = []
        # What no store should see, in words, with the run.
        self.offences: list[tuple[str, str, str]] = []

    def run_ids(self) -> Sequence[str]:
        """Every run that has a turn, for those who look from outside and wait for nothing."""
        return at_once(self.journal.run_ids())

    def turns(self, run_id: str) -> Sequence[bytes]:
        """The turns of a run."""
        return at_once(self.journal.read(run_id))

    def outcome(self, number: int) -> tuple[str, str] | None:
        """What became of an entry of the inbox."""
        return at_once(self.inbox.outcome(number))

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


class SharedStore:
    """The store as one process has it open."""

    # Nothing is signed.
    key = None

    def __init__(self, ground: Ground, process: str, pause: Pause, lease_ms: int = 0) -> None:
        self.ground = ground
        self.process = process
        self.pause = pause
        self.is_closed = False
        self.journal = SharedJournal(self)
        self.catalogue = self.journal
        self.log = ground.journal.log
        self.ledger = SharedLedger(self)
        self.blobs = SharedBlobs(self)
        self.snapshots = SharedSnapshots(self)
        self.inbox = SharedInbox(self)
        self.leases = SharedLeases(self, lease_ms)
        self.receipts = SharedReceipts(self)
        self.halts = ground.halts
        self.seals = ground.seals
        self.retention = MemoryRetention(ground, self.leases, None, _now_ms)
        self.redactions = MemoryRedactions(ground, self.retention, None, _now_ms)
        self.checkup = MemoryCheckup(ground.journal, None)

    async def close(self) -> None:
        """Leave, with nothing in hand."""
        for run_id, lease in self.ground.leases.items():
            if lease.holder == self.process:
                self.offend("nothing_outlives_closing", run_id, "was closed and still held the run")
        await self.pause()
        self.is_closed = True
        self.ground.crash(self.process)

    def offend(self, law: str, run_id: str, what: str) -> None:
        """Note what no process may do."""
        self.ground.offences.append((law, run_id, f"{self.process} {what}"))


class SharedJournal:
    """Turns, and the index of them."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._kept = store.ground.journal

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: int,
        barrier: Barrier | None = None,
        listing: Listing | None = None,
        warrant: Warrant | None = None,
    ) -> None:
        """Write a turn, and look who does."""
        store = self._store
        await store.pause()
        if store.is_closed:
            store.offend("nothing_is_written_after_closing", run_id, f"wrote turn {after + 1} after it was closed")
        await self._kept.append(run_id, data, after, barrier, listing)
        token = 0 if warrant is None else warrant.token
        ground = store.ground
        if store.leases.lasts_ms:
            arrival = decode_turn(data).arrival
            if isinstance(arrival, RunTaken):
                ground.tokens[run_id] = max(arrival.token, ground.tokens.get(run_id, 0))
            if token < ground.tokens.get(run_id, 1):
                store.offend("one_driver_at_a_time", run_id, f"wrote turn {after + 1} under a lease of the past")
        elif (lease := ground.leases.get(run_id)) is None or (lease.holder, lease.token) != (store.process, token):
            store.offend("one_driver_at_a_time", run_id, f"wrote turn {after + 1} and does not hold the run")
        await store.pause()

    async def read(self, run_id: str, *, after: int = -1) -> Sequence[bytes]:
        """The turns of a run."""
        await self._store.pause()
        found = list(await self._kept.read(run_id, after=after))
        await self._store.pause()
        return found

    async def entry(self, run_id: str) -> RunEntry | None:
        """One run."""
        await self._store.pause()
        return await self._kept.entry(run_id)

    async def entries(
        self, *, open_only: bool = False, waiting_only: bool = False, limit: int = 0
    ) -> Sequence[RunEntry]:
        """The runs, newest first."""
        await self._store.pause()
        return await self._kept.entries(open_only=open_only, waiting_only=waiting_only, limit=limit)

    async def session(self, session_id: str) -> Sequence[RunEntry]:
        """The runs of a session."""
        await self._store.pause()
        return await self._kept.session(session_id)

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        """The newest runs of a likeness."""
        await self._store.pause()
        return await self._kept.alike(likeness, limit=limit)

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """Nothing is signed."""
        return ()

    async def last_head(self, run_id: str) -> SignedHead | None:
        """Nothing is signed."""
        return None


class SharedLedger:
    """What runs count for their tenants."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._kept = store.ground.journal.ledger

    async def committed(self, tenant_id: str, limits: Sequence[Limit]) -> Sequence[Committed]:
        """What counts against each of these limits."""
        await self._store.pause()
        return await self._kept.committed(tenant_id, limits)

    async def uncounted(self, tenant_id: str, from_ms: int) -> Sequence[str]:
        """The runs that are not counted as they stand."""
        await self._store.pause()
        return await self._kept.uncounted(tenant_id, from_ms)

    async def count(self, charges: Sequence[Charge]) -> None:
        """Count these runs so."""
        await self._store.pause()
        await self._kept.count(charges)

    async def tenants(self) -> Sequence[str]:
        """Every tenant."""
        await self._store.pause()
        return await self._kept.tenants()


class SharedBlobs:
    """Long texts."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes."""
        await self._store.pause()
        await self._store.ground.blobs.put(digest, data)

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest."""
        await self._store.pause()
        return await self._store.ground.blobs.get(digest)


class SharedSnapshots:
    """States that need not be folded again."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        """Keep a state."""
        await self._store.pause()
        await self._store.ground.snapshots.keep(run_id, seq, head, data, signature)

    async def latest(self, run_id: str) -> Snapshot | None:
        """What was kept last."""
        await self._store.pause()
        return await self._store.ground.snapshots.latest(run_id)


class SharedInbox:
    """What people left for runs."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._kept = store.ground.inbox

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run."""
        await self._store.pause()
        number = await self._kept.put(run_id, data)
        self._store.ground.entries.append(InboxEntry(number, run_id, data))
        await self._store.pause()
        return number

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries that nobody has settled; others may settle them before whoever asked goes on."""
        await self._store.pause()
        found = await self._kept.pending(after=after)
        await self._store.pause()
        return found

    async def settle(self, number: int, code: str, message: str) -> None:
        """Say that an entry was heard or refused."""
        await self._store.pause()
        await self._kept.settle(number, code, message)

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        await self._store.pause()
        return await self._kept.outcome(number)


class SharedReceipts:
    """What was done about the items of queues."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def keep(self, receipt: Receipt) -> None:
        """Keep a receipt."""
        await self._store.pause()
        await self._store.ground.receipts.keep(receipt)

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:
        """The receipts of a kind."""
        await self._store.pause()
        return await self._store.ground.receipts.kept(kind)


class SharedLeases:
    """Who drives which run: as long as its process lives, or for a time that is renewed."""

    def __init__(self, store: SharedStore, lasts_ms: int) -> None:
        self._store = store
        self.lasts_ms = lasts_ms

    @property
    def is_driving(self) -> bool:
        """Whether anybody holds any run."""
        return any(self._holder(run_id) is not None for run_id in self._store.ground.leases)

    async def take(self, run_id: str) -> int | None:
        """Take a run that nobody holds, or nobody has renewed in time."""
        ground = self._store.ground
        await self._store.pause()
        if self._holder(run_id) is not None:
            return None
        ground.leased += 1
        token = ground.leased
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
        """Let it go."""
        await self._store.pause()
        if self._is_current(run_id, token):
            del self._store.ground.leases[run_id]

    async def is_held(self, run_id: str) -> bool:
        """Whether anybody holds a run."""
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


def _now_ms() -> int:
    return round(_now_s() * 1000)
