"""The store over logs, one class for each of its ports, answered from the folded logs (log_copy.py)."""

from collections.abc import Sequence
from typing import Protocol, Unpack

from remit.backend.folded.inbox import FoldedInbox
from remit.backend.folded.journal import FoldedJournal
from remit.backend.folded.leases import HeldRuns, WatchedLeases
from remit.backend.folded.log import (
    HALT_LOG,
    RECEIPTS,
    TRIES_MAX,
    Log,
    Written,
)
from remit.backend.folded.log_copy import ChargeWriter, Folds, LogCopy
from remit.backend.folded.shared_logs import SharedLogs
from remit.backend.memory.bell import SilentBell
from remit.backend.memory.checkup import MemoryCheckup
from remit.backend.memory.seals import MemorySeals
from remit.backend.memory.snapshots import MemorySnapshots
from remit.backend.memory.store import MemoryKey
from remit.core.journal.codec import encode_record
from remit.core.journal.signing import SignedDeletion, Signer
from remit.core.journal.storage import (
    AppendConflict,
    Derived,
    Losses,
    Place,
    Redacted,
    Removed,
    RunEntry,
    RunQuery,
    SignedHead,
    StoreUnusable,
    WrittenTurn,
)
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import Charge, Committed, Limit
from remit.core.run.halt import HALTS
from remit.observe.checkup import Check

STORE_KEEPS_ALL = "STORE_KEEPS_ALL"


class Texts(Protocol):
    """Long texts by their digest; keeping one needs no order."""

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes."""

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""


class FoldedStore:
    """The store as one process has it open. It keeps nothing that cannot be folded again."""

    def __init__(
        self, log: Log, leases: HeldRuns, blobs: Texts, seals: MemorySeals | None = None, signer: Signer | None = None
    ) -> None:
        # Nothing is signed here without a signer.
        self.key = None if signer is None else MemoryKey(signer)
        log_copy = LogCopy(log)
        shared = SharedLogs(log_copy, leases)
        self.leases = WatchedLeases(leases)
        self.blobs = blobs
        self.seals = seals or MemorySeals()
        self.inbox = FoldedInbox(log_copy)
        self.journal = FoldedJournal(log, log_copy, shared, self.inbox, self.leases)
        self.feed = FoldedFeed(log_copy)
        self.bell = SilentBell()
        self.catalogue = FoldedCatalogue(log_copy)
        self.index = FoldedIndex(log_copy)
        self.log = FoldedHeadLog(log_copy)
        self.retention = self.redactions = FoldedRetention()
        self.checkup = FoldedCheckup(log_copy)
        self.ledger = FoldedLedger(log_copy, shared)
        self.receipts = FoldedReceipts(log_copy)
        self.halts = FoldedHalts(log_copy)
        self.snapshots = MemorySnapshots()

    async def close(self) -> None:
        """Nothing to leave behind."""


class FoldedFeed:
    """Turns in the order of their entries: every process that folds the same logs counts the same places."""

    def __init__(self, log_copy: LogCopy) -> None:
        self._log_copy = log_copy

    async def since(self, place: Place, *, limit: int) -> Sequence[WrittenTurn]:
        """The turns behind a place, oldest first, at most so many."""
        await self._log_copy.refresh()
        return await self._log_copy.journal.since(place, limit=limit)

    async def end(self) -> Place:
        """The place of the newest turn."""
        await self._log_copy.refresh()
        return await self._log_copy.journal.end()


class FoldedCatalogue:
    """Which runs there are."""

    def __init__(self, log_copy: Folds) -> None:
        self._log_copy = log_copy
        self._index = log_copy.journal

    async def entry(self, run_id: str) -> RunEntry | None:
        """One run."""
        await self._log_copy.refresh()
        return await self._index.entry(run_id)

    async def entries(self, **query: Unpack[RunQuery]) -> Sequence[RunEntry]:
        """The runs, newest first."""
        await self._log_copy.refresh()
        return await self._index.entries(**query)

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> Sequence[RunEntry]:
        """The runs of a session, in order."""
        await self._log_copy.refresh()
        return await self._index.session(session_id, tenant_id=tenant_id)

    async def named(self, name: str, tenant_id: str) -> Sequence[RunEntry]:
        """The open runs of a tenant that agents elsewhere name so, newest first."""
        await self._log_copy.refresh()
        return await self._index.named(name, tenant_id)

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        """The newest runs of a likeness that succeeded."""
        await self._log_copy.refresh()
        return await self._index.alike(likeness, limit=limit)

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads that came with the turns of a run."""
        await self._log_copy.refresh()
        return await self._index.heads(run_id)

    async def last_head(self, run_id: str) -> SignedHead | None:
        """The last of them."""
        await self._log_copy.refresh()
        return await self._index.last_head(run_id)


class FoldedIndex:
    """Nothing here is kept that could be lost: everything is folded from the logs."""

    def __init__(self, log_copy: Folds) -> None:
        self._log_copy = log_copy

    async def mend(self) -> int:
        """Nothing is kept that could be damaged."""
        return 0

    async def names(self) -> Sequence[str]:
        """Every run that has a turn."""
        await self._log_copy.refresh()
        return await self._log_copy.journal.names()

    async def strike(self) -> Sequence[str]:
        """Nothing is listed but by its turns."""
        return ()

    async def renew(self, runs: Sequence[Derived]) -> Sequence[str]:
        """They are listed as their turns say, as ever; gives those that have not gone on meanwhile."""
        await self._log_copy.refresh()
        journal = self._log_copy.journal
        return [run.run_id for run in runs if len(journal.turns_of(run.run_id)) == run.turns]

    async def sum_up(self) -> None:
        """Nothing is kept as a sum."""


class FoldedHeadLog:
    """The heads that came with turns, and nothing more: there is no log beside the logs."""

    def __init__(self, log_copy: Folds) -> None:
        self._log_copy = log_copy
        self._heads = log_copy.journal.log

    async def last(self, run_id: str) -> SignedHead | None:
        """The head of the highest turn of a run that its signer signed."""
        await self._log_copy.refresh()
        return await self._heads.last(run_id)

    async def doubt(self, run_id: str, last: int) -> str:
        """Why a later turn may have been known."""
        await self._log_copy.refresh()
        return await self._heads.doubt(run_id, last)

    async def losses(self) -> Losses:
        """How heads and turns differ."""
        await self._log_copy.refresh()
        return await self._heads.losses()

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads of a run, in the order of their turns."""
        await self._log_copy.refresh()
        return await self._heads.heads(run_id)

    async def deletion(self, run_id: str) -> SignedDeletion | None:
        """Nothing is deleted."""
        return None


class FoldedCheckup:
    """Looks at what the logs come to by now."""

    def __init__(self, log_copy: LogCopy) -> None:
        self._log_copy = log_copy
        self._checkup = MemoryCheckup(log_copy.journal, None, kept="in logs", lasts="they keep every entry")

    async def look(self) -> Sequence[Check]:
        """How the store is."""
        await self._log_copy.refresh()
        return await self._checkup.look()


class FoldedRetention:
    """Logs keep everything: what is to be removed, their own tools remove."""

    async def delete(self, run_id: str) -> Removed:
        """Refuse."""
        raise _kept(f"run {run_id} cannot be deleted")

    async def gc(self, *, ended_before_ms: int, dry_run: bool = False) -> Removed:
        """Refuse."""
        raise _kept("nothing can be collected")

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        """Refuse."""
        raise _kept(f"run {run_id} cannot be redacted")


def _kept(what: str) -> StoreUnusable:
    message = f"{what}: this store is made of logs that keep every entry; have the backend of the logs remove them"
    return StoreUnusable(STORE_KEEPS_ALL, message)


class FoldedLedger:
    """What runs count for their tenants."""

    def __init__(self, log_copy: Folds, shared: ChargeWriter) -> None:
        self._log_copy = log_copy
        self._shared = shared

    async def committed(self, tenant_id: str, limits: Sequence[Limit]) -> Sequence[Committed]:
        """What counts against each of these limits."""
        await self._log_copy.refresh()
        return await self._log_copy.journal.ledger.committed(tenant_id, limits)

    async def uncounted(self, tenant_id: str, from_ms: int) -> Sequence[str]:
        """The runs of a tenant that are not counted as they stand."""
        await self._log_copy.refresh()
        return await self._log_copy.journal.ledger.uncounted(tenant_id, from_ms)

    async def count(self, charges: Sequence[Charge]) -> None:
        """Count these runs so; one that stands otherwise by now is left out."""
        for charge in charges:
            await self._log_copy.refresh()
            entry = await self._log_copy.journal.entry(charge.run_id)
            if entry is not None and (entry.ending == "") is charge.is_open:
                await self._shared.keep(charge, is_anew=True)

    async def tenants(self) -> Sequence[str]:
        """Every tenant that has runs here."""
        await self._log_copy.refresh()
        return await self._log_copy.journal.ledger.tenants()


class FoldedReceipts:
    """What was done about the items of queues; of two for the same the first counts."""

    def __init__(self, log_copy: Folds) -> None:
        self._log_copy = log_copy

    async def keep(self, receipt: Receipt) -> None:
        """Keep a receipt."""
        for _ in range(TRIES_MAX):
            try:
                await self._log_copy.log.append(RECEIPTS, encode_record(receipt), self._log_copy.place(RECEIPTS))
            except AppendConflict:
                await self._log_copy.refresh()
                continue
            return
        raise AppendConflict(RECEIPTS)

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:
        """The receipts of a kind, oldest first."""
        await self._log_copy.refresh()
        return await self._log_copy.receipts.kept(kind)


class FoldedHalts:
    """The journal of halts, as it was when this process folded it last: that is at every turn that is written or read."""

    def __init__(self, log_copy: Folds) -> None:
        self._log_copy = log_copy

    async def refresh(self) -> None:
        """Fold what was written by now."""
        await self._log_copy.refresh()

    def news(self, number: int) -> Sequence[bytes]:
        """The entries after this number."""
        return self._log_copy.halts.news(number)

    def since(self, number: int) -> Sequence[bytes]:
        """The entries after this number, oldest first."""
        return self._log_copy.halts.since(number)

    def signed(self) -> tuple[int, bytes]:
        """The last entry that came with a head."""
        return self._log_copy.halts.signed()

    async def append(self, data: bytes, *, after: int, head: SignedHead | None = None) -> None:
        """Write the entry that follows this number, or raise AppendConflict."""
        await self._log_copy.refresh()
        if len(self._log_copy.halts.since(0)) != after:
            raise AppendConflict(HALTS)
        written = encode_record(Written(data, head=head))
        await self._log_copy.log.append(HALT_LOG, written, self._log_copy.place(HALT_LOG))
        await self._log_copy.refresh()
