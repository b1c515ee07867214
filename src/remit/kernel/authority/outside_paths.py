"""Paths: which arguments of a call point outside of the folder that its tool works in.

Rule 1: an argument is a path by the kind `path` that its tool declares, or by how it is called. Of any other argument that
        is no payload, a single word that reads like such a path counts, too.
Rule 2: a path leaves the folder when it is absolute, begins in a home or a variable, names a scheme, or climbs with `..`.
"""

from collections.abc import Iterator
from typing import Any

from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject
from remit.core.regex import regex

_KIND = "path"
_CALLED = regex(
    r"(?:^|_)(?:path|file|filename|filepath|dir|dirname|directory|folder|cwd|root|dest|destination|src|source|target)s?$"
)
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])|-")
_ABSOLUTE = regex(r"\s*(?:[/~\\$%]|[A-Za-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*:/)")
_CLIMBS = regex(r"(?:^|[\\/])\s*\.\.\s*(?:[\\/]|$)")
# A word that can be nothing but a path out of here: prose, code and links are no such word.
_WORD = regex(r"(?:[/~]|\\\\|[A-Za-z]:\\)[\w.~-]+(?:[\\/][\w.~-]*)*|(?:[\w.~-]*[\\/])*\.\.(?:[\\/][\w.~-]*)*")


def is_path(name: str, tool: ToolDefinition) -> bool:
    """Whether an argument is a path: its tool says so, or it is called like one."""
    declared = any(kind == _KIND and name in (path, path.rpartition(".")[2]) for path, kind in tool.control_args)
    return declared or _CALLED.search(_HUMP.sub("_", name).lower()) is not None


def paths_outside(arguments: JsonObject, tool: ToolDefinition, *, is_whole: bool = True) -> list[str]:
    """The arguments that point outside. Of arguments that are not shown in full, a path that is missing may do so, too."""
    return [name for name, value in arguments.items() if _points_outside(name, value, tool, is_whole)]


def _points_outside(name: str, value: Any, tool: ToolDefinition, is_whole: bool) -> bool:  # noqa: FBT001
    if not is_path(name, tool) and name in tool.trust.payload_args:
        return False
    return any(
        not is_whole and is_own if text is None else _leads_out(text, is_own)
        for text, is_own in _texts(value, is_path(name, tool), tool)
    )


def _leads_out(text: str, is_own: bool) -> bool:  # noqa: FBT001
    if is_own:
        return _ABSOLUTE.match(text) is not None or _CLIMBS.search(text) is not None
    return _WORD.fullmatch(text.strip()) is not None


def _texts(value: Any, is_own: bool, tool: ToolDefinition) -> Iterator[tuple[str | None, bool]]:  # noqa: FBT001
    """The texts within an argument, each with whether it is a path; None is one that is not shown."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, is_own or is_path(key, tool), tool)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, is_own, tool)
    elif value is None or isinstance(value, str):
        yield value, is_own
