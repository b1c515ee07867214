"""What every Blobs must do.

A check is a coroutine function. It opens empty blobs with the function it is given, uses them, and raises
AssertionError with a sentence when they do not do what the runner relies on. Run each of BLOBS_CHECKS against your
blobs, with any test runner.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import BlobMissing
from remit.core.record import digest_of
from remit.orchestrate.ports import Blobs
from remit.testing.conformance.in_words import in_words

# Opens blobs that are empty, and closes them afterwards.
OpenBlobs = Callable[[], AbstractAsyncContextManager[Blobs]]
BlobsCheck = Callable[[OpenBlobs], Coroutine[Any, Any, None]]

RIVALS = 20
# A book, a log file, a picture: larger than a message or a row of most stores likes to be.
LARGE_BYTES = 8 << 20
EVERY_BYTE = bytes(range(256))


async def a_missing_blob_is_said_to_be_missing(open_blobs: OpenBlobs) -> None:
    """Nothing is made up for a digest that was never kept."""
    async with open_blobs() as blobs:
        await _expect_missing(blobs, digest_of(b"never kept"))


async def bytes_come_back_exactly(open_blobs: OpenBlobs) -> None:
    """A blob is bytes; nothing is decoded, trimmed or terminated by a zero."""
    async with open_blobs() as blobs:
        for data in (EVERY_BYTE, b"", b"\x00", b"\r\n", b"\xff\xfe", "ü\u2028\U0001f600".encode()):
            await blobs.put(digest_of(data), data)
            assert await blobs.get(digest_of(data)) == data, f"{data[:20]!r} changed on its way through the blobs"


async def a_large_blob_comes_back(open_blobs: OpenBlobs) -> None:
    """A blob may be large; that is what it is for."""
    async with open_blobs() as blobs:
        data = EVERY_BYTE * (LARGE_BYTES // len(EVERY_BYTE))
        await blobs.put(digest_of(data), data)
        assert await blobs.get(digest_of(data)) == data, f"a blob of {len(data)} bytes did not come back whole"


async def keeping_twice_keeps_once(open_blobs: OpenBlobs) -> None:
    """A text that arrives in many runs is kept once; putting it again is no error and changes nothing."""
    async with open_blobs() as blobs:
        digest = digest_of(b"again")
        for _ in range(3):
            await blobs.put(digest, b"again")
        assert await blobs.get(digest) == b"again", "a blob that was put again came back different"


async def blobs_do_not_mix(open_blobs: OpenBlobs) -> None:
    """Every digest gives its own bytes, digests with zeros and high bytes included."""
    async with open_blobs() as blobs:
        texts = [str(number).encode() for number in range(500)]
        for data in texts:
            await blobs.put(digest_of(data), data)
        for data in texts:
            assert await blobs.get(digest_of(data)) == data, f"the digest of {data!r} gives other bytes"
        await _expect_missing(blobs, digest_of(b"500"))


async def many_may_put_at_once(open_blobs: OpenBlobs) -> None:
    """Runs do not wait for each other: the same text and different ones may be put at the same time."""
    async with open_blobs() as blobs:
        texts = [str(number % 5).encode() * 1000 for number in range(RIVALS)]
        await asyncio.gather(*(blobs.put(digest_of(data), data) for data in texts))
        for data in texts:
            assert await blobs.get(digest_of(data)) == data, "a blob that was put at the same time as others is lost"


async def what_is_kept_stays(open_blobs: OpenBlobs) -> None:
    """Through readings, while it is put again, and when a caller gives up putting something."""
    async with open_blobs() as blobs:
        kept, other = b"kept", EVERY_BYTE * 1000
        await blobs.put(digest_of(kept), kept)
        for _ in range(3):
            again = asyncio.ensure_future(blobs.put(digest_of(kept), kept))
            given_up = asyncio.ensure_future(blobs.put(digest_of(other), other))
            await asyncio.sleep(0)
            given_up.cancel()
            assert await blobs.get(digest_of(kept)) == kept, "a blob that was kept is gone while others are put"
            await asyncio.wait([again, given_up])
            assert await blobs.get(digest_of(kept)) == kept, "a blob that was kept is gone, or another one by now"


BLOBS_CHECKS: Sequence[BlobsCheck] = in_words(
    a_missing_blob_is_said_to_be_missing,
    bytes_come_back_exactly,
    a_large_blob_comes_back,
    keeping_twice_keeps_once,
    blobs_do_not_mix,
    many_may_put_at_once,
    what_is_kept_stays,
)


async def _expect_missing(blobs: Blobs, digest: bytes) -> None:
    try:
        data = await blobs.get(digest)
    except BlobMissing:
        return
    raise AssertionError(f"a digest that was never kept gives {len(data)} bytes instead of BlobMissing")
