"""Leaks: what in an answer looks like a key, a token or a password, and how much of it may be told.

Rule 1: the shapes are those of core/secrets/secret_shapes.py, with their encodings; whatever is kept out of a journal is a leak.
Rule 2: a handle stands for a secret that was kept out already, and an answer that passes it on leaks as much.
Rule 3: what was found is never shown: its kind, its length and its place must do.
"""

from collections.abc import Iterator
from typing import NamedTuple

from remit.core.secrets.secret_search import HANDLE, secrets_in


class Leak(NamedTuple):
    """What was found: its kind, how long it is and at which character it stands."""

    kind: str
    chars: int
    start: int


def leaks_in(text: str) -> Iterator[Leak]:
    """Everything in a text that looks like a secret or stands for one, in order."""
    found = [Leak(secret.kind, secret.end - secret.start, secret.start) for secret in secrets_in(text)]
    found += [Leak(handle[1], len(handle[0]), handle.start()) for handle in HANDLE.finditer(text)]
    return iter(sorted(found, key=lambda leak: leak.start))
