"""Blobs, seals and snapshots in memory: bytes under a digest, a handle or the name of a run."""

import secrets
from collections.abc import Callable

from remit.backend.clock import wall_clock_ms
from remit.core.journal.storage import (
    BlobMissing,
    Snapshot,
)
from remit.core.secrets.seal import reference_to

_KEY_BYTES = 32


class MemoryBlobs:
    """Keeps texts until the process ends, and when each was put last."""

    def __init__(self, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._now_ms = now_ms
        self._kept: dict[bytes, bytes] = {}
        self._put_at_ms: dict[bytes, int] = {}

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes; keeping them twice keeps them once."""
        self._kept.setdefault(digest, data)
        self._put_at_ms[digest] = self._now_ms()

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""
        try:
            return self._kept[digest]
        except KeyError:
            raise BlobMissing(digest) from None

    def found(self, digest: bytes) -> bytes | None:
        """The bytes with this digest; None where there are none."""
        return self._kept.get(digest)

    def remove(self, digest: bytes) -> int:
        """Keep a text no longer; gives its size."""
        del self._put_at_ms[digest]
        return len(self._kept.pop(digest))

    def put_before(self, at_ms: int) -> dict[bytes, int]:
        """The digests of the texts that were put before a time and never after it, with their sizes."""
        return {digest: len(self._kept[digest]) for digest, put_ms in self._put_at_ms.items() if put_ms < at_ms}


class MemorySeals:
    """The values behind handles; nothing of them is written, so nothing is encrypted."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._values: dict[str, dict[str, str]] = {}

    def seal(self, scope: str, kind: str, value: str) -> str:
        """Keep a value for a scope and give its handle."""
        handle = reference_to(self._key, kind, value)
        self._values.setdefault(scope, {})[handle] = value
        return handle

    def values(self, scope: str) -> dict[str, str]:
        """The values of a scope by their handles."""
        return self._values.get(scope, {})

    def adopt(self, scope: str, other: str) -> None:
        """Keep for a scope what is kept for another."""
        self._values[scope] = self.values(scope) | self.values(other)

    def forget(self, scope: str) -> None:
        """Keep nothing of a scope any more."""
        self._values.pop(scope, None)


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
