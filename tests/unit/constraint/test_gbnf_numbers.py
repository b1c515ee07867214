"""Integers between two limits, digit by digit."""

import pytest

from remit.constraint.gbnf_numbers import DIGITS_MAX, integer_between
from remit.constraint.gbnf_parts import NOTHING, Part, written
from remit.constraint.grammar.matching import Fit, read_with


def admits(part: Part, text: str) -> bool:
    return read_with(f"root ::= {written(part)}", text).fit is Fit.FITS


@pytest.mark.parametrize(
    ("least", "most"), [(0, 0), (-1, 1), (7, 7), (-35, 120), (5, 9), (10, 99), (98, 1002), (-300, -12), (0, 1000)]
)
def test_every_number_between_and_no_other_is_admitted(least: int, most: int) -> None:
    part = integer_between(least, most)
    admitted = [number for number in range(least - 120, most + 120) if admits(part, str(number))]
    assert admitted == list(range(least, most + 1))


@pytest.mark.parametrize(("least", "right", "wrong"), [(0, 0, -1), (17, 17, 16), (100, 12345, 99), (-3, 10**20, -4)])
def test_without_a_most_every_larger_number_is_admitted(least: int, right: int, wrong: int) -> None:
    assert admits(integer_between(least, None), str(right))
    assert not admits(integer_between(least, None), str(wrong))
    assert admits(integer_between(None, -least), str(-right))
    assert not admits(integer_between(None, -least), str(-wrong))


def test_a_number_has_an_end_though_it_has_no_limit() -> None:
    assert admits(integer_between(None, None), "9" * DIGITS_MAX)
    assert not admits(integer_between(None, None), "9" * (DIGITS_MAX + 1))


@pytest.mark.parametrize("text", ["-0", "00", "01", "+1", "1.0", "1e2", ""])
def test_a_number_is_written_in_one_way(text: str) -> None:
    assert not admits(integer_between(None, None), text)


def test_between_limits_that_cross_there_is_nothing() -> None:
    assert integer_between(3, 2) == NOTHING
