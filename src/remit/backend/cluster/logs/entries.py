"""What stands in the logs of a cluster. An entry is heard by every process; what is long goes with it as bytes, or as a text.

Rule 1: everything that an index needs stands in the entry, so that no turn is read to list runs, count quotas or remove texts.
"""

from typing import TypeAlias

from remit.core.journal.signing import SignedDeletion
from remit.core.journal.storage import Barrier, Place, RunListing, SignedHead
from remit.core.limits.quota import Charge
from remit.core.record import Record

# The log of what was removed, one for each run.
GONE = "gone:"


class Turned(Record, tag=True):
    """A turn, and what its run knows by it without being folded.

    `texts` are the long texts that it refers to and no turn before it did; `has_more` says that there were too many to name.
    `kept_as` is the digest of the text that the bytes of the turn are kept as where they are too long for a message.
    """

    at_ms: int
    barrier: Barrier | None = None
    listing: RunListing | None = None
    head: SignedHead | None = None
    texts: tuple[bytes, ...] = ()
    has_more: bool = False
    kept_as: bytes = b""


class Rewritten(Record, tag=True):
    """What is left of a turn; it stands for the entry at a place, which is removed."""

    number: int
    place: Place
    turned: Turned


class Mark(Record, tag=True):
    """A process takes a run, and its token is the place of this; without a name, the run is let go."""

    worker: str = ""


class Gone(Record, tag=True):
    """A run was removed: what was signed of it, and what it counts from then on. Its heads go with it as bytes."""

    run_id: str
    last: SignedHead | None = None
    deletion: SignedDeletion | None = None
    charge: Charge | None = None


class Left(Record, tag=True):
    """Something that a person left for a run: the bytes are in a blob, or beside the entry."""

    at_ms: int
    kept_as: bytes = b""


class Answered(Record, tag=True):
    """What the sender of an entry is told."""

    number: int
    code: str
    message: str
    at_ms: int


class Cleared(Record, tag=True):
    """Entries that are kept no longer."""

    numbers: tuple[int, ...]


OfRun: TypeAlias = Turned | Rewritten | Mark
OfInbox: TypeAlias = Left | Answered | Cleared
