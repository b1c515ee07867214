"""Cutting a text into pieces."""

import pytest

from remit.context.chunks import CHUNK_CHARS_MAX, OVERLAP_CHARS, check_chunking, chunks_of
from remit.core.failure import RequestRejected


def test_a_short_text_is_one_piece_without_the_white_space_around_it() -> None:
    assert [tuple(chunk) for chunk in chunks_of("  \n hello \n")] == [(4, "hello")]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_text_of_nothing_has_no_pieces(text: str) -> None:
    assert list(chunks_of(text)) == []


@pytest.mark.parametrize(
    ("separator", "end"),
    [("\n\n", "."), ("\n", "x"), (". ", "."), (" ", "x")],
    ids=["paragraph", "line", "sentence", "word"],
)
def test_a_piece_ends_at_the_best_end_there_is(separator: str, end: str) -> None:
    words = " ".join(["word"] * 7) + end if separator != " " else "wordx"
    text = separator.join([words] * 20)
    first = next(chunks_of(text, chars_max=100, overlap_chars=0))
    assert first.text.endswith(end.strip())
    assert len(first.text) >= 50


def test_a_text_without_any_end_is_cut_at_the_limit() -> None:
    assert [chunk.text for chunk in chunks_of("x" * 100, chars_max=40, overlap_chars=0)] == [
        "x" * 40,
        "x" * 40,
        "x" * 20,
    ]


def test_neighbours_overlap_from_the_beginning_of_a_word() -> None:
    text = " ".join(f"w{number:03}" for number in range(60))
    first, second, *_ = chunks_of(text, chars_max=100, overlap_chars=20)
    assert second.start < first.start + len(first.text)
    assert text[second.start : second.start + 1] == "w"
    assert text[second.start : second.start + len(second.text)] == second.text


def test_an_overlap_within_one_long_word_still_goes_forward() -> None:
    pieces = list(chunks_of("x" * 200, chars_max=40, overlap_chars=10))
    assert [piece.start for piece in pieces] == [0, 30, 60, 90, 120, 150, 180][: len(pieces)]
    assert pieces[-1].start + len(pieces[-1].text) == 200


@pytest.mark.parametrize(
    ("chars_max", "overlap_chars"),
    [(39, 0), (20_001, 0), (100, -1), (100, 26)],
    ids=["tiny", "huge", "negative", "much"],
)
def test_sizes_that_make_no_sense_are_refused_by_name(chars_max: int, overlap_chars: int) -> None:
    with pytest.raises(RequestRejected, match=f"chars_max={chars_max}|overlap_chars={overlap_chars}") as caught:
        check_chunking(chars_max, overlap_chars)
    assert caught.value.code == "CHUNKING_INVALID"


def test_the_usual_sizes_are_allowed() -> None:
    check_chunking(CHUNK_CHARS_MAX, OVERLAP_CHARS)
