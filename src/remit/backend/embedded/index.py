"""Whatever a database derives from turns, made anew: tables, the names of journals, and how runs are listed and stand.

Rule 1: what is derived may be gone or damaged in any way; what it is derived from is never written here. An input that is
        missing is a loss, and nothing is made in its place.
Rule 2: a journal is what its first entry says: a run begins with its manifest, the journal of halts with a halt. One that
        says nothing readable stays with the name that it has.
Rule 3: no number of a run is given a second time. A run whose turns are gone stays gone; heads.log tells of it.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.disk_failures import DAMAGED, disk_failure
from remit.backend.embedded.disk.tables import NOBODY, joined_lineage, migrate
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.backend.embedded.inbox import SETTLE
from remit.backend.embedded.journal_names import FIRST_ENTRIES, name_in
from remit.core.journal.storage import Derived
from remit.core.run.halt import HALTS

# Tables whose rows follow from turns, each with how the part of it is read and written again that is kept where the table has
# to be made anew: which run has which number, and what runs count, since some of these were deleted.
_DERIVED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "runs": ("SELECT run_no, run_id FROM runs", "INSERT OR IGNORE INTO runs (run_no, run_id) VALUES (?, ?)"),
        "charges": (
            "SELECT run_no, dimension, tenant_id, at_ms, is_open, amount FROM charges",
            "INSERT OR IGNORE INTO charges (run_no, dimension, tenant_id, at_ms, is_open, amount) VALUES (?, ?, ?, ?, ?, ?)",
        ),
        "charged_hours": ("", ""),
        "snapshots": ("", ""),
    }
)

_MAKE_UNIQUE = "CREATE UNIQUE INDEX places"
_FREE_SHARED_PLACES = (
    "UPDATE runs SET session_id = '' WHERE (session_id, ordinal) IN"
    " (SELECT session_id, ordinal FROM runs WHERE session_id <> '' GROUP BY session_id, ordinal HAVING count(*) > 1)"
)
_FORGET = "DELETE FROM runs WHERE run_no = ?1 OR run_id = ?2"
_NAME = "INSERT INTO runs (run_no, run_id) VALUES (?, ?)"
# The journal of halts is no run, and no view lists it.
_UNLIST = (
    "UPDATE runs SET started_at_ms = NULL, mode = '', tenant_id = '', session_id = '', ordinal = 0, parent_id = '',"
    " ending = '', waiting_for = '', ended_at_ms = NULL, likeness = '', lineage = '' WHERE run_id = ?"
)
_HIGHEST = (
    "SELECT coalesce(max(run_no), 0) FROM (SELECT run_no FROM runs UNION SELECT run_no FROM turns"
    " UNION SELECT run_no FROM heads UNION SELECT run_no FROM charges)"
)
_GIVEN = "SELECT 1 FROM sqlite_sequence WHERE name = 'runs'"
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


class _Made(NamedTuple):
    """A table, an index or a trigger, as the database says it was made."""

    kind: str
    name: str
    sql: str


def mended(path: Path, cursor: sqlite3.Cursor) -> Outcome:
    """Make the schema whole, and give every journal the name that it tells; gives how many have none.

    Raises StoreUnusable where a table is missing that nothing can be derived from.
    """
    wanted, found = _newest(), _made(cursor)
    for table in [made for made in wanted if made.kind == "table"]:
        if table.name not in _DERIVED and (table.kind, table.name) not in found:
            raise disk_failure(
                DAMAGED, path, f"table {table.name} is missing, which nothing here can be made anew from"
            )
        if table.name in _DERIVED:
            _mend_table(cursor, table)
    nameless = _mend_names(cursor)
    cursor.execute(_UNLIST, (HALTS,))
    _mend_numbers(cursor)
    _mend_beside(cursor, [made for made in wanted if made.kind != "table"])
    return nameless, None


def _newest() -> list[_Made]:
    """Whatever a new database of this version is made of."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, Path(":memory:"))
        return list(_made(connection.cursor()).values())


def _made(cursor: sqlite3.Cursor) -> dict[tuple[str, str], _Made]:
    # What SQLite makes by itself has no text.
    rows = cursor.execute("SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    return {(kind, name): _Made(kind, name, sql) for kind, name, sql in rows if not name.startswith("sqlite_")}


def _mend_table(cursor: sqlite3.Cursor, table: _Made) -> None:
    """Make a table anew that is missing or was made otherwise, with what is kept of its rows."""
    stands = next((made for (_, name), made in _made(cursor).items() if name == table.name), None)
    if stands is not None and stands.sql == table.sql:
        return
    read, write = _DERIVED[table.name]
    rows = []
    with suppress(
        sqlite3.OperationalError
    ):  # Where it is not there, or has not these columns, nothing can be kept of it.
        rows = cursor.execute(read).fetchall() if read else []
    if stands is not None:
        cursor.execute(f'DROP {stands.kind} "{stands.name}"')
    cursor.execute(table.sql)
    if rows:
        cursor.executemany(write, rows)


def _mend_names(cursor: sqlite3.Cursor) -> int:
    """Have every journal listed under the name that its first entry tells."""
    nameless, wrong = 0, list[tuple[int, str]]()
    for run_no, data, run_id in cursor.execute(FIRST_ENTRIES, (NOBODY,)).fetchall():
        told = name_in(data)
        if told is None:
            nameless += run_id is None
        elif told != run_id:
            wrong.append((run_no, told))
    told_twice = set(_told_by_others(cursor, wrong))
    for run_no, name in wrong:
        if name in told_twice:
            nameless += 1  # Another journal tells the same, and has the name already.
            continue
        cursor.execute(_FORGET, (run_no, name))
        cursor.execute(_NAME, (run_no, name))
    return nameless


def _told_by_others(cursor: sqlite3.Cursor, wrong: list[tuple[int, str]]) -> Iterator[str]:
    """The names that a journal has by right already, or that several tell which have none."""
    numbers = {run_no for run_no, _ in wrong}
    named = {name for _, name in wrong}
    for name in named:
        if sum(told == name for _, told in wrong) > 1:
            yield name
    for run_no, run_id in cursor.execute("SELECT run_no, run_id FROM runs").fetchall():
        has_turns = cursor.execute("SELECT 1 FROM turns WHERE run_no = ? LIMIT 1", (run_no,)).fetchone()
        if run_id in named and run_no not in numbers and has_turns:
            yield run_id


def _mend_numbers(cursor: sqlite3.Cursor) -> None:
    """Let the next run have a number that none has had."""
    (highest,) = cursor.execute(_HIGHEST).fetchone()
    if cursor.execute(_GIVEN).fetchone() is None:
        cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('runs', ?)", (highest,))
    cursor.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'runs'", (highest,))


def _mend_beside(cursor: sqlite3.Cursor, wanted: list[_Made]) -> None:
    """Make indexes and triggers anew that are missing or were made otherwise; a trigger that is not ours goes."""
    ours = {(made.kind, made.name): made.sql for made in wanted}
    for made in _made(cursor).values():
        is_ours = ours.get((made.kind, made.name)) == made.sql
        if (made.kind == "trigger" and not is_ours) or ((made.kind, made.name) in ours and not is_ours):
            cursor.execute(f'DROP {made.kind} "{made.name.replace(chr(34), chr(34) * 2)}"')
    found = _made(cursor)
    for made in wanted:
        if (made.kind, made.name) in found:
            continue
        if made.sql.startswith(_MAKE_UNIQUE):
            # Runs that share a place could not be listed so; from their turns they get back what is theirs.
            cursor.execute(_FREE_SHARED_PLACES)
        cursor.execute(made.sql)


class SQLiteIndex:
    """What the database of a store knows of runs beyond their turns."""

    def __init__(self, writer: Writer, reader: ReadConnection) -> None:
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
