"""The database file: how it is made, opened, read and kept open.

Rule 1: only SQLite opens or closes remit.db in this process; closing any other descriptor of it would drop the
        locks that SQLite holds on it. Its WAL carries no locks and may be opened.
Rule 2: a connection commits without syncing (NORMAL); a writer that needs a turn to outlive the power syncs the WAL.
Rule 3: opening makes what is missing, and leaves what it finds.
Rule 4: nothing is closed while a thread uses it: SQLite would read memory that it has given back. Closing waits, and later
        callers get STORE_CLOSED.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from remit.backend.embedded.disk.disk_failures import (
    BUSY,
    CLOSED,
    DATABASE_ERRORS,
    LINKED,
    READ_ONLY,
    disk_failure,
    is_busy,
    sqlite_code,
    store_unusable,
)
from remit.backend.embedded.disk.tables import MIGRATIONS, migrate, refuse_later_version, schema_version
from remit.core.journal.storage import StoreUnusable
from remit.core.regular_file import expect_regular

DATABASE = "remit.db"
WAL = "remit.db-wal"
SHARED = "remit.db-shm"

# How long a connection off the event loop waits for another to finish. The longest transaction of remit is a piece of
# a clean-up, which takes milliseconds; ten seconds mean that another program holds the file and will not let go.
BUSY_WAIT_MS_MAX = 10_000
_RETRY_S = 0.01


class Users:
    """Counts the threads that use what a store has open: `with users`. Closing waits until none does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Condition(threading.Lock())
        self._count = 0
        self._is_closed = False

    def __enter__(self) -> None:
        with self._changed:
            if self._is_closed:
                raise disk_failure(CLOSED, self._path, "was closed")
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            if self._is_closed:
                self._changed.notify_all()

    def close(self) -> None:
        """Let no reader begin, and wait for those that have."""
        with self._changed:
            self._is_closed = True
            while self._count:
                self._changed.wait()


class ReadConnection:
    """A connection that reads; it sees what any process has committed."""

    def __init__(self, connection: sqlite3.Connection, path: Path, users: Users | None = None) -> None:
        self._connection = connection
        self._path = path
        self._users = users or Users(path)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """What a query finds, all of it: an open cursor would hold back every checkpoint."""
        with self._users:
            try:
                return self._connection.execute(query, values).fetchall()
            except UnicodeEncodeError:
                # A name that is no Unicode names nothing that is kept here.
                return []
            except DATABASE_ERRORS as error:
                raise store_unusable(error, self._path) from error

    def close(self) -> None:
        """Let the file go, once no reader uses it."""
        self._users.close()
        self._connection.close()


def make_folder(home: Path) -> None:
    """The folder of a store, for this user alone where it is new, and entered in the folders above it for good."""
    missing = [folder for folder in (home, *home.parents) if not folder.exists()]
    try:
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder.parent)
        # Made here, so that no other user may read it whatever the umask says; SQLite gives its other files the same mode.
        descriptor = os.open(home / DATABASE, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise store_unusable(error, home) from error
    os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlive the power; a folder that cannot be synced has a disk that needs no syncing."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_database(home: Path, is_alone: Callable[[], bool]) -> sqlite3.Connection:
    """A connection that may write, to a database that is made or brought to the newest version where it has to be."""
    path = home / DATABASE
    deadline = time.monotonic() + BUSY_WAIT_MS_MAX / 1000
    while True:
        connection: sqlite3.Connection | None = None
        try:
            connection = connect_to_database(path)
            version = schema_version(connection, path)
            refuse_later_version(version, path)
            if 0 < version < len(MIGRATIONS) and not is_alone():
                raise disk_failure(
                    BUSY, path, "is of an earlier version and still in use, so it cannot be migrated now"
                )
            # Changing the mode asks for the whole file and does not wait for it, hence the loop.
            connection.execute("PRAGMA journal_mode = WAL")
            if version < len(MIGRATIONS):
                migrate(connection, path)
            # A file that may not be written is opened all the same, to be read; this asks.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except (*DATABASE_ERRORS, StoreUnusable) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, StoreUnusable):
                raise
            if not is_busy(error) or time.monotonic() > deadline:
                raise store_unusable(error, path) from error
        else:
            return connection
        time.sleep(_RETRY_S)


def connect_to_database(path: Path, *, busy_wait_ms: int = BUSY_WAIT_MS_MAX) -> sqlite3.Connection:
    """A connection that may write; transactions begin and end where the code says so."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA busy_timeout = {busy_wait_ms}")
    connection.execute("PRAGMA synchronous = NORMAL")
    # Checkpoints sync, and this connection may live on the event loop; another one makes them.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    # What was deleted is overwritten, so that a deleted text cannot be read in the free pages of the file.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection to a store that cannot be written: on a read-only disk, or of another user."""
    _expect_files(path)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _readable(uri)
    except DATABASE_ERRORS as error:
        if sqlite_code(error) & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise store_unusable(error, path) from error
    # Without the right to make its shared memory, SQLite reads a WAL store only when promised that no process writes. A
    # store that was closed cleanly has no WAL and can keep the promise; in the WAL of another its newest turns stand.
    wal = path.with_name(WAL)
    if wal.exists() and wal.stat().st_size:
        raise disk_failure(READ_ONLY, path, "was not closed cleanly, and its WAL can be read only in a writable folder")
    try:
        return _readable(f"{uri}&immutable=1")
    except DATABASE_ERRORS as error:
        raise store_unusable(error, path) from error


def _expect_files(path: Path) -> None:
    """Raise StoreUnusable where there is no database, or SQLite would wait for a writer of a pipe."""
    try:
        expect_regular(path)
    except OSError as error:
        raise store_unusable(error, path) from error
    for beside in (path.with_name(WAL), path.with_name(SHARED)):
        if beside.exists() and not beside.is_file() and not beside.is_dir():
            raise disk_failure(LINKED, beside, "is a pipe or a device, and no regular file")


def connect_to_nothing() -> sqlite3.Connection:
    """A connection to a store that holds nothing, and is nowhere."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(connection, Path(":memory:"))
    connection.execute("PRAGMA query_only = ON")
    return connection


def _readable(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_WAIT_MS_MAX}")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except DATABASE_ERRORS:
        connection.close()
        raise
    return connection
