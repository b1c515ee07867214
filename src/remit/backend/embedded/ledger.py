"""What runs count for their tenants, in a table beside the turns.

Rule 1: a reservation is checked and written in the transaction of the run's first turn, and what the run came to in that
        of the turn that ends it. SQLite puts processes in order, so together they never reserve more than there is.
Rule 2: what a run came to counts in the period in which it reserved.
Rule 3: a sum for each hour is kept with the rows, by triggers of the table itself, so the two never disagree.
Rule 4: the table is an index: whatever it says of a run that is there can be folded from its turns again. A run that was
        deleted leaves its rows, which name nothing but its number; they are all that is left of what it cost.
Rule 5: a run that is deleted while it is open counts as having spent all it might, since that will never be known.
"""

import sqlite3
from collections.abc import Sequence
from functools import partial

from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.writer import Outcome, Writer
from remit.core.journal.storage import QuotaConflict
from remit.core.limits.quota import HOUR_MS, Charge, Committed, Limit, Reservation, has_room, left_of

# Ended, then open. The hours of a period are summed, not its runs, of which there may be many more.
_COMMITTED = (
    "SELECT coalesce(sum(amount) FILTER (WHERE NOT is_open), 0), coalesce(sum(amount) FILTER (WHERE is_open), 0)"
    " FROM charged_hours WHERE tenant_id = ? AND dimension = ? AND hour_no >= ? AND hour_no < ?"
)
_HAS_BEGUN = "SELECT 1 FROM runs WHERE run_id = ?"
_RUN = "SELECT run_no, ending FROM runs WHERE run_id = ?"
_COUNTED_AT = "SELECT at_ms FROM charges WHERE run_no = ? LIMIT 1"
_CLEAR = "DELETE FROM charges WHERE run_no = ?"
_WRITE = "INSERT INTO charges (run_no, dimension, tenant_id, at_ms, is_open, amount) VALUES (?, ?, ?, ?, ?, ?)"
_CLOSE = "UPDATE charges SET is_open = 0 WHERE run_no = ? AND is_open"

_UNCOUNTED = (
    "SELECT run_id FROM runs WHERE tenant_id = ? AND started_at_ms >= ? AND parent_id = ''"
    " AND (NOT EXISTS (SELECT 1 FROM charges WHERE charges.run_no = runs.run_no)"
    " OR ending <> '' AND EXISTS (SELECT 1 FROM charges WHERE charges.run_no = runs.run_no AND is_open))"
    " ORDER BY run_no"
)
_TENANTS = (
    "SELECT tenant_id FROM runs WHERE started_at_ms IS NOT NULL AND parent_id = ''"
    " UNION SELECT tenant_id FROM charged_hours ORDER BY tenant_id"
)


def check_quota_room(cursor: sqlite3.Cursor, run_id: str, tenant_id: str, reservation: Reservation) -> None:
    """Raise QuotaConflict where what a new run is to reserve does not fit; nothing is written yet."""
    if cursor.execute(_HAS_BEGUN, (run_id,)).fetchone() is not None:
        return  # It cannot begin twice, and the append says so.
    for limit in reservation.limits:
        committed = Committed(*cursor.execute(_COMMITTED, _asked(tenant_id, limit)).fetchone())
        if not has_room(limit, committed, reservation.amounts):
            wanted = dict(reservation.amounts)[limit.dimension]
            raise QuotaConflict(tenant_id, limit, wanted, left_of(limit, committed))


def reserve(cursor: sqlite3.Cursor, run_no: int | None, tenant_id: str, reservation: Reservation) -> None:
    """Count a run that begins with all it may spend."""
    cursor.executemany(_WRITE, [(run_no, d, tenant_id, reservation.at_ms, 1, n) for d, n in reservation.amounts])


def settle_run(cursor: sqlite3.Cursor, charge: Charge) -> None:
    """Count a run with what it came to, in place of how it was counted."""
    run_no, _ = cursor.execute(_RUN, (charge.run_id,)).fetchone()
    (at_ms,) = cursor.execute(_COUNTED_AT, (run_no,)).fetchone() or (charge.at_ms,)
    _replace(cursor, run_no, charge, at_ms)


def close_deleted(connection: sqlite3.Connection, run_no: int) -> None:
    """Let a run that is being deleted count as ended."""
    connection.execute(_CLOSE, (run_no,))


def _replace(cursor: sqlite3.Cursor, run_no: int, charge: Charge, at_ms: int) -> None:
    cursor.execute(_CLEAR, (run_no,))
    rows = [(run_no, d, charge.tenant_id, at_ms, int(charge.is_open), amount) for d, amount in charge.amounts]
    cursor.executemany(_WRITE, rows)


def _asked(tenant_id: str, limit: Limit) -> tuple[str, int, int, int]:
    return tenant_id, limit.dimension, limit.from_ms // HOUR_MS, limit.until_ms // HOUR_MS


class SQLiteLedger:
    """What runs count, in the database of a store."""

    def __init__(self, writer: Writer, reader: ReadConnection) -> None:
        self._writer = writer
        self._reader = reader

    async def committed(self, tenant_id: str, limits: Sequence[Limit]) -> Sequence[Committed]:
        """What counts against each of these limits."""
        return [Committed(*self._reader.rows(_COMMITTED, _asked(tenant_id, limit))[0]) for limit in limits]

    async def uncounted(self, tenant_id: str, from_ms: int) -> Sequence[str]:
        """The runs of a tenant since a time, children not among them, that are not counted as they stand."""
        return [run_id for (run_id,) in self._reader.rows(_UNCOUNTED, (tenant_id, from_ms))]

    async def count(self, charges: Sequence[Charge]) -> None:
        """Count these runs so; one that stands otherwise by now is left out."""
        await self._writer.submit(partial(_count, charges))

    async def tenants(self) -> Sequence[str]:
        """Every tenant that has runs here, or had."""
        return [tenant_id for (tenant_id,) in self._reader.rows(_TENANTS)]


def _count(charges: Sequence[Charge], cursor: sqlite3.Cursor) -> Outcome:
    for charge in charges:
        found = cursor.execute(_RUN, (charge.run_id,)).fetchone()
        if found is not None and (found[1] == "") is charge.is_open:
            _replace(cursor, found[0], charge, charge.at_ms)
    return None, None
