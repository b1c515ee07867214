"""The journal over logs, and the inbox whose entries its turns answer.

Rule: an entry is answered by a turn of its run, or settled in the log of the inbox; never both. Before the turn is written,
the log says under which lease, and from then on only a holder of the run may settle the entry otherwise. An entry whose
turn was announced and never came is pending, and answered by the next holder.
"""

from collections.abc import Sequence
from typing import Protocol

from remit.backend.folded.log import INBOX, RUN, TRIES_MAX, Left, Log, OfInbox, Settled, Taken, Written
from remit.backend.folded.log_copy import LogCopy
from remit.backend.folded.shared_logs import SharedLogs
from remit.core.journal.codec import encode_record
from remit.core.journal.commands import Command
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    EntrySettled,
    InboxEntry,
    LeaseLost,
    Place,
    RunListing,
    SessionConflict,
    Stretch,
    Warrant,
)


class HeldRuns(Protocol):
    """Who drives which run."""

    @property
    def lasts_ms(self) -> int:
        """How long a lease lasts that is not renewed."""

    async def take(self, run_id: str) -> int | None:
        """Take a run."""

    async def renew(self, run_id: str, token: int) -> bool:
        """Hold it for longer."""

    async def release(self, run_id: str, token: int) -> None:
        """Let it go."""

    async def is_held(self, run_id: str) -> bool:
        """Whether it is held."""


class WatchedLeases:
    """Leases, and which of them this process holds.

    One that lasts as long as its process is lost by letting it go and by nothing else, so this process knows by itself under
    which token it may write. Where another may take over, its first turn says so (decision 0049).
    """

    def __init__(self, leases: HeldRuns) -> None:
        self._leases = leases
        self._held: dict[str, int] = {}

    @property
    def lasts_ms(self) -> int:
        """How long a lease lasts that is not renewed."""
        return self._leases.lasts_ms

    async def take(self, run_id: str) -> int | None:
        """Take a run."""
        token = await self._leases.take(run_id)
        if token is not None and not self.lasts_ms:
            self._held[run_id] = token
        return token

    async def renew(self, run_id: str, token: int) -> bool:
        """Hold it for longer."""
        return await self._leases.renew(run_id, token)

    async def release(self, run_id: str, token: int) -> None:
        """Let it go."""
        if self._held.get(run_id) == token:
            del self._held[run_id]
        await self._leases.release(run_id, token)

    async def is_held(self, run_id: str) -> bool:
        """Whether it is held."""
        return await self._leases.is_held(run_id)

    def expect(self, run_id: str, warrant: Warrant | None) -> None:
        """Raise LeaseLost for a turn under a token of another run, or of a lease that was let go."""
        is_named = warrant is not None and warrant.token and not self.lasts_ms
        if is_named and warrant is not None and self._held.get(run_id) != warrant.token:
            raise LeaseLost(run_id)


class FoldedInbox:
    """What people left for runs, over logs."""

    def __init__(self, log_copy: LogCopy) -> None:
        self._log_copy = log_copy

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run; its number is where it stands."""
        return await self._write(run_id, Left(data))

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries after this number that are not settled."""
        await self._log_copy.refresh()
        return self._log_copy.pending(after)

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard or refused; where a turn is about to answer it, only a holder of its run can."""
        await self._log_copy.refresh()
        letter = self._log_copy.letters.get(number)
        if letter is not None and letter.outcome is None and letter.token <= token:
            await self._write(letter.run_id, Settled(number, code, message, token))
            await self._log_copy.refresh()

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        await self._log_copy.refresh()
        letter = self._log_copy.letters.get(number)
        return None if letter is None else letter.outcome

    async def take(self, run_id: str, number: int, token: int) -> None:
        """Announce that a turn answers an entry; raises EntrySettled where it is settled already."""
        for _ in range(TRIES_MAX):
            await self._log_copy.refresh()
            letter = self._log_copy.letters.get(number)
            if letter is None or letter.outcome is not None:
                raise EntrySettled(run_id, number)
            if token and letter.token == token:
                return
            try:
                place = self._log_copy.place(INBOX + run_id)
                await self._log_copy.log.append(INBOX + run_id, encode_record(Taken(number, token)), place)
            except AppendConflict:
                continue
            return
        raise AppendConflict(run_id)

    async def _write(self, run_id: str, said: OfInbox) -> Place:
        for _ in range(TRIES_MAX):
            try:
                name = INBOX + run_id
                return await self._log_copy.log.append(name, encode_record(said), self._log_copy.place(name))
            except AppendConflict:
                await self._log_copy.refresh()
        raise AppendConflict(run_id)


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
