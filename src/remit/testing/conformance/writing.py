"""Turns for the checks of every port: written behind whatever a run has."""

from remit.core.storage import Barrier, Listing, Place, Warrant
from remit.orchestrate.ports import Journal


async def add(
    journal: Journal,
    run_id: str,
    data: bytes,
    *,
    barrier: Barrier | None = None,
    listing: Listing | None = None,
    warrant: Warrant | None = None,
) -> Place:
    """Write the next turn of a run; gives where it stands then."""
    place = (await journal.read(run_id)).place
    return await journal.append(run_id, data, place, barrier, listing, warrant)
