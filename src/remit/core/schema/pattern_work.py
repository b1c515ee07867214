"""The work that patterns of a JSON Schema make of a value, counted before it is done.

Rule 1: the work of a pattern grows with its size and with the text, and with the square of the text where it may
        backtrack.
Rule 2: a value is weighed as a whole first, and part by part only where that would be too much.
Rule 3: counts are upper bounds, calibrated with patterns and texts that are made to be slow.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from remit.core.record import JsonObject
from remit.core.schema.schema_work import CONTAINERS, References, ViolationListing, children, visits_of

# Steps back that a pattern with look-around or back references may take; then the text does not match.
PATTERN_BACKTRACKS_MAX = 5_000
# What reading on costs against a step back: of so many steps, one reads a part of the text anew.
_BACKTRACK_SHARE = 32
# In a shorter text there is less to remember, and each step costs less.
_LONG_CHARS = 1_000
# More than any value could meet and be checked.
_BYTES_MAX = 10**15


class PatternWeight(NamedTuple):
    """The bytes of a pattern once it is compiled, and whether it may backtrack."""

    size_bytes: int
    backtracks: bool

    def work(self, chars: int) -> int:
        """The steps that matching a text of so many characters costs."""
        if not self.backtracks:
            return self.size_bytes * chars
        anew = (PATTERN_BACKTRACKS_MAX + chars) // _BACKTRACK_SHARE
        return self.size_bytes * chars * anew * min(chars, _LONG_CHARS) // _LONG_CHARS


class PatternWork:
    """The work that the patterns of a schema make of a value."""

    def __init__(self, schema: Any, references: References, weights: Mapping[str, PatternWeight]) -> None:
        self._schema = schema
        self._references = references
        self._weights = weights
        # All patterns that one value may be checked against, combined into two: one that can backtrack and one that cannot.
        self._all = (self._together(backtracks=False), self._together(backtracks=True))

    def is_over(self, value: Any, most: int, levels: int) -> bool:
        """Whether checking a value would take more than so much work."""
        chars = _chars_in(value)
        if sum(weight.work(chars) for weight in self._all) <= most:
            return False
        return ViolationListing(self._references, most, self._cost).visits(self._schema, value, levels) > most

    def _cost(self, schema: JsonObject, value: Any) -> int:
        if isinstance(value, str):
            return self._of(schema, len(value), 0)
        return sum(self._of(schema, 0, len(name)) for name in value) if isinstance(value, dict) else 0

    def _of(self, node: JsonObject, text_chars: int, name_chars: int) -> int:
        return sum(self._weights[pattern].work(name_chars) for pattern in patterns_of_names(node)) + sum(
            self._weights[pattern].work(text_chars) for pattern in patterns_of_texts(node)
        )

    def _together(self, *, backtracks: bool) -> PatternWeight:
        def size(node: Any) -> int:
            if not isinstance(node, dict):
                return 0
            weights = [self._weights[pattern] for pattern in (*patterns_of_texts(node), *patterns_of_names(node))]
            return sum(weight.size_bytes for weight in weights if weight.backtracks is backtracks)

        return PatternWeight(visits_of(self._schema, self._references, _BYTES_MAX, size), backtracks)


def patterns_in(resources: Iterable[Any]) -> set[str]:
    """Every pattern of some schemas."""
    found: set[str] = set()
    todo = list(resources)
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            found.update(patterns_of_texts(node), patterns_of_names(node))
        todo += [child for child in children(node) if isinstance(child, CONTAINERS)]
    return found


def patterns_of_texts(node: JsonObject) -> tuple[str, ...]:
    """The pattern that a schema has for a text."""
    pattern = node.get("pattern")
    return (pattern,) if isinstance(pattern, str) else ()


def patterns_of_names(node: JsonObject) -> tuple[str, ...]:
    """The patterns that a schema has for names of properties."""
    patterns = node.get("patternProperties")
    return tuple(patterns) if isinstance(patterns, dict) else ()


def _chars_in(value: Any) -> int:
    """The characters of all texts and names of a value."""
    chars, todo = 0, [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            chars += len(each)
        elif isinstance(each, dict):
            chars += sum(map(len, each))
        todo += children(each)
    return chars
