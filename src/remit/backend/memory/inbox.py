"""The inbox of a store that only one process can see."""

from collections.abc import Sequence

from remit.core.storage import EntrySettled, InboxEntry


class MemoryInbox:
    """Entries until the process ends."""

    def __init__(self) -> None:
        self._entries: list[InboxEntry] = []
        self._outcomes: dict[int, tuple[str, str]] = {}

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run."""
        self._entries.append(InboxEntry(len(self._entries) + 1, run_id, data))
        return len(self._entries)

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries after this number that nobody has settled."""
        return [entry for entry in self._entries[after:] if entry.number not in self._outcomes]

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard or refused; the first word stays."""
        self._outcomes.setdefault(number, (code, message))

    def hear(self, run_id: str, number: int, answer: str) -> None:
        """Settle an entry together with the turn that answers it; raises EntrySettled where it was."""
        if number in self._outcomes:
            raise EntrySettled(run_id, number)
        self._outcomes[number] = ("", answer)

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        return self._outcomes.get(number)
