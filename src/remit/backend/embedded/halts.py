"""The journal of halts, kept as a run is kept: its entries are turns, chained, with signed heads in database and log.

Rule 1: it is no run: the index does not list it, and nothing that works on runs meets it.
Rule 2: whoever asks sees what is committed, by whichever process.
Rule 3: a query before every command would cost more than the rest of the dispatch. A file beside the database grows by a
        byte with every entry, and only who finds it grown asks the database. It says that there is news, never what: a
        process that died between entry and byte has not told anybody that its halt stands, and whoever drives runs asks
        the database every while, whatever the file says.
Rule 4: an entry that was signed and is not here was lost, as with a database that was put back. The log of heads says so.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from remit.backend.embedded.bell import SocketBell
from remit.backend.embedded.disk.database import Reader
from remit.backend.embedded.disk.disk_failures import unusable
from remit.backend.embedded.head_log import HeadsLog
from remit.backend.embedded.journal import SQLiteJournal
from remit.core.journal.storage import Barrier, SignedHead, Topic, Warrant
from remit.core.regular_file import open_to_append
from remit.core.run.halt import HALTS

# Grows with every entry.
NEWS = "halts.news"

_SINCE = "SELECT data FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) AND seq >= ? ORDER BY seq"
_NEVER_LOOKED = -1


class SQLiteHalts:
    """Entries in the database of a store."""

    def __init__(self, home: Path, journal: SQLiteJournal, reader: Reader, log: HeadsLog, bell: SocketBell) -> None:
        self._bell = bell
        self._log = log
        self._path = home / NEWS
        self._news = str(self._path)
        self._journal = journal
        self._reader = reader
        self._seen_bytes = _NEVER_LOOKED

    async def refresh(self) -> None:
        """Everything is at hand: the database is asked each time."""

    def news(self, number: int) -> Sequence[bytes]:
        """The entries after this number, where there may be any: as long as the file has not grown there are none."""
        try:
            size_bytes = os.stat(self._news).st_size  # noqa: PTH116  # a path object takes longer than the look itself
        except FileNotFoundError:
            size_bytes = 0
        except OSError as error:
            raise unusable(error, self._path) from error
        if size_bytes == self._seen_bytes:
            return ()
        found = self.since(number)
        self._seen_bytes = size_bytes
        return found

    def since(self, number: int) -> Sequence[bytes]:
        """The entries after this number, oldest first."""
        return [data for (data,) in self._reader.rows(_SINCE, (HALTS, number))]

    def signed(self) -> tuple[int, bytes]:
        """The highest entry that the log of heads knows; without one, that there were some, where the file of news says so."""
        if (head := self._log.found_last(HALTS)) is not None:
            return head.seq + 1, head.head
        return int(self._path.exists() and self._path.stat().st_size > 0 and not self.since(0)), b""

    async def append(self, data: bytes, *, after: int, head: SignedHead | None = None) -> None:
        """Write the entry that follows this number, and its head; it outlives the power once this returns."""
        await self._journal.append(HALTS, data, after - 1, Barrier(), warrant=Warrant(head=head))
        try:
            descriptor = open_to_append(self._path)
            try:
                os.write(descriptor, b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise unusable(error, self._path) from error
        self._bell.ring(Topic.POST)
