"""Handles: a model may name the field it means, `$obs3.records[0].sender`, instead of copying its value.

Rule 1: a handle is replaced by the exact value of the field before anything is judged or hashed.
Rule 2: only a declared field that supplies values can be named; any other handle stays a text that nothing binds.
Rule 3: a handle proves where a value is from and not that its record was rightly chosen: selection is judged as ever.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.provenance.kinds import supplies
from remit.provenance.origins.labels import OriginIndex, OriginPlace
from remit.provenance.values.leaves import path_step

_HANDLE = regex(r"\$obs(\d{1,6})\.(?:([^\s.\[\]]+(?:\.[^\s.\[\]]+)*)\.)?records\[(\d{1,6})\](?:\.(\S{1,200}))?")
_MARK = "$obs"
# What stands in the JSON of every call that has a handle.
HANDLE_SIGN = b'"$obs'
_DEPTH_MAX = 32


def as_handle(origin: OriginPlace) -> str:
    """The handle that names an origin, for a model to use."""
    group = origin.group.replace("[]", "").strip(".")
    prefix = f"{group}." if group and group != "*" else ""
    field = f".{origin.field.removesuffix('[]')}" if origin.field else ""
    return f"$obs{origin.observation}.{prefix}records[{origin.record}]{field}"


def resolve(arguments: JsonObject, index: OriginIndex) -> tuple[JsonObject, Mapping[str, OriginPlace]]:
    """The arguments with every handle replaced, and the origins of what was put in, by the path of each leaf."""
    used: dict[str, OriginPlace] = {}
    if not index.observations or not _may_name(arguments.values(), 0):
        return arguments, used
    resolved = {name: _replace(value, path_step(name), index, used, 0) for name, value in arguments.items()}
    return (resolved, used) if used else (arguments, used)


def _may_name(values: Iterable[Any], depth: int) -> bool:
    """Whether something in these values looks like a handle; most calls have none, and are not copied."""
    for value in values:
        if isinstance(value, str):
            found = value.startswith(_MARK)
        elif depth < _DEPTH_MAX and isinstance(value, (dict, list, tuple)):
            found = _may_name(value.values() if isinstance(value, dict) else value, depth + 1)
        else:
            continue
        if found:
            return True
    return False


def _replace(value: Any, path: str, index: OriginIndex, used: dict[str, OriginPlace], depth: int) -> Any:
    if isinstance(value, str):
        return _looked_up(value, path, index, used) if value.startswith(_MARK) else value
    if depth >= _DEPTH_MAX:
        return value
    if isinstance(value, dict):
        return {
            key: _replace(inner, f"{path}.{path_step(key)}", index, used, depth + 1) for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_replace(inner, f"{path}[{place}]", index, used, depth + 1) for place, inner in enumerate(value)]
    return value


def _looked_up(value: str, path: str, index: OriginIndex, used: dict[str, OriginPlace]) -> Any:
    found = _HANDLE.fullmatch(value)
    if not found or int(found[1]) >= len(index.observations):
        return value
    place, wanted = int(found[3]), found[4] or ""
    for name, group in index.observations[int(found[1])].groups.items():
        if found[2] is not None and name.replace("[]", "").strip(".") != found[2]:
            continue
        for field, kind in group.kinds.items():
            if field.removesuffix("[]") != wanted or not supplies(kind) or place >= len(group.records):
                continue
            held = group.records[place].get(field)
            # A field with many values names none of them.
            if held is not None and not isinstance(held, list):
                used[path] = OriginPlace(int(found[1]), name, place, field, kind)
                return held
    return value
