"""Turns for the checks of every port: written behind whatever a run has."""

from remit.core.journal.storage import Barrier, Place, RunListing, Warrant
from remit.core.record import replace
from remit.orchestrate.ports import Journal


async def add(
    journal: Journal,
    run_id: str,
    data: bytes,
    barrier: Barrier | None = None,
    listing: RunListing | None = None,
    warrant: Warrant | None = None,
) -> Place:
    """Write the next turn of a run; gives where it stands then."""
    turns = await journal.read(run_id)
    numbered = None if barrier is None else replace(barrier, seq=len(turns))
    return await journal.append(run_id, data, turns.place, numbered, listing, warrant)
