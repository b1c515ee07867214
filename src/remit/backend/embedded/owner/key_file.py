"""The key of a deployment: made on first use, kept where only its owner reads it.

Rule 1: a key file is whole or not there; of two processes that make one at the same time, both use the same.
Rule 2: a key that others may read vouches for nothing, so it is refused.
Rule 3: a key that was lost is not replaced in silence: where heads were signed, only a person may choose a new one.
"""

import os
import secrets
from collections.abc import Callable
from contextlib import closing
from functools import cached_property
from pathlib import Path

from remit.backend.embedded.disk.database import DATABASE, connect_to_read, sync_folder
from remit.backend.embedded.disk.disk_failures import (
    DATABASE_ERRORS,
    KEY_MISSING,
    KEY_UNUSABLE,
    disk_failure,
    store_unusable,
)
from remit.backend.embedded.disk.tables import schema_version
from remit.backend.embedded.heads_file import HEADS_LOG
from remit.core.journal.signing import Signer
from remit.core.journal.storage import StoreUnusable
from remit.core.regular_file import open_regular

KEY = "key"
# More than a key takes, so that a file that is no key is not read to its end.
_READ_BYTES_MAX = 1024
_OTHERS = 0o077


class FileKey:
    """The key in the folder of a store."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def is_made(self) -> bool:
        """Whether there is one."""
        return (self._home / KEY).exists()

    @cached_property
    def signer(self) -> Signer:
        """Who signs with it; it is made on first use."""
        return load_signer(self._home)


def load_signer(home: Path, on_new: Callable[[str], None] | None = None) -> Signer:
    """The signer of a store, made when there is none yet; `on_new` is told the name of one that is about to be there."""
    path = home / KEY
    try:
        refuse_lost_key(home)
        if not path.exists():
            _make(path, on_new)
        return _read(path)
    except OSError as error:
        raise store_unusable(error, path) from error


def login_key(home: Path) -> Signer:
    """The key of a folder, to log in with; raises StoreUnusable where there is none: one that was just made opens no store."""
    if not FileKey(home).is_made:
        message = f"{home / KEY} is not there, and the servers let in only whom they know; `remit keys` makes it"
        raise StoreUnusable(KEY_MISSING, f"{message}, and an operator admits it", {"path": str(home / KEY)})
    return load_signer(home)


def fingerprint_in(home: Path) -> str:
    """The name of the key in a folder, whether or not it may be read. It does not say that the key can be used."""
    path = home / KEY
    try:
        with open_regular(path) as file:
            return _signer_in(path, file.read(_READ_BYTES_MAX)).did
    except OSError as error:
        raise store_unusable(error, path) from error


def refuse_lost_key(home: Path) -> None:
    """Raise when a store has been signed for and its key is gone."""
    path = home / KEY
    # Looked at again behind the heads: another process may just have made the key and signed the first of them.
    if not path.exists() and holds_any(home, "heads") and not path.exists():
        raise disk_failure(KEY_MISSING, path, "is not there, although heads of this store were signed with it")


def holds_any(home: Path, table: str) -> bool:
    """Whether a store has a row of this kind, or a line in its log: the log may be behind the database, and either lost.

    A database that another process is making at this moment has no rows yet.
    """
    log, database = home / HEADS_LOG, home / DATABASE
    if log.is_file() and log.stat().st_size:
        return True
    if not database.exists() or not database.stat().st_size:
        return False
    try:
        with closing(connect_to_read(database)) as connection:
            if not schema_version(connection, database):
                return False
            return connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608  # our own names of tables
    except DATABASE_ERRORS as error:
        raise store_unusable(error, database) from error


def _make(path: Path, on_new: Callable[[str], None] | None = None) -> None:
    """Write a new key beside its place and link it there: the process that links first made the key of this store."""
    draft, signer = path.with_name(f"{KEY}.{secrets.token_hex(8)}"), Signer.generate()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.write(descriptor, signer.private_bytes().hex().encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if on_new is not None:
            on_new(signer.did)
        path.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        draft.unlink()
        sync_folder(path.parent)


def _read(path: Path) -> Signer:
    with open_regular(path) as file:
        mode = os.fstat(file.fileno()).st_mode
        text = file.read(_READ_BYTES_MAX)
    if mode & _OTHERS:
        raise _unusable_key(path, f"others may read it (mode {mode & 0o777:o}); run chmod 600 on it")
    return _signer_in(path, text)


def _signer_in(path: Path, text: bytes) -> Signer:
    try:
        return Signer.from_bytes(bytes.fromhex(text.decode("ascii").strip()))
    except ValueError:
        raise _unusable_key(
            path, "holds no private key; put back a backup; docs/store.md says how to go on with a new key"
        ) from None


def _unusable_key(path: Path, what: str) -> StoreUnusable:
    return StoreUnusable(KEY_UNUSABLE, f"{path}: {what}", {"path": str(path)})
