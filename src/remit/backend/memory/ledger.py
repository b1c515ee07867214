"""The ledger of a store in memory: what runs reserve and spend of the quotas of their tenants.

Rule 1: a reservation is checked where a run begins; what the run came to takes its place when it ends.
Rule 2: what a run came to counts in the period in which it reserved.
Rule 3: a run that is deleted while it is open counts as having spent all it might.
"""

from collections.abc import Mapping, Sequence

from remit.core.journal.storage import QuotaConflict, RunEntry
from remit.core.limits.quota import Charge, Committed, Limit, Reservation, has_room, left_of
from remit.core.record import replace


class MemoryLedger:
    """Keeps what each run counts until the process ends; `entries` are the runs that there are."""

    def __init__(self, entries: Mapping[str, RunEntry]) -> None:
        self._entries = entries
        self._charges: dict[str, Charge] = {}

    def check_room(self, tenant_id: str, reservation: Reservation, *, but: str = "") -> None:
        """Raise QuotaConflict where what a new run is to reserve does not fit beside all others; `but` is the run."""
        for limit in reservation.limits:
            committed = self._committed(tenant_id, limit, but)
            if not has_room(limit, committed, reservation.amounts):
                wanted = dict(reservation.amounts)[limit.dimension]
                raise QuotaConflict(tenant_id, limit, wanted, left_of(limit, committed))

    def keep(self, charge: Charge, *, is_anew: bool = False) -> None:
        """Count a run so, in the period in which it reserved, unless it is counted anew."""
        before = charge if is_anew else self._charges.get(charge.run_id, charge)
        self._charges[charge.run_id] = replace(charge, at_ms=before.at_ms)

    def charge_of(self, run_id: str) -> Charge | None:
        """What a run counts; None where it counts nothing."""
        return self._charges.get(run_id)

    def open_charges(self, tenant_id: str) -> Sequence[Charge]:
        """What the open runs of a tenant have reserved."""
        return [charge for charge in self._charges.values() if charge.tenant_id == tenant_id and charge.is_open]

    def close_deleted(self, run_id: str) -> None:
        """Let a run that is being deleted count as ended."""
        if (charge := self._charges.get(run_id)) is not None:
            self._charges[run_id] = replace(charge, is_open=False)

    async def committed(self, tenant_id: str, limits: Sequence[Limit]) -> Sequence[Committed]:
        """What counts against each of these limits."""
        return [self._committed(tenant_id, limit) for limit in limits]

    async def uncounted(self, tenant_id: str, from_ms: int) -> Sequence[str]:
        """The runs of a tenant since a time, children not among them, that are not counted as they stand."""
        roots = (entry for entry in self._entries.values() if not entry.listing.parent_id)
        own = (entry for entry in roots if entry.listing.tenant_id == tenant_id)
        return [e.run_id for e in own if e.listing.started_at_ms >= from_ms and not self._is_counted(e)]

    async def count(self, charges: Sequence[Charge]) -> None:
        """Count these runs so; one that stands otherwise by now is left out."""
        for charge in charges:
            entry = self._entries.get(charge.run_id)
            if entry is not None and (entry.ending == "") is charge.is_open:
                self._charges[charge.run_id] = charge

    async def tenants(self) -> Sequence[str]:
        """Every tenant that has runs here, or had."""
        own = {entry.listing.tenant_id for entry in self._entries.values() if not entry.listing.parent_id}
        return sorted(own | {charge.tenant_id for charge in self._charges.values()})

    def _is_counted(self, entry: RunEntry) -> bool:
        charge = self._charges.get(entry.run_id)
        return charge is not None and not (charge.is_open and entry.ending)

    def _committed(self, tenant_id: str, limit: Limit, but: str = "") -> Committed:
        spent = reserved = 0
        for charge in self._charges.values():
            if (
                charge.run_id != but
                and charge.tenant_id == tenant_id
                and limit.from_ms <= charge.at_ms < limit.until_ms
            ):
                amount = dict(charge.amounts).get(limit.dimension, 0)
                spent, reserved = (spent, reserved + amount) if charge.is_open else (spent + amount, reserved)
        return Committed(spent, reserved)
