"""The journal over logs: a turn is one entry of the log of its run."""

from collections.abc import Sequence

from remit.backend.folded.inbox import FoldedInbox
from remit.backend.folded.leases import WatchedLeases
from remit.backend.folded.log import RUN, Log, Written
from remit.backend.folded.log_copy import LogCopy
from remit.backend.folded.shared_logs import SharedLogs
from remit.core.journal.codec import encode_record
from remit.core.journal.commands import Command
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    Place,
    RunListing,
    SessionConflict,
    Stretch,
    Warrant,
)


class FoldedJournal:
    """Turns over logs: a turn is one entry of the log of its run, with all that its run knows by it."""

    def __init__(
        self, log: Log, log_copy: LogCopy, shared: SharedLogs, inbox: FoldedInbox, leases: WatchedLeases
    ) -> None:
        self._log = log
        self._log_copy = log_copy
        self._shared = shared
        self._inbox = inbox
        self._leases = leases

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        """Write the next turn of a run that stands at `after`, or raise AppendConflict.

        What must be decided before is written before, what follows from it after it.
        """
        self._leases.expect(run_id, warrant)
        if listing is not None:
            await self._expect_new(run_id, after, listing)
            await self._shared.claim(run_id, listing)
        if barrier is not None and barrier.heard:
            await self._inbox.take(run_id, barrier.heard, 0 if warrant is None else warrant.token)
        head = None if warrant is None else warrant.head
        try:
            place = await self._log.append(RUN + run_id, encode_record(Written(data, barrier, listing, head)), after)
        except AppendConflict:
            await self._log_copy.refresh()
            raise self._conflict(run_id, listing) from None
        if barrier is not None and barrier.charge is not None:
            await self._shared.keep(barrier.charge)
        # Whatever was written before is known before this turn is acted on: halts among it.
        await self._log_copy.refresh()
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        await self._log_copy.refresh()
        turns = await self._log_copy.journal.read(run_id, after=after)
        return Stretch(turns, self._log_copy.place(RUN + run_id) if run_id not in self._log_copy.forestalled else START)

    async def _expect_new(self, run_id: str, after: Place, listing: RunListing) -> None:
        """Raise for a run that has begun, or never may: it neither takes a place nor reserves anything again."""
        await self._log_copy.refresh()
        has_begun = after != START or await self._log_copy.journal.entry(run_id) is not None
        if has_begun or run_id in self._log_copy.forestalled:
            raise self._conflict(run_id, listing)

    def _conflict(self, run_id: str, listing: RunListing | None) -> AppendConflict | SessionConflict:
        """Why a turn cannot be written: another was faster, or took the place of a run that was to begin."""
        if run_id in self._log_copy.forestalled and listing is not None and listing.session_id:
            return SessionConflict(listing.session_id, listing.ordinal)
        return AppendConflict(run_id)
