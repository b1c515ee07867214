"""The inbox of a store in memory: what people leave for runs."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

from remit.backend.clock import wall_clock_ms
from remit.backend.memory.bell import MemoryBell
from remit.core.journal.storage import EntrySettled, InboxEntry, Topic


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
