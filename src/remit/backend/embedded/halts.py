"""The journal of halts in the database of a store.

Rule 1: the journal of halts is kept as a run is: chained turns, with signed heads in database and log. It is no run: the
        index does not list it. A signed entry that is missing was lost, and the log of heads says so.
Rule 2: whether a halt was written is asked of a file that grows by a byte with every entry, because a query before every
        command would cost more than the rest of the dispatch. A process that died between entry and byte has told no
        caller that its halt stands, and a driver of runs asks the database at intervals, whatever the file says.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from remit.backend.embedded.bell import SocketBell
from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.disk_failures import store_unusable
from remit.backend.embedded.heads_file import HeadsFile
from remit.backend.embedded.journal import SQLiteJournal
from remit.core.journal.storage import Barrier, SignedHead, Topic, Warrant
from remit.core.regular_file import open_to_append
from remit.core.run.halt import HALTS

# The file that grows with every entry of the journal of halts.
NEWS = "halts.news"

_ENTRIES_SINCE = (
    "SELECT data FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) AND seq >= ? ORDER BY seq"
)
_NEVER_LOOKED = -1


class SQLiteHalts:
    """Entries in the database of a store."""

    def __init__(
        self, home: Path, journal: SQLiteJournal, reader: ReadConnection, log: HeadsFile, bell: SocketBell
    ) -> None:
        self._bell = bell
        self._log = log
        self._path = home / NEWS
        self._news = str(self._path)
        self._journal = journal
        self._reader = reader
        self._seen_bytes = _NEVER_LOOKED
        self._seen_number = 0

    async def refresh(self) -> None:
        """Everything is at hand: the database is asked each time."""

    def news(self, number: int) -> Sequence[bytes]:
        """The entries after this number, where there may be any: as long as the file has not grown there are none."""
        try:
            size_bytes = os.stat(self._news).st_size  # noqa: PTH116  # a path object takes longer than the look itself
        except FileNotFoundError:
            size_bytes = 0
        except OSError as error:
            raise store_unusable(error, self._path) from error
        # Several may ask, each for what comes after the entry that it knows.
        if size_bytes == self._seen_bytes and number >= self._seen_number:
            return ()
        found = self.since(number)
        self._seen_bytes, self._seen_number = size_bytes, number + len(found)
        return found

    def since(self, number: int) -> Sequence[bytes]:
        """The entries after this number, oldest first."""
        return [data for (data,) in self._reader.rows(_ENTRIES_SINCE, (HALTS, number))]

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
            raise store_unusable(error, self._path) from error
        self._bell.ring(Topic.POST)
