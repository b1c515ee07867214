"""How much room text takes on a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.adapters.cli.screen.widths import cells, column_after, fitted


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("abc", 3), ("漢字", 4), ("e\u0301", 1), ("❤\ufe0f", 1), ("\uff57", 2)]
)
def test_a_text_takes_as_many_cells_as_a_terminal_gives_it(text: str, count: int) -> None:
    assert cells(text) == count


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字漢字", 5, "漢字…"), ("漢字漢字", 4, "漢…"), ("abc", 0, "")],
)
def test_what_does_not_fit_is_cut_and_says_so(text: str, columns: int, shown: str) -> None:
    assert fitted(text, columns) == shown


@given(st.text(max_size=40), st.integers(0, 30))
def test_what_was_fitted_fits(text: str, columns: int) -> None:
    assert cells(fitted(text, columns)) <= columns


@pytest.mark.parametrize(
    ("column", "text", "after"),
    [
        (0, "abc", 3),
        (8, "ab", 10),
        (8, "abc", 1),
        (9, "漢", 2),
        (5, "x\ny", 1),
        (5, "x\n", 0),
        (0, "a\t", 8),
        (8, "\t", 9),
    ],
)
def test_a_line_goes_on_where_the_text_before_it_ended(column: int, text: str, after: int) -> None:
    assert column_after(column, text, 10) == after
