"""Supporting calls: which committed ones can tell what a task asks for, by what they were given and what they returned.

Rule 1: what a tool that fits the class returned grounds an answer, unless it is an error.
Rule 2: a call supports an answer about an account only where it names that account, whatever the category of its tool. It
        does where an argument stands in the words of people, or is the user or an identifier of the user, or where the
        result has such a value as a name or an id. An argument that is named after a person (`user`, `account_id`) decides
        alone. Names and ids in the result of such a call name the account as well. A call without arguments counts only
        where the caller names the grounds.
Rule 3: a text that is not at hand here is given the benefit of the doubt.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from remit.core.journal.codec import read_json
from remit.core.journal.rulings import Rung
from remit.core.record import Text
from remit.core.regex import regex
from remit.core.run.messages import Message, Role
from remit.core.work.goal import Task, TaskClass, can_ground
from remit.kernel.results.notices import is_correction
from remit.kernel.state import RunState, pinned
from remit.kernel.traces import CallTrace

_ERRORS = ("error", "errors")
_IDENTIFIER = regex(r"(?=[^\s,;]*\d)[\w@.+-]{3,}")
_NAME_CHARS_MIN = 2
_TRAILING = ".-"
# What a key calls a person, or a person's account; such a word by itself names no person.
_NOUNS = frozenset(
    [
        "account",
        "accounts",
        "acct",
        "client",
        "cust",
        "customer",
        "customers",
        "email",
        "holder",
        "iban",
        "login",
        "mail",
        "member",
        "owner",
        "patient",
        "person",
        "subscriber",
        "uid",
        "user",
        "username",
        "users",
    ]
)
# What may stand behind such a word, or alone.
_ENDS = frozenset(["id", "key", "name", "no", "nr", "number", "ref"])
_KEY_WORD = regex(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Within a longer text, as a query or a path: what is quoted, and what stands between its signs.
_QUOTED = regex(r"'([^']+)'|\"([^\"]+)\"")
_SEGMENT = regex(r"[^/?&=:]+")


class SupportedValue(NamedTuple):
    """A plain value, as words compare it, and whether it says whom it is about."""

    text: str
    is_who: bool


def telling(state: RunState, task: Task) -> list[CallTrace]:
    """The committed calls whose observations can tell what the task asks for, in their order."""
    done = [
        trace
        for trace in state.calls.made.values()
        if trace.rung is Rung.COMMITTED
        and can_ground(state.derived.tools[trace.tool], task)
        and not tells_error(trace.content)
    ]
    words = [*_words(state)] if task.task_class is TaskClass.ACCOUNT_STATUS else []
    texts = [text for text in words if isinstance(text, str)]
    if task.task_class is not TaskClass.ACCOUNT_STATUS or len(texts) < len(words):
        return done
    said = "\n".join(texts).casefold()
    user = pinned(state).request.user_id.casefold()
    known = {word.strip(_TRAILING) for word in _IDENTIFIER.findall(said)} | ({user} - {""})
    found = []
    for trace in done:
        given, result = [*_values(_value_in(trace.arguments))], _value_in(trace.content)
        told = [*_values(result)]
        is_at_hand = isinstance(trace.arguments, str) and isinstance(trace.content, str)
        if not is_at_hand or (task.grounds and not given) or _names_account(given, told, said, known):
            found.append(trace)
            # A look-up by a name may give an id back, and look on with that.
            known |= {value.text for value in told if value.is_who or not isinstance(result, dict)}
    return found


def tells_error(content: Text) -> bool:
    """Whether a result is an object that tells of an error, and so of nothing else."""
    value = _value_in(content)
    return isinstance(value, dict) and any(value.get(key) for key in _ERRORS)


def _words(state: RunState) -> Iterator[Text]:
    """What people have said: with the request, before it, and when the model asked them."""
    for entry in state.talk.context:
        if isinstance(entry, Message) and entry.role in (Role.USER, Role.SYSTEM) and not _is_told(entry.content):
            yield entry.content
    for trace in state.calls.made.values():
        if state.derived.tools[trace.tool].asks_under is not None:
            yield trace.content


def _is_told(content: Text) -> bool:
    """Whether the kernel said it: that quotes the model."""
    return isinstance(content, str) and is_correction(content)


def _names_account(given: list[SupportedValue], told: list[SupportedValue], said: str, known: set[str]) -> bool:
    who = [value for value in given if value.is_who]
    names = {piece for value in who or given for piece in _pieces(value.text)}
    names |= {value.text for value in told if value.is_who}
    borne = names if who else names | {value.text for value in told}
    return not known.isdisjoint(borne) or any(_stands_in(name, said) for name in names)


def _stands_in(name: str, said: str) -> bool:
    if len(name) < _NAME_CHARS_MIN or name in _NOUNS:
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said) is not None


def _pieces(text: str) -> Iterator[str]:
    """What a value may name a person with: the whole, or parts of a query or a path."""
    yield text
    for match in _QUOTED.finditer(text):
        yield match[1] or match[2]
    yield from (word.strip(_TRAILING) for word in _IDENTIFIER.findall(text))
    if not any(map(str.isspace, text)):
        yield from _SEGMENT.findall(text)


def _values(value: Any, *, is_who: bool = False) -> Iterator[SupportedValue]:
    """Every plain value within a value; what only says yes or no names no person."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, is_who=_is_who(str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner, is_who=is_who)
    elif value is not None and not isinstance(value, bool) and (text := str(value).strip().casefold()):
        yield SupportedValue(text, is_who)


def _is_who(key: str) -> bool:
    words = [word.lower() for word in _KEY_WORD.findall(key)]
    while words and words[-1] in _ENDS:
        words.pop()
    return not words or words[-1] in _NOUNS


def _value_in(text: Text) -> Any:
    if not isinstance(text, str):
        return None
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return text
