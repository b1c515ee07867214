"""heads.log: every signed head on a line of its own, in a file that only ever grows.

Rule 1: a line is written after what it speaks of is on the disk, so the log is never ahead of the store.
Rule 2: nothing is ever taken out. A run that was deleted leaves its lines, and a signed line that says so.
Rule 3: one write per group of lines, at the end of the file; several processes may share it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from remit.backend.embedded.database import sync_folder
from remit.backend.embedded.failures import unusable
from remit.core.signing import SignedDeletion
from remit.core.storage import SignedHead

HEADS_LOG = "heads.log"


class HeadsLog:
    """The log of one store. Appending belongs to one thread at a time; reading to anyone."""

    def __init__(self, home: Path) -> None:
        self.path = home / HEADS_LOG
        self._descriptor: int | None = None
        self._is_torn = False

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
            raise unusable(error, self.path) from error

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

    def close(self) -> None:
        """Let the file go."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if is_new:
            sync_folder(self.path.parent)
        return descriptor

    def _ends_in_a_line(self) -> bool:
        """Whether the end of the last line is missing."""
        with self.path.open("rb") as lines:
            if not lines.seek(0, os.SEEK_END):
                return False
            lines.seek(-1, os.SEEK_END)
            return lines.read(1) != b"\n"

    def _entries(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The lines that name a run; a line that does not parse was cut by a full disk and says nothing."""
        name = json.dumps(run_id).encode()
        try:
            with self.path.open("rb") as lines:
                for line in lines:
                    if name in line and (fields := _fields(line)).get("run_id") == run_id:
                        yield fields
        except FileNotFoundError:
            return
        except OSError as error:
            raise unusable(error, self.path) from error


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
