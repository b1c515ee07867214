"""Documents of a plan: text files under a folder, read as they are and searched by words.

Rule 1: what is read is bounded: how many files, and how many bytes of them all.
Rule 2: the digest is that of the very bytes that were read, names included; reading the same again gives the same.
Rule 3: an index is made for a question and closed behind it, so that a plan leaves nothing open.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from remit.context.fts import DOCUMENT_ID_CHARS_MAX, Document, found_among
from remit.core.failure import RequestRejected
from remit.core.work.candidate import Candidate

DOCUMENTS_UNREADABLE = "DOCUMENTS_UNREADABLE"

# What holds nothing but text.
SUFFIXES = (".txt", ".md")
# Twenty megabytes are indexed in about six seconds, anew for every question; a larger collection wants an index that stays.
FILES_MAX = 1_000
BYTES_MAX = 20_000_000
# As deep as people nest folders; a link that leads back to its own folder ends here.
FOLDERS_DEEP_MAX = 16


class ReadDocument(NamedTuple):
    """What was read at a place, and the digest of it."""

    documents: tuple[Document, ...]
    digest: str


class Documents:
    """Evidence from texts in memory."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = tuple(documents)

    async def find(self, query: str) -> tuple[Candidate, ...]:
        """The candidates that were found for the query, the best first."""
        return await asyncio.to_thread(found_among, self._documents, query)


def read_documents(place: Path, *, base: Path) -> ReadDocument:
    """The documents in a folder, or in a file; each is named by its path from `base` on."""
    files = [place] if place.is_file() else sorted(_files(place, FOLDERS_DEEP_MAX))
    if len(files) > FILES_MAX:
        raise _unreadable(place, f"holds more than files_max={FILES_MAX} documents; name fewer")
    if not files or any(file.suffix.lower() not in SUFFIXES for file in files):
        raise _unreadable(place, f"holds no document; documents are files that end in {' or '.join(SUFFIXES)}")
    documents, digests, room = [], sha256(), BYTES_MAX
    for file in files:
        data = _data(file, room)
        room -= len(data)
        digests.update(os.fsencode(file.relative_to(place)) + b"\0" + sha256(data).digest())
        documents.append(Document(_name(file, base), _text(file, data)))
    return ReadDocument(tuple(documents), digests.hexdigest())


def _files(folder: Path, folders_left: int) -> Iterator[Path]:
    """Every document under a folder; what is hidden is not meant."""
    try:
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise _unreadable(folder, f"cannot be read: {error.strerror}; check its path and its permissions") from error
    for entry in entries:
        if entry.is_dir() and folders_left:
            yield from _files(entry, folders_left - 1)
        elif entry.suffix.lower() in SUFFIXES and entry.is_file():
            yield entry


def _data(file: Path, room_bytes: int) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(room_bytes + 1)
    except OSError as error:
        raise _unreadable(file, f"cannot be read: {error.strerror}; check its path and its permissions") from error
    if len(data) > room_bytes:
        raise _unreadable(file, f"brings the documents to more than bytes_max={BYTES_MAX}; name fewer")
    return data


def _text(file: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(file, f"is not UTF-8 text: byte {error.start} is wrong") from error


def _name(file: Path, base: Path) -> str:
    # A name may be any bytes, and the end of a long path tells more than its beginning.
    name = os.fsencode(Path(os.path.relpath(file, base)).as_posix()).decode(errors="replace")
    return name[-DOCUMENT_ID_CHARS_MAX:]


def _unreadable(place: Path, problem: str) -> RequestRejected:
    return RequestRejected(DOCUMENTS_UNREADABLE, f"{str(place)!r} {problem}", {"place": str(place)})
