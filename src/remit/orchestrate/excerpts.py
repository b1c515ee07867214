"""Excerpts: what the kernel is shown of texts that live in Blobs, because it has to look into them.

Rule 1: only what somebody looks at is taken out, and only as much as stands in a turn.
Rule 2: an excerpt is a fact like any other: the same text always gives the same one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from remit.core.boundary import Condition
from remit.core.canonical import NotCanonical, canonical_json
from remit.core.codec import read_json
from remit.core.goal import Goal
from remit.core.record import TEXT_INLINE_BYTES_MAX, JsonObject
from remit.core.tools import ToolDefinition
from remit.kernel.state import RunState, pinned
from remit.orchestrate.texts import note

# Of a call whose arguments are too long for a turn, arguments of this length are kept where conditions look at them.
ABRIDGED_BYTES_MAX = 256
# Facts are stated near the surface of a result.
CRITICAL_DEPTH_MAX = 16
# A result that says more than this of critical facts is a listing, and a turn need not hold all of it.
CRITICAL_FACTS_MAX = 64

# Names and short texts in a condition, of which some are names of arguments.
_NAME = re.compile(r"[\w-]+")


def is_looked_into(state: RunState, tool: ToolDefinition) -> bool:
    """Whether the kernel looks into the arguments of a tool's calls: for conditions, or to ask what they ask."""
    return bool(pinned(state).boundary.conditions) or tool.asks_under is not None


def abridged(arguments: JsonObject, conditions: Iterable[Condition] = (), control: Iterable[str] = ()) -> str:
    """As many arguments of a call as stand in a turn, in canonical form: what is looked at first, then the shortest.

    That is what conditions name, what steers the tool, and the user. Where it is too long it is null: it is there, and
    nobody can tell what it says. So no padding hides anything.
    """
    named = {"user_id", *control, *(name for condition in conditions for name in _NAME.findall(condition.when))}
    written = {key: canonical_json(value) for key, value in arguments.items()}
    kept: JsonObject = {}
    size = 0
    for key in sorted(arguments, key=lambda key: (key not in named, len(written[key]), key)):
        more = len(key) + len(written[key])
        if len(written[key]) <= ABRIDGED_BYTES_MAX and size + more <= TEXT_INLINE_BYTES_MAX:
            size += more
            kept[key] = arguments[key]
        elif key in named:
            kept[key] = None
    return canonical_json(kept).decode()


def critical_facts(goal: Goal, content: bytes) -> tuple[tuple[str, str], ...]:
    """What a result says of the facts that the goal calls critical, wherever in it they stand."""
    if not goal.critical:
        return ()
    try:
        found = read_json(content)
    except ValueError:
        return ()  # A text states no field.
    return tuple(sorted(set(_stated(found, goal.critical))))[:CRITICAL_FACTS_MAX]


def _written(value: object) -> str:
    """A plain value in its canonical form; a number that has none, because it is too large, as it stands."""
    try:
        return canonical_json(value).decode()
    except NotCanonical:
        return str(value)


def _stated(value: Any, names: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > CRITICAL_DEPTH_MAX:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in names and not isinstance(inner, dict | list):
                yield key, note(_written(inner))
            else:
                yield from _stated(inner, names, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _stated(inner, names, depth + 1)
