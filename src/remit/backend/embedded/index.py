"""The index, made anew: how runs are listed and stand, and what became of the entries that they heard."""

import sqlite3
from collections.abc import Sequence
from functools import partial

from remit.backend.embedded.disk.database import Reader
from remit.backend.embedded.disk.derived_tables import mended
from remit.backend.embedded.disk.tables import joined_lineage
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.backend.embedded.inbox import SETTLE
from remit.core.journal.storage import Derived

_NAMES = "SELECT run_id FROM runs WHERE EXISTS (SELECT 1 FROM turns WHERE turns.run_no = runs.run_no) ORDER BY run_no"
_STRIKE = (
    "DELETE FROM runs WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turns.run_no = runs.run_no) RETURNING run_no, run_id"
)
_RENEW = (
    "UPDATE runs SET started_at_ms = ?3, mode = ?4, tenant_id = ?5, session_id = ?6, ordinal = ?7, parent_id = ?8,"
    " likeness = ?9, lineage = ?10, name = ?11, ending = ?12, waiting_for = ?13, ended_at_ms = ?14"
    " WHERE run_id = ?1 AND (SELECT count(*) FROM turns WHERE turns.run_no = runs.run_no) = ?2"
)
_SUMS = (
    "INSERT INTO charged_hours SELECT tenant_id, dimension, at_ms / 3600000, is_open, sum(amount) FROM charges"
    " GROUP BY tenant_id, dimension, at_ms / 3600000, is_open"
)


class SQLiteIndex:
    """What the database of a store knows of runs beyond their turns."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def mend(self) -> int:
        """Make anew what of the database is derived and missing, and name every journal; gives how many have no name."""
        nameless: int = await self._writer.submit(partial(mended, self._writer.path))
        return nameless

    async def names(self) -> Sequence[str]:
        """Every journal that has an entry, in the order in which they began."""
        return [run_id for (run_id,) in self._reader.rows(_NAMES, ())]

    async def strike(self) -> Sequence[str]:
        """List no run any more that has no turn; gives those that were."""
        struck: Sequence[str] = await self._writer.submit(_strike)
        return struck

    async def renew(self, runs: Sequence[Derived]) -> Sequence[str]:
        """List these runs so, and settle what they heard; gives those that now are."""
        renewed: Sequence[str] = await self._writer.submit(partial(_renew, self._writer.now_ms(), tuple(runs)))
        return renewed

    async def sum_up(self) -> None:
        """Add up anew what runs count for their tenants, by the hour."""
        await self._writer.submit(_sum_up)


def _strike(cursor: sqlite3.Cursor) -> Outcome:
    return [run_id for _, run_id in sorted(cursor.execute(_STRIKE).fetchall())], None


def _sum_up(cursor: sqlite3.Cursor) -> Outcome:
    cursor.execute("DELETE FROM charged_hours")
    cursor.execute(_SUMS)
    return None, None


def _renew(now_ms: int, runs: tuple[Derived, ...], cursor: sqlite3.Cursor) -> Outcome:
    return [run.run_id for run in runs if _renewed(now_ms, run, cursor)], None


def _renewed(now_ms: int, run: Derived, cursor: sqlite3.Cursor) -> bool:
    listing, standing = run.listing, run.standing
    listed = (listing.started_at_ms, listing.mode, listing.tenant_id, listing.session_id, listing.ordinal)
    origin = (listing.parent_id, listing.likeness, joined_lineage(listing.lineage), listing.name)
    stands = (standing.ending, standing.waiting_for, run.ended_at_ms)
    try:
        if cursor.execute(_RENEW, (run.run_id, run.turns, *listed, *origin, *stands)).rowcount != 1:
            return False
    except sqlite3.IntegrityError:
        return False  # Another run has its place in its session.
    for number, answer in run.heard:
        cursor.execute(SETTLE, (number, "", answer, now_ms))
    return True
