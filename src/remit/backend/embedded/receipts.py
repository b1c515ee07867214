"""Receipts: who took note of what queues hold, and what was delivered where, in the database of a store.

Rule 1: the first receipt of a kind for an item and a place stays.
Rule 2: they are no part of a run: its journal is closed with its ending, and nothing that is decided depends on them.
        They go with their run when it is deleted.
"""

import sqlite3
from collections.abc import Sequence
from functools import cached_property, partial

from remit.backend.embedded.disk.database import Reader
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.core.limits.queue import Receipt, ReceiptKind

# Only of a run that is there: one that was deleted meanwhile must leave nothing behind.
_KEEP = (
    "INSERT OR IGNORE INTO receipts (kind, item, run_id, by, place, at_ms)"
    " SELECT ?1, ?2, run_id, ?4, ?5, ?6 FROM runs WHERE run_id = ?3"
)
_KEPT = "SELECT item, run_id, by, at_ms FROM receipts WHERE kind = ? ORDER BY at_ms, item"
_TABLE = "SELECT name FROM sqlite_schema WHERE name = 'receipts'"


class SQLiteReceipts:
    """Receipts in the database of a store."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
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
        """Untrue of a store of an earlier version that is only read: nobody has brought it to this one."""
        return bool(self._reader.rows(_TABLE))


def _keep(receipt: Receipt, cursor: sqlite3.Cursor) -> Outcome:
    # Several people may acknowledge an ending and only the first is kept; a delivery is one for each address.
    place = receipt.by if receipt.kind is ReceiptKind.DELIVERED else ""
    values = (receipt.kind.value, receipt.item, receipt.run_id, receipt.by, place, receipt.at_ms)
    cursor.execute(_KEEP, values)
    return None, None
