"""Everything in memory: for short-lived programs, benchmarks and tests of what does not touch a disk."""

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.halts import MemoryHalts
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.leases import MemoryLeases
from remit.backend.memory.receipts import MemoryReceipts
from remit.backend.memory.seals import MemorySeals
from remit.backend.memory.snapshots import MemorySnapshots
from remit.core.signing import Signer


class MemoryKey:
    """A key that somebody brought."""

    is_made = True

    def __init__(self, signer: Signer) -> None:
        self.signer = signer


class MemoryStore:
    """Forgets everything with its process. Nothing is signed here unless somebody brings a signer."""

    def __init__(self, signer: Signer | None = None) -> None:
        self.leases = MemoryLeases()
        self.inbox = MemoryInbox()
        self.journal = MemoryJournal(self.leases, self.inbox)
        self.blobs = MemoryBlobs()
        self.snapshots = MemorySnapshots()
        self.catalogue = self.journal
        self.ledger = self.journal.ledger
        self.halts = MemoryHalts()
        self.receipts = MemoryReceipts()
        self.seals = MemorySeals()
        self.key = None if signer is None else MemoryKey(signer)

    async def close(self) -> None:
        """Nothing to leave behind."""
