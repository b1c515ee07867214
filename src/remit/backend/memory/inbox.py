"""The inbox of a store in memory, and what else processes and people leave each other: bells, leases, receipts."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import count
from operator import attrgetter

from remit.backend.clock import wall_clock_ms
from remit.core.journal.storage import (
    EntrySettled,
    InboxEntry,
    Topic,
)
from remit.core.limits.queue import Receipt, ReceiptKind

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
