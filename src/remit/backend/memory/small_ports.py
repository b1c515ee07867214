"""The small ports of a store that only one process can see: each forgets everything with its process."""

import secrets
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import attrgetter

from remit.backend.clock import wall_clock_ms
from remit.core.journal.signing import SignedDeletion, is_deletion_signed, is_head_signed
from remit.core.journal.storage import (
    AppendConflict,
    BlobMissing,
    EntrySettled,
    InboxEntry,
    Losses,
    SignedHead,
    Snapshot,
    Topic,
)
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.run.halt import HALTS
from remit.core.secrets.seal import reference_to

# Nothing gets lost here; a listener looks by itself only because every listener does.
LOOK_MS = 1_000


class MemoryBell:
    """Rings in one event loop, for every listener of the same store, the ringing process included."""

    look_ms = LOOK_MS

    def __init__(self) -> None:
        self._ears: dict[Topic, list[Callable[[bytes], None]]] = {topic: [] for topic in Topic}

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Call `hear` for every word rung for a topic; gives what ends it."""
        self._ears[topic].append(hear)
        return lambda: self._ears[topic].remove(hear)

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Ring for a topic."""
        for hear in tuple(self._ears[topic]):
            hear(word)

    def is_heard(self, topic: Topic) -> bool:
        """Whether a topic has a listener."""
        return bool(self._ears[topic])


class SilentBell:
    """Never rings: for a backend that cannot tell. A listener looks by itself, as often as people are promised."""

    look_ms = 100

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Nothing is ever heard."""
        return lambda: None

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Ring for no listener."""

    def is_heard(self, topic: Topic) -> bool:
        """There is no listener."""
        return False


class MemoryInbox:
    """Entries until the process ends."""

    def __init__(self, now_ms: Callable[[], int] = wall_clock_ms, bell: MemoryBell | None = None) -> None:
        self._now_ms = now_ms
        self._bell = bell or MemoryBell()
        self._number = 0
        self._entries: list[InboxEntry] = []
        self._outcomes: dict[int, tuple[str, str]] = {}
        self._settled_at_ms: dict[int, int] = {}

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run."""
        self._number += 1
        self._entries.append(InboxEntry(self._number, run_id, data))
        self._bell.ring(Topic.POST)
        return self._number

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries after this number that are not settled."""
        later = self._entries[bisect_right(self._entries, after, key=attrgetter("number")) :]
        return [entry for entry in later if entry.number not in self._outcomes]

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard or refused; the first word stays."""
        self._outcomes.setdefault(number, (code, message))
        self._settled_at_ms.setdefault(number, self._now_ms())

    def hear(self, run_id: str, number: int, answer: str) -> None:
        """Settle an entry together with the turn that answers it; raises EntrySettled where it was."""
        if number in self._outcomes:
            raise EntrySettled(run_id, number)
        self._outcomes[number] = ("", answer)
        self._settled_at_ms[number] = self._now_ms()

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        return self._outcomes.get(number)

    def of_run(self, run_id: str) -> Sequence[InboxEntry]:
        """What was left for a run, settled or not."""
        return [entry for entry in self._entries if entry.run_id == run_id]

    def settled_before(self, at_ms: int) -> Sequence[InboxEntry]:
        """The entries that were settled before a time."""
        return [entry for entry in self._entries if self._settled_at_ms.get(entry.number, at_ms) < at_ms]

    def remove(self, entries: Sequence[InboxEntry]) -> int:
        """Keep these entries and what became of them no longer; gives their number."""
        numbers = {entry.number for entry in entries}
        self._entries = [entry for entry in self._entries if entry.number not in numbers]
        for number in numbers:
            self._outcomes.pop(number, None)
            self._settled_at_ms.pop(number, None)
        return len(numbers)


class MemoryBlobs:
    """Keeps texts until the process ends, and when each was put last."""

    def __init__(self, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._now_ms = now_ms
        self._kept: dict[bytes, bytes] = {}
        self._put_at_ms: dict[bytes, int] = {}

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes; keeping them twice keeps them once."""
        self._kept.setdefault(digest, data)
        self._put_at_ms[digest] = self._now_ms()

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""
        try:
            return self._kept[digest]
        except KeyError:
            raise BlobMissing(digest) from None

    def found(self, digest: bytes) -> bytes | None:
        """The bytes with this digest; None where there are none."""
        return self._kept.get(digest)

    def remove(self, digest: bytes) -> int:
        """Keep a text no longer; gives its size."""
        del self._put_at_ms[digest]
        return len(self._kept.pop(digest))

    def put_before(self, at_ms: int) -> dict[bytes, int]:
        """The digests of the texts that were put before a time and never after it, with their sizes."""
        return {digest: len(self._kept[digest]) for digest, put_ms in self._put_at_ms.items() if put_ms < at_ms}


class MemoryHeadLog:
    """Keeps heads and deletions until the process ends; `runs` are the turns that there are."""

    def __init__(self, runs: Mapping[str, Sequence[bytes]]) -> None:
        self._runs = runs
        self._heads: dict[str, list[SignedHead]] = {}
        self._deletions: dict[str, SignedDeletion] = {}

    def append(self, entry: SignedHead | SignedDeletion) -> None:
        """Keep a signed head."""
        if isinstance(entry, SignedHead):
            self._heads.setdefault(entry.run_id, []).append(entry)
        else:
            self._deletions[entry.run_id] = entry

    async def last(self, run_id: str) -> SignedHead | None:
        """The head of the highest turn of a run that its signer signed."""
        return self._last(run_id)

    async def doubt(self, run_id: str, last: int) -> str:
        """Why the log may have known of a later turn: a head in it that says how far the run got is not as it was signed."""
        heads = self._heads.get(run_id, [])
        suspects = (*heads[-1:], *(() if not heads else (max(heads, key=attrgetter("seq")),)))
        altered = (head for head in suspects if not is_head_signed(head))
        return next((f"the head of turn {head.seq} of it in the log is not as it was signed" for head in altered), "")

    async def losses(self) -> Losses:
        """How the log and the journals differ."""
        stands = {run_id: len(turns) - 1 for run_id, turns in self._runs.items() if turns}
        signed = {run_id: head.seq for run_id in self._heads if (head := self._last(run_id)) is not None}
        # The journal of halts is no run.
        signed.pop(HALTS, None)
        behind = tuple(run_id for run_id, seq in signed.items() if run_id in stands and seq > stands[run_id])
        gone = (run_id for run_id in signed if run_id not in stands)
        return Losses(behind, tuple(run_id for run_id in gone if not self._was_deleted(run_id)))

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads of a run, in the order of their turns."""
        return sorted(self._heads.get(run_id, ()), key=attrgetter("seq"))

    async def deletion(self, run_id: str) -> SignedDeletion | None:
        """What the log says of the deletion of a run."""
        return self._deletions.get(run_id)

    def _last(self, run_id: str) -> SignedHead | None:
        # Of two heads of one turn the later one counts, as in a log on a disk.
        in_order = sorted(self._heads.get(run_id, ()), key=attrgetter("seq"))
        return next((head for head in reversed(in_order) if is_head_signed(head)), None)

    def _was_deleted(self, run_id: str) -> bool:
        deletion = self._deletions.get(run_id)
        return deletion is not None and is_deletion_signed(deletion)


class MemoryHalts:
    """Entries until the process ends."""

    def __init__(self, log: MemoryHeadLog | None = None, bell: MemoryBell | None = None) -> None:
        self._bell = bell or MemoryBell()
        self._log = log
        self._entries: list[bytes] = []
        self._head: SignedHead | None = None

    async def refresh(self) -> None:
        """Everything is at hand."""

    def news(self, number: int) -> Sequence[bytes]:
        """The entries after this number, where there may be any."""
        return self._entries[number:]

    def since(self, number: int) -> Sequence[bytes]:
        """The entries after this number, oldest first."""
        return self._entries[number:]

    def signed(self) -> tuple[int, bytes]:
        """The last entry that came with a head."""
        return (0, b"") if self._head is None else (self._head.seq + 1, self._head.head)

    async def append(self, data: bytes, *, after: int, head: SignedHead | None = None) -> None:
        """Write the entry that follows this number, or raise AppendConflict."""
        if len(self._entries) != after:
            raise AppendConflict(HALTS)
        self._entries.append(data)
        if head is not None:
            self._head = head
            if self._log is not None:
                self._log.append(head)
        self._bell.ring(Topic.POST)


class MemoryLeases:
    """Who drives which run, among those who share this store."""

    # No holder can die without the others.
    lasts_ms = 0

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._numbers = count(1)

    @property
    def is_driving(self) -> bool:
        """Whether any run is held."""
        return bool(self._held)

    async def take(self, run_id: str) -> int | None:
        """Take a run; None when it is held."""
        if run_id in self._held:
            return None
        token = self._held[run_id] = next(self._numbers)
        return token

    async def renew(self, run_id: str, token: int) -> bool:
        """Whether the run is still held under this token."""
        return self.is_current(run_id, token)

    async def release(self, run_id: str, token: int) -> None:
        """Let a run go."""
        if self.is_current(run_id, token):
            del self._held[run_id]

    async def is_held(self, run_id: str) -> bool:
        """Whether a run is held."""
        return run_id in self._held

    def is_current(self, run_id: str, token: int) -> bool:
        """Whether a turn may be written under this token."""
        return self._held.get(run_id) == token


class MemoryReceipts:
    """Who took note of what, and what was delivered where."""

    def __init__(self) -> None:
        self._kept: dict[tuple[ReceiptKind, str, str], Receipt] = {}

    async def keep(self, receipt: Receipt) -> None:
        """Keep a receipt, unless there is one for the same item and place."""
        place = receipt.by if receipt.kind is ReceiptKind.DELIVERED else ""
        self._kept.setdefault((receipt.kind, receipt.item, place), receipt)

    def forget(self, run_id: str) -> None:
        """Keep no receipt of a run any more."""
        self._kept = {place: receipt for place, receipt in self._kept.items() if receipt.run_id != run_id}

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:
        """The receipts of a kind, oldest first."""
        return sorted((one for one in self._kept.values() if one.kind is kind), key=lambda one: (one.at_ms, one.item))


_KEY_BYTES = 32


class MemorySeals:
    """The values behind handles; nothing of them is written, so nothing is encrypted."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._values: dict[str, dict[str, str]] = {}

    def seal(self, scope: str, kind: str, value: str) -> str:
        """Keep a value for a scope and give its handle."""
        handle = reference_to(self._key, kind, value)
        self._values.setdefault(scope, {})[handle] = value
        return handle

    def values(self, scope: str) -> dict[str, str]:
        """The values of a scope by their handles."""
        return self._values.get(scope, {})

    def adopt(self, scope: str, other: str) -> None:
        """Keep for a scope what is kept for another."""
        self._values[scope] = self.values(scope) | self.values(other)

    def forget(self, scope: str) -> None:
        """Keep nothing of a scope any more."""
        self._values.pop(scope, None)


class MemorySnapshots:
    """Keeps states until the process ends."""

    def __init__(self) -> None:
        self._kept: dict[str, Snapshot] = {}

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        """Keep a state instead of any that was kept before."""
        self._kept[run_id] = Snapshot(run_id, seq, head, data, signature)

    def forget(self, run_id: str) -> None:
        """Keep no state of a run any more."""
        self._kept.pop(run_id, None)

    async def latest(self, run_id: str) -> Snapshot | None:
        """What was kept last."""
        return self._kept.get(run_id)
