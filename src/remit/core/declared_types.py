"""Records against the types that they declare: Python lets a caller put anything into a field, and a journal does not.

Rule 1: what can only mean one thing is taken as meant: a list for a tuple, the text of a member for the member, an object with
        the fields of a record for the record.
Rule 2: anything else is refused with the code of its door, and the refusal names the field, its value, and what may stand there.
"""

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import RequestRejected
from remit.core.regex import regex

T = TypeVar("T")

# msgspec ends its messages with the place, as in "Expected `int`, got `str` - at `$.lease[0][1]`".
_PLACE = regex(r" - at `(?:key in )?\$(?P<steps>[^`]*)`$")
_STEP = regex(r"\.(?P<field>\w+)|\[(?P<index>\d+|\.\.\.)\]")
_UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)


def as_declared(given: object, kind: type[T], what: str, code: str) -> T:
    """The record as its types read it, itself where they change nothing; raises RequestRejected for what does not fit them."""
    is_of_kind = isinstance(given, kind)
    if not is_of_kind and not isinstance(given, dict):
        raise refusal(code, what, given, kind)
    try:
        data = msgspec.msgpack.encode(given)
    except _UNWRITABLE as error:
        if isinstance(error, UnicodeEncodeError) and is_of_kind:
            return cast("T", given)  # Half a surrogate pair is mended by those who read texts.
        place, value, declared = next(_unwritable(given, kind, what), (what, given, kind))
        raise refusal(code, place, value, declared) from error
    try:
        read = msgspec.msgpack.decode(data, type=kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise refusal(code, *_place_in(given, kind, what, str(error))) from error
    return cast("T", given) if is_of_kind and not _is_other(given, read) else read


def _is_other(given: object, read: object, declared: Any = Any) -> bool:
    """Whether reading made something else of a value. A record where anything may stand is read as an object, and stays."""
    if type(given) is not type(read):
        if isinstance(read, float):
            return False  # A whole number is one of those that may have a fraction.
        return declared is not Any or not (isinstance(given, msgspec.Struct) and isinstance(read, dict))
    if isinstance(given, msgspec.Struct):
        fields = _fields_of(type(given)).items()
        return any(_is_other(getattr(given, name), getattr(read, name), declared) for name, declared in fields)
    if isinstance(given, tuple) and isinstance(read, tuple):
        return any(map(_is_other, given, read))
    return False


def _place_in(given: object, kind: Any, what: str, message: str) -> tuple[str, object, Any]:
    """Where a message of msgspec points to, what stands there, and what is declared there."""
    found = _PLACE.search(message)
    place, value, declared = what, given, kind
    for step in _STEP.finditer(found["steps"] if found else ""):
        place += step[0]
        if step["field"]:
            value = value.get(step["field"]) if isinstance(value, dict) else getattr(value, step["field"], None)
            declared = next((one for one in map(_fields_of, _parts(declared)) if step["field"] in one), {}).get(
                step["field"], Any
            )
        else:
            inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
            at = int(step["index"]) if step["index"].isdigit() else 0
            value = inner[at] if at < len(inner) else None
            declared = next((args[-1 if args[-1] is not ... else 0] for args in _args_of(declared)), Any)
    return place, value, declared


def _unwritable(given: object, kind: Any, what: str) -> Iterator[tuple[str, object, Any]]:
    """What in a record cannot be written, the innermost first."""
    parts: list[tuple[str, object, Any]] = []
    if isinstance(given, msgspec.Struct):
        fields = _fields_of(type(given))
        parts = [(f"{what}.{name}", getattr(given, name), fields[name]) for name in given.__struct_fields__]
    elif isinstance(given, dict):
        parts = [(f"{what}[{str(key)[:SHOWN_CHARS_MAX]!r}]", value, Any) for key, value in given.items()]
    elif isinstance(given, list | tuple):
        element = next((args[0] for args in _args_of(kind)), Any)
        parts = [(f"{what}[{place}]", value, element) for place, value in enumerate(given)]
    for place, value, declared in parts:
        try:
            msgspec.msgpack.encode(value)
        except RecursionError:
            yield place, "...", declared
        except _UNWRITABLE:
            yield from _unwritable(value, declared, place)
            yield place, value, declared


def _parts(declared: Any) -> tuple[Any, ...]:
    """A type, or the types that a union is of."""
    declared = getattr(declared, "__origin__", declared) if hasattr(declared, "__metadata__") else declared
    return get_args(declared) if get_origin(declared) is not None and not _is_container(declared) else (declared,)


def _args_of(declared: Any) -> Iterator[tuple[Any, ...]]:
    return (get_args(part) for part in _parts(declared) if _is_container(part) and get_args(part))


def _is_container(declared: Any) -> bool:
    return isinstance(get_origin(declared), type) and issubclass(get_origin(declared), tuple | list | dict | frozenset)


# It takes longer to find out than to read a record.
@cache
def _fields_of(kind: Any) -> dict[str, Any]:
    is_record = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return {field.name: field.type for field in msgspec.structs.fields(kind)} if is_record else {}


def refusal(code: str, place: str, value: object, declared: Any) -> RequestRejected:
    """What says that a value cannot stand at a place, and what may."""
    try:
        shown = repr(value)[:SHOWN_CHARS_MAX]
    except Exception:  # noqa: BLE001  # a caller's own class may fail to show itself, and is refused all the same
        shown = type(value).__name__
    message = f"{place}={shown} cannot be used; it takes {_told(declared)}"
    return RequestRejected(code, message, {"field": place, "value": shown})


def _told(declared: Any) -> str:
    """A type as a person reads it: the texts of an enum, the name of a record, what a list is of."""
    told = []
    for part in _parts(declared):
        if part is type(None):
            told.append("None")
        elif isinstance(part, type) and issubclass(part, Enum):
            told.append(f"one of {', '.join(str(member.value) for member in part)}")
        elif _is_container(part):
            of = ", ".join(_told(one) for one in get_args(part) if one is not ...)
            told.append(f"{get_origin(part).__name__} of {of}" if of else get_origin(part).__name__)
        else:
            told.append(getattr(part, "__name__", str(part)))
    return " or ".join(told)
