"""The least that a backend must be able to do: write one entry behind the last one of a log that it has seen.

Rule 1: one log per run, per session, per tenant and per run with an inbox; one for receipts and one for halts. What must be
        decided once is decided by being the next entry of one of them.
Rule 2: nothing holds two logs together. Whatever was cut off between two entries is seen by the next writer, which undoes
        it or does the rest.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias
from urllib.parse import quote

from remit.core.journal.storage import Barrier, Place, RunListing, SignedHead
from remit.core.limits.quota import Charge
from remit.core.record import Record

RUN, SESSION, TENANT, INBOX = "run:", "session:", "tenant:", "inbox:"
RECEIPTS, HALT_LOG = "receipts", "halts"

# Between the tenant of a session, in which it does not occur, and the session.
BETWEEN = "/"

# How often an entry is tried again behind those of others; each time one of them has written theirs.
TRIES_MAX = 1_000


def session_log(tenant_id: str, session_id: str) -> str:
    """The name of the log of a session; each tenant has sessions of its own."""
    return f"{SESSION}{quote(tenant_id, safe='')}{BETWEEN}{session_id}"


class LogEntry(Record):
    """An entry of a log. Places grow over all logs in the order in which entries were written."""

    place: Place
    name: str
    data: bytes


class Log(Protocol):
    """Keeps entries, for good."""

    async def append(self, name: str, data: bytes, after: Place) -> Place:
        """Write the next entry of a log that stands at `after`, or raise AppendConflict when another was faster."""

    async def news(self, after: Place) -> Sequence[LogEntry]:
        """The entries of all logs after a place, oldest first: all of them, or the first so many, and none where there is none.

        It is asked again behind the last one until it gives none.
        """


class Written(Record, tag=True):
    """An entry of a run: a turn, and what its run knows by it without being folded."""

    data: bytes
    barrier: Barrier | None = None
    listing: RunListing | None = None
    head: SignedHead | None = None


class Forestalled(Record, tag=True):
    """The first and only entry of a run that was to begin and, its process gone, never may."""


class PlaceClaimed(Record, tag=True):
    """A run is to have a place of a session."""

    ordinal: int
    run_id: str


class Charged(Record, tag=True):
    """What a run counts for its tenant from here on; `is_anew` where nothing of how it was counted before is left."""

    charge: Charge
    is_anew: bool = False


class Left(Record, tag=True):
    """Something that a person left for a run."""

    data: bytes


class Taken(Record, tag=True):
    """The holder of a run, under this token, is about to write the turn that answers an entry: no other writer may refuse it."""

    number: int
    token: int


class Settled(Record, tag=True):
    """What the sender of an entry is told. `token` is that of the run's holder, 0 where another writer says it."""

    number: int
    code: str
    message: str
    token: int = 0


OfRun: TypeAlias = Written | Forestalled
OfInbox: TypeAlias = Left | Taken | Settled
