"""Integers between two limits, written as a choice of digits.

Rule 1: a number has no leading zeros, no plus, no fraction and no exponent; zero has no sign.
Rule 2: what has no limit ends after as many digits as a number of JSON readers can have.
"""

from collections.abc import Iterator

from remit.constraint.gbnf_parts import NOTHING, Literal, OneOf, Part, choice, repeated, sequence

# The largest double has so many digits; what is longer, no reader of JSON is sure to read.
DIGITS_MAX = 309
# Longer limits are no limits that anybody means, and each of their digits is a part of the grammar.
LIMIT_DIGITS_MAX = 30

_DIGIT = OneOf(((0x30, 0x39),))
_FIRST_DIGIT = OneOf(((0x31, 0x39),))


def integer_between(least: int | None, most: int | None) -> Part:
    """The integers from `least` to `most`; None is no limit."""
    ways: list[Part] = []
    if least is None or least < 0:
        fewest = 1 if most is None or most >= 0 else -most
        ways.append(sequence(Literal("-"), _counting(fewest, None if least is None else -least)))
    if most is None or most >= 0:
        ways.append(_counting(max(least or 0, 0), most))
    return choice(*ways)


def _counting(least: int, most: int | None) -> Part:
    """The same for numbers without a sign."""
    if most is not None and most < least:
        return NOTHING
    ways: list[Part] = []
    if least == 0:
        ways.append(Literal("0"))
        least = 1
    if most == 0:
        return choice(*ways)
    low = str(least)
    if most is None:
        ways += _same_length(low, "9" * len(low)) if least > 10 ** (len(low) - 1) else ()
        digits = len(low) - (least == 10 ** (len(low) - 1))
        ways.append(sequence(_FIRST_DIGIT, repeated(_DIGIT, digits, DIGITS_MAX - 1)))
        return choice(*ways)
    return choice(*ways, *_spans(low, str(most)))


def _spans(low: str, high: str) -> Iterator[Part]:
    """The numbers between two, from those with the fewest digits to those with the most."""
    if len(low) == len(high):
        yield from _same_length(low, high)
        return
    yield from _same_length(low, "9" * len(low))
    if len(high) - len(low) > 1:
        yield sequence(_FIRST_DIGIT, repeated(_DIGIT, len(low), len(high) - 2))
    yield from _same_length("1" + "0" * (len(high) - 1), high)


def _same_length(low: str, high: str) -> Iterator[Part]:
    if low == high:
        yield Literal(low)
        return
    rest = len(low) - 1
    if low[0] == high[0]:
        yield sequence(Literal(low[0]), choice(*_same_length(low[1:], high[1:])))
        return
    first, last = ord(low[0]), ord(high[0])
    if low[1:] != "0" * rest:
        yield sequence(Literal(low[0]), choice(*_same_length(low[1:], "9" * rest)))
        first += 1
    if high[1:] != "9" * rest:
        last -= 1
    if first <= last:
        yield sequence(OneOf(((first, last),)), repeated(_DIGIT, rest, rest))
    if high[1:] != "9" * rest:
        yield sequence(Literal(high[0]), choice(*_same_length("0" * rest, high[1:])))
