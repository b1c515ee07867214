"""The inbox of a store that only one process can see."""

from collections.abc import Sequence

from remit.core.storage import InboxEntry


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

    async def settle(self, number: int, code: str, message: str) -> None:
        """Say that an entry was heard or refused."""
        self._outcomes[number] = (code, message)

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        return self._outcomes.get(number)
