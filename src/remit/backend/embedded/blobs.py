"""Blobs and snapshots of an embedded store: bytes under a digest or the name of a run."""

import logging
import sqlite3
from functools import cached_property, partial

from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.core.journal.storage import (
    BlobMissing,
    Snapshot,
)

TEXT = "SELECT data FROM blobs WHERE digest = ?"
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
        found = self._reader.rows(TEXT, (digest,))
        if not found:
            raise BlobMissing(digest)
        data: bytes = found[0][0]
        return data


class SQLiteSnapshots:
    """Snapshots: one state of a run, so that a long run need not be folded whole.

    A cache: delete the rows, and every run is as before, only slower to take up. A snapshot is signed with the key of this
    deployment. Whatever is not signed so is no snapshot, since a state that another deployment made would be believed
    where turns are checked. Reading writes nothing, and makes no key.
    """

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
