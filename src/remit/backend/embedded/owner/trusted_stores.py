"""Whose store it is: a list of keys, kept by this user outside any store.

Rule 1: a store is ours when its folder and every file that it made there belong to this user, and the fingerprint of its key
        stands in this user's own list. The key file in the folder proves nothing: a stranger's folder brings its own.
Rule 2: a store that is made here is entered when it is made; any other when a person has seen what it names and said so.
Rule 3: the list is a file of this user's alone, a line for each store; lines are only ever added, each in one write.
Rule 4: a store that is not ours may be read. Nothing is written to it, and nothing that it names is loaded or asked.
"""

import json
import logging
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.backend.embedded.disk.database import DATABASE, connect_to_read
from remit.backend.embedded.disk.disk_failures import DATABASE_ERRORS, NOT_TRUSTED, disk_failure, store_unusable
from remit.backend.embedded.disk.permissions import owners_of, refuse_exposed
from remit.backend.embedded.disk.tables import schema_version
from remit.backend.embedded.owner.key_file import KEY, fingerprint_in, holds_any, load_signer, refuse_lost_key
from remit.core.failure import RequestRejected
from remit.core.journal.codec import read_json
from remit.core.journal.signing import DID, is_did
from remit.core.journal.storage import StoreUnusable
from remit.core.record import Record

_log = logging.getLogger(__name__)

TRUST_LIST_UNUSABLE = "TRUST_LIST_UNUSABLE"

# No user has a hundred thousand stores; a longer file is not the list.
_LIST_BYTES_MAX = 64 << 20
_WRITABLE_BY_OTHERS = 0o022


class Trusted(Record):
    """One line of the list: a store by its key, whose files it may have, and who else may have signed its runs."""

    key: str
    owner: int
    # For people who read the list; a store that was moved is the same store.
    home: str = ""
    signers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrustList:
    """The list of one user, and the fingerprints that the settings of a deployment name besides."""

    path: Path
    named: frozenset[str] = frozenset()

    def entries(self, key: str) -> tuple[Trusted, ...]:
        """The lines about a key."""
        mark = json.dumps(key)
        found = [_entry(line) for line in self._lines() if mark in line]
        return tuple(entry for entry in found if entry is not None and entry.key == key)

    def enter(self, entry: Trusted) -> None:
        """Add a line, for good; raises RequestRejected where the list cannot be written."""
        fields = {"key": entry.key, "owner": entry.owner, "home": entry.home, "signers": list(entry.signers)}
        line = (json.dumps(fields, separators=(",", ":")) + "\n").encode()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                size_bytes = os.fstat(descriptor).st_size
                is_torn = size_bytes and os.pread(descriptor, 1, size_bytes - 1) != b"\n"
                os.write(descriptor, b"\n" + line if is_torn else line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._unusable(f"cannot be written: {error.strerror}") from error

    def _lines(self) -> list[str]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from error
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            os.close(descriptor)
            raise self._unusable("is no file")
        with os.fdopen(descriptor, "rb") as file:
            if seen.st_uid not in (os.geteuid(), 0) or seen.st_mode & _WRITABLE_BY_OTHERS:
                mode = stat.S_IMODE(seen.st_mode)
                raise self._unusable(
                    f"may be written by others (owner {seen.st_uid}, mode {mode:o}); look what it says, then chmod 600"
                )
            if seen.st_size > _LIST_BYTES_MAX:
                raise self._unusable(f"has {seen.st_size} bytes, more than {_LIST_BYTES_MAX}")
            # Room is made for what is asked for, and not for what is there.
            return file.read(seen.st_size).decode(errors="replace").splitlines()

    def _unusable(self, what: str) -> RequestRejected:
        message = f"{str(self.path)!r}, the list of the stores that are yours, {what}; REMIT_TRUST names another"
        return RequestRejected(TRUST_LIST_UNUSABLE, message, {"path": str(self.path)})


@dataclass(frozen=True, slots=True)
class Ownership:
    """How a store stands to this user. `signers` are the keys whose signatures on its runs count."""

    is_ours: bool
    # There is nothing in it yet, so it becomes ours with the first thing that is written.
    is_new: bool = False
    fingerprint: str = ""
    signers: frozenset[str] = frozenset()
    why_not: str = ""


def trust_named(said: str, usual: TrustList) -> TrustList:
    """The list that a setting names: fingerprints, the absolute path of a list in place of the usual one, or both."""
    parts = [part for part in said.replace(",", " ").split() if part]
    named = frozenset(part for part in parts if part.startswith(DID))
    path = usual.path
    if wrong := [part for part in parts if part in named and not is_did(part)]:
        message = f"REMIT_TRUST names {wrong[0][:200]!r}, which spells no key; `remit keys` of its machine shows it"
        raise RequestRejected(TRUST_LIST_UNUSABLE, message, {"key": wrong[0][:200]})
    for part in parts:
        if part not in named:
            path = Path(part)
            if not path.is_absolute():
                message = f"REMIT_TRUST={part[:200]!r} is neither a fingerprint ({DID}...) nor an absolute path"
                raise RequestRejected(TRUST_LIST_UNUSABLE, message, {"path": part[:200]})
    return TrustList(path, named)


def standing_of(home: Path, trusted: TrustList, webhooks: Sequence[str] = ()) -> Ownership:
    """Whether the store in a folder is ours; raises StoreUnusable where its key cannot be read.

    `webhooks` are the addresses that a file in the folder names; a folder that brings some is not ours by being empty.
    """
    if not (home / KEY).exists():
        refuse_lost_key(home)
        if not holds_any(home, "runs"):
            if not any(webhooks):
                return Ownership(is_ours=True, is_new=True)
            return Ownership(is_ours=False, why_not="it is empty but for addresses of webhooks that were written there")
        # Looked at again behind the runs: another process may just have made the key and begun the first of them.
        if not (home / KEY).exists():
            return Ownership(is_ours=False, why_not="it has no key, so it is unknown who made it")
    fingerprint = fingerprint_in(home)
    owners = owners_of(home)
    is_named = fingerprint in trusted.named
    entries = () if is_named else trusted.entries(fingerprint)
    if is_named or entries:
        load_signer(home)  # A key of ours that others may read is refused with its own code.
    if is_named:
        return Ownership(is_ours=True, fingerprint=fingerprint, signers=trusted.named)
    if not entries:
        why_not = f"the fingerprint of its key, {fingerprint}, is not in {trusted.path}"
        return Ownership(is_ours=False, fingerprint=fingerprint, why_not=why_not)
    allowed = {os.geteuid(), *(entry.owner for entry in entries)}
    if strangers := owners.keys() - allowed:
        whose = owners[min(strangers)]
        what = "it" if whose == home else whose.name
        why_not = f"{what} belongs to user {min(strangers)}, and not to you ({os.geteuid()})"
        return Ownership(is_ours=False, fingerprint=fingerprint, why_not=why_not)
    signers = trusted.named | {fingerprint, *(signer for entry in entries for signer in entry.signers)}
    return Ownership(is_ours=True, fingerprint=fingerprint, signers=signers)


def believed_in(home: Path, trusted: TrustList) -> frozenset[str]:
    """The keys whose word counts for a process with this folder, besides its own: those that its user or its deployment names."""
    try:
        return standing_of(home, trusted).signers | trusted.named
    except (StoreUnusable, RequestRejected):
        return trusted.named


def is_trusted_store(home: Path, trusted: TrustList, webhooks: Callable[[], Sequence[str]] = tuple) -> bool:
    """Whether the store in a folder is ours; what cannot be told is not."""
    try:
        return standing_of(home, trusted, webhooks()).is_ours
    except (StoreUnusable, RequestRejected):
        return False


def expect_trusted_store(home: Path, standing: Ownership) -> None:
    """Raise STORE_NOT_TRUSTED for a store that is not ours."""
    if not standing.is_ours:
        raise disk_failure(NOT_TRUSTED, home, f"is not a store of yours: {standing.why_not}")


def checked_ownership(home: Path, trusted: TrustList, webhooks: Callable[[], Sequence[str]]) -> Ownership:
    """How a store stands to this user; raises where it is not theirs, or any user could have written it."""
    refuse_exposed(home)
    ownership = standing_of(home, trusted, webhooks())
    expect_trusted_store(home, ownership)
    return ownership


def enter_new(home: Path, trusted: TrustList) -> Ownership:
    """Make the key of a store that was just made here, and enter it in the list before it can be used."""

    def enter(fingerprint: str) -> None:
        try:
            trusted.enter(Trusted(fingerprint, os.geteuid(), str(home)))
        except RequestRejected as error:
            # The run goes on, since this process made the store; the next process will have to be told.
            _log.warning("%s was made here and will not be known as yours: %s", home, error)

    fingerprint = load_signer(home, enter).did
    return Ownership(is_ours=True, fingerprint=fingerprint, signers=trusted.named | {fingerprint})


def owner_of(home: Path) -> int:
    """The user whose folder it is."""
    return home.stat().st_uid


def signers_in(home: Path) -> frozenset[str]:
    """Every signer of heads of the store in a folder."""
    path = home / DATABASE
    if not path.exists():
        return frozenset()
    try:
        with closing(connect_to_read(path)) as connection:
            if not schema_version(connection, path):
                return frozenset()
            return frozenset(str(signer) for (signer,) in connection.execute("SELECT DISTINCT signer FROM heads"))
    except DATABASE_ERRORS as error:
        raise store_unusable(error, path) from error


def _entry(line: str) -> Trusted | None:
    """What a line says; None for one that says nothing, such as one that was cut."""
    try:
        fields: Any = read_json(line)
        signers = tuple(str(signer) for signer in fields.get("signers", ()))
        return Trusted(str(fields["key"]), int(fields["owner"]), str(fields.get("home", "")), signers)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
