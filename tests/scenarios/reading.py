"""Values of a scenario file: texts, names, patterns and records of the house, each refused where it is not what it must be.

Rule 1: an error names the file, the line, the key, the value found and what would be right.
Rule 2: a key that a record does not have is refused at any depth.
"""

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from remit.core.record import JsonObject
from remit.core.schema.strict_yaml import ValuePath, YamlDocument, YamlFault, block_in, spelled_place, value_in_error

_T = TypeVar("_T")


def names_at(document: YamlDocument, value: Any, known: Iterable[str], place: ValuePath) -> list[str]:
    """One name or several, each of them known."""
    names = value if isinstance(value, list) else [value]
    for name in names:
        if name not in known:
            message = f"{spelled_place(place)} is {value_in_error(name)}; use one of {', '.join(known)}"
            document.reject(YamlFault.VALUE_INVALID, message, place)
    return [str(name) for name in names]


def text_at(document: YamlDocument, block: JsonObject, key: str, place: ValuePath) -> str:
    """A text; an empty one where nothing is said."""
    value = block.get(key, "")
    if not isinstance(value, str):
        message = f"{spelled_place((*place, key))} must be a text, not {value_in_error(value)}; put it in quotes"
        document.reject(YamlFault.VALUE_INVALID, message, (*place, key))
    return value


def number_at(document: YamlDocument, block: JsonObject, key: str, place: ValuePath) -> int:
    """A whole number from 0 on; 0 where nothing is said."""
    value = block.get(key, 0)
    # A bool is an int to Python, and no count to a reader.
    if type(value) is not int or value < 0:
        message = f"{spelled_place((*place, key))} must be a whole number from 0 on, not {value_in_error(value)}"
        document.reject(YamlFault.VALUE_INVALID, message, (*place, key))
    return value


def pattern_at(document: YamlDocument, block: JsonObject, key: str, place: ValuePath) -> str:
    """A regular expression; an empty one where nothing is said."""
    pattern = text_at(document, block, key, place)
    try:
        re.compile(pattern)
    except re.error as error:
        message = (
            f"{spelled_place((*place, key))} is {value_in_error(pattern)}, which is no regular expression: {error}"
        )
        document.reject(YamlFault.VALUE_INVALID, message, (*place, key))
    return pattern


def record_in(document: YamlDocument, value: Any, kind: type[_T], place: ValuePath) -> _T:
    """A record of the house, every key of it known."""
    _refuse_unknown(document, value, msgspec.inspect.type_info(kind), place)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        document.reject(YamlFault.VALUE_INVALID, f"{spelled_place(place)}: {error}", place)


def _refuse_unknown(document: YamlDocument, value: Any, kind: msgspec.inspect.Type, place: ValuePath) -> None:
    """Refuse a key that a record at any depth does not have; msgspec itself would skip it."""
    match kind:
        case msgspec.inspect.StructType():
            fields = {field.encode_name: field.type for field in kind.fields}
            for key, inner in block_in(document, value, tuple(fields), place).items():
                _refuse_unknown(document, inner, fields[key], (*place, key))
        case msgspec.inspect.VarTupleType() if isinstance(value, list):
            for at, inner in enumerate(value):
                _refuse_unknown(document, inner, kind.item_type, (*place, at))
        case msgspec.inspect.UnionType() if value is not None:
            for one in kind.types:
                if not isinstance(one, msgspec.inspect.NoneType):
                    _refuse_unknown(document, value, one, place)
