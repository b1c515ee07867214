"""Everything in memory: for short-lived programs, benchmarks and tests of what does not touch a disk."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from remit.backend.clock import wall_clock_ms
from remit.backend.memory.bell import MemoryBell
from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.halts import MemoryHalts
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.leases import MemoryLeases
from remit.backend.memory.receipts import MemoryReceipts
from remit.backend.memory.retention import MemoryRedactions, MemoryRetention
from remit.backend.memory.seals import MemorySeals
from remit.backend.memory.snapshots import MemorySnapshots
from remit.core.journal.signing import Signer

if TYPE_CHECKING:
    from remit.backend.memory.checkup import MemoryCheckup


class MemoryKey:
    """A key that the caller brought."""

    is_made = True

    def __init__(self, signer: Signer) -> None:
        self.signer = signer


class MemoryStore:
    """Forgets everything with its process. Nothing is signed here without a signer."""

    def __init__(self, signer: Signer | None = None, *, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self.leases = MemoryLeases()
        self.bell = MemoryBell()
        self.inbox = MemoryInbox(now_ms, self.bell)
        self.journal = MemoryJournal(self.leases, self.inbox, now_ms, self.bell)
        self.blobs = MemoryBlobs(now_ms)
        self.snapshots = MemorySnapshots()
        self.catalogue = self.index = self.feed = self.journal
        self.log = self.journal.log
        self.ledger = self.journal.ledger
        self.halts = MemoryHalts(self.log, self.bell)
        self.receipts = MemoryReceipts()
        self.seals = MemorySeals()
        self.key = None if signer is None else MemoryKey(signer)
        self.retention = MemoryRetention(self, self.leases, signer, now_ms)
        self.redactions = MemoryRedactions(self, self.leases, signer, now_ms)
        self._signer = signer

    @property
    def checkup(self) -> "MemoryCheckup":
        """What says whether the store is well; loaded by those who ask."""
        from remit.backend.memory.checkup import MemoryCheckup

        return MemoryCheckup(self.journal, self._signer)

    async def close(self) -> None:
        """Nothing to leave behind."""
