"""What the log of heads says of a store, and what that has lost: a database that is gone, or holds less than was signed.

Rule 1: a database that is missing or empty beside signed heads is never replaced by a new one in silence.
Rule 2: runs that were deleted on purpose are not missing: a signed line of the log says so.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from remit.backend.embedded.disk.database import DATABASE, ReadConnection
from remit.backend.embedded.disk.disk_failures import DATABASE_ERRORS, EMPTIED, NOT_FOUND, disk_failure
from remit.backend.embedded.disk.permissions import refuse_links
from remit.backend.embedded.disk.tables import NOBODY, schema_version
from remit.backend.embedded.heads_file import HeadsFile
from remit.backend.embedded.journal_names import kept_unlisted
from remit.core.journal.signing import SignedDeletion
from remit.core.journal.storage import STORE_INDEX_LOST, Losses, SignedHead
from remit.core.run.halt import HALTS

_STANDS = "SELECT run_id, coalesce((SELECT max(seq) FROM turns WHERE turns.run_no = runs.run_no), -1) FROM runs"
_STANDS_AT = f"{_STANDS} WHERE run_id = ?"
# The head of a first turn is logged when there is a reason to sync; all others are in the log before they are told.
_WAS_TOLD = "SELECT 1 FROM heads WHERE seq > 0 LIMIT 1"
_WAS_TOLD_OF_RUN = "SELECT 1 FROM heads WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) AND seq > 0 LIMIT 1"

# What is asked below; the index has had these columns since its first version.
_COLUMNS = "SELECT name FROM pragma_table_info('runs', 'main')"
_COLUMNS_ASKED = frozenset({"run_no", "run_id", "started_at_ms", "ending", "waiting_for"})
_HELD = "SELECT 1 FROM turns WHERE run_no <> ? LIMIT 1"
_LISTED = "SELECT 1 FROM runs LIMIT 1"
# A run is listed from its first turn on; only the journal of halts is kept without.
_LISTED_WHOLE = "SELECT 1 FROM runs WHERE started_at_ms IS NOT NULL LIMIT 1"
_UNLISTED = (
    "SELECT run_id FROM runs WHERE started_at_ms IS NULL AND run_id <> ?"
    " AND EXISTS (SELECT 1 FROM heads WHERE heads.run_no = runs.run_no)"
)
# A run that is listed as open although its end was signed, or as ended although another end was, or none.
_ILL_LISTED = (
    "SELECT run_id FROM runs WHERE started_at_ms IS NOT NULL AND ending <>"
    " (SELECT heads.ending FROM heads WHERE heads.run_no = runs.run_no ORDER BY heads.seq DESC LIMIT 1)"
)


class FileHeadLog:
    """What heads.log says, read in a thread: it may be long."""

    def __init__(self, reader: ReadConnection, log: HeadsFile) -> None:
        self._reader = reader
        self._log = log

    async def last(self, run_id: str) -> SignedHead | None:
        """The signed head of the highest turn of a run."""
        return await asyncio.to_thread(self._log.last, run_id)

    async def doubt(self, run_id: str, last: int) -> str:
        """Why the log may have known of a later turn of a run; empty where it can be relied on."""
        is_told = bool(self._reader.rows(_WAS_TOLD_OF_RUN, (run_id,)))
        return await asyncio.to_thread(partial(self._log.doubt, run_id, last, is_told=is_told))

    async def losses(self) -> Losses:
        """How the log and the database differ."""
        return await asyncio.to_thread(losses_in, self._reader, self._log)

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads of a run, in the order of their turns."""
        return await asyncio.to_thread(self._log.heads, run_id)

    async def deletion(self, run_id: str) -> SignedDeletion | None:
        """What the log says of the deletion of a run."""
        return await asyncio.to_thread(self._log.deletion, run_id)


def losses_in(reader: ReadConnection, log: HeadsFile) -> Losses:
    """What the database has lost that the log knows, and whether the log itself is lost.

    The log is read first: its lines are written after the turns that they speak of, and before those of a deleted run go.
    """
    known = log.last_turns()
    stands: dict[str, int] = dict(reader.rows(_STANDS))
    missed = [run_id for run_id in log.missing(stands) if run_id in known]
    kept = kept_unlisted(reader, stands, missed)
    unlisted = (*[run_id for (run_id,) in reader.rows(_UNLISTED, (HALTS,))], *kept)
    if log.is_empty:
        return Losses(is_log_lost=bool(reader.rows(_WAS_TOLD)), unlisted=unlisted)
    ahead = [run_id for run_id, seq in known.items() if run_id in stands and seq > stands[run_id]]
    behind = [run_id for run_id in ahead if _is_behind(reader, log, run_id)]
    missing = tuple([run_id for run_id in missed if run_id not in kept])
    return Losses(tuple(behind), missing, is_log_damaged=log.is_damaged, unlisted=unlisted)


def _is_behind(reader: ReadConnection, log: HeadsFile, run_id: str) -> bool:
    """Whether the log knows a turn of a run that is not there. Any process may add lines to it; signed ones say something."""
    head = log.last(run_id)
    stands = reader.rows(_STANDS_AT, (run_id,))
    return head is not None and bool(stands) and head.seq > stands[0][1]


def ill_listed_count(reader: ReadConnection, log: HeadsFile) -> int:
    """How many runs are kept and not listed, or not as what was signed."""
    return len(losses_in(reader, log).unlisted) + len(reader.rows(_ILL_LISTED))


def is_log_lost(home: Path, connection: sqlite3.Connection) -> bool:
    """Whether the log is gone, although heads were signed that were told of.

    The log is made with the store. An empty one is no loss: what was signed may have been on its way to it when its process
    died, or the power went.
    """
    if HeadsFile(home).path.exists():
        return False
    try:
        if not schema_version(connection, home / DATABASE):
            return False
        told = connection.execute("SELECT 1 FROM heads WHERE seq > 0 LIMIT 1").fetchone()
    except DATABASE_ERRORS:
        return False  # A reader of what is damaged is told so.
    return told is not None


def expect_store_in(home: Path, *files: str) -> None:
    """Raise STORE_NOT_FOUND where there is no store, and never was, nor any of these files of its folder."""
    refuse_links(home)
    refuse_emptied(home)
    path = home / DATABASE
    if not path.exists() and not any((home / name).exists() for name in files):
        raise disk_failure(NOT_FOUND, path, "no such file")


def refuse_emptied(home: Path) -> None:
    """Raise STORE_EMPTIED where the log has heads, and the database is not there or has no byte."""
    path = home / DATABASE
    if HeadsFile(home).is_empty or (path.exists() and path.stat().st_size):
        return
    what = "is empty" if path.exists() else "is not there"
    raise disk_failure(EMPTIED, path, f"{what}, although heads.log beside it holds signed heads of its runs")


def refuse_cleared(home: Path, connection: sqlite3.Connection, *, mends: bool = False) -> None:
    """Raise STORE_EMPTIED where the log names runs that were not deleted, and the database holds no run at all.

    One that holds turns and lists no run, or every one of them with nothing said of it, has lost its index: STORE_INDEX_LOST,
    unless that is about to be made anew.
    """
    path, log = home / DATABASE, HeadsFile(home)
    try:
        if schema_version(connection, path) and connection.execute(_HELD, (NOBODY,)).fetchone():
            if not mends and not _lists_any(connection):
                raise disk_failure(STORE_INDEX_LOST, path, "holds turns of runs and lists none of them")
            return
        if log.is_empty:
            return
        is_cleared = not schema_version(connection, path) or not connection.execute(_LISTED).fetchone()
    except DATABASE_ERRORS:
        return  # A reader of what is damaged is told so; what can be read may still be.
    if is_cleared and (missing := log.missing()):
        what = f"holds no run, although heads.log beside it has signed heads of {len(missing)} that were not deleted"
        raise disk_failure(EMPTIED, path, what)


def _lists_any(connection: sqlite3.Connection) -> bool:
    """Whether a database has an index of runs, with a run in it."""
    if not _COLUMNS_ASKED.issubset(name for (name,) in connection.execute(_COLUMNS)):
        return False
    if connection.execute(_LISTED_WHOLE).fetchone() is not None:
        return True
    is_blank = connection.execute(_UNLISTED, (HALTS,)).fetchone() is not None
    return not is_blank and connection.execute(_LISTED).fetchone() is not None
