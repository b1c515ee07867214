"""heads.log: every signed head on a line of its own, in a file that only ever grows.

Rule 1: a line is written after what it speaks of is on the disk, so the log is never ahead of the store.
Rule 2: nothing is ever taken out. A run that was deleted leaves its lines, and a signed line that says so.
Rule 3: one write per group of lines, at the end of the file; several processes may share it.
"""

import json
import os
import threading
from collections.abc import Container, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from operator import attrgetter
from pathlib import Path
from typing import Any

from remit.backend.embedded.disk.database import sync_folder
from remit.backend.embedded.disk.disk_failures import store_unusable
from remit.core.journal.signing import SignedDeletion, is_deletion_signed, is_head_signed
from remit.core.journal.storage import SignedHead
from remit.core.regex import regex
from remit.core.regular_file import open_regular, open_to_append

HEADS_LOG = "heads.log"
# The line that takes the place of heads which were lost with their log. It names no run, so it counts as one that is unread.
_LOST = b'{"lost":"every head before this line"}\n'

# How every line begins that was written here. Others may write JSON in other orders, which takes longer to read.
_BEGINS = regex(rb'\{"run_id":"([^"\\]+)","seq":([0-9]+),"head":"[0-9a-f]*","(ending|at_ms)"')


# How every line begins, however soon it was cut, and how it ends where it was not.
_FIRST, _END, _HOLE = b'{"run_id":"', b"}\n", b"\0"


class HeadsFile:
    """The log of one store. One thread at a time appends; any thread may read."""

    def __init__(self, home: Path) -> None:
        self.path = home / HEADS_LOG
        self._descriptor: int | None = None
        self._is_torn = False
        self._index = _Index(self.path)

    def append(self, entries: Sequence[SignedHead | SignedDeletion]) -> None:
        """Write a line per entry, in one write."""
        lines = b"".join(_line(entry) for entry in entries)
        try:
            if self._descriptor is None:
                self._descriptor = self._open()
                self._is_torn = self._ends_in_a_line()
            if self._is_torn:
                # The disk was full or the power went in the middle of a line; what follows must not be read as its rest.
                lines = b"\n" + lines
            self._is_torn = True
            while lines:
                lines = lines[os.write(self._descriptor, lines) :]
            self._is_torn = False
        except OSError as error:
            raise store_unusable(error, self.path) from error

    def create(self) -> None:
        """Make the file, so that one that is not there was taken away."""
        os.close(self._open())

    def begin_again(self) -> None:
        """Write down that the heads before this moment are lost."""
        self._descriptor = self._open()
        os.write(self._descriptor, _LOST)

    def doubt(self, run_id: str, last: int, *, is_told: bool) -> str:
        """Why a later turn of a run than `last` may have been signed that cannot be read; empty where none can.

        `is_told` says whether a head of it was signed that must be in the log. A line that was cut by a crash speaks of a
        turn that is on the disk; one that was not signed, or that cannot be read, may have spoken of any.
        """
        unread, places = self._index.unread(), self._index.suspects(run_id)
        if is_told and unread > max(places, default=-1):
            return f"a line of {HEADS_LOG} behind its last one cannot be read"
        for line in self._index.lines(run_id, *places) if places else ():
            fields, (_, seq, is_deletion) = _fields(line), _named(line)
            is_cut = (_HOLE in line or not line.endswith(_END)) and seq <= last
            if not is_deletion and not is_cut and ((head := _head(fields)) is None or not is_head_signed(head)):
                return f"the line of {HEADS_LOG} about turn {seq} of it is not as it was signed"
        return ""

    @property
    def is_damaged(self) -> bool:
        """Whether there are lines that cannot be read and were not cut by a crash."""
        return self._index.unread() >= 0

    def sync(self) -> None:
        """Make what was appended outlive the power."""
        if self._descriptor is not None:
            os.fdatasync(self._descriptor)

    def heads(self, run_id: str) -> list[SignedHead]:
        """The heads of a run, oldest first."""
        found = (_head(fields) for fields in self._entries(run_id) if "seq" in fields and "at_ms" not in fields)
        # Two processes that wrote turns of one run may have logged them the other way round.
        return sorted((head for head in found if head is not None), key=attrgetter("seq"))

    def deletion(self, run_id: str) -> SignedDeletion | None:
        """The line that says that a run was deleted, if there is one."""
        found = [_deletion(fields) for fields in self._entries(run_id) if "at_ms" in fields]
        return next((deletion for deletion in reversed(found) if deletion is not None), None)

    def last(self, run_id: str) -> SignedHead | None:
        """The head of the highest turn of a run that its signer signed; None where the log has none.

        The first caller reads the log to its end, a later one what was added since.
        """
        last = self._index.last(run_id)
        for line in () if last is None else self._index.lines(run_id, last):
            if (head := _head(_fields(line))) is not None and is_head_signed(head):
                return head
        # A line that was not signed may stand there; what was signed counts.
        signed = [] if last is None else [head for head in self.heads(run_id) if is_head_signed(head)]
        return signed[-1] if signed else None

    def found_last(self, run_id: str) -> SignedHead | None:
        """As `last`, of a name with few lines and for those who ask nothing else: the log is searched, and not taken apart."""
        mark, found = b'{"run_id":' + json.dumps(run_id).encode() + b",", []
        try:
            with open_regular(self.path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as log:
                place = log.find(mark)
                while place >= 0:
                    end = log.find(b"\n", place)
                    found.append(_head(_fields(log[place : end if end >= 0 else None])))
                    place = log.find(mark, place + 1)
        except (FileNotFoundError, ValueError):
            return None  # An empty file cannot be mapped.
        except OSError as error:
            raise store_unusable(error, self.path) from error
        signed = [head for head in found if head is not None and is_head_signed(head)]
        # Of two lines about one turn the later one counts: the first was lost, and a person accepted that.
        return max(reversed(signed), key=attrgetter("seq"), default=None)

    def last_turns(self) -> dict[str, int]:
        """The highest turn of every run that the log names, signed or not, in the order of their first lines."""
        return self._index.last_turns()

    def missing(self, known: Container[str] = ()) -> list[str]:
        """Runs beside the known ones that were signed for in the log, and not deleted; oldest first."""
        return [
            run_id
            for run_id in self.last_turns()
            if run_id not in known and not self._was_deleted(run_id) and self.last(run_id) is not None
        ]

    def _was_deleted(self, run_id: str) -> bool:
        if not self._index.is_deleted(run_id):
            return False
        deletion = self.deletion(run_id)
        return deletion is not None and is_deletion_signed(deletion)

    @property
    def is_empty(self) -> bool:
        """Whether there is no log, or nothing in it."""
        try:
            return not self.path.stat().st_size
        except FileNotFoundError:
            return True
        except OSError as error:
            raise store_unusable(error, self.path) from error

    def close(self) -> None:
        """Let the file go."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        is_new = not self.path.exists()
        descriptor = open_to_append(self.path)
        if is_new:
            sync_folder(self.path.parent)
        return descriptor

    def _ends_in_a_line(self) -> bool:
        """Whether the end of the last line is missing."""
        with open_regular(self.path) as lines:
            if not lines.seek(0, os.SEEK_END):
                return False
            lines.seek(-1, os.SEEK_END)
            return lines.read(1) != b"\n"

    def _entries(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The lines that name a run; a line that does not parse was cut by a full disk and says nothing."""
        for line in self._index.lines(run_id):
            if (fields := _fields(line)).get("run_id") == run_id:
                yield fields


class _Index:
    """Where in the log the lines of each run stand; the log is read once, and then only what was added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._read_bytes = 0
        self._identity = (0, 0)
        self._places: dict[str, list[int]] = {}
        # The highest turn of each run and the place of its line.
        self._last: dict[str, tuple[int, int]] = {}
        self._deleted: set[str] = set()
        # Where the last line stands that cannot be read, and was not cut by a crash.
        self._unread = -1

    def unread(self) -> int:
        """The place of the last line that speaks of no run, but for those that a crash cut; -1 for none."""
        with self._mutex:
            self._catch_up()
            return self._unread

    def suspects(self, run_id: str) -> tuple[int, ...]:
        """The places of the lines of a run that say how far it got: of its highest turn, and the last."""
        with self._mutex:
            self._catch_up()
            highest = self._last.get(run_id)
            return tuple(sorted({*self._places.get(run_id, ())[-1:], *(() if highest is None else highest[1:])}))

    def lines(self, run_id: str, *places: int) -> list[bytes]:
        """The lines that name a run, in the order of the log; or those at these places."""
        with self._mutex:
            self._catch_up()
            wanted = places or self._places.get(run_id, ())
            if not wanted:
                return []
            with open_regular(self._path) as lines:
                return [lines.readline() for place in wanted if lines.seek(place) == place]

    def last(self, run_id: str) -> int | None:
        """Where the line of the highest turn of a run stands."""
        with self._mutex:
            self._catch_up()
            return self._last[run_id][1] if run_id in self._last else None

    def is_deleted(self, run_id: str) -> bool:
        """Whether a line says that a run was deleted, signed or not."""
        with self._mutex:
            self._catch_up()
            return run_id in self._deleted

    def last_turns(self) -> dict[str, int]:
        with self._mutex:
            self._catch_up()
            return {run_id: seq for run_id, (seq, _) in self._last.items()}

    def _catch_up(self) -> None:
        try:
            with open_regular(self._path) as lines:
                seen = os.fstat(lines.fileno())
                identity = (seen.st_dev, seen.st_ino)
                if identity != self._identity or seen.st_size < self._read_bytes:
                    self._forget(identity)
                place = lines.seek(self._read_bytes)
                for line in lines:
                    if not line.endswith(b"\n"):
                        break  # Its writer has not finished.
                    self._take(line, place)
                    place += len(line)
                self._read_bytes = place
        except FileNotFoundError:
            self._forget((0, 0))
        except OSError as error:
            raise store_unusable(error, self._path) from error

    def _forget(self, identity: tuple[int, int]) -> None:
        self._read_bytes, self._identity = 0, identity
        self._places.clear()
        self._last.clear()
        self._deleted.clear()
        self._unread = -1

    def _take(self, line: bytes, place: int) -> None:
        run_id, seq, is_deletion = _named(line)
        if not run_id:
            if not _is_cut(line):
                self._unread = place
            return
        self._places.setdefault(run_id, []).append(place)
        if is_deletion:
            self._deleted.add(run_id)
        elif run_id not in self._last or seq >= self._last[run_id][0]:
            self._last[run_id] = (seq, place)


def _named(line: bytes) -> tuple[str, int, bool]:
    """Which turn of which run a line speaks of, and whether of its deletion; an empty name for one that speaks of none."""
    if (usual := _BEGINS.match(line)) is not None:
        name, number, kind = usual.groups()
        return name.decode(errors="replace"), int(number), kind == b"at_ms"
    fields = _fields(line)
    run_id, seq = fields.get("run_id"), fields.get("seq")
    return (run_id, seq, "at_ms" in fields) if isinstance(run_id, str) and type(seq) is int else ("", -1, False)


def _is_cut(line: bytes) -> bool:
    """Whether a line looks like a part of one that was written here: the disk was full, or the power went.

    What the power took out of the middle of a file reads as zeros.
    """
    if _HOLE in line:
        return True
    return not line.endswith(_END) and line.rstrip(b"\n")[: len(_FIRST)] == _FIRST[: len(line) - 1]


def _line(entry: SignedHead | SignedDeletion) -> bytes:
    fields: dict[str, Any] = {"run_id": entry.run_id, "seq": entry.seq, "head": entry.head.hex()}
    if isinstance(entry, SignedHead):
        fields["ending"] = entry.ending
    else:
        fields["at_ms"] = entry.at_ms
    fields |= {"signer": entry.signer, "signature": entry.signature.hex()}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _head(fields: dict[str, Any]) -> SignedHead | None:
    try:
        return SignedHead(
            run_id=fields["run_id"],
            seq=int(fields["seq"]),
            head=bytes.fromhex(fields["head"]),
            ending=str(fields["ending"]),
            signer=str(fields["signer"]),
            signature=bytes.fromhex(fields["signature"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _deletion(fields: dict[str, Any]) -> SignedDeletion | None:
    try:
        return SignedDeletion(
            run_id=fields["run_id"],
            seq=int(fields["seq"]),
            head=bytes.fromhex(fields["head"]),
            at_ms=int(fields["at_ms"]),
            signer=str(fields["signer"]),
            signature=bytes.fromhex(fields["signature"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
