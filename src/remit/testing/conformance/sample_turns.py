"""Turns for the checks of every port: written behind whatever a run has."""

from remit.core.failure import Ending
from remit.core.journal.arrivals import FeedbackGiven
from remit.core.journal.codec import NO_HASH, encode_turn
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import Barrier, Place, RunListing, Warrant
from remit.core.journal.turn import KERNEL_VERSION, Turn
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


def last_turn(at_ms: int, ending: Ending | None = Ending.SUCCESS) -> bytes:
    """A turn that ends its run, or leaves it open."""
    decisions = () if ending is None else (RunEnded(ending),)
    return encode_turn(Turn(1, at_ms, NO_HASH, KERNEL_VERSION, FeedbackGiven("ann", "so"), decisions))
