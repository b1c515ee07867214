"""The calculator shows results as people write them."""

import pytest

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.calculator import EXACT_DIGITS_MAX, Calculated, calculated, calculator_tool
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
