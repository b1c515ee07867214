"""Everything in memory: for short-lived programs, benchmarks and tests of what does not touch a disk."""

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.halts import MemoryHalts
from remit.backend.memory.inbox import MemoryInbox, MemoryLocks
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.receipts import MemoryReceipts
from remit.backend.memory.seals import MemorySeals
from remit.backend.memory.snapshots import MemorySnapshots


class MemoryStore:
    """Forgets everything with its process."""

    def __init__(self) -> None:
        self.inbox = MemoryInbox()
        self.journal = MemoryJournal(self.inbox)
        self.blobs = MemoryBlobs()
        self.snapshots = MemorySnapshots()
        self.catalogue = self.journal
        self.ledger = self.journal.ledger
        self.locks = MemoryLocks()
        self.halts = MemoryHalts()
        self.receipts = MemoryReceipts()
        self.seals = MemorySeals()

    async def close(self) -> None:
        """Nothing to leave behind."""
