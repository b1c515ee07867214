"""Versions: the content hash under which a part of a run is pinned.

Rule 1: a version is the SHA-256 over the canonical form of a record; equal content has an equal version everywhere.
Rule 2: what was hashed is remembered by its bytes, never by its identity, so a record whose maps were changed behind
        its back gets the version of what it holds now.
"""

from hashlib import sha256

import msgspec

from remit.core.journal.canonical import canonical_hash
from remit.core.record import Record

# Boundaries and tools of a process that serves many; an entry takes two hundred bytes.
VERSIONS_REMEMBERED_MAX = 4_096

_encode = msgspec.msgpack.Encoder().encode
_remembered: dict[bytes, str] = {}


def content_version(record: Record) -> str:
    """The version of what a record holds; fields at their default do not count. Raises where there is no canonical form."""
    try:
        # Equal bytes are read back as equal values, and equal values have one canonical form.
        digest = sha256(_encode(record)).digest()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return _computed(record)  # Which says better what has no canonical form.
    version = _remembered.get(digest)
    if version is None:
        version = _computed(record)
        if len(_remembered) >= VERSIONS_REMEMBERED_MAX:
            _remembered.clear()
        _remembered[digest] = version
    return version


def _computed(record: Record) -> str:
    return canonical_hash(msgspec.to_builtins(record)).hex()
