"""The catalogue: which runs there are, how they stand, and who vouches for them."""

from collections.abc import Sequence
from typing import Any, Unpack

from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.tables import split_lineage
from remit.core.journal.storage import RunEntry, RunListing, RunQuery, SignedHead

# The number of turns is asked of the turns themselves; a counter could disagree with them.
_ENTRY = (
    "SELECT run_id, (SELECT coalesce(max(seq), -1) + 1 FROM turns WHERE turns.run_no = runs.run_no), ending, waiting_for,"
    " lineage, started_at_ms, mode, tenant_id, session_id, ordinal, parent_id, name FROM runs WHERE started_at_ms IS NOT NULL"
)
_HEADS = (
    "SELECT seq, head, ending, signer, signature FROM heads"
    " WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) ORDER BY seq"
)
# What narrows a list of runs.
_OF_TENANT = " AND tenant_id = ?"
_CHILDREN = " AND parent_id = ? AND parent_id <> ''"
_ROOTS = " AND parent_id = ''"
# As a range, which an index answers, and in which no sign of a name means anything else.
_BEGINS = " AND run_id >= ? AND run_id < ?"
_AFTER_ALL = "\U0010ffff"
_OPEN = " AND ending = ''"
_WAITING = " AND waiting_for <> ''"
_BEFORE = " AND run_no < (SELECT run_no FROM runs AS last WHERE last.run_id = ?)"
_LAST_HEAD = _HEADS.replace("ORDER BY seq", "ORDER BY seq DESC LIMIT 1")


class SQLiteCatalogue:
    """The index of a store."""

    def __init__(self, reader: ReadConnection) -> None:
        self._reader = reader

    async def entry(self, run_id: str) -> RunEntry | None:
        """One run, or None where it was not started here."""
        found = self._reader.rows(f"{_ENTRY} AND run_id = ?", (run_id,))
        return _entry(found[0]) if found else None

    async def entries(self, **query: Unpack[RunQuery]) -> Sequence[RunEntry]:
        """The runs that a query asks for, newest first."""
        tenant_id, parent_id = query.get("tenant_id"), query.get("parent_id")
        begins, before = query.get("begins", ""), query.get("before", "")
        is_waiting = query.get("waiting_only", False)
        asked = (
            (_OF_TENANT, tenant_id is not None, (tenant_id,)),
            # The index of children knows no run that was not started as one.
            (_CHILDREN if parent_id else _ROOTS, parent_id is not None, (parent_id,) if parent_id else ()),
            (_BEGINS, bool(begins), (begins, begins + _AFTER_ALL)),
            (_OPEN, query.get("open_only", False) or is_waiting, ()),
            (_WAITING, is_waiting, ()),
            (_BEFORE, bool(before), (before,)),
        )
        clauses = "".join(clause for clause, is_asked, _ in asked if is_asked)
        values = [value for _, is_asked, given in asked if is_asked for value in given]
        rows = self._reader.rows(f"{_ENTRY}{clauses} ORDER BY run_no DESC LIMIT ?", (*values, query.get("limit") or -1))
        return [_entry(row) for row in rows]

    async def named(self, name: str, tenant_id: str) -> Sequence[RunEntry]:
        """The open runs of a tenant that agents elsewhere name so, newest first."""
        query = f"{_ENTRY} AND ending = '' AND name <> '' AND name = ? AND tenant_id = ? ORDER BY run_no DESC"
        return [_entry(row) for row in self._reader.rows(query, (name, tenant_id))]

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> Sequence[RunEntry]:
        """The runs of a session, in order; None is of every tenant."""
        of_tenant, values = ("", ()) if tenant_id is None else (_OF_TENANT, (tenant_id,))
        query = f"{_ENTRY} AND session_id = ? AND session_id <> ''{of_tenant} ORDER BY tenant_id, ordinal"
        return [_entry(row) for row in self._reader.rows(query, (session_id, *values))]

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        """The newest runs of a likeness that succeeded, newest first, at most so many."""
        query = f"{_ENTRY} AND ending = 'SUCCESS' AND likeness <> '' AND likeness = ? ORDER BY run_no DESC LIMIT ?"
        return [_entry(row) for row in self._reader.rows(query, (likeness, limit))]

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The signed heads kept with a run, oldest first."""
        return [SignedHead(run_id, *row) for row in self._reader.rows(_HEADS, (run_id,))]

    async def last_head(self, run_id: str) -> SignedHead | None:
        """The signed head of the highest turn that is kept with a run."""
        rows = self._reader.rows(_LAST_HEAD, (run_id,))
        return SignedHead(run_id, *rows[0]) if rows else None


def _entry(row: Sequence[Any]) -> RunEntry:
    run_id, turns, ending, waiting_for, lineage, started_at_ms, *listed = row
    mode, tenant_id, session_id, ordinal, parent_id, name = listed
    listing = RunListing(
        started_at_ms=started_at_ms,
        mode=mode,
        tenant_id=tenant_id,
        session_id=session_id,
        ordinal=ordinal,
        parent_id=parent_id,
        lineage=split_lineage(lineage),
        name=name,
    )
    return RunEntry(run_id, listing, turns, ending, waiting_for)
