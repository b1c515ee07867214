"""Spans of time, as people write them: `30s`, `5m`, `90min`, `1h 30m`, `2 days`, `4w`.

Rule 1: there is one reader: whatever is read here means the same in files and on the command line.
Rule 2: a number alone has the unit that its place names, or is refused where that names none.
"""

from collections.abc import Mapping
from decimal import Decimal

from remit.core.regex import regex

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
# The first word of each unit is the one to write it with, the longest unit first.
_UNITS: Mapping[int, tuple[str, ...]] = {
    7 * DAY_MS: ("w", "week", "weeks"),
    DAY_MS: ("d", "day", "days"),
    HOUR_MS: ("h", "hr", "hrs", "hour", "hours"),
    MINUTE_MS: ("m", "min", "mins", "minute", "minutes"),
    SECOND_MS: ("s", "sec", "secs", "second", "seconds"),
    1: ("ms", "millisecond", "milliseconds"),
}
_MS_OF = {word: factor for factor, words in _UNITS.items() for word in words}
# As many digits as a count of milliseconds has that every reader of JSON holds exactly.
_PART = regex(r"\s*([0-9]{1,16}(?:\.[0-9]{1,9})?)\s*([a-z]*)\s*")
# From weeks to milliseconds, each once.
_PARTS_MAX = len(_UNITS)


def duration_ms(text: str, *, alone_ms: int = 0) -> int | None:
    """A span of time in milliseconds; None where the text is none. A number alone is so many times `alone_ms`.

    One that is shorter than what is counted is none, since 0 means something else.
    """
    total, place, parts, least = Decimal(0), 0, 0, None
    while place < len(text) and parts < _PARTS_MAX:
        found = _PART.match(text, place)
        if found is None:
            return None
        unit_ms = _MS_OF.get(found[2], 0) if found[2] else alone_ms * (not parts and found.end() == len(text))
        if not unit_ms or (least is not None and unit_ms >= least):
            return None
        total += Decimal(found[1]) * unit_ms
        place, parts, least = found.end(), parts + 1, unit_ms
    is_counted = round(total) > 0 or not total
    return round(total) if parts and place == len(text) and is_counted else None


def said_duration(ms: int) -> str:
    """A span of time, in the largest unit up to days that holds it in whole numbers; it reads back as the same."""
    factors = [factor for factor in _UNITS if factor <= DAY_MS]
    factor = next(factor for factor in factors if ms % factor == 0) if ms else SECOND_MS
    return f"{ms // factor}{_UNITS[factor][0]}"
