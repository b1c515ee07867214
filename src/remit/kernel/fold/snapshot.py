"""Snapshots: a state as bytes, so that a long run can be taken up without folding all its turns.

Rule 1: a snapshot is a cache. Delete it, fold the turns, and the same state is back.
Rule 2: every field of RunState and of its groups is kept but what follows from the manifest, which is made anew; what a
        field is written as follows from its type, so a new field is kept without a change here.
Rule 3: a snapshot begins with the mark of the version that wrote it: of its format, of the rules, and of the name and
        the shape of every field. Under any other mark it is not read at all.
Rule 4: nothing here asks whether the bytes can be trusted; the loader has asked.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache
from hashlib import sha256
from operator import attrgetter
from types import GenericAlias, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from remit.core.journal.turn import KERNEL_VERSION
from remit.core.record import unclassed
from remit.kernel.fold.derived import derived_of
from remit.kernel.state import RunState

# Raised when the fold of a turn leaves something else in a state than before and no type and no rule shows it.
FORMAT = 2

# The group that follows from the manifest alone: derived_of() makes it.
DERIVED = "derived"

_MARK_BYTES = 32

_encode = msgspec.msgpack.Encoder(order="deterministic", enc_hook=unclassed).encode


class StateField(NamedTuple):
    """A field of a state or of one of its groups ("place.node"), the type it is written as, and the way there and back."""

    name: str
    written_as: Any
    packed: Callable[[Any], Any]
    unpacked: Callable[[Any], Any]


class StateLayout(NamedTuple):
    """How states are written."""

    mark: bytes
    fields: tuple[StateField, ...]
    decode: Callable[[memoryview], Sequence[Any]]


def snapshot_of(state: RunState) -> bytes | None:
    """A state that has started, as bytes; equal states give equal bytes. None if a sum outgrew every number format."""
    layout = layout_of(RunState)
    try:
        return layout.mark + _encode([field.packed(attrgetter(field.name)(state)) for field in layout.fields])
    except OverflowError:
        return None


def state_from(data: bytes) -> RunState | None:
    """The state in these bytes; None when they are no snapshot, or one that this version does not know."""
    layout = layout_of(RunState)
    if data[:_MARK_BYTES] != layout.mark:
        return None
    try:
        values = layout.decode(memoryview(data)[_MARK_BYTES:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    kept = RunState()
    for field, value in zip(layout.fields, values, strict=True):
        group, _, name = field.name.rpartition(".")
        setattr(getattr(kept, group) if group else kept, name, field.unpacked(value))
    if kept.manifest is None:
        return None
    kept.derived = derived_of(kept.manifest)
    return kept


# A pure memo: the types of a class never change.
@cache
def layout_of(kind: type) -> StateLayout:
    """How states of a class are written. It takes milliseconds, so it is found out when the first one is."""
    fields = tuple(_fields(kind))
    written_as = GenericAlias(tuple, tuple(field.written_as for field in fields))
    shape = msgspec.json.encode(msgspec.json.schema(written_as), order="deterministic")
    named = repr((FORMAT, KERNEL_VERSION, [field.name for field in fields])).encode()
    return StateLayout(sha256(named + shape).digest(), fields, msgspec.msgpack.Decoder(written_as).decode)


def _fields(kind: type, group: str = "") -> Iterator[StateField]:
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint) and name != DERIVED:
            yield from _fields(hint, f"{name}.")  # type: ignore[arg-type]  # a hint is a class
        elif name != DERIVED:
            yield _field(group + name, hint)


def _field(name: str, hint: Any) -> StateField:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is dict:
        # As pairs: the order of a map belongs to the state, and keys may be anything.
        return StateField(name, GenericAlias(list, GenericAlias(tuple, inner)), _pairs, dict)
    if origin is list and isinstance(inner[0], UnionType) and not _tell_each_other_apart(get_args(inner[0])):
        kinds = get_args(inner[0])
        row = GenericAlias(tuple, tuple(kind | None for kind in kinds))
        return StateField(name, GenericAlias(list, row), lambda entries: _by_kind(kinds, entries), _whichever)
    return StateField(name, hint, _as_it_is, _as_it_is)


def _tell_each_other_apart(kinds: Iterable[Any]) -> bool:
    """Whether the bytes of records say which of these kinds they are."""
    structs = [kind.__struct_config__ for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    return len(structs) < 2 or all(config.tag is not None for config in structs)


def _as_it_is(value: Any) -> Any:
    return value


def _pairs(value: dict[Any, Any]) -> list[Any]:
    return list(value.items())


def _by_kind(kinds: Sequence[type], entries: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Each entry in the column of its kind, the other columns empty."""
    return [tuple([entry if type(entry) is kind else None for kind in kinds]) for entry in entries]


def _whichever(rows: Iterable[Sequence[Any]]) -> list[Any]:
    # A record is never false, and this is asked for every message of a run.
    return [next(filter(None, row)) for row in rows]
