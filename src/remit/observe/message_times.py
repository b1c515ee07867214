"""What a message of the kernel says of times and money, with what people read beside the figures of the rule.

Rule 1: the name and the figure of a limit stay, since they are what is set; the reading follows in brackets.
Rule 2: a moment is told as a date: milliseconds since 1970 tell a reader nothing.
"""

from datetime import UTC, datetime
from re import Match

from remit.core.regex import regex
from remit.observe.figures import duration, money

_MOMENT = regex(r"\bat (\d{12,14}) ms\b")
_LIMIT_MS = regex(r"\b(\w+_ms(?:_max|_min)?)=(\d{4,12})\b")
_SPAN_MS = regex(r"(?<![\d=])(\d{4,12}) ms\b")
_LIMIT_MONEY = regex(r"\b(\w+_microusd(?:_max|_min)?)=(\d{1,15})\b")
_S_MS = 1_000


def readable(message: str) -> str:
    """A message with its moments, spans of time and amounts of money as people read them."""
    if "_ms" not in message and " ms" not in message and "_microusd" not in message:
        return message
    message = _MOMENT.sub(_as_moment, message)
    message = _SPAN_MS.sub(lambda found: duration(int(found[1])), message)
    message = _LIMIT_MS.sub(lambda found: f"{found[0]} ({duration(int(found[2]))})", message)
    return _LIMIT_MONEY.sub(lambda found: f"{found[0]} ({money(int(found[2]))})", message)


def _as_moment(found: Match[str]) -> str:
    at = datetime.fromtimestamp(int(found[1]) // _S_MS, UTC)
    return f"at {at:%Y-%m-%d %H:%M:%S} UTC"
