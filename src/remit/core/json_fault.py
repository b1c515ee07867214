"""JSON faults: where a value holds what JSON cannot, so that it would not read back as it was written."""

from math import isfinite
from typing import Any

from remit.core.clipped import clipped
from remit.core.journal.canonical import DEPTH_MAX

_PLAIN = (str, int, type(None))


def json_fault(value: Any, path: str, levels_left: int = DEPTH_MAX) -> str:
    """The path of the first part that JSON cannot hold, and why; empty where it can hold all of it."""
    if isinstance(value, _PLAIN):
        return ""
    if isinstance(value, float):
        return "" if isfinite(value) else f"{path}={value!r} is no finite number"
    if not isinstance(value, dict | list | tuple):
        return f"{path}={clipped(value)} is of no type that JSON has"
    if not levels_left:
        return f"{path[:80]} nests deeper than depth_max={DEPTH_MAX}"
    if not isinstance(value, dict):
        faults = (json_fault(item, f"{path}[{place}]", levels_left - 1) for place, item in enumerate(value))
        return next(filter(None, faults), "")
    for key, member in value.items():
        if not isinstance(key, str):
            return f"{path} has the key {clipped(key)}, which is no text"
        if fault := json_fault(member, f"{path}.{key[:80]}", levels_left - 1):
            return fault
    return ""


def nests_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects stand in each other beyond so many levels, or without end."""
    if not value or not isinstance(value, dict | list | tuple):
        return False
    members = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(nests_deeper(member, levels - 1) for member in members)
