"""Full-text search: documents in an index of SQLite, found by words and ranked by BM25.

Rule 1: a query never fails for what it says; it finds something or nothing.
Rule 2: equal indexes give equal answers: equal scores are ordered by document and piece.
Rule 3: what is found says where it came from: its document, its piece, its place and its origin.
Rule 4: everything is bounded: documents, their length, their pieces, and what one query returns.
Rule 5: one connection, one lock; the index may be used from any thread, and blocks its caller.
Rule 6: the words of a query are data: each is quoted, so no operator, column, bracket or quotation mark of a user reaches
        the engine as one. Any of them may be found; how many were, and how rare they are, decides the order. Of a long
        text, the first telling words are looked for.
Rule 7: a long text is cut into pieces that are found, shown and cited one by one. A piece ends where the text does: behind a
        paragraph, a line, a sentence or a word, in this order of preference. Neighbours overlap, so that a sentence at
        a cut is whole in one of them. Every character but white space at the ends of pieces is in some piece, and every
        piece says where it begins.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from math import log
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from unicodedata import category

from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, Record
from remit.core.regex import regex
from remit.core.work.candidate import Candidate, ScoreMaker

# A page: a question is shorter, and a pasted text says what it is about at its beginning.
QUERY_CHARS_MAX = 4_000
# Each word is a walk through the index.
QUERY_WORDS_MAX = 32
# Longer words are addresses and hashes; they are looked for by their beginning nowhere, and whole never found.
WORD_CHARS_MAX = 64

# Letters, numbers and the marks on them; everything else stands between words, as for the tokenizer of the index.
_IN_WORDS = frozenset("LNM")
# Words of English that every question has and no answer is found by. They are looked for when there are no others.
_EMPTY_WORDS_TEXT = """
    a about an and any are as at be by can could did do does for from had has have how i if in is it its me my of on or our
    please shall should so tell that the their them then there these they this those to was we were what when where which
    who whom why will with would you your
"""
_EMPTY_WORDS = frozenset(_EMPTY_WORDS_TEXT.split())
CHUNKING_INVALID = "CHUNKING_INVALID"
# Some three hundred tokens: a few paragraphs, so that five of them fit into a small model's window.
CHUNK_CHARS_MAX = 1200
# A long sentence.
OVERLAP_CHARS = 150
# Below this a piece says nothing; above it, a piece is a document.
CHUNK_CHARS_LEAST, CHUNK_CHARS_MOST = 40, 20_000
# The ends by preference; a cut before the middle of a piece would make too many of them.
_ENDS = (regex(r"\n\s*\n"), regex(r"\n"), regex(r"[.!?…。]\s"), regex(r"\s"))
INDEX_UNREADABLE = "INDEX_UNREADABLE"
INDEX_FULL = "INDEX_FULL"
DOCUMENT_INVALID = "DOCUMENT_INVALID"
RETRIEVE_INVALID = "RETRIEVE_INVALID"
# A book has a million characters; what is longer is a mistake, or should be cut by its owner.
DOCUMENT_CHARS_MAX = 5_000_000
# An id is shown with every answer that cites it.
DOCUMENT_ID_CHARS_MAX = 200
METADATA_CHARS_MAX = 10_000
# Some 200 megabytes of text; a query of thirty-two words that every piece holds takes about two seconds there.
CHUNKS_MAX = 200_000
RESULTS_MAX = 100
RESULTS_DEFAULT = 5
# Of a document without a label, nothing is assumed.
ORIGIN_DEFAULT = "untrusted"
# How much of the question a piece answers to, from 0 to 1, in the metadata of what was found.
RELEVANCE = "relevance"
# "rmit", so that a file of something else is not taken for an index.
_APPLICATION_ID = 0x726D6974
_FORMAT = 1
_SCHEMA = f"""
CREATE TABLE documents (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, origin TEXT NOT NULL,
    metadata TEXT NOT NULL);
CREATE TABLE pieces (number INTEGER PRIMARY KEY, document INTEGER NOT NULL, position INTEGER NOT NULL,
    start INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX pieces_by_document ON pieces (document);
CREATE VIRTUAL TABLE words USING fts5(text, content='pieces', content_rowid='number',
    tokenize='porter unicode61 remove_diacritics 2');
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_FORMAT};
"""
_FIND = """
SELECT p.number, d.id, d.origin, d.metadata, p.position, p.start, p.text, -bm25(words) AS score
FROM words JOIN pieces p ON p.number = words.rowid JOIN documents d ON d.number = p.document
WHERE words MATCH ? ORDER BY score DESC, d.id, p.position LIMIT ?
"""


def meaningful_words(text: str) -> tuple[str, ...]:
    """The different words of a text that say something, in its order."""
    runs = groupby(text[:QUERY_CHARS_MAX], key=lambda letter: category(letter)[0] in _IN_WORDS)
    words = ("".join(letters).casefold() for is_word, letters in runs if is_word)
    different = dict.fromkeys(word for word in words if len(word) <= WORD_CHARS_MAX)
    telling = [word for word in different if word not in _EMPTY_WORDS]
    return tuple(telling or different)[:QUERY_WORDS_MAX]


def expression_of(words: tuple[str, ...]) -> str:
    """The expression that finds any of the words."""
    return " OR ".join(quoted(word) for word in words)


def quoted(word: str) -> str:
    """A word as a string of FTS5."""
    return '"' + word.replace('"', '""') + '"'


class Passage(NamedTuple):
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


def passages_of(
    text: str, *, chars_max: int = CHUNK_CHARS_MAX, overlap_chars: int = OVERLAP_CHARS
) -> Iterator[Passage]:
    """The pieces of a text, in order; none of a text of white space."""
    check_chunking(chars_max, overlap_chars)
    start = 0
    while start < len(text):
        end = _end_of(text, start, chars_max)
        piece = text[start:end]
        if bare := piece.strip():
            yield Passage(start + len(piece) - len(piece.lstrip()), bare)
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


class Document(Record):
    """A text that can be found. `origin` says how far it is trusted, as its label; nothing here acts on it."""

    id: str
    text: str
    origin: str = ORIGIN_DEFAULT
    metadata: JsonObject = {}


class DocumentIndex:
    """Documents in a file of the caller's, or in memory. Close it when done, or use it as a context manager."""

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        chunk_chars_max: int = CHUNK_CHARS_MAX,
        overlap_chars: int = OVERLAP_CHARS,
    ) -> None:
        check_chunking(chunk_chars_max, overlap_chars)
        given: object = path
        if given is not None and not isinstance(given, str | PathLike):
            message = (
                f"path is a {type(given).__name__}; pass the path of a file, or nothing, and give documents to add()"
            )
            raise RequestRejected(INDEX_UNREADABLE, message)
        self._name = str(path) if path is not None else ":memory:"
        self._chunk_chars_max, self._overlap_chars = chunk_chars_max, overlap_chars
        self._lock = Lock()
        import sqlite3

        with self._readable():
            self._connection = sqlite3.connect(self._name, check_same_thread=False, isolation_level=None)
        try:
            with self._readable():
                self._prepare()
        except RequestRejected:
            self._connection.close()
            raise

    def __enter__(self) -> "DocumentIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; nothing can be found any more."""
        with self._lock:
            self._connection.close()

    def add(self, documents: Iterable[Document]) -> int:
        """Add documents, all or none, and say how many pieces they made. One whose id is there takes its place."""
        pieces = 0
        with self._lock, self._readable(), self._transaction():
            for document in documents:
                pieces += self._add(document)
        return pieces

    def remove(self, document_id: str) -> bool:
        """Forget a document; False when there was none of this id."""
        with self._lock, self._readable(), self._transaction():
            return self._remove(_clean(document_id))

    def count(self) -> tuple[int, int]:
        """How many documents there are, and how many pieces of them."""
        with self._lock, self._readable():
            return self._number("SELECT count(*) FROM documents"), self._number("SELECT count(*) FROM pieces")

    def retrieve(self, query: str, *, limit: int = RESULTS_DEFAULT) -> tuple[Candidate, ...]:
        """The pieces that fit the words of a query best, the best first; none when nothing fits."""
        if not 1 <= limit <= RESULTS_MAX:
            raise RequestRejected(RETRIEVE_INVALID, f"limit={limit} must be 1 to results_max={RESULTS_MAX}")
        words = meaningful_words(query)
        if not words:
            return ()
        with self._lock, self._readable():
            rows = self._connection.execute(_FIND, (expression_of(words), limit)).fetchall()
            relevance = self._relevance(words, [row[0] for row in rows])
        return tuple(_candidate(row, relevance[row[0]]) for row in rows)

    def _prepare(self) -> None:
        """Make the tables of a new file, all or none; refuse one that holds something else."""
        if not self._number("SELECT count(*) FROM sqlite_master"):
            with self._transaction():
                for statement in _SCHEMA.split(";") if not self._number("SELECT count(*) FROM sqlite_master") else ():
                    self._connection.execute(statement)
        marks = self._number("PRAGMA application_id"), self._number("PRAGMA user_version")
        if marks != (_APPLICATION_ID, _FORMAT):
            reason = f"it is a database of something else, or of another version than {_FORMAT}; name another file"
            raise RequestRejected(INDEX_UNREADABLE, f"index {self._name[:200]!r}: {reason}")

    def _add(self, document: Document) -> int:
        metadata = checked_metadata(document)
        document_id = _clean(document.id)
        self._remove(document_id)
        cursor = self._connection.execute(
            "INSERT INTO documents (id, origin, metadata) VALUES (?, ?, ?)",
            (document_id, _clean(document.origin), metadata),
        )
        number, position = cursor.lastrowid, 0
        chunks = passages_of(_clean(document.text), chars_max=self._chunk_chars_max, overlap_chars=self._overlap_chars)
        for position, chunk in enumerate(chunks, start=1):
            placed = self._connection.execute(
                "INSERT INTO pieces (document, position, start, text) VALUES (?, ?, ?, ?)",
                (number, position, chunk.start, chunk.text),
            )
            self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (placed.lastrowid, chunk.text))
        if (pieces := self._number("SELECT count(*) FROM pieces")) > CHUNKS_MAX:
            message = f"document {document.id[:80]!r} brings the index to {pieces} pieces, chunks_max={CHUNKS_MAX}"
            raise RequestRejected(INDEX_FULL, f"{message}; use a second index")
        return position

    def _remove(self, document_id: str) -> bool:
        found = self._connection.execute("SELECT number FROM documents WHERE id = ?", (document_id,)).fetchone()
        if found is None:
            return False
        # The index keeps no texts of its own, so it must be told what to forget.
        self._connection.execute(
            "INSERT INTO words (words, rowid, text) SELECT 'delete', number, text FROM pieces WHERE document = ?", found
        )
        self._connection.execute("DELETE FROM pieces WHERE document = ?", found)
        self._connection.execute("DELETE FROM documents WHERE number = ?", found)
        return True

    def _relevance(self, words: tuple[str, ...], numbers: list[int]) -> dict[int, float]:
        """By piece: the share of the words that it holds, each counting by its rarity."""
        held = dict.fromkeys(numbers, 0.0)
        total = 0.0
        pieces = self._number("SELECT count(*) FROM pieces")
        among = f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({','.join('?' * len(numbers))})"  # noqa: S608  # only question marks
        for word in words if numbers else ():
            having = self._number("SELECT count(*) FROM words WHERE words MATCH ?", quoted(word))
            weight = log(1 + (pieces - having + 0.5) / (having + 0.5))
            total += weight
            for (number,) in self._connection.execute(among, (quoted(word), *numbers)):
                held[number] += weight
        return {number: min(1.0, weight / total) for number, weight in held.items()}

    def _number(self, statement: str, *values: str) -> int:
        return int(self._connection.execute(statement, values).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Say what is wrong with the file instead of raising what SQLite raises."""
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            message = f"index {self._name[:200]!r}: {error}; close who else writes it, or build it again"
            raise RequestRejected(INDEX_UNREADABLE, message) from error


def found_among(documents: Sequence[Document], query: str) -> tuple[Candidate, ...]:
    """Search these documents alone for a query, in an index that is made for it and closed behind it."""
    with DocumentIndex() as index:
        index.add(documents)
        return index.retrieve(query)


def checked_metadata(document: Document) -> str:
    """The metadata as text; refuses a document that could not be shown or found again."""
    shown = repr(document.id[:80])
    if not document.id.strip() or len(document.id) > DOCUMENT_ID_CHARS_MAX:
        message = f"document id {shown} must have 1 to id_chars_max={DOCUMENT_ID_CHARS_MAX} characters"
        raise RequestRejected(DOCUMENT_INVALID, message)
    if len(document.text) > DOCUMENT_CHARS_MAX:
        message = (
            f"document {shown} has {len(document.text)} characters, document_chars_max={DOCUMENT_CHARS_MAX}; split it"
        )
        raise RequestRejected(DOCUMENT_INVALID, message)
    try:
        metadata = json.dumps(document.metadata, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestRejected(DOCUMENT_INVALID, f"document {shown}: its metadata is not JSON: {error}") from None
    if len(metadata) > METADATA_CHARS_MAX:
        message = (
            f"document {shown} has metadata of {len(metadata)} characters, metadata_chars_max={METADATA_CHARS_MAX}"
        )
        raise RequestRejected(DOCUMENT_INVALID, message)
    return metadata


def _candidate(row: tuple[Any, ...], relevance: float) -> Candidate:
    _, document_id, origin, metadata, position, start, text, score = row
    where = {"piece": position, "start": start, "origin": origin, RELEVANCE: relevance}
    return Candidate(text, document_id, score, ScoreMaker.RETRIEVAL, {**json.loads(metadata), **where})


def _clean(text: str) -> str:
    """Valid Unicode, since SQLite takes nothing else."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
