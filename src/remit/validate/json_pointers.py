"""JSON pointers: where in a value a rule looks, and what stands there.

Rule 1: a place is a JSON pointer (RFC 6901) in which the step `*` stands for every entry of an array or object.
Rule 2: a text that shall be looked into is read as JSON, once, and never changed.
Rule 3: what cannot be read is said, not skipped.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from remit.core.failure import RequestRejected
from remit.core.schema.json_text import NotJson, parse_json, place_in

PLACE_REFUSED = "PLACE_REFUSED"

# A value deeper than this is no answer that people read.
PLACE_STEPS_MAX = 32
# So many entries one rule looks at; a violation of the first thousand is enough to send an answer back.
PLACES_MAX = 1000
EVERY = "*"


class Stands(NamedTuple):
    """A value and where it stands; the whole stands at the empty pointer."""

    place: str
    value: Any


class Missing(NamedTuple):
    """A place that a rule names and the value has not."""

    place: str


class Unread(NamedTuple):
    """Why a text could not be looked into."""

    reason: str


class CheckedValue:
    """What is judged: a text, or a value. Its JSON is read when the first rule looks into it."""

    __slots__ = ("_read", "text", "whole")

    def __init__(self, whole: Any) -> None:
        self.whole = whole
        self.text = rule_text(whole)
        self._read: Any = None if isinstance(whole, str) else Stands("", whole)

    def value(self) -> Stands | Unread:
        """The value itself, or what the text holds as JSON."""
        if self._read is None:
            self._read = _read(self.text)
        found: Stands | Unread = self._read
        return found

    def at(self, steps: tuple[str, ...]) -> Iterator[Stands | Missing | Unread]:
        """What stands at a place; several where a step stands for every entry."""
        root = self.value()
        if isinstance(root, Unread):
            yield root
            return
        for number, found in enumerate(_walk(root, steps)):
            if number == PLACES_MAX:
                yield Unread(f"there are more than places_max={PLACES_MAX} entries to look at; answer with fewer")
                return
            yield found


def rule_text(value: Any) -> str:
    """A value as the text that rules about text read: a text is itself, made valid Unicode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()
    except (TypeError, ValueError, RecursionError):
        return repr(type(value).__name__)


def steps_of(pointer: str) -> tuple[str, ...]:
    """The steps of a pointer; raises RequestRejected where it is none."""
    if pointer and not pointer.startswith("/"):
        message = f"place {pointer[:80]!r} must be empty or begin with a slash, as in '/items/*/price'"
        raise RequestRejected(PLACE_REFUSED, message)
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
    if len(steps) > PLACE_STEPS_MAX:
        raise RequestRejected(
            PLACE_REFUSED, f"place {pointer[:80]!r} has {len(steps)} steps, steps_max={PLACE_STEPS_MAX}"
        )
    return steps


def below(place: str, step: str | int) -> str:
    """The pointer one step further."""
    return f"{place}/{str(step).replace('~', '~0').replace('/', '~1')}"


def _walk(here: Stands, steps: tuple[str, ...]) -> Iterator[Stands | Missing]:
    if not steps:
        yield here
        return
    step, rest = steps[0], steps[1:]
    value = here.value
    entries: Iterator[tuple[str | int, Any]] = iter(())
    if step == EVERY and isinstance(value, dict | list | tuple):
        entries = iter(value.items()) if isinstance(value, dict) else iter(enumerate(value))
    elif isinstance(value, dict) and step in value:
        entries = iter(((step, value[step]),))
    elif (
        isinstance(value, list | tuple)
        and step.isascii()
        and step.isdigit()
        and len(step) < 9
        and int(step) < len(value)
    ):
        entries = iter(((int(step), value[int(step)]),))
    else:
        yield Missing(below(here.place, step))
    for key, entry in entries:
        yield from _walk(Stands(below(here.place, key), entry), rest)


def _read(text: str) -> Stands | Unread:
    try:
        return Stands("", parse_json(text))
    except NotJson as error:
        line, column = place_in(text, error.at)
        return Unread(f"it is not JSON: {error} at line {line}, column {column}"[:200])
