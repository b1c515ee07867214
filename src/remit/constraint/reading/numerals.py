"""Numerals: numbers as models write them, where they can mean one number only.

Rule 1: a sign in front, a point without digits on one side, hexadecimal digits and underscores between digits have one
        meaning. Leading zeros have three: decimal, octal, or a text of digits.
Rule 2: no number of JSON is infinite or not a number.
"""

import re
from math import isfinite

from remit.constraint.reading.repair_log import Ledger, Reason, RepairCode, Unreadable
from remit.core.regex import regex

# More digits than any quantity has; reading very many takes long, and Python refuses to.
DIGITS_MAX = 1000

_is_json = regex(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?").fullmatch
_is_hex = regex(r"-?0[xX][0-9a-fA-F]+").fullmatch
_is_grouped = regex(r"-?[1-9][0-9]{0,2}(?:_[0-9]{3})+").fullmatch
_has_zeros = regex(r"-?0[0-9]").match
_is_open = regex(r"-|-?[0-9]+(?:\.|(?:\.[0-9]+)?[eE][+-]?)").fullmatch
_no_number = regex(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE).fullmatch


def is_unfinished(token: str) -> bool:
    """Whether something must follow for a token to be a number."""
    return _is_open(token) is not None


def read_numeral(token: str, at: int, ledger: Ledger) -> int | float:
    """The number that a token means."""
    if len(token) > DIGITS_MAX:
        raise Unreadable(Reason.TOO_LONG, at, f"a number has {len(token)} characters, digits_max={DIGITS_MAX}")
    if _no_number(token):
        raise Unreadable(Reason.NO_NUMBER, at, f"{token} is no number of JSON; it may stand for null or for a mistake")
    if (found := _is_json(token)) is not None:
        return _number(token, at, is_fraction=bool(found[1] or found[2]))
    plain = _plain(token, at)
    ledger.note(RepairCode.NUMBER_REWRITTEN, at, token, str(plain))
    return plain


def _plain(token: str, at: int) -> int | float:
    bare = token.removeprefix("+")
    if _is_hex(bare):
        return int(bare, 16)
    if _is_grouped(bare):
        return int(bare)
    if _has_zeros(bare):
        message = f"{token} begins with a zero: it may be decimal, octal, or a text of digits"
        raise Unreadable(Reason.NUMBER_UNCLEAR, at, message)
    sign, digits = ("-", bare[1:]) if bare.startswith("-") else ("", bare)
    filled = f"{sign}0{digits}" if digits.startswith(".") else bare
    filled = f"{filled}0" if filled.endswith(".") else filled
    if (found := _is_json(filled)) is None:
        raise Unreadable(Reason.UNEXPECTED, at, f"{token:.40} is no number")
    return _number(filled, at, is_fraction=bool(found[1] or found[2]))


def _number(token: str, at: int, *, is_fraction: bool) -> int | float:
    if not is_fraction:
        return int(token)
    number = float(token)
    if not isfinite(number):
        raise Unreadable(Reason.NO_NUMBER, at, f"{token:.40} is beyond what a double holds")
    return number
