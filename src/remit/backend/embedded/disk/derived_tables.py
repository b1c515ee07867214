"""The derived part of a database, made anew: tables, indexes and triggers that are missing, and which journal is whose.

Rule 1: what is derived may be gone or damaged in any way; what it is derived from is never written here. An input that is
        missing is a loss, and nothing is made in its place.
Rule 2: the first entry of a journal says whose it is: a run begins with its manifest, and the journal of halts with a halt.
        One that says nothing readable stays with the name that it has.
Rule 3: no number of a run is given a second time, whatever else was lost.
Rule 4: a run whose turns are gone stays gone: heads.log says so, and nothing here speaks of it.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from remit.backend.embedded.disk.disk_failures import DAMAGED, failure
from remit.backend.embedded.disk.tables import NOBODY, migrate
from remit.backend.embedded.disk.writer import Outcome
from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_turn
from remit.core.run.halt import HALTS, halts_in

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
_FIRSTS = (
    "SELECT turns.run_no, turns.data, runs.run_id FROM turns LEFT JOIN runs USING (run_no)"
    " WHERE turns.run_no <> ? AND turns.seq ="
    " (SELECT min(seq) FROM turns AS others WHERE others.run_no = turns.run_no) ORDER BY turns.run_no"
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
            raise failure(DAMAGED, path, f"table {table.name} is missing, which nothing here can be made anew from")
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
    for run_no, data, run_id in cursor.execute(_FIRSTS, (NOBODY,)).fetchall():
        told = _name_in(data)
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


def _name_in(data: object) -> str | None:
    """Whose journal begins so; None where that cannot be read."""
    if not isinstance(data, bytes):
        return None
    try:
        arrival = decode_turn(data).arrival
        return arrival.manifest.run_id if isinstance(arrival, RunStarted) else None
    except InvariantBroken:
        pass
    try:
        return HALTS if halts_in([data])[0].number == 1 else None
    except InvariantBroken:
        return None


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
