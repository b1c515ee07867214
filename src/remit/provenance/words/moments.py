"""Moments: days, times and durations in the user's words, and whether a date in a call is one of them.

Rule 1: a day is bound when the words write it, in whatever form; one without a year takes its year only from
        a year in the words or from a trusted date of the run.
Rule 2: today, tomorrow, yesterday and weekdays count from a trusted clock, never from the model.
Rule 3: an end may be a start plus a duration, when the words give both.
Rule 4: a form that can be read in two ways (04/05/2024) binds nothing.
"""

import re
from collections.abc import Collection, Iterator
from datetime import date, timedelta

from remit.core.record import Record
from remit.core.regex import regex
from remit.provenance.kinds import DATE, day_of
from remit.provenance.words.vocabulary import COUNTS

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun"),
            ("july", "jul"), ("august", "aug"), ("september", "sep", "sept"), ("october", "oct"),
            ("november", "nov"), ("december", "dec"),
        ),
        1,
    )
    for name in names
}  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
OFFSETS = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
_MINUTES = {"minute": 1, "min": 1, "hour": 60, "hr": 60, "h": 60}
_DAYS = {"day": 1, "night": 1, "week": 7}

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_COUNT = "|".join(COUNTS)
_WRITTEN = regex(
    rf"\b(?P<m1>{_MONTH})\.?\s+(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<y1>\d{{4}})\b)?"
    rf"|(?<![\w/+,.-])(?<![\u2013\u2014])(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+(?P<m2>{_MONTH})\b\.?(?:,?\s+(?P<y2>\d{{4}})\b)?",
    re.IGNORECASE,
)
_DIGITS = regex(r"(?<![\w.])(?:(\d{4})[-/](\d{2})[-/](\d{2})|(\d{1,2})([./])(\d{1,2})\5(\d{4}))(?!\w)")
_CLOCK = regex(r"(?<![\w:.-])(\d{1,2})(?::(\d{2}))?(?::00)?(?:\s*(am|pm|a\.m\.|p\.m\.))?(?![\w:-])", re.IGNORECASE)
_RANGE = regex(r"(?<![\w:.-])(\d{1,2}:\d{2})(\s?[-\u2013]\s?)(\d{1,2}:\d{2})(?![\w:-])")
_SPOKEN = {"noon": 720, "midnight": 0, "midday": 720}
_LASTING = regex(rf"\b(half an|an?|\d{{1,3}}|{_COUNT})[\s-]?(minute|min|hour|hr|h|day|night|week)s?\b", re.IGNORECASE)
_ZONED = regex(r"(?:Z|[+-]\d{2}:\d{2})$")
_YEAR = regex(r"(?<![\w.,/-])(19\d\d|20\d\d)(?![\w,/-])")
_TIME_VALUE = regex(r"(\d{1,2}):(\d{2})(?::\d{2})?")


class Moments(Record):
    """What the words say about when: days, days without a year, years, relative words, times, durations."""

    days: tuple[str, ...] = ()
    yearless: tuple[tuple[int, int], ...] = ()
    years: tuple[int, ...] = ()
    relative: tuple[str, ...] = ()
    minutes: tuple[int, ...] = ()
    lasting_minutes: tuple[int, ...] = ()
    lasting_days: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()


def moments_in(text: str) -> Moments:
    """All moments that a text writes out."""
    days: list[str] = []
    yearless: list[tuple[int, int]] = []
    spans: list[tuple[int, int]] = []
    for month, day, year, span in (*_written(text), *_numeric(text)):
        spans.append(span)
        if not year:
            yearless.append((month, day))
        elif (found := day_of(f"{year:04}-{month:02}-{day:02}")) is not None:
            days.append(found.isoformat())
    minutes, time_spans = _times(text)
    words = re.findall(r"[a-z]+", text.lower())
    lasting = [(_count(found[1]), found[2].lower()) for found in _LASTING.finditer(text)]
    return Moments(
        days=tuple(dict.fromkeys(days)),
        yearless=tuple(dict.fromkeys(yearless)),
        years=tuple(dict.fromkeys([int(day[:4]) for day in days] + [int(year) for year in _YEAR.findall(text)])),
        relative=tuple(word for word in dict.fromkeys(words) if word in OFFSETS or word in WEEKDAYS),
        minutes=minutes,
        lasting_minutes=tuple(dict.fromkeys(int(n * _MINUTES[unit]) for n, unit in lasting if unit in _MINUTES)),
        lasting_days=tuple(dict.fromkeys(int(n * _DAYS[unit]) for n, unit in lasting if unit in _DAYS)),
        spans=(*spans, *time_spans),
    )


def _count(word: str) -> float:
    word = word.lower()
    if word == "half an":
        return 0.5
    return 1 if word in ("a", "an") else COUNTS.get(word) or int(word)


def _written(text: str) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    for found in _WRITTEN.finditer(text):
        month = MONTHS[(found["m1"] or found["m2"]).lower()]
        yield month, int(found["d1"] or found["d2"]), int(found["y1"] or found["y2"] or 0), found.span()


def _numeric(text: str) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    for found in _DIGITS.finditer(text):
        if found[1]:
            yield int(found[2]), int(found[3]), int(found[1]), found.span()
        elif found[5] == "." or int(found[4]) > 12 or found[4] == found[6]:
            yield int(found[6]), int(found[4]), int(found[7]), found.span()
        elif int(found[6]) > 12:
            yield int(found[4]), int(found[6]), int(found[7]), found.span()
        else:
            yield 0, 0, 1, found.span()


def _times(text: str) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    minutes = [_SPOKEN[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _SPOKEN]
    spans = []
    for found in _CLOCK.finditer(_RANGE.sub(_parted, text)):
        half = (found[3] or "").lower().replace(".", "")
        hour, minute = int(found[1]), int(found[2] or 0)
        if not (found[2] or half) or hour > (12 if half else 23) or minute > 59:
            continue
        minutes.append((hour % 12 + (12 if half == "pm" else 0) if half else hour) * 60 + minute)
        spans.append(found.span())
    return tuple(dict.fromkeys(minutes)), spans


def _parted(found: re.Match[str]) -> str:
    """The two ends of a stretch of time, told apart; an end before its beginning is none, but a zone."""
    is_stretch = found[1].zfill(5) < found[3].zfill(5)
    return f"{found[1]}{' ' * len(found[2])}{found[3]}" if is_stretch else found[0]


def is_said(value: str, moments: Moments, *, today: str, years: Collection[int]) -> bool:
    """Whether the words give this date, time or both, counted from a trusted day where they need one."""
    clock = _TIME_VALUE.fullmatch(value)
    if clock:
        return _is_time_said(int(clock[1]) * 60 + int(clock[2]), moments)
    found = DATE.fullmatch(value)
    day = day_of(value)
    # A zone shifts the moment, and the words give none.
    if not found or day is None or _ZONED.search(value) or not _is_day_said(day, moments, today, years):
        return False
    # Midnight is how a plain date is often written.
    return (
        found[4] is None or found[4] + found[5] == "0000" or _is_time_said(int(found[4]) * 60 + int(found[5]), moments)
    )


def _is_time_said(minute: int, moments: Moments) -> bool:
    if minute in moments.minutes:
        return True
    return any((start + lasting) % 1440 == minute for start in moments.minutes for lasting in moments.lasting_minutes)


def _is_day_said(day: date, moments: Moments, today: str, years: Collection[int]) -> bool:
    if day.isoformat() in moments.days:
        return True
    if (day.month, day.day) in moments.yearless and (day.year in moments.years or day.year in years):
        return True
    clock = day_of(today) if today else None
    if clock is not None and any(_is_relative(day, clock, word) for word in moments.relative):
        return True
    return any((day - timedelta(days=days)).isoformat() in moments.days for days in moments.lasting_days)


def _is_relative(day: date, today: date, word: str) -> bool:
    away = (day - today).days
    if word in OFFSETS:
        return away == OFFSETS[word]
    # "Friday" is the next one; "next Friday" may be the one after.
    return day.weekday() == WEEKDAYS.index(word) and 0 < away <= 14
