"""Paths of arguments: how a tool names what stands within one, such as `order.lines[].sku`.

Rule 1: a name that is an argument is that argument, whatever signs it has.
"""

from collections.abc import Iterator
from typing import Any

from remit.core.record import JsonObject

_EACH = "[]"


def root_of(path: str) -> str:
    """The argument that a path begins with."""
    return path.partition(".")[0].partition("[")[0]


def values_at(arguments: JsonObject, path: str) -> Iterator[Any]:
    """Every value that a path leads to."""
    if path in arguments:
        yield arguments[path]
    elif path != root_of(path):
        yield from _within(arguments, path.replace(_EACH, f".{_EACH}").split("."))


def _within(value: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        yield value
    elif steps[0] == _EACH and isinstance(value, list):
        for one in value:
            yield from _within(one, steps[1:])
    elif isinstance(value, dict) and steps[0] in value:
        yield from _within(value[steps[0]], steps[1:])
