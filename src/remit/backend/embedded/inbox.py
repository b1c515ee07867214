"""The inbox: what people say to a run, carried to whichever process holds it.

Rule 1: an entry is settled once; the first word about it stays.
Rule 2: an entry that a turn answers is settled in the transaction of that turn (journal.py), so it is heard exactly
        when the turn exists. Where it was settled before, the turn is not written.
"""

import sqlite3
from collections.abc import Sequence
from functools import partial

from remit.backend.embedded.bell import SocketBell
from remit.backend.embedded.disk.database import Reader
from remit.backend.embedded.disk.disk_failures import BUSY
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.core.journal.storage import InboxEntry, StoreUnusable, Topic

# More than people say to one run before somebody hears them; what exceeds it is a program gone wild.
UNHEARD_MAX = 1_000

SETTLE = "UPDATE inbox SET code = ?2, message = ?3, settled_at_ms = ?4 WHERE number = ?1 AND settled_at_ms IS NULL"
IS_SETTLED = "SELECT 1 FROM inbox WHERE number = ? AND settled_at_ms IS NOT NULL"
_UNHEARD = "SELECT count(*) FROM inbox WHERE settled_at_ms IS NULL AND run_id = ?"
_PUT = "INSERT INTO inbox (run_id, data) VALUES (?, ?)"
_PENDING = "SELECT number, run_id, data FROM inbox WHERE settled_at_ms IS NULL AND number > ? ORDER BY number"
_OUTCOME = "SELECT code, message FROM inbox WHERE number = ? AND settled_at_ms IS NOT NULL"


class SQLiteInbox:
    """Entries in the database of a store."""

    def __init__(self, writer: Writer, reader: Reader, bell: SocketBell) -> None:
        self._writer = writer
        self._bell = bell
        self._reader = reader

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run; the number names the entry."""
        number: int = await self._writer.submit(partial(_put, run_id, data), len(data))
        self._bell.ring(Topic.POST)
        return number

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries with a larger number than `after` that nobody has settled, oldest first."""
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
        message = (
            f"run {run_id} has {unheard} entries in its inbox that nobody heard, of at most {UNHEARD_MAX}; resume it"
        )
        raise StoreUnusable(BUSY, message, {"run_id": run_id, "unheard": unheard})
    return cursor.execute(_PUT, (run_id, data)).lastrowid, None


def _settle(values: tuple[int, str, str, int], cursor: sqlite3.Cursor) -> Outcome:
    cursor.execute(SETTLE, values)
    return None, None
