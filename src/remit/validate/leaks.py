"""Leaks: what in an answer looks like a key, a token or a password, and how much of it may be told.

Rule 1: the shapes are those of core/secret_shapes.py, with their encodings; whatever is kept out of a journal is a leak.
Rule 2: what was found is never shown: its kind, its length and its place must do.
"""

from collections.abc import Iterator
from typing import NamedTuple

from remit.core.secret_search import secrets_in


class Leak(NamedTuple):
    """What was found: its kind, how long it is and at which character it stands."""

    kind: str
    chars: int
    start: int


def leaks_in(text: str) -> Iterator[Leak]:
    """Everything in a text that looks like a secret, in order."""
    return (Leak(found.kind, found.end - found.start, found.start) for found in secrets_in(text))
