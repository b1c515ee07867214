"""The leases of a store in memory: which run is driven by which of those who share the store."""

from itertools import count


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
