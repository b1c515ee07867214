"""A user's words as an expression of the index."""

import pytest

from remit.context.fts_query import QUERY_CHARS_MAX, QUERY_WORDS_MAX, expression_of, quoted, words_of


def test_words_are_found_once_each_in_their_order_without_case() -> None:
    assert words_of("Refund, REFUND? shipping_cost!") == ("refund", "shipping", "cost")


def test_words_that_every_question_has_are_left_out() -> None:
    assert words_of("What is the price of the book?") == ("price", "book")


def test_words_that_say_nothing_are_kept_when_there_are_no_others() -> None:
    assert words_of("Who are you?") == ("who", "are", "you")


@pytest.mark.parametrize("text", ["", "?!*()", '"""', "\x00\ud800", "x" * 65])
def test_a_text_without_words_has_none(text: str) -> None:
    assert words_of(text) == ()


def test_a_query_is_bounded_in_characters_and_in_words() -> None:
    assert len(words_of(" ".join(f"w{n}" for n in range(100)))) == QUERY_WORDS_MAX
    assert words_of(" " * QUERY_CHARS_MAX + "late") == ()


def test_marks_belong_to_their_letters() -> None:
    assert words_of("हिन्दी भाषा") == ("हिन्दी", "भाषा")


def test_every_word_is_quoted() -> None:
    assert expression_of(("near", "not")) == '"near" OR "not"'
    assert quoted('a"b') == '"a""b"'
