"""The leases of a store over logs: those of its backend, and which of them this process holds."""

from typing import Protocol

from remit.core.journal.storage import LeaseLost, Warrant


class HeldRuns(Protocol):
    """Who drives which run."""

    @property
    def lasts_ms(self) -> int:
        """How long a lease lasts that is not renewed."""

    async def take(self, run_id: str) -> int | None:
        """Take a run."""

    async def renew(self, run_id: str, token: int) -> bool:
        """Hold it for longer."""

    async def release(self, run_id: str, token: int) -> None:
        """Let it go."""

    async def is_held(self, run_id: str) -> bool:
        """Whether it is held."""


class WatchedLeases:
    """Leases, and which of them this process holds.

    One that lasts as long as its process is lost by letting it go and by nothing else, so this process knows by itself under
    which token it may write. Where another may take over, its first turn says so (decision 0049).
    """

    def __init__(self, leases: HeldRuns) -> None:
        self._leases = leases
        self._held: dict[str, int] = {}

    @property
    def lasts_ms(self) -> int:
        """How long a lease lasts that is not renewed."""
        return self._leases.lasts_ms

    async def take(self, run_id: str) -> int | None:
        """Take a run."""
        token = await self._leases.take(run_id)
        if token is not None and not self.lasts_ms:
            self._held[run_id] = token
        return token

    async def renew(self, run_id: str, token: int) -> bool:
        """Hold it for longer."""
        return await self._leases.renew(run_id, token)

    async def release(self, run_id: str, token: int) -> None:
        """Let it go."""
        if self._held.get(run_id) == token:
            del self._held[run_id]
        await self._leases.release(run_id, token)

    async def is_held(self, run_id: str) -> bool:
        """Whether it is held."""
        return await self._leases.is_held(run_id)

    def expect(self, run_id: str, warrant: Warrant | None) -> None:
        """Raise LeaseLost for a turn under a token of another run, or of a lease that was let go."""
        is_named = warrant is not None and warrant.token and not self.lasts_ms
        if is_named and warrant is not None and self._held.get(run_id) != warrant.token:
            raise LeaseLost(run_id)
