"""Whose journal turns are, by what they tell themselves: the list of runs may lack a run, or name another.

Rule 1: the first entry of a journal says whose it is: a run begins with its manifest, and the journal of halts with a halt.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.tables import NOBODY
from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_turn
from remit.core.journal.ended import belonging_of
from remit.core.run.halt import HALTS, halts_in

# The number of a journal, its first entry, and the name under which it is listed, if it is.
FIRST_ENTRIES = (
    "SELECT turns.run_no, turns.data, runs.run_id FROM turns LEFT JOIN runs USING (run_no)"
    " WHERE turns.run_no <> ? AND turns.seq ="
    " (SELECT min(seq) FROM turns AS others WHERE others.run_no = turns.run_no) ORDER BY turns.run_no"
)
_UNLISTED = FIRST_ENTRIES.replace(
    " ORDER BY", " AND turns.run_no IN (SELECT run_no FROM turns EXCEPT SELECT run_no FROM runs) ORDER BY"
)
_LISTED = (
    "SELECT run_no, (SELECT data FROM turns WHERE turns.run_no = runs.run_no AND seq = 0) FROM runs WHERE run_id = ?"
)


def name_in(data: object) -> str | None:
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


def kept_unlisted(reader: ReadConnection, listed: Collection[str], missing: Sequence[str]) -> list[str]:
    """The runs that journals tell of and that are not listed: of journals without a name, and, of any, those that are missed."""
    rows = reader.rows(FIRST_ENTRIES if missing else _UNLISTED, (NOBODY,))
    told = {name: is_named for _, data, is_named in rows if (name := name_in(data)) is not None}
    return [name for name, named in told.items() if name in missing or (named is None and name not in listed)]


class Journals:
    """The journals of a database, found by what they tell where the list does not have them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def firsts(self) -> Iterator[tuple[str, bytes]]:
        """Every run with its first turn: as it is listed, or else as that turn tells."""
        for _, data, listed in self._connection.execute(FIRST_ENTRIES, (NOBODY,)):
            if (name := listed or name_in(data)) is not None:
                yield name, data

    def numbers_of(self, run_id: str) -> list[int]:
        """The number of the journal listed for this run or, where its turns name another, of all whose turns name this one."""
        if not run_id:
            return []
        listed = self._connection.execute(_LISTED, (run_id,)).fetchone()
        if listed is not None and name_in(listed[1]) in (None, run_id):
            return [listed[0]]
        return self._told.get(run_id, [])

    def unlisted_child(self, parents: Collection[str]) -> str:
        """A run beneath one of these that is kept and not listed; empty where there is none."""
        rows = self._connection.execute(_UNLISTED, (NOBODY,))
        told = ((name_in(data), belonging_of(data)) for _, data, _ in rows)
        return next((name for name, own in told if name and own is not None and own.parent_id in parents), "")

    @cached_property
    def _told(self) -> dict[str, list[int]]:
        """The numbers of journals, by the names that they tell."""
        found: dict[str, list[int]] = {}
        for run_no, data, _ in self._connection.execute(FIRST_ENTRIES, (NOBODY,)):
            if (name := name_in(data)) is not None:
                found.setdefault(name, []).append(run_no)
        return found
