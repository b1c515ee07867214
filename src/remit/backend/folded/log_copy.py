"""What the logs come to: folded entry by entry, and asked after everything that is new was folded.

Rule 1: it is a cache of the logs. A process that has none folds them from the first entry on, and knows the same.
Rule 2: entries that could not have been decided so are no entries: a settlement after another, a first turn of a run that
        was forestalled.
"""

import logging
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import unquote

from remit.backend.folded.log import (
    BETWEEN,
    HALT_LOG,
    INBOX,
    RECEIPTS,
    RUN,
    SESSION,
    TENANT,
    Charged,
    Forestalled,
    Left,
    Log,
    LogEntry,
    OfInbox,
    OfRun,
    PlaceClaimed,
    Taken,
    Written,
)
from remit.backend.memory.halts import MemoryHalts
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.receipts import MemoryReceipts
from remit.core.failure import RemitError
from remit.core.journal.codec import decode_record
from remit.core.journal.storage import START, InboxEntry, Place, Warrant
from remit.core.limits.queue import Receipt
from remit.core.limits.quota import Charge
from remit.core.record import replace

_log = logging.getLogger(__name__)


class Folds(Protocol):
    """What logs come to, for ports that are answered from it."""

    @property
    def log(self) -> Log:
        """The logs."""

    @property
    def journal(self) -> MemoryJournal:
        """Runs, as their entries tell them."""

    @property
    def receipts(self) -> MemoryReceipts:
        """Receipts."""

    @property
    def halts(self) -> MemoryHalts:
        """Halts."""

    def place(self, name: str) -> Place:
        """Where a log stands, as far as it was folded."""

    async def refresh(self) -> None:
        """Fold everything that was written by now."""


class ChargeWriter(Protocol):
    """Writes what runs count."""

    async def keep(self, charge: Charge, *, is_anew: bool = False) -> None:
        """Count a run so for its tenant."""


class Letter:
    """An entry of an inbox, and how far it is from being settled."""

    __slots__ = ("answer", "data", "is_heard", "run_id", "settled", "token")

    def __init__(self, run_id: str, data: bytes) -> None:
        self.run_id = run_id
        self.data = data
        # Under which token a turn is about to answer it; whether one has, and what its sender is told; what another writer said.
        self.token = 0
        self.is_heard = False
        self.answer = ""
        self.settled: tuple[str, str] | None = None

    @property
    def outcome(self) -> tuple[str, str] | None:
        """Code and message for its sender; None while it is not settled."""
        return ("", self.answer) if self.is_heard else self.settled


class LogCopy:
    """The logs as one process has folded them."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.journal = MemoryJournal()
        self.receipts = MemoryReceipts()
        self.halts = MemoryHalts()
        self.forestalled: set[str] = set()
        # Who is to have which place of which session of which tenant.
        self.claims: dict[tuple[str, str], dict[int, str]] = {}
        self.letters: dict[int, Letter] = {}
        self._stands: dict[str, Place] = {}
        self._seen: Place = START
        # The places of entries that could not be read.
        self.unreadable: list[Place] = []
        self._folds = {
            RUN: self._fold_run,
            SESSION: self._fold_session,
            TENANT: self._fold_tenant,
            INBOX: self._fold_inbox,
        }

    def place(self, name: str) -> Place:
        """Where a log stands, as far as it was folded."""
        return self._stands.get(name, START)

    async def refresh(self) -> None:
        """Fold everything that was written by now, however little of it a log gives at once."""
        seen = None
        while seen != self._seen:
            seen = self._seen
            for entry in await self.log.news(seen):
                if entry.place > self._seen:  # Others may have folded it meanwhile.
                    await self._take(entry)

    async def _take(self, entry: LogEntry) -> None:
        self._seen = entry.place
        self._stands[entry.name] = entry.place
        try:
            await self._fold(entry)
        except (RemitError, KeyError) as error:
            # One that no store of this house wrote must not keep all others from being known.
            self.unreadable.append(entry.place)
            _log.warning("entry %d of %s counts for nothing: %s", entry.place, entry.name[:80], error)

    async def _fold(self, entry: LogEntry) -> None:
        kind, colon, name = entry.name.partition(":")
        if entry.name == RECEIPTS:
            await self.receipts.keep(decode_record(entry.data, Receipt))
        elif entry.name == HALT_LOG:
            halt = decode_record(entry.data, Written)
            await self.halts.append(halt.data, after=len(self.halts.since(0)), head=halt.head)
        else:
            await self._folds[kind + colon](name, entry)

    async def _fold_run(self, run_id: str, entry: LogEntry) -> None:
        written = decode_record(entry.data, OfRun)
        if isinstance(written, Forestalled):
            self.forestalled.add(run_id)
            return
        barrier, listing = written.barrier, written.listing
        if barrier is not None and barrier.heard in self.letters:
            letter = self.letters[barrier.heard]
            letter.is_heard, letter.answer = True, barrier.answer
        # What a run counts for its tenant stands in the log of the tenant.
        if barrier is not None:
            barrier = replace(barrier, heard=0, charge=None)
        if listing is not None:
            listing = replace(listing, reserves=None)
        place = (await self.journal.read(run_id)).place
        await self.journal.append(run_id, written.data, place, barrier, listing, Warrant(head=written.head))

    async def _fold_session(self, name: str, entry: LogEntry) -> None:
        claim = decode_record(entry.data, PlaceClaimed)
        tenant_id, _, session_id = name.partition(BETWEEN)
        self.claims.setdefault((unquote(tenant_id), session_id), {})[claim.ordinal] = claim.run_id

    async def _fold_tenant(self, tenant_id: str, entry: LogEntry) -> None:
        charged = decode_record(entry.data, Charged)
        self.journal.ledger.keep(charged.charge, is_anew=charged.is_anew)

    async def _fold_inbox(self, run_id: str, entry: LogEntry) -> None:
        said = decode_record(entry.data, OfInbox)
        if isinstance(said, Left):
            self.letters[entry.place] = Letter(run_id, said.data)
            return
        letter = self.letters.get(said.number)
        if letter is None or letter.settled is not None:
            return
        if isinstance(said, Taken):
            letter.token = max(letter.token, said.token)
        elif said.token >= letter.token:
            letter.settled = (said.code, said.message)

    def pending(self, after: int) -> Sequence[InboxEntry]:
        """Entries after this number that are not settled."""
        return [
            InboxEntry(number, letter.run_id, letter.data)
            for number, letter in self.letters.items()
            if number > after and letter.outcome is None
        ]
