"""Leaks: what in a text looks like a key, a token or a password, by the marks their makers put on them.

Rule 1: only marked things are found. Chance letters alone prove nothing and would flag every hash and picture.
Rule 2: what was found is never shown whole: its kind, its first characters and its length must do.
Rule 3: a mark counts at the beginning of a word only, and every repetition is bounded, so no text costs more than its
        length.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# So much is shown of what was found: the maker's mark, and nothing of the secret.
_SHOWN_CHARS = 4


def _mark(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_-]){pattern}")


_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", _mark(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY")),
    ("an access key of AWS", _mark(r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])")),
    ("a token of GitHub", _mark(r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{30,255})")),
    ("a token of GitLab", _mark(r"glpat-[A-Za-z0-9_-]{20,255}")),
    ("a token of Slack", _mark(r"xox[abeoprs]-[A-Za-z0-9-]{10,255}")),
    ("a key of Google", _mark(r"AIza[A-Za-z0-9_-]{35}")),
    ("a key of Stripe", _mark(r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}")),
    ("a key of a model's vendor", _mark(r"sk-[A-Za-z0-9_-]{20,255}")),
    ("a JSON web token", _mark(r"eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,2000}")),
    ("an address with a password", _mark(r"[a-z][a-z0-9+.]{1,15}://[^/@:\s]{0,64}:[^/@\s]{3,200}@")),
)


class Leak(NamedTuple):
    """What was found: its kind, how it begins, how long it is and at which character it stands."""

    kind: str
    beginning: str
    chars: int
    start: int


def leaks_in(text: str) -> Iterator[Leak]:
    """Everything in a text that looks like a secret, kind by kind."""
    for kind, mark in _MARKS:
        for found in mark.finditer(text):
            yield Leak(kind, found[0][:_SHOWN_CHARS], len(found[0]), found.start())
