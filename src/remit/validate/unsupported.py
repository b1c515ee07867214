"""Unsupported claims: which values of an answer nothing that was observed supports.

Rule 1: a value is a number, an amount, a date, an identifier, or a word for a state (`active`, `overdue`). Prose without
        any such value states nothing that could be judged here, and passes.
Rule 2: what is only written otherwise is supported: separators, currencies, cents, percent, rounding, scales (`1.2 million`),
        names of months, hours of twelve, the number of entries in a list, and numbers up to twelve in words.
Rule 3: numbers and identifiers may come from the user's own words, too. Words for a state may not: a question names one.
Rule 4: in doubt a value counts as supported. What is found here is worth sending an answer back.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from remit.core.journal.codec import read_json
from remit.core.regex import regex
from remit.validate.polarity import contradicted
from remit.validate.state_words import stated_in, unsupported_states

# Enough to correct an answer by, little enough to stand in a turn.
UNSUPPORTED_MAX = 5
VALUE_CHARS_MAX = 60
# What is longer is a table or a dump, not an answer or a look-up that is read value by value.
TEXT_CHARS_MAX = 200_000
# More are not compared by hand, and every one is held against all that was observed.
NUMBERS_JUDGED_MAX = 200
# What has more digits names something, and counts nothing.
DIGITS_MAX = 24
# So many digits beside letters make an identifier: `INV-2041` is one, `A4` and `COVID-19` are words.
_ID_DIGITS_MIN, _ID_CHARS_MIN, _ID_CHARS_MAX = 3, 5, 64

_FENCED = regex(r"```[^`]*(?:```)?")
_ADDRESS = regex(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_LIST_MARK = regex(r"^[ \t]*\d{1,3}[.)](?=[ \t])", re.MULTILINE)
# What numbers say in passing, whatever the question was.
_IN_PASSING = regex(r"\b(?:24/7|(?:step|option|section|point|part|example) \d{1,3})\b", re.IGNORECASE)
_WORD = regex(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")
# A number and its unit, as in `250ms` or `3rd`.
_WITH_UNIT = regex(r"\d+[A-Za-z]{1,3}")
_NUMBER = regex(r"(?<![\w.])\d+(?:[.,'\u2019\u00a0\u202f]\d+)*")
_SEPARATOR = regex(r"[.,'\u2019\u00a0\u202f]")
_SCALE = regex(r" ?(thousand|million|billion|trillion|bn|k|m)\b", re.IGNORECASE)
_CLOCK = regex(r"\b(\d{1,2}):\d\d\b")
_FOLDED = regex(r"[^a-z0-9]")
_SPELLED_WORD = regex(r"[a-z]+")
_GROUP_DIGITS = 3

_SCALES: Mapping[str, int] = MappingProxyType(
    {"k": 3, "thousand": 3, "m": 6, "million": 6, "bn": 9, "billion": 9, "trillion": 12}
)
_MONTH_NAMES = (
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may",),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sep", "sept"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
)
_MONTHS: Mapping[str, int] = MappingProxyType(
    {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names}
)
_ANY_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
# Only beside a number is it a month: `may` and `march` are verbs, too.
_MONTH = regex(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({_ANY_MONTH})|({_ANY_MONTH})\.? (\d{{1,4}})(?:st|nd|rd|th)?)\b",
    re.IGNORECASE,
)
_DATE = regex(r"\b\d{4}[-/.](\d{1,2})[-/.](\d{1,2})\b|\b(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}\b")
# Between the date and the time of one moment.
_TIME_MARK = regex(r"(?<=\d)T(?=\d)")
_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred"]
_SPELLED: Mapping[str, int] = MappingProxyType(
    {
        **{word: number for number, word in enumerate((*_SMALL, "seventeen", "eighteen", "nineteen"))},
        **{word: 10 * tens for tens, word in enumerate(_TENS, 2)},
    }
)
# What is counted in words, up to twelve, and the word or two behind it; `one` is mostly no number.
_COUNT = regex(rf"\b({'|'.join(_SMALL[2:13])})((?: [a-z]+){{1,2}})", re.IGNORECASE)
_LONGER_WORD = regex(r"[a-z]{4,}")
_HUNDRED, _HALF = Decimal(100), Decimal("0.5")
_YEARS = range(1900, 2101)
_NOON, _DAYS_MAX = 12, 31


class Number(NamedTuple):
    """A number as a text says it, what it may mean, and the smallest step that its spelling could tell apart."""

    said: str
    readings: tuple[Decimal, ...]
    step: Decimal = Decimal(1)
    # Of what is no number at all, as a date or a version: its parts.
    parts: tuple[Decimal, ...] = ()


def numbers_in(text: str) -> Iterator[Number]:
    """Every number of a text, in its order."""
    for match in _NUMBER.finditer(text):
        if sum(map(str.isdigit, match[0])) > DIGITS_MAX:
            continue
        scale = _SCALE.match(text, match.end())
        yield _number(match[0], _SCALES[scale[1].lower()] if scale is not None else 0)


def _number(said: str, scale: int) -> Number:
    pieces, marks = _SEPARATOR.split(said), _SEPARATOR.findall(said)
    is_grouped = bool(marks) and len(pieces[0]) <= _GROUP_DIGITS and all(len(p) == _GROUP_DIGITS for p in pieces[1:])
    whole, last = "".join(pieces[:-1]), pieces[-1]
    is_one_mark = len(set(marks)) <= 1
    readings: list[tuple[str, int]] = []
    if not marks or (is_grouped and is_one_mark):
        readings.append(("".join(pieces), 0))
    if (
        marks
        and marks[-1] in ".,"
        and marks.count(marks[-1]) == 1
        and all(len(p) == _GROUP_DIGITS for p in pieces[1:-1])
    ):
        readings.append((f"{whole}.{last}", len(last)))
    if not readings:
        return Number(said, (), parts=tuple(Decimal(piece) for piece in pieces))
    values = tuple(Decimal(text).scaleb(scale) for text, _ in readings)
    return Number(said, values, Decimal(1).scaleb(scale - max(places for _, places in readings)))


class Month(NamedTuple):
    """A month that a text names, with the day beside it; 0 where that is a year."""

    said: str
    month: int
    day: int


def months_in(text: str) -> Iterator[Month]:
    """Every month that a text names beside a number."""
    for match in _MONTH.finditer(text):
        beside = int(match[1] or match[4])
        yield Month(match[0], _MONTHS[(match[2] or match[3]).lower()], beside if beside <= _DAYS_MAX else 0)


def _days_in(text: str) -> Iterator[tuple[int, int]]:
    """Every day of a year that a text tells in figures, month first; where the order is not certain, both ways."""
    for match in _DATE.finditer(text):
        first, second = int(match[1] or match[3]), int(match[2] or match[4])
        yield first, second
        if match[3]:
            yield second, first


class AnswerEvidence:
    """What was observed and what the user said, ready to be compared with an answer."""

    def __init__(self, observed: Sequence[str], said: Sequence[str] = (), enums: Iterable[Sequence[str]] = ()) -> None:
        observed, said = [_readable(text) for text in observed], [_readable(text) for text in said]
        self._numbers: set[Decimal] = set()
        self._days: set[tuple[int, int]] = set()
        for text in (*observed, *said):
            self._take(text)
        self._folded = "\n".join(_FOLDED.sub("", text.lower()) for text in (*observed, *said))
        self._counts_cents = any("cent" in text.lower() or "minor" in text.lower() for text in observed)
        self._states = stated_in(observed, enums)
        self._observed, self._said = observed, said
        self._counted = {
            _one(word) for text in (*observed, *said) for word in _LONGER_WORD.findall(text.lower().replace("_", " "))
        }

    def unsupported(self, answer: str) -> tuple[str, ...]:
        """The values of an answer that nothing supports, as it spells them, each once."""
        text = _IN_PASSING.sub(" ", _LIST_MARK.sub(" ", _ADDRESS.sub(" ", _FENCED.sub(" ", _readable(answer)))))
        found = [*self._unknown_values(text), *unsupported_states(text, self._states)]
        found += contradicted(text, self._observed, self._said)
        return tuple(dict.fromkeys(value[:VALUE_CHARS_MAX] for value in found))[:UNSUPPORTED_MAX]

    def _unknown_values(self, text: str) -> Iterator[str]:
        names = [match[0] for match in _WORD.finditer(text) if _is_identifier(match[0])]
        for name in names:
            # Told in another order or with other marks, its parts are still the same.
            if not all(part in self._folded for part in re.split("[-_]", name.lower())):
                yield name
            text = text.replace(name, " ")
        for month in months_in(text):
            if not self._has_month(month):
                yield month.said
        for number in dict.fromkeys(islice(numbers_in(text), NUMBERS_JUDGED_MAX)):
            if not self._has(number):
                yield number.said
        for match in _COUNT.finditer(text):
            # Of things that were spoken of; `two ways to see it` counts nothing that was observed.
            counts = any(_one(word) in self._counted for word in match[2].lower().split())
            if counts and not self._has_value(Decimal(_SPELLED[match[1].lower()]), Decimal(1)):
                yield match[1]

    def _has_month(self, month: Month) -> bool:
        """Whether a day was observed, or where the text names none, its month."""
        if month.day and self._days:
            return (month.month, month.day) in self._days
        return Decimal(month.month) in self._numbers

    def _has(self, number: Number) -> bool:
        if not number.readings:
            return all(part in self._numbers for part in number.parts)
        return any(self._has_value(value, number.step) for value in number.readings)

    def _has_value(self, value: Decimal, step: Decimal) -> bool:
        """Whether a number was observed: as it stands, in cents or percent, or rounded to what it was spelled with."""
        return any(
            _is_rounded(known, value, step)
            or known == value * _HUNDRED
            or (self._counts_cents and _is_rounded(known / _HUNDRED, value, step))
            # A share told in percent.
            or (known < 1 and _is_rounded(known * _HUNDRED, value, step))
            for known in self._numbers
        )

    def _take(self, text: str) -> None:
        numbers = self._numbers
        for number in numbers_in(text):
            numbers.update(number.readings or number.parts)
        numbers.update(year % _HUNDRED for year in [*numbers] if year in _YEARS)
        numbers.update(Decimal(_SPELLED[word]) for word in _SPELLED_WORD.findall(text.lower()) if word in _SPELLED)
        for month in months_in(text):
            numbers.add(Decimal(month.month))
            self._days.add((month.month, month.day))
        self._days.update(_days_in(text))
        numbers.update(Decimal(int(match[1]) % _NOON or _NOON) for match in _CLOCK.finditer(text))
        numbers.update(Decimal(count) for count in _lengths(_value_in(text)))


def _one(word: str) -> str:
    """A word for one thing, of a word for several."""
    return word.removesuffix("s")


def _readable(text: str) -> str:
    return _TIME_MARK.sub(" ", text[:TEXT_CHARS_MAX])


def _is_identifier(word: str) -> bool:
    digits = sum(map(str.isdigit, word))
    has_letters = any(map(str.isalpha, word))
    is_long = _ID_CHARS_MIN <= len(word) <= _ID_CHARS_MAX
    return has_letters and is_long and digits >= _ID_DIGITS_MIN and _WITH_UNIT.fullmatch(word) is None


def _is_rounded(known: Decimal, value: Decimal, step: Decimal) -> bool:
    """Whether a value is what rounding or cutting to such steps makes of a known one."""
    return value - step * _HALF <= known < value + step


def _value_in(text: str) -> Any:
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return None


def _lengths(value: Any) -> Iterator[int]:
    """How many entries the lists of a value have."""
    below: Iterable[Any] = ()
    if isinstance(value, list):
        yield len(value)
        below = value
    elif isinstance(value, dict):
        below = value.values()
    for each in below:
        yield from _lengths(each)
