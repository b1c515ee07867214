"""The values of boundary and goal files: each is read strictly, and written so that it reads back the same.

Rule 1: what cannot be used is refused with file, line, key and value, and with what would be right.
Rule 2: time is said as people say it (`30s`, `5m`, `4h`, `1d`) or in milliseconds, money in dollars or in millionths.
Rule 3: what may be everything or a list says `all` for everything; nothing is left empty to mean a lot.
"""

from collections.abc import Collection, Mapping
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from remit.core.durations import duration_ms
from remit.core.failure import RequestRejected
from remit.core.journal.canonical import INTEGER_MAX
from remit.core.journal.codec import read_json
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.schema.strict_yaml import ValuePath, bytes_in, decoded_text, parse_yaml, spelled_place, value_in_error

# A name stands in every refusal, and is read on one line.
NAME_CHARS_MAX = 80
# What an approver reads about a condition: a paragraph.
MESSAGE_CHARS_MAX = 500
# As many permissions, tools or queues as one boundary was ever given; the file itself has a limit, too.
ITEMS_MAX = 1_000

ALL = "all"
JSON_SUFFIX = ".json"
MICRO_OF_A_DOLLAR = 1_000_000
_HOST = regex(r"(?:\*\.)?(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+")
# Sixteen digits before the point and six behind it: all that whole millionths can say.
_DOLLARS = regex(r"[0-9]{1,16}(\.[0-9]{1,6})?")

_Choice = TypeVar("_Choice", bound=StrEnum)


def values_in(path: Path, code: str, what: str) -> tuple["ValueReader", Any]:
    """The value in a YAML or JSON file, and what reads its parts."""
    name = str(path)
    text = decoded_text(bytes_in(path), name)
    if path.suffix.lower() != JSON_SUFFIX:
        document = parse_yaml(text, name)
        return ValueReader(name, document.lines, code, what), document.value
    reader = ValueReader(name, {}, code, what)
    try:
        return reader, read_json(text)
    except (ValueError, RecursionError) as error:
        raise reader.refusal((), f"is not JSON: {error}; correct it, or write YAML") from None


class ValueReader:
    """Reads the values of one file and refuses what they cannot be, under one code."""

    def __init__(self, source_name: str, lines: Mapping[ValuePath, int], code: str, what: str = "boundary") -> None:
        self._source_name = source_name
        self._lines = lines
        self._code = code
        self._what = what

    def refusal(self, place: ValuePath, problem: str, details: JsonObject | None = None) -> RequestRejected:
        """Why the file cannot be used, and where in the file that stands."""
        line, at = 0, place
        while not line and at:
            line, at = self._lines.get(at, 0), at[:-1]
        where = f"{self._source_name}:{line}" if line else self._source_name
        said: JsonObject = {"source": self._source_name, "line": line, "key": spelled_place(place) if place else ""}
        return RequestRejected(self._code, f"{where}: {problem}", {**said, **(details or {})})

    def coded(self, place: ValuePath, problem: RequestRejected) -> RequestRejected:
        """A refusal under its own code, with where in the file that stands."""
        placed = self.refusal(place, problem.message, problem.details)
        return RequestRejected(problem.code, placed.message, placed.details)

    def unfit(self, place: ValuePath, value: Any, way_out: str) -> RequestRejected:
        """The refusal of one value."""
        return self.refusal(place, f"{spelled_place(place)}={value_in_error(value)} cannot be used; use {way_out}")

    def block(self, value: Any, keys: Collection[str], place: ValuePath) -> dict[str, Any]:
        """A mapping whose keys are all known."""
        if not isinstance(value, dict):
            named = spelled_place(place) if place else f"a {self._what}"
            known = ", ".join(keys)
            raise self.refusal(place, f"{named} must be a mapping with the keys {known}, not {value_in_error(value)}")
        for key in value:
            if not isinstance(key, str) or key not in keys:
                near = get_close_matches(str(key), keys, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(keys)}"
                named = spelled_place(place) if place else f"the {self._what}"
                raise self.refusal((*place, str(key)), f"{named} has the unknown key {str(key)[:80]!r}; {hint}")
        return value

    def items(self, value: Any, place: ValuePath, items_max: int = ITEMS_MAX) -> list[Any]:
        """A list that is not too long."""
        if not isinstance(value, list | tuple):
            raise self.unfit(place, value, "a list")
        if len(value) > items_max:
            raise self.refusal(
                place, f"{spelled_place(place)} has {len(value)} entries, more than {items_max}; keep fewer"
            )
        return list(value)

    def text(self, value: Any, place: ValuePath, chars_max: int = NAME_CHARS_MAX) -> str:
        """A text that says something, within its limit."""
        if isinstance(value, str) and 0 < len(value) <= chars_max:
            return str(value)
        raise self.unfit(place, value, f"a text of 1 to {chars_max} characters")

    def texts(self, value: Any, place: ValuePath) -> tuple[str, ...]:
        """A list of texts."""
        items = self.items(value, place)
        return tuple(self.text(item, (*place, at)) for at, item in enumerate(items))

    def hosts(self, value: Any, place: ValuePath) -> tuple[str, ...]:
        """A list of hosts by name; one that begins with `*.` is all below it."""
        hosts = self.texts(value, place)
        for at, host in enumerate(hosts):
            if not _HOST.fullmatch(host):
                raise self.unfit((*place, at), host, "the name of a host such as api.corp.example or *.corp.example")
        return hosts

    def texts_or_all(self, value: Any, place: ValuePath) -> tuple[str, ...] | None:
        """A list of texts, or everything."""
        return None if value == ALL else self.texts(value, place)

    def choice(self, value: Any, kind: type[_Choice], place: ValuePath) -> _Choice:
        """One of the members of an enum."""
        if isinstance(value, str) and value in list(kind):
            return kind(value)
        raise self.unfit(place, value, f"one of {', '.join(kind)}")

    def choices(self, value: Any, kind: type[_Choice], place: ValuePath) -> tuple[_Choice, ...]:
        """A list of such."""
        items = self.items(value, place)
        return tuple(self.choice(item, kind, (*place, at)) for at, item in enumerate(items))

    def choices_or_all(self, value: Any, kind: type[_Choice], place: ValuePath) -> tuple[_Choice, ...] | None:
        """A list of such, or everything."""
        return None if value == ALL else self.choices(value, kind, place)

    def whole(self, value: Any, place: ValuePath, low: int = 0, high: int = INTEGER_MAX) -> int:
        """A whole number within limits."""
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise self.unfit(place, value, f"a whole number from {low} to {high}")

    def flag(self, value: Any, place: ValuePath) -> bool:
        """True or false."""
        if isinstance(value, bool):
            return value
        raise self.unfit(place, value, "true or false")

    def duration_ms(self, value: Any, place: ValuePath, low: int = 0) -> int:
        """A span of time."""
        if isinstance(value, str):
            value = duration_ms(value)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= INTEGER_MAX:
            return value
        raise self.unfit(
            place, value, f"a time such as 30s, 5m, 4h, 1d or 2w, or milliseconds from {low} to {INTEGER_MAX}"
        )

    def dollars(self, value: Any, place: ValuePath) -> int:
        """An amount of money in dollars, as whole millionths."""
        text = value if isinstance(value, str) else ""
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= INTEGER_MAX:
            text = f"{Decimal(repr(value)):f}"  # Without the exponent that a small float has.
        if _DOLLARS.fullmatch(text) and (amount := int(Decimal(text) * MICRO_OF_A_DOLLAR)) <= INTEGER_MAX:
            return amount
        raise self.unfit(place, value, "an amount of dollars from 0 with at most six decimals, such as 0.50")


def said_dollars(microusd: int) -> float | None:
    """An amount of money in dollars; None where a number with a point cannot hold it exactly."""
    dollars = microusd / MICRO_OF_A_DOLLAR
    return dollars if Decimal(repr(dollars)) * MICRO_OF_A_DOLLAR == microusd else None
