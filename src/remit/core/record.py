"""The shape of every record: frozen, slotted, without clock or chance.

Rule 1: a record never changes; a new fact is a new record.
Rule 2: fields that hold their default are not written, so a field added later costs old journals nothing;
        and a default never changes once a journal may have relied on it.
Rule 3: a text over TEXT_INLINE_BYTES_MAX lives in Blobs and the record carries its digest.
"""

from hashlib import sha256
from typing import Any, TypeAlias, dataclass_transform

import msgspec

# Option maps are allowed on exactly the fields the contracts name: options, metadata, details, schemas and
# tool arguments. Everything else has a type.
JsonObject: TypeAlias = dict[str, Any]

# One kilobyte keeps a turn readable and its bytes flat; what is longer is stored once, by digest.
TEXT_INLINE_BYTES_MAX = 1024


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A frozen value that can be written to the journal."""


class BlobRef(Record):
    """A text that lives in Blobs: its SHA-256 digest and its length in UTF-8 bytes."""

    digest: bytes
    size_bytes: int


# A copy of a record with some fields changed.
replace = msgspec.structs.replace
# The values of a record's fields, in their order.
field_values = msgspec.structs.astuple

# A short text stands for itself; a long one is named by its digest.
Text: TypeAlias = str | BlobRef


def size_bytes(text: Text) -> int:
    """The length of a text in UTF-8 bytes, wherever it lives."""
    if isinstance(text, str):
        return len(text) if text.isascii() else len(text.encode())
    return text.size_bytes


def digest_of(data: bytes) -> bytes:
    """The name under which Blobs keep these bytes."""
    return sha256(data).digest()
