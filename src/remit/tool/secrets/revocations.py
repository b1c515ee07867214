"""Revocations: which values of secrets a model was found to know, kept in the store's folder.

Rule 1: a value is known by its fingerprint, a keyed hash; the key lies beside it, readable by its owner alone, so that no
        other user who sees a fingerprint elsewhere can try words on it.
Rule 2: what was revoked stays revoked, for every process on the store and under every name; only another value helps.
Rule 3: fingerprints without their key, or a file that others may read, say nothing that can be relied on: that is refused.
"""

import hmac
import json
import os
import secrets
import stat
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from remit.core.failure import RequestRejected
from remit.core.regular_file import open_regular, open_to_append
from remit.core.schema.json_text import parse_json

FILE = "revoked.log"
KEY_FILE = "revoked.key"

SECRET_REVOKED = "SECRET_REVOKED"  # noqa: S105  # a code, and no password
REVOCATIONS_UNREADABLE = "REVOCATIONS_UNREADABLE"

# A line has a name, a fingerprint and a moment; more than so many of them were not written by remit.
FILE_BYTES_MAX = 4 * 1024 * 1024
_KEY_BYTES = 32
_OTHERS = 0o077
_PURPOSE = b"remit revocation 1\n"


class Revocations(Protocol):
    """Remembers revoked values for longer than a process lasts."""

    def revoked_at_ms(self, value: str) -> int | None:
        """When a value was revoked, here or by another process; None for one that never was."""

    def record(self, name: str, value: str, at_ms: int) -> None:
        """Remember that a value was revoked; it outlives the power once this returns."""


class KeptRevocations:
    """Revocations in the folder of a store."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._key_path = folder / KEY_FILE
        self._seen_bytes = 0
        self._known: dict[str, int] = {}

    def revoked_at_ms(self, value: str) -> int | None:
        """When a value was revoked; looked up in the file whenever that has grown."""
        try:
            size_bytes = self._path.stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(self._path, f"cannot be read: {error.strerror}") from error
        if size_bytes != self._seen_bytes:
            self._known = self._read()
            self._seen_bytes = size_bytes
        return self._known.get(self._fingerprint(value)) if self._known else None

    def record(self, name: str, value: str, at_ms: int) -> None:
        """Add a line for a value that has none."""
        if self.revoked_at_ms(value) is not None:
            return
        self._make_key()
        line = json.dumps({"name": name, "fingerprint": self._fingerprint(value), "at_ms": at_ms}) + "\n"
        try:
            descriptor = open_to_append(self._path)
            try:
                os.write(descriptor, line.encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._unreadable(self._path, f"cannot be written: {error.strerror}") from error

    def _read(self) -> dict[str, int]:
        known: dict[str, int] = {}
        for line in self._private(self._path).splitlines():
            try:
                fields = parse_json(line)
                known.setdefault(str(fields["fingerprint"]), int(fields["at_ms"]))
            except (ValueError, TypeError, KeyError):
                # The disk was full in the middle of a line. The writer was told, and the value stays unusable there.
                continue
        return known

    def _fingerprint(self, value: str) -> str:
        return hmac.new(self._key(), _PURPOSE + value.encode(errors="surrogatepass"), sha256).hexdigest()

    def _key(self) -> bytes:
        try:
            key = bytes.fromhex(self._private(self._key_path).decode("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise self._unreadable(self._key_path, f"holds no key, so it is unknown which secrets {FILE} revokes")
        return key

    def _make_key(self) -> None:
        if self._key_path.exists() or self._path.exists():
            return
        try:
            self._key_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._key_path.with_name(f"{KEY_FILE}.{secrets.token_hex(8)}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, secrets.token_bytes(_KEY_BYTES).hex().encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            try:
                # Of two processes that make one at the same time, both use the one that was linked first.
                self._key_path.hardlink_to(draft)
            except FileExistsError:
                return
            finally:
                draft.unlink()
        except OSError as error:
            raise self._unreadable(self._key_path, f"cannot be written: {error.strerror}") from error

    def _private(self, path: Path) -> bytes:
        try:
            with open_regular(path) as file:
                mode, data = os.fstat(file.fileno()).st_mode, file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise self._unreadable(path, f"cannot be read: {error.strerror}") from error
        if mode & _OTHERS:
            raise self._unreadable(path, f"is open to others (mode {stat.S_IMODE(mode):o}); type: chmod 600 on it")
        if len(data) > FILE_BYTES_MAX:
            raise self._unreadable(path, f"has more than file_bytes_max={FILE_BYTES_MAX}")
        return data

    def _unreadable(self, path: Path, what: str) -> RequestRejected:
        message = f"{path}: {what}; put back a backup of it, or set new values for all secrets and delete {FILE}"
        return RequestRejected(REVOCATIONS_UNREADABLE, message, {"path": str(path)})
