"""JSON texts: the value of a text that is JSON as the standard has it, and nothing else.

Rule 1: a key that stands twice in an object is an error, at every depth and however it is escaped: which of the two a
        later reader takes is not known here, so none is taken.
Rule 2: where a text is no JSON, the place is told in characters, which is how everything else here counts.
Rule 3: numbers are kept exactly, or as the nearest double where they have a fraction; one beyond every double is an error.
Rule 4: whatever comes from outside is read here. `kept_value` is for texts that were read or written here before.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import msgspec
from jiter import from_json

from remit.core.record import JsonObject
from remit.core.regex import regex

# Of a key that stands twice, an error shows as much.
_KEY_CHARS_MAX = 80
# The library says in these words that a key stands twice, and that a text nests deeper than its 200 levels.
_REPEATED = regex(r'Detected duplicate key "(.*)"', re.DOTALL)
_TOO_DEEP = "recursion limit exceeded"
_place = regex(r"(.*) at line (\d+) column (\d+)", re.DOTALL)
_AT_END = "EOF "
# The bytes that go on with a character, so all others are one each.
_CONTINUING = bytes(range(0x80, 0xC0))
# No group repeats possessively here: before 3.11.5 Python matches such a group wrongly.
_numbers = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|(?P<number>-?[0-9][0-9.eE+-]*+)', re.DOTALL)


def _sort(code: int) -> int:
    """What a byte can be to a number too large for a double: a digit, the sign before an exponent, its plus, or nothing."""
    if code in b"0123456789":
        return ord("0")
    return ord("e") if code in b"eE" else code if code == ord("+") else ord(" ")


# A number has to be long, or to have an exponent of three digits, to be beyond a double. Looked for among bytes of which
# digits are alike and all that stands in no number is blank: a pattern would try at each of them.
_SORTS = bytes(_sort(code) for code in range(256))
_BEYOND = (b"0e000", b"0e+000", b"0" * 309)

_decode_kept = msgspec.json.Decoder().decode


class NotJson(ValueError):
    """A text that is no JSON: why, and at which character it stops being JSON."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class KeyRepeated(NotJson):
    """A text that would be JSON, had none of its objects a key twice."""


class TooDeep(NotJson):
    """A text that nests deeper than anything here is read."""


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; raises NotJson that says where it is none."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        value = from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise _not_json(str(error), data) from None
    if _may_be_infinite(data) and not _is_finite(value):
        raise NotJson("a number is beyond what a double holds", _infinite_at(data))
    return value


def parse_with_oddities(text: str) -> Any:
    """The value of a JSON text in which half a surrogate pair, a raw control character or NaN is to be endured.

    Constants that are no JSON become their names. A key that stands twice is refused here as well.
    """
    return json.loads(text, strict=False, parse_constant=str, object_pairs_hook=_members)


def kept_value(text: str | bytes) -> Any:
    """The value of a JSON text that this program wrote, or read strictly before it was kept; ValueError if it is none."""
    return _decode_kept(text)


def place_in(text: str | bytes, at: int) -> tuple[int, int]:
    """The line and the column of a character, both counted from 1."""
    before = (text if isinstance(text, str) else text.decode("utf-8", "replace"))[:at]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def scalars(value: Any) -> Iterator[Any]:
    """Every text, number, truth value and null of a JSON value, in its order."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from scalars(inner)
    else:
        yield value


def _members(pairs: list[tuple[str, Any]]) -> JsonObject:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyRepeated(_repeated(next(name for name in names if names.count(name) > 1)), 0)
    return members


def _repeated(key: str) -> str:
    return f"the key {key[:_KEY_CHARS_MAX]!r} stands twice in one object; keep one"


def _not_json(said: str, data: bytes) -> NotJson:
    """What the library says, its line and its column, which it counts in bytes, made the number of a character."""
    found = _place.fullmatch(said)
    if found is None:
        return NotJson(said, 0)
    line_begin = 0
    for _ in range(int(found[2]) - 1):
        line_begin = data.index(b"\n", line_begin) + 1
    # A text that ends too early goes wrong behind its last character, whatever that is.
    end = len(data) if said.startswith(_AT_END) else max(line_begin + int(found[3]) - 1, 0)
    at = len(data[:end].translate(None, _CONTINUING))
    if (repeated := _REPEATED.fullmatch(found[1])) is not None:
        return KeyRepeated(f"{_repeated(repeated[1])} (at character {at})", at)
    return TooDeep("it nests too deep", at) if found[1] == _TOO_DEEP else NotJson(found[1], at)


def _infinite_at(data: bytes) -> int:
    text = data.decode("utf-8", "surrogatepass")
    numbers = (found for found in _numbers.finditer(text) if found["number"])
    return next((found.start() for found in numbers if not isfinite(float(found[0]))), 0)


def _may_be_infinite(data: bytes) -> bool:
    sorts = data.translate(_SORTS)
    return any(sign in sorts for sign in _BEYOND)


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
