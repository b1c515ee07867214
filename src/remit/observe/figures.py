"""Figures, as people read them: spans of time, money, and what is used of a budget.

Rule 1: a unit follows every number, or stands in the name of what is counted.
Rule 2: what is rounded stays true to its size; programs get the exact number, with --json.
Rule 3: in a message of the kernel the name and the figure of a limit stay, since they are what is set; the reading follows
        in brackets. A moment is told as a date.
"""

from datetime import UTC, datetime
from re import Match

from remit.core.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from remit.core.regex import regex

_MOMENT = regex(r"\bat (\d{12,14}) ms\b")
_LIMIT_MS = regex(r"\b(\w+_ms(?:_max|_min)?)=(\d{4,12})\b")
_SPAN_MS = regex(r"(?<![\d=])(\d{4,12}) ms\b")
_LIMIT_MONEY = regex(r"\b(\w+_microusd(?:_max|_min)?)=(\d{1,15})\b")
_MS_SUFFIX, _MONEY_SUFFIX = "_ms", "_microusd"


def duration(ms: int) -> str:
    """How long something took, or may take."""
    if ms < SECOND_MS:
        return f"{ms} ms"
    if ms < MINUTE_MS:
        return f"{ms / SECOND_MS:.1f} s"
    if ms < HOUR_MS:
        return _joined(ms // MINUTE_MS, "min", ms % MINUTE_MS // SECOND_MS, "s")
    if ms < DAY_MS:
        return _joined(ms // HOUR_MS, "h", ms % HOUR_MS // MINUTE_MS, "min")
    return _joined(ms // DAY_MS, "d", ms % DAY_MS // HOUR_MS, "h")


def money(microusd: int) -> str:
    """An amount of money, to the last millionth of a dollar that was charged."""
    dollars, rest = divmod(microusd, 10**6)
    cents = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"${dollars:,}.{cents}"


def measured(dimension: str, amount: int) -> tuple[str, str]:
    """What a dimension of a budget counts, and an amount of it, with its unit where the name had one."""
    if dimension.endswith(_MS_SUFFIX):
        return dimension.removesuffix(_MS_SUFFIX), duration(amount)
    if dimension.endswith(_MONEY_SUFFIX):
        return dimension.removesuffix(_MONEY_SUFFIX), money(amount)
    return dimension, f"{amount:,}"


def _joined(whole: int, unit: str, rest: int, smaller: str) -> str:
    return f"{whole} {unit} {rest:02d} {smaller}" if rest else f"{whole} {unit}"


def readable(message: str) -> str:
    """A message with its moments, spans of time and amounts of money as people read them."""
    if "_ms" not in message and " ms" not in message and "_microusd" not in message:
        return message
    message = _MOMENT.sub(_as_moment, message)
    message = _SPAN_MS.sub(lambda found: duration(int(found[1])), message)
    message = _LIMIT_MS.sub(lambda found: f"{found[0]} ({duration(int(found[2]))})", message)
    return _LIMIT_MONEY.sub(lambda found: f"{found[0]} ({money(int(found[2]))})", message)


def _as_moment(found: Match[str]) -> str:
    at = datetime.fromtimestamp(int(found[1]) // SECOND_MS, UTC)
    return f"at {at:%Y-%m-%d %H:%M:%S} UTC"
