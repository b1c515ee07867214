"""The values that steps of a plan hand on: a text, and the kind that says how to read it.

Rule 1: a value is journaled once, as one text; its kind travels beside it and is never guessed from the text.
Rule 2: which kinds can be made of which is a closed table; whatever it does not list is a mismatch, not a cast.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from remit.core.record import Record, Text


class ValueKind(StrEnum):
    """How to read a value. Candidates come with their query; a result is what a tool returned."""

    TEXT = "text"
    MESSAGES = "messages"
    CANDIDATES = "candidates"
    OBJECT = "object"
    JSON = "json"
    RESULT = "result"


_ALL = frozenset(ValueKind)

# Per kind that a step needs: the kinds it can be made of.
CONVERTIBLE: Mapping[ValueKind, frozenset[ValueKind]] = MappingProxyType(
    {
        # Evidence is no statement: to make words of it, let a model read it first.
        ValueKind.TEXT: _ALL - {ValueKind.CANDIDATES},
        ValueKind.MESSAGES: _ALL,
        ValueKind.CANDIDATES: frozenset({ValueKind.CANDIDATES, ValueKind.MESSAGES}),
        # A text that happens to look like an object stays a text: what becomes an argument must be meant as one.
        ValueKind.OBJECT: frozenset({ValueKind.OBJECT}),
        ValueKind.JSON: frozenset({ValueKind.OBJECT, ValueKind.JSON}),
        ValueKind.RESULT: frozenset({ValueKind.RESULT}),
    }
)


def is_convertible(found: str, needed: str) -> bool:
    """Whether a step that needs one kind can work on another; one that names no need takes whatever comes."""
    return not needed or (found in _ALL and ValueKind(found) in CONVERTIBLE[ValueKind(needed)])


class Output(Record):
    """The output of a step: its kind, its text wherever that lives, and the command whose outcome it was."""

    kind: ValueKind
    text: Text
    command_id: str = ""
