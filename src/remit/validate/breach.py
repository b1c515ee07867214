"""Breaches: one broken rule in one place, in words by which a model can correct itself.

Rule 1: a breach names the rule, the place, the value and the limit, and says what would be right.
Rule 2: a value comes from a model and may be long or hostile: it is shortened and its control characters are escaped.
"""

from remit.core.record import Record
from remit.validate.rule_set import Severity

# Enough of a value to recognise it by.
VALUE_CHARS_MAX = 80
# A rule that is broken in a hundred places is told by the first of them.
BREACHES_PER_RULE_MAX = 5
# Python itself refuses to write out a whole number of some thousand digits.
_BITS_SHOWN_MAX = 256

ANSWER = "the answer"


class Breach(Record):
    """What breaks a rule. `place` is a JSON pointer, or empty for the answer as a whole."""

    rule: str
    severity: Severity
    place: str
    value: str
    limit: str
    problem: str


def breach_text(breach: Breach) -> str:
    """The sentence that a model is told."""
    where = f"{ANSWER} at {shown_in_message(breach.place)}" if breach.place else ANSWER
    value = f", found {breach.value}" if breach.value else ""
    limit = f" ({breach.limit})" if breach.limit else ""
    prefix = "warning: " if breach.severity is Severity.WARN else ""
    return f"{prefix}rule {shown_in_message(breach.rule)}: {where} {breach.problem}{limit}{value}"


def shown_in_message(value: object) -> str:
    """A value as it may stand in a message: short, on one line, without control characters."""
    if isinstance(value, int) and value.bit_length() > _BITS_SHOWN_MAX:
        return f"a number of {value.bit_length()} bits"
    if not isinstance(value, str):
        return repr(value) if isinstance(value, int | float | None) else f"a {type(value).__name__}"
    half = VALUE_CHARS_MAX // 2
    cut = value if len(value) <= VALUE_CHARS_MAX else f"{value[:half]} … {value[-half:]}"
    escaped = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in cut)
    return f"'{escaped}'"
