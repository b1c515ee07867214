"""The calculator shows results as people write them."""

from fractions import Fraction

import pytest

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.calculator import (
    DEPTH_MAX,
    EXACT_DIGITS_MAX,
    EXPRESSION_CHARS_MAX,
    LITERAL_DIGITS_MAX,
    LITERAL_EXPONENT_MAX,
    Calculated,
    calculated,
    calculator_tool,
    evaluate,
)
from remit.tool.builtin.quantities import (
    BITS_MAX,
    CALCULATOR_SYNTAX,
    CALCULATOR_TOO_LARGE,
    CALCULATOR_UNDEFINED,
    CONSTANTS,
    EXPONENT_MAX,
    FUNCTIONS,
    ROUND_PLACES_MAX,
)
from remit.tool.builtin.refusal import ToolRefused
from tests.unit.tool.watching import content, fault


@pytest.mark.parametrize(
    ("expression", "result", "is_exact"),
    [
        ("0.1 + 0.2", "0.3", True),
        ("1.10 * 100", "110", True),
        ("1/8", "0.125", True),
        ("1/3", "0.333333333333333", False),
        ("2/3", "0.666666666666667", False),
        ("-1/3", "-0.333333333333333", False),
        ("sqrt(2) * sqrt(2)", "2", False),
        ("e", "2.71828182845905", False),
        ("pi", "3.14159265358979", False),
        ("1e-300", "1E-300", True),
        ("1e-10", "0.0000000001", True),
        ("exp(100)", "26881171418161400000000000000000000000000000", False),
        ("exp(200)", "7.22597376812575E+86", False),
        ("2**200", str(2**200), True),
        ("0 * pi", "0", False),
        ("0.5 ** 100", "7.88860905221012E-31", False),
        ("1e20 + 0.5", "100000000000000000000.5", True),
    ],
)
def test_a_result_is_shown_without_noise_and_says_whether_it_is_exact(
    expression: str, result: str, is_exact: bool
) -> None:
    assert calculated(expression) == Calculated(result, is_exact)


def test_a_decimal_with_too_many_digits_is_rounded() -> None:
    assert calculated(f"1 + 10 ** -{EXACT_DIGITS_MAX - 1}").is_exact
    assert calculated(f"1 + 10 ** -{EXACT_DIGITS_MAX}") == Calculated("1", is_exact=False)


def test_the_tool_answers_with_the_result_and_touches_nothing() -> None:
    tool = calculator_tool()
    assert content(tool, expression="0.1+0.2") == '{"result":"0.3","is_exact":true}'
    assert tool.definition.effect is Effect.NONE
    assert tool.definition.category is ToolCategory.SANDBOX
    assert not tool.definition.untrusted_output


def test_a_refusal_reaches_the_model_in_words() -> None:
    assert fault(calculator_tool(), expression="1/0").error.startswith("ToolRefused: CALCULATOR_UNDEFINED: division")


def refusal(expression: str) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        evaluate(expression)
    return caught.value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("2 ** 10", 1024),
        ("-2 ** 2", -4),
        ("2 ** 3 ** 2", 512),
        ("2 ** -1", Fraction(1, 2)),
        ("+-+3", -3),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1/3*3", 1),
        (".5 + 5.", Fraction(11, 2)),
        ("1e3 + 1E-3", Fraction(1000001, 1000)),
        ("\t2\n*\r3 ", 6),
        ("sqrt(16/9)", Fraction(4, 3)),
        ("(1/4)**0.5", Fraction(1, 2)),
        ("abs(-3.5)", Fraction(7, 2)),
        ("min(3, 1, 2)", 1),
        ("max(3, 1, 2)", 3),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(2.675, 2)", Fraction(67, 25)),
        ("round(1234, -2)", 1200),
        ("round(sqrt(2), 3)", Fraction(707, 500)),
        ("floor(-0.5)", -1),
        ("ceil(0.5)", 1),
        ("floor(pi)", 3),
        ("0 ** 0", 1),
        ("(-2) ** 3", -8),
    ],
)
def test_an_exact_expression_comes_to_exactly_its_value(expression: str, value: int | Fraction) -> None:
    result = evaluate(expression)
    assert isinstance(result, Fraction)
    assert result == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sin(0)", 0.0),
        ("cos(0)", 1.0),
        ("tan(0)", 0.0),
        ("exp(0)", 1.0),
        ("log(e)", 1.0),
        ("log(8, 2)", 3.0),
        ("log2(8)", 3.0),
        ("log10(1000)", 3.0),
        ("pi / pi", 1.0),
        ("sqrt(2) ** 2", 2.0),
        ("2 ** 0.5", 2**0.5),
        ("2 ** (1/3)", 2 ** (1 / 3)),
        ("sqrt(pi) * sqrt(pi)", 3.141592653589793),
    ],
)
def test_functions_beyond_fractions_come_to_floats(expression: str, value: float) -> None:
    result = evaluate(expression)
    assert isinstance(result, float)
    assert result == pytest.approx(value)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "  ",
        "1 +",
        "* 2",
        "(1",
        "1)",
        "1 2",
        "2 (3)",
        "sin",
        "sin 3",
        "sin(",
        "foo(1)",
        "x",
        "min()",
        "sqrt(1, 2)",
        "round(1, 2, 3)",
        "1,000",
        "2 ^ 3",
        "1 = 1",
        "'a'",
        "__import__('os')",
        "1.2.3",
        "1_000",
        "\uff12+\uff12",
        "a.b",
        "[1]",
        "lambda: 1",
        "1 if 1 else 2",
        "9" + "\x00",
        "1e",
        "0x10",
        "1;2",
        "()",
        "min(1,)",
        "∞",
    ],
)
def test_what_is_no_expression_is_refused_with_its_reason(expression: str) -> None:
    found = refusal(expression)
    assert found.code == CALCULATOR_SYNTAX
    assert found.message


@pytest.mark.parametrize(
    "expression",
    [
        "1/0",
        "1//0",
        "1%0",
        "1/(2-2)",
        "1.5/0",
        "pi/0",
        "0**-1",
        "sqrt(-1)",
        "(-8)**(1/3)",
        "(-2)**0.5",
        "(0-pi)**1.5",
        "log(0)",
        "log(-1)",
        "log(2, 1)",
        "log(2, -1)",
        # Not zero as fractions, but as floats.
        "pi / 1e-400",
        "pi // 1e-400",
        "pi % 1e-400",
        "log(2, 1 + 1e-30)",
        "(1e-400) ** (-pi)",
        "round(1, 0.5)",
        f"round(1, {ROUND_PLACES_MAX + 1})",
    ],
)
def test_what_is_not_defined_is_refused_with_its_reason(expression: str) -> None:
    assert refusal(expression).code == CALCULATOR_UNDEFINED


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9**9**9**9**9",
        "2**(9**9)",
        "(1/3)**-99999",
        f"1**{EXPONENT_MAX + 1}",
        "1" * (LITERAL_DIGITS_MAX + 1),
        f"1e{LITERAL_EXPONENT_MAX + 1}",
        f"1e-{LITERAL_EXPONENT_MAX + 1}",
        "1e999999",
        "1e" + "9" * 500,
        "1e1000 * 1e1000",
        "10**1000 * 10**1000",
        "exp(1000)",
        "1e1000 * pi",
        "sin(1e1000)",
        "exp(700) * exp(700)",
        "exp(500) ** 2.5",
        "(" * (DEPTH_MAX + 1) + "1" + ")" * (DEPTH_MAX + 1),
        "-" * (DEPTH_MAX + 1) + "1",
        "2" + "**1" * (DEPTH_MAX + 1),
        "1+" * EXPRESSION_CHARS_MAX + "1",
    ],
)
def test_what_would_cost_too_much_is_refused_before_it_is_done(expression: str) -> None:
    assert refusal(expression).code == CALCULATOR_TOO_LARGE


def test_the_largest_numbers_that_are_allowed_are_calculated() -> None:
    assert evaluate(f"2 ** {BITS_MAX - 1}") == 2 ** (BITS_MAX - 1)
    assert evaluate(f"1e{LITERAL_EXPONENT_MAX}") == 10**LITERAL_EXPONENT_MAX
    depth = DEPTH_MAX - 1
    assert evaluate("(" * depth + "1" + ")" * depth) == 1


def test_every_function_and_constant_can_be_used() -> None:
    for name, function in FUNCTIONS.items():
        assert evaluate(f"{name}({', '.join(['1'] * function.least)})") is not None
    for name, value in CONSTANTS.items():
        assert evaluate(name) == value


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    assert "sqrt" in refusal("square(2)").message
    assert "**" in refusal("2^3").message
