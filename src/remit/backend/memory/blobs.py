"""Blobs in memory: bytes by their digest."""

from remit.core.storage import BlobMissing


class MemoryBlobs:
    """Keeps texts until the process ends."""

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes; keeping them twice keeps them once."""
        self._kept.setdefault(digest, data)

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""
        try:
            return self._kept[digest]
        except KeyError:
            raise BlobMissing(digest) from None
