"""Snapshots: one state of a run in the database of a store, so that a long run need not be folded whole.

Rule 1: a cache. Delete the rows, and every run is as before, only slower to take up.
Rule 2: a snapshot is signed with the key of this deployment. Whatever is not signed so is no snapshot, since a state
        that somebody else made would be believed where turns are checked.
Rule 3: reading writes nothing, and makes no key.
"""

import logging
import sqlite3
from functools import cached_property, partial

from remit.backend.embedded.disk.database import Reader
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.core.journal.storage import Snapshot

# Only of a run that is there: a run that was deleted meanwhile must not leave its state behind.
_KEEP = (
    "INSERT OR REPLACE INTO snapshots (run_no, seq, head, data, signature)"
    " SELECT run_no, ?2, ?3, ?4, ?5 FROM runs WHERE run_id = ?1"
)
_LATEST = (
    "SELECT seq, head, data, signature FROM snapshots WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?)"
    " AND typeof(seq) = 'integer' AND typeof(head) = 'blob' AND typeof(data) = 'blob' AND typeof(signature) = 'blob'"
)
_TABLE = "SELECT name FROM sqlite_schema WHERE name = 'snapshots'"

_log = logging.getLogger(__name__)


class SQLiteSnapshots:
    """States in the database of a store."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        """Keep a state instead of any that was kept before."""
        await self._writer.submit(partial(_keep, (run_id, seq, head, data, signature)), len(data))

    async def latest(self, run_id: str) -> Snapshot | None:
        """What was kept last."""
        found = self._reader.rows(_LATEST, (run_id,)) if self._is_kept_here else []
        return Snapshot(run_id, *found[0]) if found else None

    @cached_property
    def _is_kept_here(self) -> bool:
        """Untrue of a store of an earlier version that is only read: nobody has brought it to this one."""
        return bool(self._reader.rows(_TABLE))


def _keep(values: tuple[str, int, bytes, bytes, bytes], cursor: sqlite3.Cursor) -> Outcome:
    cursor.execute(_KEEP, values)
    return None, None
