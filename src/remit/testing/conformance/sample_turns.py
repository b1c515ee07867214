"""Turns for the checks of every port: written behind whatever a run has."""

from remit.core.failure import Ending
from remit.core.journal.arrivals import FeedbackGiven, RunStarted
from remit.core.journal.codec import NO_HASH, encode_turn
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import Barrier, Place, RunListing, Warrant
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.limits.boundary import Boundary
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.manifest import Manifest, Origin, SessionLink, make_manifest
from remit.core.run.messages import user_message
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.ports import Journal

# Ids of runs that begin in the same moment, or beneath the same one, differ in their last letters only.
RUN, OTHER = "1m7ra8j6193e9zqc-12-1-3-7-1", "1m7ra8j6193e9zqc-12-1-3-7-2"


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
    return encode_turn(
        Turn(
            seq=1,
            at_ms=at_ms,
            previous=NO_HASH,
            kernel=KERNEL_VERSION,
            arrival=FeedbackGiven("ann", "so"),
            decisions=decisions,
        )
    )


def a_manifest(run_id: str, request: SystemRequest, session: SessionLink | None = None) -> Manifest:
    """What a chat is started with."""
    model = ModelInfo("model", 8192, Price(0, 0))
    return make_manifest(
        run_id=run_id, request=request, boundary=Boundary(), graph=chat_graph(), models=(model,), session=session
    )


def first_turn(run_id: str, listing: RunListing) -> bytes:
    """The turn that begins a run which belongs where this listing says."""
    request = SystemRequest((user_message("please"),), tenant_id=listing.tenant_id, session_id=listing.session_id)
    session = SessionLink(listing.ordinal) if listing.session_id else None
    manifest = a_manifest(run_id, request, session)
    parent = Origin(listing.parent_id, "0.0") if listing.parent_id else None
    manifest = replace(manifest, parent=parent, lineage=listing.lineage)
    return encode_turn(
        Turn(
            seq=0,
            at_ms=listing.started_at_ms,
            previous=NO_HASH,
            kernel=KERNEL_VERSION,
            arrival=RunStarted(manifest, 1),
            decisions=(),
        )
    )
