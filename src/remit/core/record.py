"""The shape of every record: frozen, slotted, without clock or chance.

Rule 1: a record never changes; a new fact is a new record.
Rule 2: fields that hold their default are not written, so a field added later costs old journals nothing;
        and a default never changes once a journal may have relied on it.
Rule 3: a text over TEXT_INLINE_BYTES_MAX lives in Blobs and the record carries its digest.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache, wraps
from hashlib import sha256
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, dataclass_transform, get_args, get_origin

import msgspec

# Option maps are allowed on exactly the fields the contracts name: options, metadata, details, schemas and
# tool arguments. Everything else has a type.
JsonObject: TypeAlias = dict[str, Any]

# One kilobyte keeps a turn readable and its bytes flat; what is longer is stored once, by digest.
TEXT_INLINE_BYTES_MAX = 1024


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A frozen value that can be written to the journal."""


R = TypeVar("R", bound=Record)
T = TypeVar("T")


def unclassed(value: object) -> object:
    """A text or a number of a class of its own, as the plain one that it is: what is stored reads back as that."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise TypeError(f"a {type(value).__name__} cannot be stored; give plain texts, numbers, lists and objects")


# What reads several fields of a record at once.
_Values: TypeAlias = Callable[[Any], tuple[Any, ...]]
_LINE = frozenset({tuple})


class MadeByHand(Record):
    """A record that callers make: where it declares an enum, the text of a member is as good as the member.

    A text that names no member stays as it is; whatever takes the record refuses it and names the members.
    """

    def __post_init__(self) -> None:
        """Put the members in the place of their texts."""
        values, lines, members, fields = _enum_fields(type(self))
        # As a rule members stand there already, and every record that is made or read back comes by here.
        if members.issuperset(map(type, filter(None, values(self)))):
            told = [*filter(None, lines(self))]
            if not told or (_LINE.issuperset(map(type, told)) and members.issuperset(map(type, chain(*told)))):
                return
        for name, declared, default in fields:
            value = getattr(self, name)
            # A default stays the object that it is, by which it is known as one and not written.
            if value is default or isinstance(value, Enum):
                continue
            if type(value) is tuple and members.issuperset(map(type, value)):
                continue
            try:
                msgspec.structs.force_setattr(self, name, msgspec.convert(value, declared))
            except msgspec.ValidationError:
                continue


@cache
def _enum_fields(
    record: type[Record],
) -> tuple[_Values, _Values, frozenset[type], tuple[tuple[str, Any, Any], ...]]:
    """The fields of a record that declare an enum, each with its type and its default.

    Before them: what reads the values of those with one member each, and of those with several, and the types of members.
    """
    fields = [
        field
        for field in msgspec.structs.fields(record)
        if any(issubclass(kind, Enum) for kind in _types_in(field.type))
    ]
    members = frozenset([kind for field in fields for kind in _types_in(field.type) if issubclass(kind, Enum)])
    told = tuple((field.name, field.type, field.default) for field in fields)
    several = [
        field.name for field in fields if tuple in [get_origin(kind) for kind in (field.type, *get_args(field.type))]
    ]
    return _values_of([field.name for field in fields if field.name not in several]), _values_of(several), members, told


def _values_of(names: list[str]) -> _Values:
    # The first name twice, so that it gives a tuple of one field, too.
    return attrgetter(names[0], *names) if names else lambda _: ()


def _types_in(kind: Any) -> Iterator[type]:
    if isinstance(kind, type):
        yield kind
    for part in get_args(kind):
        yield from _types_in(part)


def once_a_record(kept_max: int) -> Callable[[Callable[[R], T]], Callable[[R], T]]:
    """Remember what a pure function said of the last so many records that it was asked about: a record never changes."""

    def remembering(function: Callable[[R], T]) -> Callable[[R], T]:
        # By the identity of the record, since what records hold can often not be hashed; the record stays in the entry, so
        # that nothing else can have the same.
        said: OrderedDict[int, tuple[R, T]] = OrderedDict()

        @wraps(function)
        def remembered(record: R) -> T:
            entry = said.get(id(record))
            if entry is None:
                entry = said[id(record)] = record, function(record)
                if len(said) > kept_max:
                    said.popitem(last=False)
            return entry[1]

        return remembered

    return remembering


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


def text_paths(kind: type[Record], within: str = "") -> Iterator[str]:
    """The paths of a record's fields that may hold a text by their declared types, those of records in it included."""
    for field in msgspec.structs.fields(kind):
        declared = field.type
        if not isinstance(declared, type):
            yield within + field.name
        elif issubclass(declared, Record):
            yield from text_paths(declared, f"{within}{field.name}.")
        elif not issubclass(declared, int | float | bytes | Enum):
            yield within + field.name


def size_bytes(text: Text) -> int:
    """The length of a text in UTF-8 bytes, wherever it lives."""
    if isinstance(text, str):
        return len(text) if text.isascii() else len(text.encode())
    return text.size_bytes


def digest_of(data: bytes) -> bytes:
    """The name under which Blobs keep these bytes."""
    return sha256(data).digest()
