"""Quantities: the numbers of the calculator, what may be done with them, and how large they may grow.

Rule 1: what can be exact is exact: numbers are fractions until a function or a root makes a float of them.
Rule 2: the size of a result is known before the work is done, or bounded by what its parts are.
"""

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from remit.tool.builtin.refusal import ToolRefused, quoted_value

CALCULATOR_SYNTAX = "CALCULATOR_SYNTAX"
CALCULATOR_TOO_LARGE = "CALCULATOR_TOO_LARGE"
CALCULATOR_UNDEFINED = "CALCULATOR_UNDEFINED"

# About 1,200 digits: every step stays within microseconds, and the outcome fits a screen.
BITS_MAX = 4_096
# The exact power of a fraction takes this exponent at most, also where the base is 0, 1 or -1.
EXPONENT_MAX = 100_000
# What round() may be asked for; a float has no more than 17 digits that mean something.
ROUND_PLACES_MAX = 100
# As many as min() and max() may be given; the length of an expression allows no more.
VALUES_MAX = 500

PlainNumber: TypeAlias = Fraction | float


def combined(sign: str, left: PlainNumber, right: PlainNumber) -> PlainNumber:
    """Two numbers joined by a sign; exact where both are."""
    if sign in ("/", "//", "%") and right == 0:
        raise _undefined(f"division by zero in {quoted_value(sign)}; the divisor must not be 0")
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return exact(Fraction(_OPERATORS[sign](left, right)))
    # A fraction that is not zero may be so as a float.
    return _finite(_guarded(lambda: _OPERATORS[sign](_float(left), _float(right))))


_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def power(base: PlainNumber, exponent: PlainNumber) -> PlainNumber:
    """A base to an exponent, measured before it is calculated."""
    if base == 0 and exponent < 0:
        raise _undefined("0 to a negative power divides by zero; use another base")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            return _whole_power(base, exponent.numerator)
        if exponent == Fraction(1, 2):
            return _root(base)
    if base < 0:
        raise _undefined("a negative number to a power that is not whole is no real number")
    return _finite(_guarded(lambda: math.pow(_float(base), _float(exponent))))


def _whole_power(base: Fraction, exponent: int) -> Fraction:
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) > EXPONENT_MAX or (bits > 1 and (bits - 1) * abs(exponent) > BITS_MAX):
        problem = f"a power with more than bits_max={BITS_MAX} bits or exponent_max={EXPONENT_MAX} is not calculated"
        raise ToolRefused(CALCULATOR_TOO_LARGE, f"{problem}; use smaller numbers")
    return exact(base**exponent)


def _root(value: PlainNumber) -> PlainNumber:
    if value < 0:
        raise _undefined("the root of a negative number is no real number")
    if isinstance(value, Fraction):
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root * root == value:
            return root
    return _finite(math.sqrt(_float(value)))


def exact(value: Fraction) -> Fraction:
    """A fraction, unless it has grown too large."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > BITS_MAX:
        problem = f"an intermediate result has more than bits_max={BITS_MAX} bits (about 1,200 digits)"
        raise ToolRefused(CALCULATOR_TOO_LARGE, f"{problem}; use smaller numbers")
    return value


def _float(value: PlainNumber) -> float:
    return _guarded(lambda: float(value))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ToolRefused(
            CALCULATOR_TOO_LARGE, "a result is beyond what a floating point number holds; use smaller ones"
        )
    return value


def _guarded(calculate: Callable[[], float]) -> float:
    """What a calculation with floats comes to; what cannot be calculated is said in our words."""
    try:
        return calculate()
    except OverflowError:
        return _finite(math.inf)
    except (ValueError, ZeroDivisionError):
        raise _undefined("it is not defined there, or divides by what is as good as 0; use another value") from None


def applied_function(name: str, function: "Function", values: list[PlainNumber]) -> PlainNumber:
    """What a function makes of its values."""
    if not function.least <= len(values) <= function.most:
        wanted = f"{function.least}" if function.least == function.most else f"{function.least} to {function.most}"
        raise syntax(f"{name} takes {wanted} values, not {len(values)}")
    result = function.apply(*values)
    return exact(result) if isinstance(result, Fraction) else _finite(result)


class Function(NamedTuple):
    """A function of the calculator, and how many values it takes."""

    apply: Callable[..., PlainNumber]
    least: int = 1
    most: int = 1


def _real(function: Callable[[float], float]) -> Function:
    return Function(lambda value: _guarded(lambda: function(_float(value))))


def _log(value: PlainNumber, base: PlainNumber | None = None) -> float:
    if base is None:
        return _guarded(lambda: math.log(_float(value)))
    if base == 1:
        raise _undefined("there is no logarithm to the base 1; use another base")
    return _guarded(lambda: math.log(_float(value), _float(base)))


def _rounded(value: PlainNumber, places: PlainNumber = Fraction(0)) -> Fraction:
    """Rounded as people do it: halves go away from zero."""
    if places != int(places) or not -ROUND_PLACES_MAX <= places <= ROUND_PLACES_MAX:
        raise _undefined(f"round takes a whole number of places from -{ROUND_PLACES_MAX} to {ROUND_PLACES_MAX}")
    # A float means the shortest decimal that names it: 2.675 is meant as 2.675.
    meant = value if isinstance(value, Fraction) else Fraction(repr(value))
    scale = Fraction(10) ** int(places)
    rounded = math.floor(abs(meant) * scale + Fraction(1, 2)) / scale
    return -rounded if meant < 0 else rounded


def _least(*values: PlainNumber) -> PlainNumber:
    return min(values)


def _greatest(*values: PlainNumber) -> PlainNumber:
    return max(values)


CONSTANTS: Mapping[str, PlainNumber] = {"pi": math.pi, "e": math.e}
FUNCTIONS: Mapping[str, Function] = {
    "sqrt": Function(_root),
    "abs": Function(abs),
    "min": Function(_least, most=VALUES_MAX),
    "max": Function(_greatest, most=VALUES_MAX),
    "round": Function(_rounded, most=2),
    "floor": Function(lambda value: Fraction(math.floor(value))),
    "ceil": Function(lambda value: Fraction(math.ceil(value))),
    "sin": _real(math.sin),
    "cos": _real(math.cos),
    "tan": _real(math.tan),
    "log": Function(_log, most=2),
    "log2": _real(math.log2),
    "log10": _real(math.log10),
    "exp": _real(math.exp),
}


def syntax(problem: str) -> ToolRefused:
    """The refusal of what is no expression."""
    return ToolRefused(CALCULATOR_SYNTAX, problem)


def _undefined(problem: str) -> ToolRefused:
    return ToolRefused(CALCULATOR_UNDEFINED, problem)
