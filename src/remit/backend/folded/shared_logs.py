"""What spans runs, decided in logs of its own: the places of a session, and what a tenant has reserved.

Rule 1: before its first turn is written, a run has its place and its reservation: they are entries that name it.
Rule 2: a run that has them, has no turn and is not held never begins: a run that needs its place or its room forestalls
        it by writing the first entry of its log, and only then takes what it had.
Rule 3: what a run came to is written behind the turn that ends it. Where that was cut off, the run is one of those that are
        not counted as they stand, and is counted again.
"""

from typing import Protocol

from remit.backend.folded.log import RUN, TENANT, TRIES_MAX, Charged, Forestalled, PlaceClaimed, session_log
from remit.backend.folded.log_copy import LogCopy
from remit.core.journal.codec import encode_record
from remit.core.journal.storage import START, AppendConflict, Place, QuotaConflict, RunListing, SessionConflict
from remit.core.limits.quota import Charge, Reservation
from remit.core.record import Record


class Holders(Protocol):
    """Knows which runs a live process holds."""

    async def is_held(self, run_id: str) -> bool:
        """Whether a run is held."""


class SharedLogs:
    """Sessions and tenants over logs."""

    def __init__(self, log_copy: LogCopy, holders: Holders) -> None:
        self._log_copy = log_copy
        self._holders = holders

    async def claim(self, run_id: str, listing: RunListing) -> None:
        """Have a place and a reservation for a run that is about to begin; raises SessionConflict or QuotaConflict."""
        if listing.session_id:
            await self._claim_place(run_id, listing)
        if listing.reserves is not None:
            await self._reserve(run_id, listing.tenant_id, listing.reserves)

    async def keep(self, charge: Charge, *, is_anew: bool = False) -> None:
        """Count a run so for its tenant. One for which that fails every time is named as not counted, and counted again."""
        for _ in range(TRIES_MAX):
            name = TENANT + charge.tenant_id
            if await self._write_next(name, Charged(charge, is_anew), self._log_copy.place(name)):
                return
            await self._log_copy.refresh()

    async def _claim_place(self, run_id: str, listing: RunListing) -> None:
        session, ordinal = (listing.tenant_id, listing.session_id), listing.ordinal
        name = session_log(*session)
        for _ in range(TRIES_MAX):
            await self._log_copy.refresh()
            # Another run that forestalls the holder may claim the place meanwhile: a claim stands behind what was known here.
            place = self._log_copy.place(name)
            holder = self._log_copy.claims.get(session, {}).get(ordinal, "")
            if holder == run_id:
                return
            if holder and not await self._forestall(holder):
                break
            if await self._write_next(name, PlaceClaimed(ordinal, run_id), place):
                return
        raise SessionConflict(listing.session_id, ordinal)

    async def _reserve(self, run_id: str, tenant_id: str, wanted: Reservation) -> None:
        ledger = self._log_copy.journal.ledger
        charge = Charge(run_id, tenant_id, wanted.at_ms, wanted.amounts, is_open=True)
        for _ in range(TRIES_MAX):
            await self._log_copy.refresh()
            place = self._log_copy.place(TENANT + tenant_id)
            try:
                ledger.check_room(tenant_id, wanted, but=run_id)
            except QuotaConflict:
                if not await self._is_room_made(tenant_id):
                    raise
                continue
            if await self._write_next(TENANT + tenant_id, Charged(charge), place):
                return
        raise AppendConflict(run_id)

    async def _is_room_made(self, tenant_id: str) -> bool:
        """Give back what runs have reserved that never begin; says whether there was any."""
        is_made = False
        for charge in self._log_copy.journal.ledger.open_charges(tenant_id):
            if await self._log_copy.journal.entry(charge.run_id) is None and await self._forestall(charge.run_id):
                await self.keep(Charge(charge.run_id, tenant_id, charge.at_ms, ()))
                is_made = True
        if is_made:
            await self._log_copy.refresh()
        return is_made

    async def _forestall(self, run_id: str) -> bool:
        """Write that a run without a turn never begins, unless it is held; gives whether that stands in its log."""
        log_copy = self._log_copy
        if run_id in log_copy.forestalled:
            return True
        if await log_copy.journal.entry(run_id) is not None or await self._holders.is_held(run_id):
            return False
        try:
            await log_copy.log.append(RUN + run_id, encode_record(Forestalled()), START)
        except AppendConflict:
            await log_copy.refresh()
        else:
            log_copy.forestalled.add(run_id)
        return run_id in log_copy.forestalled

    async def _write_next(self, name: str, record: Record, after: Place) -> bool:
        """Write an entry behind `after`; False where another entry was written there first."""
        try:
            await self._log_copy.log.append(name, encode_record(record), after)
        except AppendConflict:
            return False
        return True
