"""What is kept beside the bytes of a turn, and what can go wrong where turns and texts are kept.

Every backend speaks in these, so they are words of the house.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias, TypedDict

from remit.core.failure import RemitError, RequestRejected
from remit.core.limits.budget import FIELDS
from remit.core.limits.quota import Charge, Limit, Reservation
from remit.core.record import Record

# Where a journal stands: what its backend gave when a turn was read or written, and wants to see before the next one. Only
# the backend knows what it counts; two of them say nothing of how many turns lie between.
Place: TypeAlias = int
# Where every journal stands before its first turn.
START: Place = -1
# Between the put of a text and the turn that refers to it lie microseconds; an hour outlasts a machine that sleeps.
TEXT_GRACE_MS = 3_600_000
# The answer to an entry of the inbox is fetched within seconds.
ANSWER_GRACE_MS = 3_600_000
PARENT_OPEN = "PARENT_OPEN"
STORE_BEHIND_ITS_LOG = "STORE_BEHIND_ITS_LOG"
STORE_LOG_DAMAGED = "STORE_LOG_DAMAGED"
STORE_INDEX_LOST = "STORE_INDEX_LOST"
RUN_NOT_VOUCHED = "RUN_NOT_VOUCHED"
RUN_HELD = "RUN_HELD"
# What goes by: another process lets go, an operator makes room or the folder writable again, a server answers again.
_PASSING = frozenset({"STORE_BUSY", "STORE_FULL", "STORE_READ_ONLY", "STORE_UNREACHABLE"})


class Stretch(list[bytes]):
    """Turns of a run as they were read, oldest first, and where the run stood behind the last of all its turns."""

    __slots__ = ("place",)

    def __init__(self, turns: Iterable[bytes] = (), place: Place = START) -> None:
        super().__init__(turns)
        self.place = place


class WrittenTurn(Record):
    """A turn as a feed gives it: where it stands among the turns of all runs, whose it is, its number, and its bytes."""

    place: Place
    run_id: str
    seq: int
    data: bytes


class Topic(StrEnum):
    """What a bell rings for: a turn was written, something was left for a driver, or a model is saying something."""

    TURNS = "turns"
    POST = "post"
    CHUNKS = "chunks"


class RunListing(Record):
    """The part of a run that an index knows from its first turn on, so that runs can be listed without being folded."""

    started_at_ms: int
    mode: str = ""
    tenant_id: str = ""
    session_id: str = ""
    # The place of the run in its session, from 0; two runs never share one.
    ordinal: int = 0
    parent_id: str = ""
    # What is reserved of the tenant's quotas together with the first turn. No index lists it.
    reserves: Reservation | None = None
    # The key by which similar later runs find this one; empty if none is similar. No index lists it.
    likeness: str = ""
    # The runs that it came from as a child or as a retry, the first of them first.
    lineage: tuple[str, ...] = ()
    # How the agent elsewhere names the run whose calls it judges.
    name: str = ""


class Barrier(Record):
    """Asks that a turn survive a power loss, its head signed, before any component acts on it or hears of it.

    `ending` and `waiting_for` are how the run stands after the turn: ended, waiting for a person, or (both empty)
    going on. `heard` is the entry of the inbox that the turn answers; it is settled together with the turn,
    which is not written where it was settled before.
    `charge` is what the run came to for its tenant, in place of what it had reserved; kept together with the turn.
    `seq` is the number of the turn, for its signer.
    """

    ending: str = ""
    waiting_for: str = ""
    heard: int = 0
    charge: Charge | None = None
    # What the sender of the entry is told beside that it was heard.
    answer: str = ""
    seq: int = 0


class RunEntry(Record):
    """A run as an index lists it. An index is a cache of the journal and lags behind it by nothing but a pause."""

    run_id: str
    listing: RunListing
    turns: int
    ending: str = ""
    waiting_for: str = ""


class RunQuery(TypedDict, total=False):
    """Which runs a catalogue is asked for; what is left out asks for nothing."""

    # Runs of this tenant.
    tenant_id: str | None
    # Runs that this run started; empty: those that no run started.
    parent_id: str | None
    # Runs whose ids begin so.
    begins: str
    open_only: bool
    waiting_only: bool
    # The last run of the page before: only runs that began earlier follow, and none where that run is not there.
    before: str
    # At most so many; 0 is all of them.
    limit: int


class Derived(Record):
    """What a store knows of a run beyond its turns, as these tell it: how it is listed and stands, and whom it heard.

    `turns` is how many there were; a run that has more by now is left as it is.
    """

    run_id: str
    turns: int
    listing: RunListing
    standing: Barrier
    ended_at_ms: int | None = None
    # The entries of the inbox that turns answer, each with what its sender is told.
    heard: tuple[tuple[int, str], ...] = ()


class SignedHead(Record):
    """Who vouches that a run's turn number `seq` had this hash, and (by its number) that none before it is missing.

    `ending` is empty unless the run ended with that turn. `signer` is the did:key of the deployment.
    """

    run_id: str
    seq: int
    head: bytes
    ending: str
    signer: str
    signature: bytes


class Warrant(Record):
    """The lease under which a turn is written, and who vouches for the turn.

    `token` is the fencing token of the lease, 0 where the run was not taken. `head` is kept together with the turn; a
    backend neither makes nor checks it.
    """

    token: int = 0
    head: SignedHead | None = None


class Losses(Record):
    """How the log of heads and the database of a store differ, by the names of runs."""

    # Runs of which a later turn was signed than the database has, and runs of which it has none.
    behind: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    # Whether heads were signed and the log has none of them.
    is_log_lost: bool = False
    # Whether lines of the log cannot be read that no crash cut.
    is_log_damaged: bool = False
    # Runs that were signed for, are kept and are not listed.
    unlisted: tuple[str, ...] = ()


class Snapshot(Record):
    """A state that was kept: of which run, after which turn, the hash of that turn, and the state as bytes.

    It is a cache. `seq` and `head` say where it belongs; the reader compares them with the turn that is stored.
    `signature` is the deployment's over all of it, empty where nothing is signed.
    """

    run_id: str
    seq: int
    head: bytes
    data: bytes
    signature: bytes = b""


class InboxEntry(Record):
    """Something a person told a run through another process. `data` is a signal as core/run/signals.py writes it."""

    number: int
    run_id: str
    data: bytes


class Removed(Record):
    """What retention removed, or would. `texts_spared` were put too lately to tell whether a run needs them.

    `ill_listed` are runs that stay because only the list says that they ended so long ago, and not their turns.
    """

    runs: int = 0
    turns: int = 0
    texts: int = 0
    text_bytes: int = 0
    texts_spared: int = 0
    inbox_entries: int = 0
    ill_listed: tuple[str, ...] = ()


class Redacted(Record):
    """What was redacted; `is_cleared` says that nothing that was freed still holds it."""

    runs: int = 0
    turns: int = 0
    texts: int = 0
    is_cleared: bool = True


class AppendConflict(RemitError):
    """Another runner has already written the turn that was to be appended."""

    def __init__(self, run_id: str) -> None:
        message = f"another turn of run {run_id} was written first; fold it and decide again"
        super().__init__("APPEND_CONFLICT", message, {"run_id": run_id})


class EntrySettled(RemitError):
    """The entry of the inbox that a turn was to answer has been answered already, so the turn is not written."""

    def __init__(self, run_id: str, number: int) -> None:
        message = (
            f"entry {number} of the inbox was left for run {run_id} and has been settled already; ask for its outcome"
        )
        super().__init__("ENTRY_SETTLED", message, {"run_id": run_id, "entry": number})


class SessionConflict(RemitError):
    """Another run took this place of the session first."""

    def __init__(self, session_id: str, ordinal: int) -> None:
        message = f"exchange {ordinal} of session {session_id!r} has begun already; wait for it to end, then send the next one"
        super().__init__("SESSION_BUSY", message, {"session_id": session_id, "ordinal": ordinal})


class RunHeld(RemitError):
    """Another process drives the run."""

    def __init__(self, run_id: str, code: str = RUN_HELD, message: str = "") -> None:
        message = message or f"run {run_id} is being driven by another process; wait for it, or send it a signal"
        super().__init__(code, message, {"run_id": run_id})


class LeaseLost(RunHeld):
    """The lease under which a turn was to be written is no longer held: it was let go, or went to another."""

    def __init__(self, run_id: str) -> None:
        message = (
            f"run {run_id} is no longer driven here: its lease was let go or went to another process, and nothing more is "
            "written under it; look at the run, and resume it where no process drives it"
        )
        super().__init__(run_id, "LEASE_LOST", message)


class QuotaConflict(RemitError):
    """Other runs of the tenant took what this one was to reserve; with what is left now it may begin."""

    def __init__(self, tenant_id: str, limit: Limit, wanted: int, left: int) -> None:
        name = FIELDS[limit.dimension]
        message = (
            f"tenant {tenant_id!r} has {name}={left} left this {limit.period.value} and {wanted} were to be reserved; "
            "submit the request again"
        )
        super().__init__(
            "QUOTA_CONTENDED", message, {"tenant": tenant_id, "dimension": name, "left": left, "wanted": wanted}
        )


class RunBehind(RequestRejected):
    """The journal of a run ends before a turn that was signed or seen, so the run is not gone on with."""

    def __init__(self, run_id: str, last: int, known: int, how: str = "signed") -> None:
        message = (
            f"run {run_id} stands at turn {last}, and turn {known} of it was {how}: turns from {last + 1} on are missing, as "
            "after a backup was put back; what they did is unknown, so the run is not gone on with. Put back the newest "
            f"database, or see what is in doubt: `remit restore {run_id}`"
        )
        super().__init__(STORE_BEHIND_ITS_LOG, message, {"run_id": run_id, "last": last, how: known})


class ParentOpen(RequestRejected):
    """A run was to be deleted whose parent is open."""

    def __init__(self, run_id: str, parent_id: str) -> None:
        message = (
            f"run {run_id} was started by run {parent_id}, which is open and still needs to know what became of it; "
            f"let run {parent_id} end or cancel it first, or delete that one, and all beneath it goes too"
        )
        super().__init__(PARENT_OPEN, message, {"run_id": run_id, "parent_id": parent_id})


class BlobMissing(RemitError):
    """Nothing is kept under this digest."""

    def __init__(self, digest: bytes) -> None:
        super().__init__("BLOB_MISSING", f"no text with digest {digest.hex()} is kept here", {"digest": digest.hex()})


class StoreUnusable(RemitError):
    """The store cannot be read or written: damaged, of another version, read-only, full, or not there.

    Codes: STORE_DAMAGED, STORE_VERSION_UNKNOWN, STORE_READ_ONLY, STORE_FULL, STORE_NOT_FOUND, STORE_BUSY,
    STORE_KEY_UNUSABLE, STORE_KEY_MISSING, STORE_CLOSED, STORE_NOT_TRUSTED, STORE_LINKED, STORE_EXPOSED, STORE_EMPTIED,
    STORE_INDEX_LOST, STORE_KEEPS_ALL; on a cluster STORE_UNREACHABLE, STORE_SERVER_LACKS, STORE_SERVER_MISSING.
    """

    @property
    def may_pass(self) -> bool:
        """Whether the same may be written later by this process: not once a sync has failed, for then nothing is known."""
        return self.code in _PASSING and not self.details.get("is_final")
