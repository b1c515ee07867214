"""Pages of a list."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.page import PAGE_INVALID, PAGE_MAX, check_limit, page_of

LETTERS = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("behind", "limit", "page"),
    [("", 0, LETTERS), ("", 2, ["a", "b"]), ("a", 1, ["b"]), ("a", 0, ["b", "c"]), ("c", 5, [])],
)
def test_a_page_begins_behind_the_last_entry_of_the_one_before(behind: str, limit: int, page: list[str]) -> None:
    assert page_of(LETTERS, str, behind, limit) == page


def test_a_page_behind_what_is_gone_is_refused() -> None:
    with pytest.raises(RequestRejected, match="begin with the first page") as refused:
        page_of(LETTERS, str, "x", 1)
    assert refused.value.code == PAGE_INVALID


@pytest.mark.parametrize("limit", [-1, PAGE_MAX + 1, True, 1.5])
def test_a_limit_that_is_no_number_of_entries_is_refused(limit: int) -> None:
    with pytest.raises(RequestRejected, match="is no whole number from 0 to"):
        check_limit(limit)
