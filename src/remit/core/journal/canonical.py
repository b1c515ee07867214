"""Canonical JSON (RFC 8785): one value, one sequence of bytes, on any machine. Argument hashes, versions and votes use it.

Rule 1: keys are ordered by their UTF-16 code units, numbers are written as ECMAScript writes them, nothing is added.
Rule 2: what has no canonical form (NaN, infinities, lone surrogates, integers a double cannot hold) is refused.
Rule 3: the fast path is taken only where it provably writes the same bytes; the exact path is the definition.

The fast path is msgspec's sorted encoder. It escapes exactly as the RFC does. It orders keys by code point, which is
the order of UTF-16 code units unless a character beyond U+FFFF is about. It writes integers in full, and it writes a
fraction like ECMAScript between FRACTION_MIN and FRACTION_MAX; other floats differ (1.0, 1e21) or are lost (NaN).
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

import msgspec

from remit.core.clipped import clipped
from remit.core.regex import regex

# The largest integer that a double holds without gaps; RFC 8785 builds on I-JSON, which stops here.
INTEGER_MAX = 2**53 - 1
_INTEGER_MIN = -INTEGER_MAX

# Documents that people write stay under twenty levels. The bound keeps both encoders well inside the interpreter's
# stack of a thousand frames, so that the answer does not depend on how deep the caller stands.
DEPTH_MAX = 128

# Inside these bounds both notations are plain decimals; outside, they change to exponents at different places.
FRACTION_MIN, FRACTION_MAX = 1e-4, 1e15

_encode = msgspec.json.Encoder(order="deterministic").encode
_search_astral = regex(rb"[\xf0-\xf4]")


class CanonicalFault(StrEnum):
    """Why a value has no canonical form."""

    NUMBER_NOT_FINITE = "CANONICAL_NUMBER_NOT_FINITE"
    INTEGER_TOO_LARGE = "CANONICAL_INTEGER_TOO_LARGE"
    LONE_SURROGATE = "CANONICAL_LONE_SURROGATE"
    NOT_JSON = "CANONICAL_NOT_JSON"
    TOO_DEEP = "CANONICAL_TOO_DEEP"


class NotCanonical(ValueError):
    """The value has no canonical form; `code` says why."""

    def __init__(self, code: CanonicalFault, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"{self.code}: {self.message}"


def canonical_hash(value: Any) -> bytes:
    """The SHA-256 digest of the canonical form."""
    return sha256(canonical_json(value)).digest()


def canonical_json(value: Any) -> bytes:
    """The canonical form of a JSON value; raises NotCanonical where there is none."""
    try:
        if _is_plain(value, DEPTH_MAX):
            data = _encode(value)
            if data.isascii() or not _search_astral.search(data):
                return data
        parts: list[str] = []
        _write(value, parts, DEPTH_MAX)
        return "".join(parts).encode()
    except UnicodeEncodeError as error:
        raise NotCanonical(
            CanonicalFault.LONE_SURROGATE,
            f"text holds half a surrogate pair, {error.object[error.start]!a}; replace it or pair it",
        ) from None


def _is_plain(value: Any, levels_left: int) -> bool:
    """Whether the fast path may encode the value. Anything unusual is not plain; the exact path judges it."""
    kind = type(value)
    members: Iterable[Any] = value
    if kind is dict:
        if not _KEYS.issuperset(map(type, value)):
            return False
        members = value.values()
    elif kind not in _CONTAINERS:
        members, levels_left = (value,), levels_left + 1
    if levels_left == 0:
        return False
    # A look at all of them at once, since most hold nothing else.
    if _LITERALS.issuperset(map(type, members)):
        return True
    for member in members:
        kind = type(member)
        if kind in _LITERALS or (kind is int and _INTEGER_MIN <= member <= INTEGER_MAX):
            continue
        if kind is float:
            if not (FRACTION_MIN < abs(member) < FRACTION_MAX and member % 1.0):
                return False
        elif kind not in _CONTAINERS or not _is_plain(member, levels_left - 1):
            return False
    return True


_CONTAINERS = frozenset({dict, list, tuple})
_KEYS = frozenset({str})
_LITERALS = frozenset({str, bool, type(None)})
_ARRAYS = (list, tuple)


def _write(value: Any, parts: list[str], levels_left: int) -> None:
    if value is None:
        parts.append("null")
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif isinstance(value, str):
        parts.append(encode_basestring(value))
    elif isinstance(value, int):
        parts.append(_integer(value))
    elif isinstance(value, float):
        parts.append(_number(value))
    elif levels_left == 0:
        raise NotCanonical(
            CanonicalFault.TOO_DEEP, f"value nests deeper than depth_max={DEPTH_MAX}; flatten it or pass part of it"
        )
    elif isinstance(value, dict):
        _write_object(value, parts, levels_left - 1)
    elif isinstance(value, _ARRAYS):
        _write_array(value, parts, levels_left - 1)
    else:
        raise NotCanonical(
            CanonicalFault.NOT_JSON, f"{type(value).__name__} is no JSON type; convert it to plain values first"
        )


def _write_array(values: Iterable[Any], parts: list[str], levels_left: int) -> None:
    mark = "["
    for value in values:
        parts.append(mark)
        _write(value, parts, levels_left)
        mark = ","
    parts.append("[]" if mark == "[" else "]")


def _write_object(members: Mapping[Any, Any], parts: list[str], levels_left: int) -> None:
    mark = "{"
    for key in sorted(members, key=_utf16_units):
        parts += (mark, encode_basestring(key), ":")
        _write(members[key], parts, levels_left)
        mark = ","
    parts.append("{}" if mark == "{" else "}")


def _utf16_units(key: Any) -> bytes:
    if not isinstance(key, str):
        raise NotCanonical(
            CanonicalFault.NOT_JSON,
            f"key {clipped(key)} is a {type(key).__name__} and must be a text; convert it first",
        )
    return key.encode("utf-16-be")


def _integer(value: int) -> str:
    if not -INTEGER_MAX <= value <= INTEGER_MAX:
        # The digits are not shown: Python refuses to print an integer of many thousand digits.
        raise NotCanonical(
            CanonicalFault.INTEGER_TOO_LARGE,
            f"an integer of {value.bit_length()} bits exceeds integer_max={INTEGER_MAX}; pass it as text",
        )
    return int.__repr__(value)


def _number(value: float) -> str:
    """A double as ECMAScript prints it: the shortest digits that read back, plain from 1e-6 up to 1e21."""
    if not isfinite(value):
        raise NotCanonical(CanonicalFault.NUMBER_NOT_FINITE, f"number {value!r} is not finite; pass null or a text")
    if value == 0.0:
        return "0"  # negative zero has no sign
    text = float.__repr__(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text.removesuffix(".0")
    power = int(exponent)
    if -7 < power < 0:
        return _small(mantissa, power)
    if 0 < power < 21:
        return _large(mantissa, power)
    return f"{mantissa}e{power:+d}"


def _small(mantissa: str, power: int) -> str:
    sign, digits = _digits(mantissa)
    return f"{sign}0.{'0' * (-power - 1)}{digits}"


def _large(mantissa: str, power: int) -> str:
    # Python turns to exponents at 1e16, where a double has no more digits than places: there is no fraction left.
    sign, digits = _digits(mantissa)
    return sign + digits.ljust(power + 1, "0")


def _digits(mantissa: str) -> tuple[str, str]:
    sign = "-" if mantissa[0] == "-" else ""
    return sign, mantissa.lstrip("-").replace(".", "")
