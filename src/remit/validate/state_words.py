"""Words for a state, as answers and observations use them: `active`, `overdue`, `delivered`, `failed`.

Rule 1: only words of one group contradict each other: an account is active or suspended, an invoice is paid or overdue.
        The groups are the ones below, and each list of words that the result schema of a tool gives as an `enum`.
Rule 2: an answer is judged in a group only where an observation states something of that group, and it passes as soon as
        one of its words there was observed. What it negates it does not state.
Rule 3: a field that is true states its own name, and one that is false denies it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from remit.core.journal.codec import read_json
from remit.core.regex import regex

_GROUPS = tuple(
    frozenset(words.split())
    for words in (
        "active inactive suspended closed locked unlocked blocked frozen deactivated terminated dormant expired",
        "enabled disabled",
        "verified unverified",
        "paid unpaid overdue outstanding refunded declined settled delinquent",
        "shipped delivered undelivered dispatched returned backordered cancelled",
        "approved rejected denied accepted pending revoked",
        "passed failed succeeded",
        "available unavailable online offline healthy unhealthy degraded reachable unreachable",
        "subscribed unsubscribed cancelled renewed lapsed",
        "valid invalid",
    )
)
# Spellings of one word.
_ALIKE = {"canceled": "cancelled", "passing": "passed", "passes": "passed", "failing": "failed", "fails": "failed"}
# Of an answer alone: in an observation they are verbs like any other.
_SAID_ALIKE = {
    **_ALIKE,
    **dict.fromkeys(("pass", "passes"), "passed"),
    **dict.fromkeys(("fail", "fails"), "failed"),
    **dict.fromkeys(("succeed", "succeeds", "successful", "successfully"), "succeeded"),
}
_DENIALS = frozenset(("not", "no", "never", "without", "nor", "neither", "cannot", "none", "0"))
_NEGATIONS = _DENIALS | {"if", "once", "until", "unless", "when"}
# Fields by which a program tells that it failed.
_EXIT_CODES = frozenset(("exit_code", "exitcode", "exit_status", "returncode", "return_code", "failed", "failures"))
# How far before a word its negation may stand: `is not yet fully active`.
_NEGATION_WORDS_MAX = 4
_WORD = regex(r"[a-z]+(?:['\u2019][a-z]+)?|\b0\b")
CLAUSE_ENDS = regex(r"[.,;:!?()\n]")
NO_LETTERS = regex(r"[^a-z]+")
# As many words as a state is given.
ENUM_WORDS_MAX = 64
DEPTH_MAX = 32


class States(NamedTuple):
    """What observations state: the groups of words that contradict each other, the words stated, and those denied."""

    groups: tuple[frozenset[str], ...]
    stated: frozenset[str]
    denied: frozenset[str]
    # Of those stated, the ones that are the whole value of a field.
    told: frozenset[str] = frozenset()


def stated_in(observed: Sequence[str], enums: Iterable[Sequence[str]] = ()) -> States:
    """What these observations state; `enums` are the words that result schemas list, a list for each field."""
    listed = [frozenset(_folded(word) for word in words) for words in enums]
    groups = (*_GROUPS, *(words for words in listed if 1 < len(words) <= ENUM_WORDS_MAX))
    stated: set[str] = set()
    denied: set[str] = set()
    told: set[str] = set()
    for text in observed:
        value = _value_in(text)
        if value is None:
            stated.update(_words_stated(text))
        else:
            _take(value, "", stated, denied)
            told.update(_told(value))
    return States(groups, frozenset(stated), frozenset(denied), frozenset(told))


def enums_in(schema: Any, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """The lists of words that a JSON Schema gives for its values."""
    if depth > DEPTH_MAX:
        return
    if isinstance(schema, dict):
        words = schema.get("enum")
        if isinstance(words, list):
            texts = tuple(word for word in words if isinstance(word, str))
            if len(texts) == len(words):
                yield texts
        for each in schema.values():
            yield from enums_in(each, depth + 1)
    elif isinstance(schema, list):
        for each in schema:
            yield from enums_in(each, depth + 1)


def unsupported_states(answer: str, states: States) -> Iterator[str]:
    """The words for a state that an answer uses and that contradict what was observed."""
    said = tuple(dict.fromkeys(_words_stated(answer, states.groups, _SAID_ALIKE)))
    negated = frozenset(_words_stated(answer, states.groups, _SAID_ALIKE, is_denied=True)).difference(said)
    for group in states.groups:
        if len(only := group & states.stated) == 1 and only <= states.told and only <= negated:
            yield f"not {next(iter(only))}"
        used = [word for word in said if word in group]
        if (
            used
            and not states.stated.intersection(used)
            and (group & states.stated or states.denied.intersection(used))
        ):
            yield from used


def _words_stated(
    text: str,
    groups: Sequence[frozenset[str]] = _GROUPS,
    alike: Mapping[str, str] = _ALIKE,
    *,
    is_denied: bool = False,
) -> Iterator[str]:
    """The words for a state that a text uses without negating them, or those that it denies."""
    known = frozenset().union(*groups)
    phrases = [] if is_denied else [word for word in known if " " in word]
    for clause in CLAUSE_ENDS.split(text.lower()):
        words = [alike.get(word, word) for word in _WORD.findall(clause.replace("_", " "))]
        for place, word in enumerate(words):
            before = words[max(place - _NEGATION_WORDS_MAX, 0) : place]
            if word in known and _has_one(before, _DENIALS if is_denied else _NEGATIONS) is is_denied:
                yield word
        joined = " ".join(words)
        yield from (phrase for phrase in phrases if f" {phrase} " in f" {joined} ")


def _has_one(before: Sequence[str], negations: frozenset[str]) -> bool:
    return any(word in negations or word.endswith(("n't", "n\u2019t")) for word in before)


def _told(value: Any) -> Iterator[str]:
    """The words that are the whole value of a field."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _told(each)
    elif isinstance(value, str):
        yield _folded(value)


def _folded(text: str) -> str:
    word = " ".join(NO_LETTERS.sub(" ", text.lower()).split())
    return _ALIKE.get(word, word)


def _take(value: Any, name: str, stated: set[str], denied: set[str]) -> None:
    """What a value states: its texts, and the names of what is true; the names of what is false it denies."""
    if isinstance(value, dict):
        if any(type(value.get(key)) is int and value[key] != 0 for key in _EXIT_CODES.intersection(value)):
            stated.add("failed")
        for key, each in value.items():
            _take(each, key, stated, denied)
    elif isinstance(value, list):
        for each in value:
            _take(each, name, stated, denied)
    elif isinstance(value, bool):
        names = {_folded(name), *_folded(name).split(), _folded(name).removeprefix("is ")}
        (stated if value else denied).update(names)
    elif isinstance(value, str):
        stated.add(_folded(value))
        stated.update(_words_stated(value))


def _value_in(text: str) -> Any:
    """The JSON object or list in a text; None of any other text."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
