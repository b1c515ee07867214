"""Blobs in memory: long texts under their digests."""

from collections.abc import Callable

from remit.backend.clock import wall_clock_ms
from remit.core.journal.storage import BlobMissing


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
