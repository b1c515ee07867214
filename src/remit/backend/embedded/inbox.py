"""The inbox of an embedded store, and the receipts of people.

Rule 1: an entry of the inbox is settled once; the first word about it stays. One that a turn answers is settled in the
        transaction of that turn (journal.py), so it is heard exactly when the turn exists. Where it was settled before,
        the turn is not written.
"""

import logging
import sqlite3
from collections.abc import Sequence
from functools import cached_property, partial

from remit.backend.embedded.bell import SocketBell
from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.disk_failures import BUSY
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.core.journal.storage import (
    InboxEntry,
    StoreUnusable,
    Topic,
)
from remit.core.limits.queue import Receipt, ReceiptKind

# More than people say to one run before they are heard; what exceeds it is a program gone wild.
UNHEARD_MAX = 1_000

SETTLE = "UPDATE inbox SET code = ?2, message = ?3, settled_at_ms = ?4 WHERE number = ?1 AND settled_at_ms IS NULL"
IS_SETTLED = "SELECT 1 FROM inbox WHERE number = ? AND settled_at_ms IS NOT NULL"
_UNHEARD = "SELECT count(*) FROM inbox WHERE settled_at_ms IS NULL AND run_id = ?"
_PUT = "INSERT INTO inbox (run_id, data) VALUES (?, ?)"
_PENDING = "SELECT number, run_id, data FROM inbox WHERE settled_at_ms IS NULL AND number > ? ORDER BY number"
_OUTCOME = "SELECT code, message FROM inbox WHERE number = ? AND settled_at_ms IS NOT NULL"
# Only of a run that is there: one that was deleted meanwhile must leave nothing behind.
_KEEP = (
    "INSERT OR IGNORE INTO receipts (kind, item, run_id, by, place, at_ms)"
    " SELECT ?1, ?2, run_id, ?4, ?5, ?6 FROM runs WHERE run_id = ?3"
)
_KEPT = "SELECT item, run_id, by, at_ms FROM receipts WHERE kind = ? ORDER BY at_ms, item"
_TABLE = "SELECT name FROM sqlite_schema WHERE name = 'receipts'"
_log = logging.getLogger(__name__)


class SQLiteInbox:
    """Entries in the database of a store."""

    def __init__(self, writer: Writer, reader: ReadConnection, bell: SocketBell) -> None:
        self._writer = writer
        self._bell = bell
        self._reader = reader

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run; the number names the entry."""
        number: int = await self._writer.submit(partial(_put, run_id, data), len(data))
        self._bell.ring(Topic.POST)
        return number

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries with a larger number than `after` that are not settled, oldest first."""
        return [InboxEntry(number, run_id, data) for number, run_id, data in self._reader.rows(_PENDING, (after,))]

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard (empty code) or refused; the first word stays."""
        await self._writer.submit(partial(_settle, (number, code, message, self._writer.now_ms())))

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry, once that outlives the power; None while it waits."""
        found = self._reader.rows(_OUTCOME, (number,))
        if not found:
            return None
        # It is read as soon as its holder has committed, which is before the holder has synced.
        await self._writer.synced()
        return found[0][0], found[0][1]


def _put(run_id: str, data: bytes, cursor: sqlite3.Cursor) -> Outcome:
    (unheard,) = cursor.execute(_UNHEARD, (run_id,)).fetchone()
    if unheard >= UNHEARD_MAX:
        message = f"run {run_id} has {unheard} unheard entries in its inbox, of at most {UNHEARD_MAX}; resume it"
        raise StoreUnusable(BUSY, message, {"run_id": run_id, "unheard": unheard})
    return cursor.execute(_PUT, (run_id, data)).lastrowid, None


def _settle(values: tuple[int, str, str, int], cursor: sqlite3.Cursor) -> Outcome:
    cursor.execute(SETTLE, values)
    return None, None


class SQLiteReceipts:
    """Receipts: who took note of what queues hold, and what was delivered where.

    The first receipt of a kind for an item and a place stays. They are no part of a run: its journal is closed with its
    ending, and nothing that is decided depends on them. They go with their run when it is deleted.
    """

    def __init__(self, writer: Writer, reader: ReadConnection) -> None:
        self._writer = writer
        self._reader = reader

    async def keep(self, receipt: Receipt) -> None:
        """Keep a receipt, unless there is one for the same item and place; it outlives the power once this returns."""
        await self._writer.submit(partial(_keep, receipt))
        await self._writer.synced()

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:
        """The receipts of a kind, oldest first."""
        rows = self._reader.rows(_KEPT, (kind.value,)) if self._are_kept_here else []
        return [Receipt(kind, *row) for row in rows]

    @cached_property
    def _are_kept_here(self) -> bool:
        """Untrue of a store of an earlier version that is only read: it was not brought to this one."""
        return bool(self._reader.rows(_TABLE))


def _keep(receipt: Receipt, cursor: sqlite3.Cursor) -> Outcome:
    # Several people may acknowledge an ending and only the first is kept; a delivery is one for each address.
    place = receipt.by if receipt.kind is ReceiptKind.DELIVERED else ""
    values = (receipt.kind.value, receipt.item, receipt.run_id, receipt.by, place, receipt.at_ms)
    cursor.execute(_KEEP, values)
    return None, None
