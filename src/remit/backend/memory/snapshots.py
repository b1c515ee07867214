"""The snapshots of a store in memory: the newest state of each run."""

from remit.core.journal.storage import Snapshot


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
