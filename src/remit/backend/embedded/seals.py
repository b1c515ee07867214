"""Sealed values of a store: a file for each scope in the folder `sealed`, outside the database and every export.

Rule 1: what is written is encrypted with a key that follows from the store's own, and read by its owner alone.
Rule 2: a value is on the disk before anything is written that names its handle.
Rule 3: a folder or a file that is a link, a pipe or of another user is refused: its maker chose where values lie.
Rule 4: a line that cannot be read or opened holds nothing; a caller that needs its value learns that it is gone.
"""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from remit.backend.embedded.disk.database import sync_folder
from remit.backend.embedded.disk.disk_failures import store_unusable
from remit.backend.embedded.disk.permissions import SEALED, refuse_no_folder, refuse_other_names
from remit.core.journal.codec import read_json
from remit.core.journal.signing import Signer
from remit.core.regular_file import expect_regular, open_regular, open_to_append
from remit.core.secrets.seal import DIGITS_MAX, DIGITS_MIN, Sealed, reference_to, sealed, unsealed


class FileSeals:
    """The sealed values of one store."""

    def __init__(self, home: Path, signer: Callable[[], Signer]) -> None:
        self._home = home / SEALED
        self._signer = signer
        # What was read of a scope, with the size that its file had: it only ever grows.
        self._known: dict[str, tuple[int, dict[str, str]]] = {}

    def seal(self, scope: str, kind: str, value: str) -> str:
        """Keep a value for a scope and give its handle."""
        key, known = self._signer().private_bytes(), self._read(scope)
        handles = (reference_to(key, kind, value, digits) for digits in range(DIGITS_MIN, DIGITS_MAX + 1))
        # Where two values should meet in a handle, the second gets more digits.
        handle = next(handle for handle in handles if known.get(handle, value) == value)
        if handle not in known:
            self._append(scope, [sealed(key, scope, handle, value)])
        return handle

    def values(self, scope: str) -> dict[str, str]:
        """The values of a scope by their handles."""
        return self._read(scope)

    def adopt(self, scope: str, other: str) -> None:
        """Keep for a scope what is kept for another."""
        known, more = self._read(scope), self._read(other)
        missing = {handle: value for handle, value in more.items() if handle not in known}
        if missing:
            key = self._signer().private_bytes()
            self._append(scope, [sealed(key, scope, handle, value) for handle, value in missing.items()])

    def forget(self, scope: str) -> None:
        """Keep nothing of a scope any more."""
        self._known.pop(scope, None)
        refuse_no_folder(self._home)
        self._path(scope).unlink(missing_ok=True)

    def _path(self, scope: str) -> Path:
        return self._home / sha256(scope.encode()).hexdigest()[:32]

    def _read(self, scope: str) -> dict[str, str]:
        """Read the values of a scope, with those that this process or another has added since."""
        path = self._path(scope)
        read, values = self._known.get(scope, (0, {}))
        refuse_no_folder(self._home)
        try:
            expect_regular(path)
            size = path.stat().st_size
            if size == 0:
                return {}
            if size == read:
                return values
            if size < read:  # Forgotten by another process, and begun anew.
                read, values = 0, {}
            with open_regular(path) as lines:
                refuse_other_names(path, lines.fileno())
                lines.seek(read)
                added = lines.read(size - read)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise store_unusable(error, path) from error
        key = self._signer().private_bytes()
        found = ((one.handle, unsealed(key, scope, one)) for one in _sealed_in(added.splitlines()))
        values = values | {handle: value for handle, value in found if value is not None}
        self._known[scope] = (size, values)
        return values

    def _append(self, scope: str, entries: Iterable[Sealed]) -> None:
        path = self._path(scope)
        data = b"".join([_line(one) for one in entries])
        refuse_no_folder(self._home)
        try:
            self._home.mkdir(mode=0o700, exist_ok=True)
            is_new = not path.exists()
            descriptor = open_to_append(path)
            try:
                refuse_other_names(path, descriptor)
                os.write(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                sync_folder(self._home)
        except OSError as error:
            raise store_unusable(error, path) from error


def _line(one: Sealed) -> bytes:
    return json.dumps({"handle": one.handle, "data": b64encode(one.data).decode()}).encode() + b"\n"


def _sealed_in(lines: Iterable[bytes]) -> Iterator[Sealed]:
    for line in lines:
        try:
            fields = read_json(line)
            yield Sealed(str(fields["handle"]), b64decode(fields["data"]))
        except (ValueError, KeyError, TypeError):
            continue
