"""Logs that several processes write to, and a store over them for each: where one is stopped, another comes between."""

import asyncio

from remit.backend.folded.log import LogEntry
from remit.backend.folded.store import FoldedStore
from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.leases import MemoryLeases
from remit.core.journal.storage import START, AppendConflict, Barrier, Place, RunListing, Warrant
from remit.core.limits.budget import Dimension
from remit.core.limits.quota import NEVER_MS, Charge, Committed, Limit, Period, Reservation
from remit.core.record import replace
from tests.simulation.shared_store import PoorLog

TOKENS = int(Dimension.OUTPUT_TOKENS)
LIMIT = Limit(Period.TOTAL, TOKENS, 100, 0, NEVER_MS)


class Stop:
    """Where a writer stands who is about to write an entry."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()


class SharedLog(PoorLog):
    """A log at which everybody waits for the others, and some for a test."""

    def __init__(self) -> None:
        super().__init__()
        self._stops: dict[str, Stop] = {}
        # The log to which another writer is always faster.
        self.crowded = ""

    def stop(self, name: str) -> Stop:
        """Stop the next writer to a log, before the entry is there."""
        self._stops[name] = Stop()
        return self._stops[name]

    async def append(self, name: str, data: bytes, after: Place) -> Place:  # type: ignore[explicit-override]
        """Write an entry, after those who come between."""
        if (stop := self._stops.pop(name, None)) is not None:
            stop.reached.set()
            await stop.go.wait()
        if name == self.crowded:
            raise AppendConflict(name)
        return await super().append(name, data, after)

    async def news(self, after: Place) -> list[LogEntry]:  # type: ignore[explicit-override]
        """What is new; others of the process may ask at the same time."""
        found = await super().news(after)
        await asyncio.sleep(0)
        return found


class Ground:
    """What all processes share: the logs, long texts, and who holds which run."""

    def __init__(self) -> None:
        self.log = SharedLog()
        self.blobs = MemoryBlobs()
        self.leases = MemoryLeases()

    def process(self) -> FoldedStore:
        """A process that has the store open and has folded nothing yet."""
        return FoldedStore(self.log, self.leases, self.blobs)

    async def cut_off(self, store: FoldedStore, run_id: str, listing: RunListing) -> None:
        """Have a process claim all that a run needs, and die before its first turn is written."""
        stop = self.log.stop(f"run:{run_id}")
        token = await self.leases.take(run_id) or 0
        begun = asyncio.create_task(begin(store, run_id, listing))
        await stop.reached.wait()
        begun.cancel()
        await asyncio.wait([begun])
        await self.leases.release(run_id, token)


def exchange(ordinal: int = 0) -> RunListing:
    """A run that is to have a place of the session."""
    return RunListing(1, session_id="session", ordinal=ordinal)


def spending(amount: int) -> RunListing:
    """A run that is to reserve so much of what its tenant has."""
    return RunListing(1, tenant_id="acme", reserves=Reservation(1, ((TOKENS, amount),), (LIMIT,)))


def charged(run_id: str, amount: int, *, is_open: bool = False) -> Charge:
    """What a run counts for its tenant."""
    return Charge(run_id, "acme", 1, ((TOKENS, amount),), is_open)


async def begin(store: FoldedStore, run_id: str, listing: RunListing) -> Place:
    """Write the first turn of a run."""
    return await store.journal.append(run_id, b"first", START, None, listing)


async def go_on(store: FoldedStore, run_id: str, barrier: Barrier, warrant: Warrant | None = None) -> Place:
    """Write the next turn of a run."""
    turns = await store.journal.read(run_id)
    return await store.journal.append(run_id, b"next", turns.place, replace(barrier, seq=len(turns)), warrant=warrant)


async def end(store: FoldedStore, run_id: str, amount: int) -> None:
    """End a run that came to so much."""
    await go_on(store, run_id, Barrier("SUCCESS", charge=charged(run_id, amount)))


async def committed(store: FoldedStore) -> Committed:
    """What the runs of the tenant count."""
    (found,) = await store.ledger.committed("acme", [LIMIT])
    return found
