"""A journal in memory: lists of bytes, one per run."""

from collections.abc import Sequence

from remit.core.storage import AppendConflict


class MemoryJournal:
    """Keeps turns until the process ends."""

    def __init__(self) -> None:
        self._runs: dict[str, list[bytes]] = {}

    async def append(self, run_id: str, data: bytes, *, after: int) -> None:
        """Write the turn that follows number `after`, or raise AppendConflict."""
        turns = self._runs.get(run_id)
        if turns is None:
            turns = self._runs[run_id] = []
        if len(turns) != after + 1:
            raise AppendConflict(run_id, after, len(turns) - 1)
        turns.append(data)

    async def read(self, run_id: str, *, after: int = -1) -> Sequence[bytes]:
        """The turns that follow number `after`, oldest first."""
        return self._runs.get(run_id, [])[after + 1 :]

    async def run_ids(self) -> Sequence[str]:
        """Every run that has a turn, in the order they started."""
        return [run_id for run_id, turns in self._runs.items() if turns]
