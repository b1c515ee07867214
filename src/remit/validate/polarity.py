"""Polarity: what an answer affirms or denies of the fields of an observation that are true or false.

Rule 1: a field says the same in every observation, or it is left out. Its name is what it says: `in_stock`, `is_approved`.
Rule 2: an answer contradicts a field whose name it affirms or denies the other way, and by a yes or a no to a question that
        names the field; a bare yes or no also where the field is all that was observed.
Rule 3: a name of one word counts where a form of `be` or `have` leads to it: `default` and `more` are words like others.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from remit.core.journal.codec import read_json
from remit.core.regex import regex
from remit.validate.state_words import CLAUSE_ENDS, DEPTH_MAX, NO_LETTERS

_SAYS = {"yes": True, "true": True, "no": False, "false": False}
_NEGATIONS = frozenset(("not", "no", "never", "without", "nor", "neither", "cannot", "isn't", "none"))
_FORMS = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "has",
        "have",
        "had",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "hasn't",
        "haven't",
        "it's",
        "i'm",
    ]
)
_PREFIX = regex(r"^(?:is|has|was|are) ")
_WORD = regex(r"[a-z]+(?:'[a-z]+)?")
_LEAD = regex(r"[\s*_\"]*(yes|no)\b(.*)", re.IGNORECASE | re.DOTALL)
_WORDS_BETWEEN_MAX = 4
_NAME_CHARS_MIN = 3


class Polarity(NamedTuple):
    """Whether a text affirms a name, and whether it denies it."""

    is_affirmed: bool
    is_denied: bool


def contradicted(answer: str, observed: Sequence[str], said: Sequence[str]) -> Iterator[str]:
    """What an answer says the other way than the fields that were observed."""
    values = [value for text in observed for value in _scalars(_value_in(text), "")]
    found: dict[str, set[bool]] = {}
    for name, value in values:
        if value is not None and len(name) >= _NAME_CHARS_MIN:
            found.setdefault(name, set()).add(value)
    fields = {name: is_true for name, all_ in found.items() if len(all_) == 1 for is_true in all_}
    for name, is_true in fields.items():
        told = _heard(answer, name, is_prose=True)
        if told.is_affirmed and not told.is_denied and not is_true:
            yield name
        elif told.is_denied and not told.is_affirmed and is_true:
            yield f"not {name}"
    lead = _LEAD.match(answer)
    if lead is None or not fields:
        return
    asked = {name: [_heard(text, name, is_prose=False) for text in said] for name in fields}
    plainly = [name for name, heard in asked.items() if not any(one.is_denied for one in heard)]
    # A bare yes is about the field that is all that was observed; any other about those that people have named.
    is_alone = len(values) == 1 and re.search(r"\w", lead[2]) is None
    meant = {fields[name] for name in plainly if is_alone or any(one.is_affirmed for one in asked[name])}
    if meant == {lead[1].lower() == "no"}:
        yield lead[1]


def _heard(text: str, name: str, *, is_prose: bool) -> Polarity:
    """What a text says of a name; in prose a name of one word counts only behind a form of `be` or `have`."""
    is_affirmed = is_denied = False
    wanted = name.split()
    for clause in CLAUSE_ENDS.split(text.lower().replace("\u2019", "'").replace("_", " ")):
        words = _WORD.findall(clause)
        for place in range(len(words) - len(wanted) + 1):
            if words[place : place + len(wanted)] != wanted:
                continue
            before = words[max(place - _WORDS_BETWEEN_MAX, 0) : place]
            if is_prose and len(wanted) == 1 and _FORMS.isdisjoint(before):
                continue
            is_negated = any(word in _NEGATIONS or word.endswith("n't") for word in before)
            is_affirmed, is_denied = is_affirmed or not is_negated, is_denied or is_negated
    return Polarity(is_affirmed, is_denied)


def _scalars(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, bool | None]]:
    """Every plain value with the name of its field, and whether it says yes; None for what says neither."""
    if isinstance(value, dict) and depth < DEPTH_MAX:
        for key, inner in value.items():
            yield from _scalars(inner, _PREFIX.sub("", " ".join(NO_LETTERS.split(str(key).lower())).strip()), depth + 1)
    elif isinstance(value, list) and depth < DEPTH_MAX:
        for inner in value:
            yield from _scalars(inner, name, depth + 1)
    else:
        yield name, value if isinstance(value, bool) else _SAYS.get(str(value).strip().lower())


def _value_in(text: str) -> Any:
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return text
