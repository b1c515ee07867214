"""Parsing: the value of a text that is JSON as the standard has it, and nothing else.

Rule 1: a key that stands twice in an object is an error; whichever came last is nobody's intention.
Rule 2: where a text is no JSON, the place is told in characters, which is how everything else here counts.
Rule 3: numbers are kept exactly, or as the nearest double where they have a fraction; one beyond every double is an error.
"""

import re
from math import isfinite
from typing import Any

# A number has to be long, or to have an exponent of three digits, to be beyond a double.
_place = re.compile(r"(.*) at line (\d+) column (\d+)", re.DOTALL).fullmatch
_AT_END = "EOF "
# The bytes that go on with a character, so all others are one each.
_CONTINUING = bytes(range(0x80, 0xC0))
# No group repeats possessively here: before 3.11.5 Python matches such a group wrongly.
_numbers = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|(?P<number>-?[0-9][0-9.eE+-]*+)', re.DOTALL).finditer
_may_be_infinite = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}").search


class NotJson(ValueError):
    """A text that is no JSON: why, and at which character it stops being JSON."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises NotJson that says where it is none."""
    from jiter import from_json

    data = text.encode("utf-8", "surrogatepass")
    try:
        value = from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise _not_json(str(error), data) from None
    if _may_be_infinite(data) is not None and not _is_finite(value):
        raise NotJson("a number is beyond what a double holds", _infinite_at(text))
    return value


def _not_json(said: str, data: bytes) -> NotJson:
    """What the library says, its line and its column, which it counts in bytes, made the number of a character."""
    found = _place(said)
    if found is None:
        return NotJson(said, 0)
    line_begin = 0
    for _ in range(int(found[2]) - 1):
        line_begin = data.index(b"\n", line_begin) + 1
    # A text that ends too early goes wrong behind its last character, whatever that is.
    end = len(data) if said.startswith(_AT_END) else max(line_begin + int(found[3]) - 1, 0)
    return NotJson(found[1], len(data[:end].translate(None, _CONTINUING)))


def _infinite_at(text: str) -> int:
    numbers = (found for found in _numbers(text) if found["number"])
    return next((found.start() for found in numbers if not isfinite(float(found[0]))), 0)


def _is_finite(value: Any) -> bool:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, float) and not isfinite(found):
            return False
        if isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
    return True
