"""The calculator: arithmetic on text, exact where it can be, shown without the noise of floating point.

Rule 1: an exact outcome is written out in full, as far as its digits fit; any other is rounded to 15 digits and says so.
Rule 2: an expression is calculated while it is read; nothing is ever evaluated as Python. The text, its nesting and the digits
        of a literal are measured before anything is calculated.
Rule 3: whatever is wrong with an expression is a ToolRefused; nothing else is ever raised.
Rule 4: the precedence is Python's: `**` binds tighter than a sign to its left and groups to the right, `//` and `%` round down.
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated, NamedTuple

from pydantic import Field

from remit.core.limits.tools import Effect, ToolCategory
from remit.core.regex import regex
from remit.tool.builtin.quantities import (
    CALCULATOR_TOO_LARGE,
    CONSTANTS,
    FUNCTIONS,
    PlainNumber,
    applied_function,
    combined,
    exact,
    power,
    syntax,
)
from remit.tool.builtin.refusal import ToolRefused, quoted_value
from remit.tool.declare.decorator import Tool, tool

# A formula that a person could check by eye; anything longer is a program.
EXPRESSION_CHARS_MAX = 1_000
# Far below the depth at which Python itself gives up, far above what people write.
DEPTH_MAX = 50
# A literal with more digits or a larger exponent than this could not be the outcome either.
LITERAL_DIGITS_MAX = 500
LITERAL_EXPONENT_MAX = 1_000

_TOKEN = regex(
    r"[ \t\r\n]*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>\*\*|//|[-+*/%(),]))"
)
_END = ""
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


class _Token(NamedTuple):
    kind: str
    text: str


def evaluate(expression: str) -> PlainNumber:
    """What an expression comes to: a fraction where that is exact, a float elsewhere."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        problem = (
            f"the expression has {len(expression)} characters, more than expression_chars_max={EXPRESSION_CHARS_MAX}"
        )
        raise ToolRefused(CALCULATOR_TOO_LARGE, f"{problem}; calculate it in parts")
    reader = _Reader(_tokens(expression))
    value = reader.sum(0)
    if reader.next.text != _END:
        raise syntax(f"{quoted_value(reader.next.text)} does not belong there; put an operator before it, or remove it")
    return value


def _tokens(expression: str) -> list[_Token]:
    found: list[_Token] = []
    text = expression.rstrip(" \t\r\n")
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise syntax(_unknown(text[position:].lstrip(" \t\r\n")[0]))
        found.append(_Token(match.lastgroup or "", match[match.lastgroup or 0]))
        position = match.end()
    if not found:
        raise syntax("the expression is empty; write for example 2 * (3 + 4)")
    return found


def _unknown(character: str) -> str:
    way_out = (
        "write ** for a power" if character == "^" else "use digits, + - * / // % ** ( ) , and the known functions"
    )
    return f"the character {quoted_value(character)} is not known; {way_out}"


class _Reader:
    """Reads tokens from left to right and calculates; `depth` counts how deep the text is nested at each call."""

    __slots__ = ("_position", "_tokens")

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._position = 0

    @property
    def next(self) -> _Token:
        """The token that was not taken yet."""
        return self._tokens[self._position] if self._position < len(self._tokens) else _Token("end", _END)

    def _take(self) -> _Token:
        token = self.next
        self._position += 1
        return token

    def _took(self, *signs: str) -> str:
        """The sign that stands here, taken, if it is one of these."""
        return self._take().text if self.next.text in signs else _END

    def sum(self, depth: int) -> PlainNumber:
        """Terms joined by + and -."""
        value = self._product(depth)
        while sign := self._took("+", "-"):
            value = combined(sign, value, self._product(depth))
        return value

    def _product(self, depth: int) -> PlainNumber:
        value = self._signed(depth)
        while sign := self._took("*", "/", "//", "%"):
            value = combined(sign, value, self._signed(depth))
        return value

    def _signed(self, depth: int) -> PlainNumber:
        deeper = _deeper(depth)
        match self._took("+", "-"):
            case "-":
                return -self._signed(deeper)
            case "+":
                return self._signed(deeper)
        base = self._atom(deeper)
        return power(base, self._signed(deeper)) if self._took("**") else base

    def _atom(self, depth: int) -> PlainNumber:
        token = self._take()
        match token.kind:
            case "number":
                return _literal(token.text)
            case "name":
                return self._named(token.text, depth)
        if token.text == "(":
            value = self.sum(depth)
            self._close()
            return value
        what = "the expression ends" if token.kind == "end" else f"{quoted_value(token.text)} stands"
        raise syntax(f"{what} where a number, a name or '(' was expected")

    def _named(self, name: str, depth: int) -> PlainNumber:
        if name in CONSTANTS:
            return CONSTANTS[name]
        function = FUNCTIONS.get(name)
        if function is None:
            known = ", ".join((*CONSTANTS, *FUNCTIONS))
            raise syntax(f"{quoted_value(name)} is not known; use one of {known}")
        if not self._took("("):
            raise syntax(f"{name} is a function; write {name}(...)")
        return applied_function(name, function, self._arguments(depth))

    def _arguments(self, depth: int) -> list[PlainNumber]:
        if self._took(")"):
            return []
        values = [self.sum(depth)]
        while self._took(","):
            values.append(self.sum(depth))
        self._close()
        return values

    def _close(self) -> None:
        if not self._took(")"):
            raise syntax("a parenthesis is not closed; add ')'")


def _deeper(depth: int) -> int:
    if depth >= DEPTH_MAX:
        problem = f"the expression is nested deeper than depth_max={DEPTH_MAX}"
        raise ToolRefused(CALCULATOR_TOO_LARGE, f"{problem}; calculate it in parts")
    return depth + 1


def _literal(text: str) -> Fraction:
    digits, _, exponent = text.lower().partition("e")
    whole, _, part = digits.partition(".")
    tens = int(exponent or "0") if len(exponent) <= len(str(LITERAL_EXPONENT_MAX)) + 1 else LITERAL_EXPONENT_MAX + 1
    if len(whole + part) > LITERAL_DIGITS_MAX or abs(tens) > LITERAL_EXPONENT_MAX:
        limits = f"digits_max={LITERAL_DIGITS_MAX} and exponent_max={LITERAL_EXPONENT_MAX}"
        raise ToolRefused(CALCULATOR_TOO_LARGE, f"the number {quoted_value(text)} exceeds {limits}; use a smaller one")
    return exact(Fraction(int(whole + part or "0")) * Fraction(10) ** (tens - len(part)))


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


def _shown(value: PlainNumber) -> Calculated:
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
