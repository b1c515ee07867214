"""Pages that a reader types from top to bottom say what happens."""

import pytest

from scripts.typed_pages import DOCS, PAGES, is_told, played


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_whatever_a_page_has_its_reader_type_says_what_the_page_shows(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert played(page) == page, "mend it with `python -m scripts.typed_pages`"


def test_a_page_that_shows_something_else_is_written_anew() -> None:
    page = "`a.txt`:\n\n```text\nhello\n```\n\n```console\n$ cat a.txt\nhello\n$ echo you\nme\n$ pip install x\n```\n"
    assert played(page) == page.replace("me\n", "you\n")


@pytest.mark.parametrize("told", ["a\nb\nc\n", "a\n…\nc\n", "…\n", "…\nc\n", "a\n…\n", "a\n…\nb\n…\n"])
def test_what_is_left_out_may_be_anything(told: str) -> None:
    assert is_told(told, "a\nb\nc\n")


@pytest.mark.parametrize(
    "told", ["", "a\n", "a\nc\n", "b\n…\n", "…\nb\n", "a\n…\nd\n…\n", "a\nb\nc\nd\n", "a\n…\na\n…\n"]
)
def test_a_told_line_must_be_there_in_its_order(told: str) -> None:
    assert not is_told(told, "a\nb\nc\n")
