"""The journal and the snapshots of a store as a system has them: signed with its key."""

from collections.abc import Sequence

from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.commands import Command
from remit.core.journal.storage import Barrier, Place, RunListing, Stretch, Warrant
from remit.core.record import replace
from remit.orchestrate.loop.signatures import signed_journal, signed_snapshots
from remit.orchestrate.ports import Journal, Snapshots


class NumberedJournal:
    """A journal whose barriers are given the number of their turn, as a runner gives it; a place is that number here."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

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
        """Write the next turn."""
        numbered = None if barrier is None else replace(barrier, seq=after + 1)
        return await self._journal.append(run_id, data, after, numbered, listing, warrant, orders)

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns of a run."""
        return await self._journal.read(run_id, after=after)


def journal_of(store: EmbeddedStore) -> Journal:
    """Whose turns are signed."""
    return NumberedJournal(signed_journal(store.journal, store.key))


def snapshots_of(store: EmbeddedStore) -> Snapshots:
    """Which are signed."""
    return signed_snapshots(store.snapshots, store.key)
