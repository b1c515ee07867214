"""The small ports of the embedded store: inbox, blobs, leases, receipts and snapshots.

Rule 1: an entry of the inbox is settled once; the first word about it stays. One that a turn answers is settled in the
        transaction of that turn (journal.py), so it is heard exactly when the turn exists. Where it was settled before,
        the turn is not written.
"""

import logging
import sqlite3
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import count

from remit.backend.embedded.bell import SocketBell
from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.disk_failures import BUSY
from remit.backend.embedded.disk.locks import FileLocks
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.core.journal.storage import (
    BlobMissing,
    InboxEntry,
    Snapshot,
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


# Blobs: long texts, once each, by digest.
#
# A put returns when its text is queued in front of whatever is appended after it (writer.py).
_GET = "SELECT data FROM blobs WHERE digest = ?"


class SQLiteBlobs:
    """Texts in the database of a store."""

    def __init__(self, writer: Writer, reader: ReadConnection) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes under their digest; keeping them twice keeps them once."""
        await self._writer.keep(digest, data)

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""
        queued = self._writer.texts.get(digest)
        if queued is not None:
            return queued
        found = self._reader.rows(_GET, (digest,))
        if not found:
            raise BlobMissing(digest)
        data: bytes = found[0][0]
        return data


# Leases of the embedded store: each is a lock of the operating system, which dies with its process and never before.
#
# So a token need not be written: only the holder of the lock can have a current token of the run.
class FileLeases:
    """The leases that one open store holds."""

    # A lock does not expire under a process that lives.
    lasts_ms = 0

    def __init__(self, locks: FileLocks) -> None:
        self._locks = locks
        self._tokens: dict[str, int] = {}
        self._numbers = count(1)

    async def take(self, run_id: str) -> int | None:
        """Take a run; None when it is held, here or by another process."""
        if not self._locks.take(run_id):
            return None
        token = self._tokens[run_id] = next(self._numbers)
        return token

    async def renew(self, run_id: str, token: int) -> bool:
        """Whether the run is still held under this token."""
        return self.is_current(run_id, token)

    async def release(self, run_id: str, token: int) -> None:
        """Let a run go."""
        if self.is_current(run_id, token):
            del self._tokens[run_id]
            self._locks.release(run_id)

    async def is_held(self, run_id: str) -> bool:
        """Whether a run is held, in whatever process."""
        return self._locks.is_held(run_id)

    def is_current(self, run_id: str, token: int) -> bool:
        """Whether a turn may be written under this token."""
        return self._tokens.get(run_id) == token


# Receipts: who took note of what queues hold, and what was delivered where, in the database of a store.
#
# The first receipt of a kind for an item and a place stays.
# They are no part of a run: its journal is closed with its ending, and nothing that is decided depends on them.
# They go with their run when it is deleted.

# Only of a run that is there: one that was deleted meanwhile must leave nothing behind.
_KEEP = (
    "INSERT OR IGNORE INTO receipts (kind, item, run_id, by, place, at_ms)"
    " SELECT ?1, ?2, run_id, ?4, ?5, ?6 FROM runs WHERE run_id = ?3"
)
_KEPT = "SELECT item, run_id, by, at_ms FROM receipts WHERE kind = ? ORDER BY at_ms, item"
_TABLE = "SELECT name FROM sqlite_schema WHERE name = 'receipts'"


class SQLiteReceipts:
    """Receipts in the database of a store."""

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


# Snapshots: one state of a run in the database of a store, so that a long run need not be folded whole.
#
# A cache. Delete the rows, and every run is as before, only slower to take up.
# A snapshot is signed with the key of this deployment. Whatever is not signed so is no snapshot, since a state
# that another deployment made would be believed where turns are checked.
# Reading writes nothing, and makes no key.

# Only of a run that is there: a run that was deleted meanwhile must not leave its state behind.
_KEEP_STATE = (
    "INSERT OR REPLACE INTO snapshots (run_no, seq, head, data, signature)"
    " SELECT run_no, ?2, ?3, ?4, ?5 FROM runs WHERE run_id = ?1"
)
_LATEST_STATE = (
    "SELECT seq, head, data, signature FROM snapshots WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?)"
    " AND typeof(seq) = 'integer' AND typeof(head) = 'blob' AND typeof(data) = 'blob' AND typeof(signature) = 'blob'"
)
_SNAPSHOTS_TABLE = "SELECT name FROM sqlite_schema WHERE name = 'snapshots'"

_log = logging.getLogger(__name__)


class SQLiteSnapshots:
    """States in the database of a store."""

    def __init__(self, writer: Writer, reader: ReadConnection) -> None:
        self._writer = writer
        self._reader = reader

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        """Keep a state instead of any that was kept before."""
        await self._writer.submit(partial(_keep_state, (run_id, seq, head, data, signature)), len(data))

    async def latest(self, run_id: str) -> Snapshot | None:
        """What was kept last."""
        found = self._reader.rows(_LATEST_STATE, (run_id,)) if self._is_kept_here else []
        return Snapshot(run_id, *found[0]) if found else None

    @cached_property
    def _is_kept_here(self) -> bool:
        """Untrue of a store of an earlier version that is only read: it was not brought to this one."""
        return bool(self._reader.rows(_SNAPSHOTS_TABLE))


def _keep_state(values: tuple[str, int, bytes, bytes, bytes], cursor: sqlite3.Cursor) -> Outcome:
    cursor.execute(_KEEP_STATE, values)
    return None, None
