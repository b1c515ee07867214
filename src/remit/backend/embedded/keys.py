"""The key of a deployment: made on first use, kept where only its owner reads it.

Rule 1: a key file is whole or not there; of two processes that make one at the same time, both use the same.
Rule 2: a key that others may read vouches for nothing, so it is refused.
"""

import os
import secrets
from pathlib import Path

from remit.backend.embedded.database import sync_folder
from remit.backend.embedded.failures import KEY_UNUSABLE, unusable
from remit.core.signing import Signer
from remit.core.storage import StoreUnusable

KEY = "key"
# More than a key takes, so that a file that is no key is not read to its end.
_READ_BYTES_MAX = 1024
_OTHERS = 0o077


def load_signer(home: Path) -> Signer:
    """The signer of a store, made when there is none yet."""
    path = home / KEY
    try:
        if not path.exists():
            _make(path)
        return _read(path)
    except OSError as error:
        raise unusable(error, path) from error


def _make(path: Path) -> None:
    """Write a new key beside its place and link it there: whoever links first made the key of this store."""
    draft = path.with_name(f"{KEY}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.write(descriptor, Signer.generate().private_bytes().hex().encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        path.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        draft.unlink()
        sync_folder(path.parent)


def _read(path: Path) -> Signer:
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        text = file.read(_READ_BYTES_MAX)
    if mode & _OTHERS:
        raise _unusable_key(path, f"others may read it (mode {mode & 0o777:o}); run chmod 600 on it")
    try:
        return Signer.from_bytes(bytes.fromhex(text.decode("ascii").strip()))
    except ValueError:
        raise _unusable_key(
            path, "holds no private key; put back a backup, or move it away to begin with a new one"
        ) from None


def _unusable_key(path: Path, what: str) -> StoreUnusable:
    return StoreUnusable(KEY_UNUSABLE, f"{path}: {what}", {"path": str(path)})
