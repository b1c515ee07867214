"""The leases of a store in a folder: each is a lock on a file (disk/locks.py)."""

from itertools import count

from remit.backend.embedded.disk.locks import FileLocks


class FileLeases:
    """The leases that one open store holds: each is a lock, which dies with its process and never before.

    A token need not be written, because only the holder of the lock can have a current token of the run.
    """

    # A lock does not expire under a process that lives.
    lasts_ms = 0

    def __init__(self, locks: FileLocks) -> None:
        self._locks = locks
        self._tokens: dict[str, int] = {}
        self._numbers = count(1)

    async def take(self, run_id: str) -> int | None:
        """Take a run; None when it is held, here or by another process."""
        if not self._locks.take(run_id):
            return None
        token = self._tokens[run_id] = next(self._numbers)
        return token

    async def renew(self, run_id: str, token: int) -> bool:
        """Whether the run is still held under this token."""
        return self.is_current(run_id, token)

    async def release(self, run_id: str, token: int) -> None:
        """Let a run go."""
        if self.is_current(run_id, token):
            del self._tokens[run_id]
            self._locks.release(run_id)

    async def is_held(self, run_id: str) -> bool:
        """Whether a run is held, in whatever process."""
        return self._locks.is_held(run_id)

    def is_current(self, run_id: str, token: int) -> bool:
        """Whether a turn may be written under this token."""
        return self._tokens.get(run_id) == token
