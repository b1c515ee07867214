"""Chunking: cut a long text into pieces that are found, shown and cited one by one.

Rule 1: a piece ends where the text does: behind a paragraph, a line, a sentence or a word, in this order of preference.
Rule 2: neighbours overlap, so that a sentence at a cut is whole in one of them.
Rule 3: every character but white space at the ends of pieces is in some piece, and every piece says where it begins.
"""

from collections.abc import Iterator
from typing import NamedTuple

from remit.core.failure import RequestRejected
from remit.core.regex import regex

CHUNKING_INVALID = "CHUNKING_INVALID"

# Some three hundred tokens: a few paragraphs, so that five of them fit into a small model's window.
CHUNK_CHARS_MAX = 1200
# A long sentence.
OVERLAP_CHARS = 150
# Below this a piece says nothing; above it, a piece is a document.
CHUNK_CHARS_LEAST, CHUNK_CHARS_MOST = 40, 20_000

# The ends by preference; a cut before the middle of a piece would make too many of them.
_ENDS = (regex(r"\n\s*\n"), regex(r"\n"), regex(r"[.!?…。]\s"), regex(r"\s"))


class Chunk(NamedTuple):
    """A piece of a text, and at which of its characters it begins."""

    start: int
    text: str


def check_chunking(chars_max: int, overlap_chars: int) -> None:
    """Refuse sizes that would make pieces of nothing, or never come to an end."""
    if not CHUNK_CHARS_LEAST <= chars_max <= CHUNK_CHARS_MOST:
        message = f"chars_max={chars_max} of a chunk must be {CHUNK_CHARS_LEAST} to {CHUNK_CHARS_MOST}"
        raise RequestRejected(CHUNKING_INVALID, message)
    if not 0 <= overlap_chars <= chars_max // 4:
        message = f"overlap_chars={overlap_chars} must be 0 to a quarter of chars_max={chars_max}"
        raise RequestRejected(CHUNKING_INVALID, message)


def chunks_of(text: str, *, chars_max: int = CHUNK_CHARS_MAX, overlap_chars: int = OVERLAP_CHARS) -> Iterator[Chunk]:
    """The pieces of a text, in order; none of a text of white space."""
    check_chunking(chars_max, overlap_chars)
    start = 0
    while start < len(text):
        end = _end_of(text, start, chars_max)
        piece = text[start:end]
        if bare := piece.strip():
            yield Chunk(start + len(piece) - len(piece.lstrip()), bare)
        if end == len(text):
            return
        start = _start_after(text, end, overlap_chars)


def _end_of(text: str, start: int, chars_max: int) -> int:
    limit = start + chars_max
    if limit >= len(text):
        return len(text)
    for end in _ENDS:
        found = [match.end() for match in end.finditer(text, start + chars_max // 2, limit)]
        if found:
            return found[-1]
    return limit


def _start_after(text: str, end: int, overlap_chars: int) -> int:
    """A little before the end, at the beginning of a word. A piece is at least half full, so this goes forward."""
    start = end - overlap_chars
    blank = _ENDS[-1].search(text, start, end)
    return blank.end() if blank and overlap_chars else start
