"""Values of foreign code are shown in refusals, however they are written."""

import pytest

from remit.core.clipped import SHOWN_CHARS_MAX, clipped
from remit.core.raised import raised, words_of


class Unwritable(Exception):
    """Neither its text nor its form can be had."""

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        raise RuntimeError("no form")

    def __str__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        raise RuntimeError("no text")


@pytest.mark.parametrize(("value", "shown"), [("a", "'a'"), ("b" * 200, "'" + "b" * (SHOWN_CHARS_MAX - 1))])
def test_the_beginning_of_a_value_is_shown(value: object, shown: str) -> None:
    assert clipped(value) == shown


def test_a_value_that_cannot_be_written_is_shown_by_its_type() -> None:
    assert clipped(Unwritable()) == "<Unwritable>"
    assert words_of(Unwritable()) == "its message raised RuntimeError"
    assert raised(ValueError()) == "ValueError"
