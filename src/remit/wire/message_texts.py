"""Texts of messages: moments as RFC 3339 has them, and long texts cut to the room that a message has."""

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import msgspec

from remit.core.record import digest_of

# An RFC 3339 text; empty where there is no moment.
WireMoment: TypeAlias = str

ZERO_MOMENT = "0001-01-01T00:00:00Z"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS_PER_S = 1_000

# What one text of a message may take: every byte of it may become six in JSON, and the message has a megabyte.
TEXT_BYTES_MAX = 128 * 1024


def fitting(text: str) -> str:
    """A text that fits into a message: the whole, or its beginning with the digest under which the whole is kept."""
    data = text.encode("utf-8", "replace")
    if len(data) <= TEXT_BYTES_MAX:
        return text
    head = data[:TEXT_BYTES_MAX].decode("utf-8", "ignore")
    return f"{head}\n[{len(data)} bytes in all, sha256:{digest_of(data).hex()}]"


def moment(at_ms: int) -> WireMoment:
    """The moment so many milliseconds after 1970, as RFC 3339 without trailing zeros; empty for 0, which is none."""
    if not at_ms:
        return ""
    at = _EPOCH + timedelta(milliseconds=at_ms)
    fraction = f".{at_ms % _MS_PER_S:03d}".rstrip("0").rstrip(".")
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def moment_ms(text: WireMoment) -> int:
    """Milliseconds after 1970 of an RFC 3339 text; 0 of an empty one or the zero moment. ValueError where it is none."""
    if text in ("", ZERO_MOMENT):
        return 0
    at: datetime = msgspec.convert(text, datetime)
    if at.tzinfo is None:
        raise ValueError(f"{text[:80]!r} says no time zone")
    return int((at - _EPOCH) / timedelta(milliseconds=1))
