"""Blobs: long texts, once each, by digest.

Rule 1: a put returns when its text is queued in front of whatever is appended after it (writer.py).
"""

from remit.backend.embedded.disk.database import Reader
from remit.backend.embedded.disk.writer import Writer
from remit.core.journal.storage import BlobMissing

_GET = "SELECT data FROM blobs WHERE digest = ?"


class SQLiteBlobs:
    """Texts in the database of a store."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes under their digest; keeping them twice keeps them once."""
        await self._writer.keep(digest, data)

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""
        queued = self._writer.texts.get(digest)
        if queued is not None:
            return queued
        found = self._reader.rows(_GET, (digest,))
        if not found:
            raise BlobMissing(digest)
        data: bytes = found[0][0]
        return data
