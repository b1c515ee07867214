"""Checkpoints: what the WAL holds is moved into the database, in a thread, while all others go on.

Rule 1: a checkpoint syncs twice, so it never runs on the event loop.
Rule 2: a checkpoint that cannot finish loses nothing; the next one takes the rest along.
"""

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from remit.backend.embedded.disk.database import DATABASE, connect_to_database
from remit.backend.embedded.disk.tables import MIGRATIONS

# Two syncs for this much are lost among its writes, and reading it again after a crash takes a few hundredths of a
# second.
WAL_BYTES_MAX = 16 << 20
# The pages a small commit changes: the ends of a table and of its index, and now and then one above them.
_COMMIT_BYTES = 3 * 4096
# How long others may be kept from writing while a reader of the old WAL finishes; readers of remit take milliseconds.
_WAIT_MS_MAX = 200

_log = logging.getLogger(__name__)


class Checkpointer:
    """Counts what is written and moves it when it has become much."""

    def __init__(self, home: Path) -> None:
        self._path = home / DATABASE
        self._written_bytes = 0
        self._thread: threading.Thread | None = None

    def count(self, size_bytes: int) -> None:
        """A commit wrote about this much."""
        self._written_bytes += size_bytes + _COMMIT_BYTES
        if self._written_bytes > WAL_BYTES_MAX and not self._is_at_work():
            self._written_bytes = 0
            self._thread = threading.Thread(target=self._checkpoint, name="remit-checkpoint", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for a checkpoint that is under way."""
        if self._thread is not None:
            self._thread.join()

    def _is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _checkpoint(self) -> None:
        try:
            with closing(connect_to_database(self._path, busy_wait_ms=_WAIT_MS_MAX)) as connection:
                # Most of it while others write, the few pages that came meanwhile while they cannot: as long as
                # a process writes all the time, the WAL would otherwise never begin anew.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
                # The first writer afterwards syncs the new beginning. This writes what is there already, so that
                # it is this thread that waits for the disk.
                connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        except sqlite3.Error as error:
            _log.warning("no checkpoint of %s: %s; the WAL grows until one succeeds", self._path, error)
