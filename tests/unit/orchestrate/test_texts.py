"""Texts from outside become fit to be written, and long ones go to Blobs."""

import pytest

from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, digest_of, size_bytes
from remit.core.run.request_checks import ID_CHARS_MAX
from remit.orchestrate.facts.texts import (
    NOTE_CHARS_MAX,
    RESULT_SHOWN_BYTES_MAX,
    Kept,
    clean,
    encoded_text,
    name,
    note,
    shortened_result,
    stored,
    stored_bytes,
)

HALF = "\ud800"


@pytest.mark.parametrize("text", ["", "plain", "über", "\x00\x1b[2J", "\U0001f600"])
def test_a_text_that_can_be_written_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert clean(f"a{HALF}ü{HALF}") == "a?ü?"


def test_a_name_of_the_longest_length_is_kept_whole() -> None:
    assert name("n" * ID_CHARS_MAX) == "n" * ID_CHARS_MAX


def test_a_longer_name_is_cut_and_equals_no_name_that_was_not() -> None:
    cut = name("n" * (ID_CHARS_MAX + 1))
    assert len(cut) == ID_CHARS_MAX
    assert cut != name("n" * ID_CHARS_MAX)


def test_a_name_is_cleaned_whether_or_not_it_is_cut() -> None:
    assert name(HALF) == "?"
    assert name(HALF * 1000).startswith("??")


def test_a_note_is_cleaned_and_cut() -> None:
    assert note(HALF * (NOTE_CHARS_MAX + 1)) == "?" * NOTE_CHARS_MAX


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("ü", 2), ("\U0001f600", 4)])
def test_the_size_of_a_text_is_its_length_in_utf_8(text: str, size: int) -> None:
    assert size_bytes(text) == size


def test_the_size_of_a_reference_is_that_of_its_text() -> None:
    assert size_bytes(BlobRef(b"digest", 4711)) == 4711


@pytest.mark.parametrize("text", ["a" * TEXT_INLINE_BYTES_MAX, "ü" * (TEXT_INLINE_BYTES_MAX // 2)])
def test_a_text_of_the_largest_inline_size_stands_for_itself(text: str) -> None:
    kept: Kept = []
    assert stored(text, kept) == text
    assert kept == []


@pytest.mark.parametrize("text", ["a" * (TEXT_INLINE_BYTES_MAX + 1), "ü" * (TEXT_INLINE_BYTES_MAX // 2 + 1)])
def test_a_longer_text_is_kept_under_its_digest(text: str) -> None:
    kept: Kept = []
    data = text.encode()
    assert stored(text, kept) == BlobRef(digest_of(data), len(data))
    assert kept == [(digest_of(data), data)]


@pytest.mark.parametrize("text", ["", "plain", "über", f"a{HALF}ü{HALF}"])
def test_the_bytes_of_a_text_are_those_of_the_clean_text(text: str) -> None:
    assert encoded_text(text) == clean(text).encode()


@pytest.mark.parametrize("size", [0, 1, TEXT_INLINE_BYTES_MAX, TEXT_INLINE_BYTES_MAX + 1])
def test_bytes_are_stored_like_the_text_they_were_made_of(size: int) -> None:
    text, kept, kept_of_bytes = "a" * size, Kept(), Kept()
    data = text.encode()
    assert stored_bytes(data, digest_of(data), kept_of_bytes) == stored(text, kept)
    assert kept_of_bytes == kept


def test_a_result_too_long_to_be_shown_is_shown_by_its_beginning_and_kept_whole() -> None:
    kept: Kept = []
    data = ("a" + "ü" * RESULT_SHOWN_BYTES_MAX).encode()
    shown, whole, size = shortened_result(data, b"\x0f", kept)
    assert whole == BlobRef(b"\x0f", len(data))
    assert isinstance(shown, BlobRef)
    texts = dict(kept)
    assert texts[b"\x0f"] == data
    # The cut falls into the middle of a letter, which is left out.
    text = texts[shown.digest].decode()
    assert text.startswith("aüü")
    assert text.endswith(f"ü\n[shortened: 16384 of {len(data)} bytes; the whole result is kept as 0f]")
    assert size == shown.size_bytes == len(text.encode())
