"""Which runs this process holds: leases that are taken, renewed while their runs are driven, and let go.

Rule 1: a lease that is being let go is not free yet; a caller that wants its run here waits for that.
Rule 2: a lease is let go even when the caller stops waiting.
Rule 3: a lease that may expire is asked for RENEWALS times within its time, which renews it; on a cluster the heartbeat
        renews it (backend/cluster/server/link.py), and this only checks.
        One that went to another is lost: its run is put down here at once, and no turn is written under its token any more.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from remit.core.failure import RemitError
from remit.core.journal.commands import Command
from remit.core.journal.storage import AppendConflict, Barrier, LeaseLost, Place, RunHeld, RunListing, Stretch, Warrant
from remit.observe.logs import run_fields
from remit.orchestrate.loop.live import Live
from remit.orchestrate.ports import Journal, Leases

# Two may fail before a lease is in danger.
RENEWALS = 3

_log = logging.getLogger(__name__)


class RunLeases:
    """The leases of this process."""

    def __init__(self, leases: Leases, on_lost: Callable[[str], None]) -> None:
        self._leases = leases
        self._on_lost = on_lost
        self._warrants: dict[str, Warrant] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self._renewing: asyncio.Task[None] | None = None

    @property
    def may_expire(self) -> bool:
        """Whether a lease may go to another while its holder lives."""
        return self._leases.lasts_ms > 0

    async def take(self, run_id: str) -> Warrant:
        """Take a run; gives what its turns are written under. Raises RunHeld when another process holds it."""
        if (leaving := self._leaving.get(run_id)) is not None:
            await asyncio.wait([leaving])
        token = await self._leases.take(run_id)
        if token is None:
            here = f"run {run_id} is being driven in this process, by a guard or a worker of it; end it there, or send it a signal"
            raise RunHeld(run_id, message=here if run_id in self._warrants else "")
        warrant = self._warrants[run_id] = Warrant(token)
        if self.may_expire and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(self._renew())
        return warrant

    async def bind(self, live: Live, warrant: Warrant) -> None:
        """Have a run that was loaded written under this warrant; raises LeaseLost where another has taken it since.

        While the lease is held, a later token in the run can only be of the store that it was imported from.
        """
        live.warrant = warrant
        if live.state.token > warrant.token:
            if not await self._leases.renew(live.run_id, warrant.token):
                raise LeaseLost(live.run_id)
            live.foreign_token = live.state.token

    def expect_held(self, live: Live, put_down: Callable[[Live], None]) -> None:
        """Put a run down, and raise LeaseLost, where its lease went to another before there was a driver to be told."""
        if self.may_expire and self._warrants.get(live.run_id) is not live.warrant:
            put_down(live)
            raise LeaseLost(live.run_id)

    async def let_go(self, run_id: str, warrant: Warrant | None) -> None:
        """Let a run go that was taken under this warrant; one that was lost is not held any more."""
        if self.may_expire:
            if (leaving := self.leave(run_id, warrant)) is not None:
                await asyncio.shield(leaving)
        elif warrant is not None and self._warrants.get(run_id) is warrant:
            # Leases that last as long as their process are let go in it, without waiting.
            del self._warrants[run_id]
            await self._release(run_id, warrant.token)

    def leave(self, run_id: str, warrant: Warrant | None) -> "asyncio.Task[None] | None":
        """Let a run go, for callers that cannot wait."""
        if warrant is None or self._warrants.get(run_id) is not warrant:
            return None
        del self._warrants[run_id]
        leaving = self._leaving[run_id] = asyncio.create_task(self._release(run_id, warrant.token))
        leaving.add_done_callback(lambda _: self._leaving.pop(run_id, None))
        return leaving

    async def close(self) -> None:
        """Wait until everything that was let go is free, and renew nothing more."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        if self._leaving:
            await asyncio.wait(list(self._leaving.values()))

    async def _release(self, run_id: str, token: int) -> None:
        try:
            await self._leases.release(run_id, token)
        except RemitError as error:
            # It ends with its time or with this process.
            _log.warning("the lease of a run could not be let go: %s", error, extra=run_fields(run_id))

    async def _renew(self) -> None:
        while self._warrants:
            await asyncio.sleep(self._leases.lasts_ms / RENEWALS / 1000)
            for run_id, warrant in list(self._warrants.items()):
                try:
                    is_ours = await self._leases.renew(run_id, warrant.token)
                except RemitError as error:
                    _log.warning("the lease of a run could not be renewed: %s", error, extra=run_fields(run_id))
                    continue
                if not is_ours and self._warrants.get(run_id) is warrant:
                    del self._warrants[run_id]
                    self._on_lost(run_id)


class FencedJournal:
    """A journal over leases that may expire: a conflict tells a holder whose lease went to another that it is lost."""

    def __init__(self, journal: Journal, leases: Leases) -> None:
        self._journal = journal
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
        """Write the next turn of a run that stands at `after`; raises LeaseLost in place of a conflict with the new holder."""
        try:
            return await self._journal.append(run_id, data, after, barrier, listing, warrant, orders)
        except AppendConflict:
            if warrant is not None and warrant.token and not await self._leases.renew(run_id, warrant.token):
                raise LeaseLost(run_id) from None
            raise

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        return await self._journal.read(run_id, after=after)


def fenced_journal(journal: Journal, leases: Leases) -> Journal:
    """A journal whose stale holders learn that they are stale; the journal itself where leases do not expire."""
    return FencedJournal(journal, leases) if leases.lasts_ms else journal
