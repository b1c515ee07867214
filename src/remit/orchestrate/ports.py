"""Ports: what the runner asks of a backend, which is somewhere to write, somewhere for long texts, and leases.

Rule 1: ports are plain roles; a backend satisfies them by shape and imports nothing of this room.
Rule 2: append is the only way to write a turn; it is atomic and names the turn it comes after.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, Unpack

from remit.core.journal.commands import Command
from remit.core.journal.signing import SignedDeletion, Signer
from remit.core.journal.storage import (
    Barrier,
    Derived,
    InboxEntry,
    Losses,
    Place,
    Redacted,
    Removed,
    RunEntry,
    RunListing,
    RunQuery,
    SignedHead,
    Snapshot,
    Stretch,
    Topic,
    Warrant,
    WrittenTurn,
)
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import Charge, Committed, Limit

if TYPE_CHECKING:
    from remit.observe.checkup import Check


class Turns(Protocol):
    """The turns of runs, for those who only read."""

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first, and where the run stands; none of an unknown run."""


class Journal(Turns, Protocol):
    """Keeps the turns of every run, in order, for good."""

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
        """Write the next turn of a run that stands at `after`, or raise AppendConflict when another was faster.

        Gives where the run stands then. `orders` is what the turn has done: a backend may write that with it, for those
        who do it; or not, and it is found again by folding.
        It returns when the turn survives this process; with a barrier, when it also survives a power loss, and so does
        the head that its warrant holds. A listing comes with the first turn; SessionConflict says that its place is taken.
        EntrySettled says that the entry of the inbox that the turn answers was settled before.
        What it reserves and what a barrier charges is kept in the same write: QuotaConflict says that there is no room.
        LeaseLost says that the token of its warrant is not that of the run's lease any more.
        """


class Feed(Protocol):
    """The turns of all listed runs in the one order in which they were written. Places are never given twice.

    A turn that can be read stands behind every turn that could be read before it; those of a deleted run are left out.
    """

    async def since(self, place: Place, *, limit: int) -> Sequence[WrittenTurn]:
        """The turns behind a place, oldest first, at most so many; START is before the first."""

    async def end(self) -> Place:
        """The place of the newest turn; START where there is none."""


class Bell(Protocol):
    """Wakes the processes on a store that listen. It says that there is news; the store says what. A ring may be lost."""

    @property
    def look_ms(self) -> int:
        """How long a listener waits before it looks by itself: a net where rings come, all there is where none do."""

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Call `hear` in the running event loop for every word rung for a topic; gives what ends it."""

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Ring for a topic without waiting. Turns, letters and halts ring by themselves when they are written."""

    def is_heard(self, topic: Topic) -> bool:
        """Whether a topic has a listener, in another process or here."""


class Blobs(Protocol):
    """Keeps long texts once, by digest."""

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes under their digest; keeping them twice keeps them once."""

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""


class Snapshots(Protocol):
    """Keeps a state of a run, so that it need not be folded from the first turn on. A cache: it may forget anything."""

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        """Keep the state that a run had after turn `seq` with this hash, instead of any that was kept before."""

    async def latest(self, run_id: str) -> Snapshot | None:
        """The state of a run that was kept last; None when none was."""


class Catalogue(Protocol):
    """Knows which runs there are, without folding any."""

    async def entry(self, run_id: str) -> RunEntry | None:
        """One run, or None where it was not started here."""

    async def entries(self, **query: Unpack[RunQuery]) -> Sequence[RunEntry]:
        """The runs that a query asks for, newest first; without one, all of them."""

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> Sequence[RunEntry]:
        """The runs of a session, in order; each tenant has sessions of its own, and None is all of that name."""

    async def named(self, name: str, tenant_id: str) -> Sequence[RunEntry]:
        """The open runs of a tenant that agents elsewhere name so, newest first; none where the name is empty."""

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        """The newest runs of a likeness that succeeded, newest first, at most so many."""

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The signed heads kept with a run, oldest first."""

    async def last_head(self, run_id: str) -> SignedHead | None:
        """The signed head of the highest turn that is kept with a run; None where nothing of it was signed."""


class HeadLog(Protocol):
    """The append-only log of signed heads beside the turns, which keeps every head that was signed.

    The head that a turn with a barrier was written with is in it before the turn is told. Nothing is ever taken out.
    """

    async def last(self, run_id: str) -> SignedHead | None:
        """The head of the highest turn of a run that its signer signed; None where the log has none."""

    async def doubt(self, run_id: str, last: int) -> str:
        """Why the log may have known of a later turn of a run than `last`, in words; empty where it can be relied on."""

    async def losses(self) -> Losses:
        """How the log and the journals differ: what was signed and is not here, or whether the log is lost."""

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads of a run, in the order of their turns, of whatever signer."""

    async def deletion(self, run_id: str) -> SignedDeletion | None:
        """The signed deletion of a run, as the log has it."""


class Index(Protocol):
    """Everything that a store knows of runs without folding them; it can be lost, and is made anew from their turns."""

    async def mend(self) -> int:
        """Make anew what the index itself consists of, and have every journal found under the name that it tells.

        Gives how many journals there are that tell no name, or one that another has.
        """

    async def names(self) -> Sequence[str]:
        """Every journal that has an entry, in the order in which they began, whether it is listed or not."""

    async def strike(self) -> Sequence[str]:
        """Forget every run that is listed, or has a place, without a turn; gives their names."""

    async def renew(self, runs: Sequence[Derived]) -> Sequence[str]:
        """List these runs so, and settle what they heard; gives those that now are.

        The others have gone on meanwhile, or another run has their place in a session.
        """

    async def sum_up(self) -> None:
        """Add up anew whatever is kept as a sum."""


class Ledger(Protocol):
    """Knows what the runs of a tenant count together. An index of their journals; what deleted runs left stays in it."""

    async def committed(self, tenant_id: str, limits: Sequence[Limit]) -> Sequence[Committed]:
        """The sum that counts against each of these limits."""

    async def uncounted(self, tenant_id: str, from_ms: int) -> Sequence[str]:
        """The runs of a tenant since a time, children not among them, that are not counted as they stand."""

    async def count(self, charges: Sequence[Charge]) -> None:
        """Count these runs so, in place of how they were counted; one that stands otherwise by now is left out."""

    async def tenants(self) -> Sequence[str]:
        """Every tenant that has runs here, or had."""


class Inbox(Protocol):
    """Carries what people say to the process that holds a run."""

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run; the number names the entry."""

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries with a larger number than `after` that are not settled, oldest first."""

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard (empty code) or refused, so that its sender learns.

        `token` is that of the lease of its run, where the holder says so: a backend that cannot settle an entry together
        with its turn takes no other word while a turn is being written that answers it.
        """

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry; None while it waits."""


class PastHalts(Protocol):
    """The journal of halts, for those who only look back."""

    def since(self, number: int) -> Sequence[bytes]:
        """The entries after this number, oldest first, whatever that costs."""


class HaltLog(PastHalts, Protocol):
    """The journal of halts, which every process on a store reads before it sends a command."""

    async def refresh(self) -> None:
        """Read the entries that were written by now; asked before anything is halted, lifted, begun or resumed.

        A backend that cannot be read without waiting sees to it itself with every turn that it writes.
        """

    def news(self, number: int) -> Sequence[bytes]:
        """The entries after this number, for those who ask before every command; it costs next to nothing."""

    def signed(self) -> tuple[int, bytes]:
        """The number and the hash of the highest entry that is known to have been signed, here or not; 0 for none."""

    async def append(self, data: bytes, *, after: int, head: SignedHead | None = None) -> None:
        """Write the entry that follows this number, and the head that vouches for it, to outlive the power.

        Raises AppendConflict for one too late.
        """


class Receipts(Protocol):
    """Remembers what was done about the items of queues; a store that forgets them only shows items again."""

    async def keep(self, receipt: Receipt) -> None:
        """Keep a receipt; the first of a kind for an item and a place stays."""

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:
        """The receipts of a kind, oldest first."""


class Seals(Protocol):
    """Keeps values by their handles, outside the journal."""

    def seal(self, scope: str, kind: str, value: str) -> str:
        """Keep a value for a scope and give its handle."""

    def values(self, scope: str) -> dict[str, str]:
        """The values of a scope by their handles."""

    def adopt(self, scope: str, other: str) -> None:
        """Keep for a scope what is kept for another."""

    def forget(self, scope: str) -> None:
        """Keep nothing of a scope any more."""


class Leases(Protocol):
    """Who drives which run. A lease ends when it is let go, with its process, or when it is not renewed in time.

    Its token fences: an append under one that ended raises LeaseLost, or AppendConflict behind the next holder's first turn.
    """

    @property
    def lasts_ms(self) -> int:
        """How long a lease lasts that is not renewed; 0 where it lasts as long as its process."""

    async def take(self, run_id: str) -> int | None:
        """Take a run; gives a token that no lease of the run (in this process) had, from 1 on. None where it is held."""

    async def renew(self, run_id: str, token: int) -> bool:
        """Hold a run for longer. False: the lease is not held under this token any more."""

    async def release(self, run_id: str, token: int) -> None:
        """Let a run go; where it is not held under this token, nothing.

        A lease that lasts as long as its process is let go without waiting.
        """

    async def is_held(self, run_id: str) -> bool:
        """Whether a run is held, in whatever process."""


class Retention(Protocol):
    """Removes runs, and the texts that only they referred to; every other run verifies as before.

    What a run counts for its tenant stays counted. The log keeps its heads and, where the store has a key, a signed line that
    it was deleted, written before the first turn of it goes.
    """

    async def delete(self, run_id: str) -> Removed:
        """Remove a run however it stands, the runs beneath it, and the texts that only they referred to.

        Nothing where it was not started. Refused, whole: with PARENT_OPEN for a child of an open run, with STORE_BUSY while
        one of the family is driven.
        """

    async def gc(self, *, ended_before_ms: int, dry_run: bool = False) -> Removed:
        """Remove the runs that ended before a time, texts that no turn refers to, and inbox entries long settled.

        Runs that are held, children of open runs and the newest run of a session, with all that came from it, stay. So does
        what is listed as ended and is not ended by its turns: it is named. A dry run removes nothing and says what would be.
        """


class Redactions(Protocol):
    """Takes out of runs what should never have been written."""

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        """Take a text in each of its forms, or every secret of a kind, out of a run and those beneath it.

        A text that holds it is removed whole; a turn is written anew without it, signed, and keeps the hash that it had.
        Nothing where it was not started; refused with STORE_BUSY while one is driven, with STORE_KEY_MISSING without a key.
        """


class Checkup(Protocol):
    """Looks whether a store is well, and changes nothing."""

    async def look(self) -> "Sequence[Check]":
        """The findings, each under a name of its own, the store itself first; a problem has a code and a way out."""


class SigningKey(Protocol):
    """The key that a deployment signs with."""

    @property
    def is_made(self) -> bool:
        """Whether there is one: a process that only reads makes none."""

    @property
    def signer(self) -> Signer:
        """The signer of this key, which is made on first use."""


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. It may jump; the runner never lets a run's time go back."""


class ReadableStore(Protocol):
    """The part of a store that shows runs which were written down."""

    @property
    def journal(self) -> Turns:
        """The turns of every run."""

    @property
    def blobs(self) -> Blobs:
        """Long texts, each under its digest."""

    @property
    def catalogue(self) -> Catalogue:
        """The list of runs: how each was started and how it stands."""

    @property
    def log(self) -> HeadLog:
        """The log of signed heads, which tells whether turns are missing."""

    @property
    def halts(self) -> PastHalts:
        """The journal of halts, to be read."""

    @property
    def receipts(self) -> Receipts:
        """The receipts by which people took note of endings and deliveries."""


class Store(Protocol):
    """Keeps runs and all that belongs to them; processes that share it find each other by it."""

    @property
    def journal(self) -> Journal:
        """The turns of every run, written and read."""

    @property
    def feed(self) -> Feed:
        """The turns of all runs in one row, in the order in which they were written."""

    @property
    def bell(self) -> Bell:
        """The bell by which processes wake each other."""

    @property
    def blobs(self) -> Blobs:
        """Long texts, each under its digest."""

    @property
    def snapshots(self) -> Snapshots:
        """The latest state of each run, so that it need not be folded from the first turn on."""

    @property
    def catalogue(self) -> Catalogue:
        """The list of runs: how each was started and how it stands."""

    @property
    def log(self) -> HeadLog:
        """The log of signed heads, which tells whether turns are missing."""

    @property
    def index(self) -> Index:
        """Tables that are derived from turns, and can be made anew from them."""

    @property
    def ledger(self) -> Ledger:
        """The sums that runs have reserved and spent of the quotas of their tenants."""

    @property
    def inbox(self) -> Inbox:
        """Signals and answers that people left for runs, until their drivers take them."""

    @property
    def leases(self) -> Leases:
        """The leases under which processes drive runs."""

    @property
    def halts(self) -> HaltLog:
        """The journal of halts: which commands may not be dispatched now."""

    @property
    def seals(self) -> Seals:
        """Values of secrets, by the handles that stand for them."""

    @property
    def receipts(self) -> Receipts:
        """The receipts by which people took note of endings and deliveries."""

    @property
    def retention(self) -> Retention:
        """The removal of runs and of the texts that only they refer to."""

    @property
    def redactions(self) -> Redactions:
        """The redaction of runs: words or secrets taken out of their turns and texts."""

    @property
    def checkup(self) -> Checkup:
        """The check-up of the store, as `remit doctor` shows it."""

    @property
    def key(self) -> SigningKey | None:
        """The key that signs turns and snapshots; None where nothing outlives the process, so that nothing is signed."""

    async def close(self) -> None:
        """Close the store; all that was promised to be kept is written by then."""
