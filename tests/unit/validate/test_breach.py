"""Breaches in words."""

import pytest

from remit.validate.breach import VALUE_CHARS_MAX, Breach, breach_text, shown_in_message
from remit.validate.rule_set import Severity


def test_a_breach_names_rule_place_problem_limit_and_value() -> None:
    breach = Breach("price", Severity.BLOCK, "/items/0/price", "-1", "least=0", "is out of range")
    assert breach_text(breach) == "rule 'price': the answer at '/items/0/price' is out of range (least=0), found -1"


def test_a_breach_of_the_whole_answer_is_short_and_a_warning_says_so() -> None:
    assert (
        breach_text(Breach("tone", Severity.WARN, "", "", "", "is rude")) == "warning: rule 'tone': the answer is rude"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        ("a\nb\x1b[31m", "'a\\nb\\x1b[31m'"),
        (5, "5"),
        (True, "True"),
        (None, "None"),
        ([1], "a list"),
        ("\ud800", "'\\ud800'"),
    ],
)
def test_a_value_is_shown_on_one_line_without_control_characters(value: object, text: str) -> None:
    assert shown_in_message(value) == text


def test_a_long_value_is_cut_in_the_middle() -> None:
    cut = shown_in_message("a" * 500 + "b" * 500)
    assert len(cut) <= VALUE_CHARS_MAX + 5
    assert cut.startswith("'aaa")
    assert cut.endswith("bbb'")


def test_a_number_without_end_is_told_by_its_size() -> None:
    assert shown_in_message(10**5000) == "a number of 16610 bits"
