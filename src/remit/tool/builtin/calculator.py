"""The calculator: arithmetic on text, exact where it can be, shown without the noise of floating point.

Rule 1: an exact outcome is written out in full, as far as its digits fit; any other is rounded to 15 digits and says so.
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.arithmetic import EXPRESSION_CHARS_MAX, evaluate
from remit.tool.builtin.quantities import Number
from remit.tool.declare.decorator import Tool, tool

# All digits of a float that mean something, less the one that shows how it was stored.
SHOWN_DIGITS = 15
# An exact decimal is written out up to so many digits behind its point; whole numbers always are.
EXACT_DIGITS_MAX = 50
# Evaluating takes milliseconds at worst; a second covers a machine that is busy.
TIMEOUT_MS = 1_000

EXPRESSION = (
    "Numbers with + - * / // % ** and parentheses; the functions sqrt abs min max round floor ceil sin cos tan log "
    "log2 log10 exp; the constants pi and e. A power is written **."
)


@dataclass(frozen=True, slots=True)
class Calculated:
    """What an expression comes to."""

    result: str
    is_exact: bool


def calculator_tool() -> Tool:
    """The tool `calculator`."""

    @tool(
        effect=Effect.NONE,
        category=ToolCategory.SANDBOX,
        network=False,
        idempotent=True,
        untrusted_output=False,
        timeout_ms=TIMEOUT_MS,
    )
    def calculator(
        expression: Annotated[str, Field(min_length=1, max_length=EXPRESSION_CHARS_MAX, description=EXPRESSION)],
    ) -> Calculated:
        """Calculate an arithmetic expression, exactly where that is possible."""
        return calculated(expression)

    return calculator


def calculated(expression: str) -> Calculated:
    """What an expression comes to, as text."""
    return _shown(evaluate(expression))


def _shown(value: Number) -> Calculated:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return Calculated(str(value.numerator), is_exact=True)
        if (exact := _decimal(value)) is not None:
            return Calculated(_written(exact), is_exact=True)
        context = Context(prec=SHOWN_DIGITS)
        return Calculated(
            _written(context.divide(Decimal(value.numerator), Decimal(value.denominator))), is_exact=False
        )
    return Calculated(_written(Context(prec=SHOWN_DIGITS).create_decimal(Decimal(value))), is_exact=False)


def _decimal(value: Fraction) -> Decimal | None:
    """The fraction as a decimal that ends, if it does so within the digits that are shown."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    digits = value.numerator * 10**places // value.denominator
    if rest != 1 or len(str(abs(digits))) > EXACT_DIGITS_MAX:
        return None
    return Decimal(digits).scaleb(-places, Context(prec=EXACT_DIGITS_MAX))


def _written(value: Decimal) -> str:
    """The shortest way to write a decimal: no zeros at its end, an exponent only where there would be many."""
    plain = value.normalize(Context(prec=EXACT_DIGITS_MAX))
    return f"{plain:f}" if -SHOWN_DIGITS <= plain.adjusted() <= EXACT_DIGITS_MAX else f"{plain}"
