"""The embedded store: everything the runner asks of a backend, in one folder.

Rule 1: several processes may have one store open. Each writes through its own connection; SQLite puts them in order.
Rule 2: nothing here reads the environment; the folder is told.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from remit.backend.clock import wall_clock_ms
from remit.backend.embedded.bell import SocketBell
from remit.backend.embedded.blobs import SQLiteBlobs, SQLiteSnapshots
from remit.backend.embedded.catalogue import SQLiteCatalogue
from remit.backend.embedded.disk.checkpoints import Checkpointer
from remit.backend.embedded.disk.database import (
    DATABASE,
    ReadConnection,
    Users,
    connect_to_database,
    connect_to_nothing,
    connect_to_read,
    make_folder,
    open_database,
)
from remit.backend.embedded.disk.disk_failures import store_unusable
from remit.backend.embedded.disk.locks import FileLocks
from remit.backend.embedded.disk.permissions import refuse_exposed, refuse_links
from remit.backend.embedded.disk.syncer import Syncer
from remit.backend.embedded.disk.tables import refuse_later_version, schema_version, show_as_newest
from remit.backend.embedded.disk.writer import Writer
from remit.backend.embedded.halts import SQLiteHalts
from remit.backend.embedded.head_log import FileHeadLog, is_log_lost, refuse_cleared, refuse_emptied
from remit.backend.embedded.heads_file import HeadsFile
from remit.backend.embedded.inbox import SQLiteInbox, SQLiteReceipts
from remit.backend.embedded.index import SQLiteIndex
from remit.backend.embedded.journal import SQLiteFeed, SQLiteJournal
from remit.backend.embedded.leases import FileLeases
from remit.backend.embedded.ledger import SQLiteLedger
from remit.backend.embedded.owner.key_file import FileKey, refuse_lost_key
from remit.backend.embedded.redactions import SQLiteRedactions
from remit.backend.embedded.retention import SQLiteRetention
from remit.backend.embedded.seals import FileSeals
from remit.core.home import expect_place
from remit.core.journal.signing import Signer

if TYPE_CHECKING:
    from remit.backend.embedded.checkup import FolderCheckup


def _readable(path: Path) -> sqlite3.Connection:
    """A connection that reads; what was not written to yet reads as a store without runs."""
    with ExitStack() as undo:
        connection = undo.enter_context(closing(connect_to_read(path)))
        if version := schema_version(connection, path):
            show_as_newest(connection, version)
            undo.pop_all()
            return connection
    return connect_to_nothing()


class EmbeddedStore:
    """An open store. It serves one event loop at a time, and several one after the other."""

    def __init__(
        self,
        home: Path,
        connection: sqlite3.Connection,
        reader: sqlite3.Connection,
        *,
        locks: FileLocks,
        log: HeadsFile,
        syncer: Syncer | None,
        now_ms: Callable[[], int],
    ) -> None:
        self.home = home
        self._connection = connection
        self._users = users = Users(home / DATABASE)
        self._reader = ReadConnection(reader, home / DATABASE, users)
        self._is_closed = False
        self._syncer = syncer
        self._checkpointer = Checkpointer(home)
        # What is only read has nothing rung, and nothing put beside it to listen with.
        self.bell = SocketBell(home, may_listen=syncer is not None)
        self._writer = Writer(connection, home, now_ms, syncer=syncer, checkpointer=self._checkpointer, bell=self.bell)
        self.locks = locks
        self.key = FileKey(home)
        self.leases = FileLeases(locks)
        self.journal = SQLiteJournal(self._writer, self._reader, self.leases)
        self.feed = SQLiteFeed(self._reader)
        self.blobs = SQLiteBlobs(self._writer, self._reader)
        self.snapshots = SQLiteSnapshots(self._writer, self._reader)
        self.catalogue = SQLiteCatalogue(self._reader)
        self.index = SQLiteIndex(self._writer, self._reader)
        self.log = FileHeadLog(self._reader, log)
        self.halts = SQLiteHalts(home, self.journal, self._reader, log, self.bell)
        self.inbox = SQLiteInbox(self._writer, self._reader, self.bell)
        self.ledger = SQLiteLedger(self._writer, self._reader)
        self.receipts = SQLiteReceipts(self._writer, self._reader)
        self.seals = FileSeals(home, lambda: self.signer)
        self.retention = SQLiteRetention(
            home,
            locks=locks,
            users=users,
            signer=lambda: self.signer,
            now_ms=now_ms,
            is_read_only=syncer is None,
        )
        self.redactions = SQLiteRedactions(home, self.retention, lambda: self.signer, now_ms)

    @classmethod
    def open(
        cls, home: Path | str, *, now_ms: Callable[[], int] = wall_clock_ms, mends: bool = False
    ) -> "EmbeddedStore":
        """The store in this folder, made when there is none; one that lost its index only for a caller that makes that anew."""
        expect_place(home)
        home = Path(home)
        refuse_exposed(home)
        refuse_emptied(home)
        make_folder(home)
        path = home / DATABASE
        with ExitStack() as undo:
            locks = undo.enter_context(closing(FileLocks(home)))
            connection = undo.enter_context(closing(open_database(home, locks.is_alone)))
            # A process that cannot sign may begin nothing that would have to be signed.
            refuse_lost_key(home)
            refuse_cleared(home, connection, mends=mends)
            locks.enter()
            log = HeadsFile(home)
            try:
                if is_log_lost(home, connection):
                    log.begin_again()
                elif not log.path.exists():
                    log.create()
                # On the event loop no caller waits for another process; the writer tries again later instead.
                connection.execute("PRAGMA busy_timeout = 0")
                reader = undo.enter_context(closing(connect_to_database(path)))
                reader.execute("PRAGMA query_only = ON")
                syncer = Syncer(home, log)
            except (sqlite3.Error, OSError) as error:
                raise store_unusable(error, path) from error
            undo.pop_all()
        return cls(home, connection, reader, locks=locks, log=log, syncer=syncer, now_ms=now_ms)

    @classmethod
    def open_to_read(cls, home: Path | str) -> "EmbeddedStore":
        """A store that is there, without writing anything: whatever would write says STORE_READ_ONLY."""
        home = Path(home)
        path = home / DATABASE
        refuse_links(home)
        refuse_emptied(home)
        with ExitStack() as undo:
            connection = undo.enter_context(closing(_readable(path)))
            reader = undo.enter_context(closing(_readable(path)))
            refuse_later_version(schema_version(connection, path), path)
            refuse_cleared(home, connection)
            undo.pop_all()
        log, locks = HeadsFile(home), FileLocks(home)
        return cls(home, connection, reader, locks=locks, log=log, syncer=None, now_ms=wall_clock_ms)

    @property
    def checkup(self) -> "FolderCheckup":
        """What says whether the store is well; loaded by those who ask."""
        from remit.backend.embedded.checkup import FolderCheckup

        return FolderCheckup(self.home)

    @property
    def signer(self) -> Signer:
        """Who signs here; the key is made on first use."""
        return self.key.signer

    @property
    def did(self) -> str:
        """The name under which this deployment signs."""
        return self.signer.did

    async def close(self) -> None:
        """Write, sync and move into the database what is left, and let the folder go; again, nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._writer.close()
        finally:
            # What was written last is still rung for.
            self.bell.close()
            await asyncio.to_thread(self._close)

    def let_go(self) -> None:
        """Close a store that was only read, without an event loop."""
        self._is_closed = True
        self.bell.close()
        self._close()

    def _close(self) -> None:
        self._users.close()
        self._checkpointer.close()
        if self._syncer is not None:
            self._syncer.close()
        self._reader.close()
        # The last connection to close moves the WAL into the database and removes it.
        self._connection.close()
        self.locks.close()
