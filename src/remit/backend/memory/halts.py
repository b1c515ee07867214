"""The journal of halts in memory."""

from collections.abc import Sequence

from remit.backend.memory.bell import MemoryBell
from remit.backend.memory.head_log import MemoryHeadLog
from remit.core.journal.storage import AppendConflict, SignedHead, Topic
from remit.core.run.halt import HALTS


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
