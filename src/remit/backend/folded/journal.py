"""The journal over logs: a turn is one entry of the log of its run, with all that its run knows by it."""

from collections.abc import Sequence

from remit.backend.folded.inbox import FoldedInbox
from remit.backend.folded.log import RUN, Log, Written
from remit.backend.folded.replica import Replica
from remit.backend.folded.spans import Spans
from remit.core.journal.codec import encode_record
from remit.core.journal.commands import Command
from remit.core.journal.storage import START, AppendConflict, Barrier, Listing, Place, SessionConflict, Stretch, Warrant


class FoldedJournal:
    """Turns over logs."""

    def __init__(self, log: Log, replica: Replica, spans: Spans, inbox: FoldedInbox) -> None:
        self._log = log
        self._replica = replica
        self._spans = spans
        self._inbox = inbox

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: Listing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        """Write the next turn of a run that stands at `after`, or raise AppendConflict.

        What must be decided before is written before, what follows from it after it.
        """
        if listing is not None:
            await self._expect_new(run_id, after, listing)
            await self._spans.claim(run_id, listing)
        if barrier is not None and barrier.heard:
            await self._inbox.take(run_id, barrier.heard, 0 if warrant is None else warrant.token)
        head = None if warrant is None else warrant.head
        try:
            place = await self._log.append(RUN + run_id, encode_record(Written(data, barrier, listing, head)), after)
        except AppendConflict:
            await self._replica.refresh()
            raise self._conflict(run_id, listing) from None
        if barrier is not None and barrier.charge is not None:
            await self._spans.keep(barrier.charge)
        # Whatever was written before is known before this turn is acted on: halts among it.
        await self._replica.refresh()
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        await self._replica.refresh()
        turns = await self._replica.journal.read(run_id, after=after)
        return Stretch(turns, self._replica.place(RUN + run_id) if run_id not in self._replica.forestalled else START)

    async def _expect_new(self, run_id: str, after: Place, listing: Listing) -> None:
        """Raise for a run that has begun, or never may: it neither takes a place nor reserves anything again."""
        await self._replica.refresh()
        has_begun = after != START or await self._replica.journal.entry(run_id) is not None
        if has_begun or run_id in self._replica.forestalled:
            raise self._conflict(run_id, listing)

    def _conflict(self, run_id: str, listing: Listing | None) -> AppendConflict | SessionConflict:
        """Why a turn cannot be written: another was faster, or took the place of a run that was to begin."""
        if run_id in self._replica.forestalled and listing is not None and listing.session_id:
            return SessionConflict(listing.session_id, listing.ordinal)
        return AppendConflict(run_id)
