from hashlib import sha256

import pytest

from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, Record, digest_of, replace


class Point(Record, tag=True):
    """Two numbers."""

    x: int
    y: int = 0


def test_a_record_never_changes() -> None:
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]


def test_a_new_fact_is_a_new_record() -> None:
    point = Point(1, 2)
    assert replace(point, y=3) == Point(1, 3)
    assert point == Point(1, 2)


def test_a_record_has_no_room_for_more_than_its_fields() -> None:
    assert not hasattr(Point(1), "__dict__")


def test_a_text_in_blobs_is_named_by_its_digest_and_size() -> None:
    data = b"x" * (TEXT_INLINE_BYTES_MAX + 1)
    assert BlobRef(digest_of(data), len(data)) == BlobRef(sha256(data).digest(), 1025)
