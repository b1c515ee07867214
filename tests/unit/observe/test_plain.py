"""Whatever was said becomes one printable line."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.observe.plain import is_seen, printable_line

TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(TEXTS, st.integers(0, 80))
def test_nothing_in_the_output_is_obeyed_hidden_or_turned_around(text: str, limit: int) -> None:
    shown = printable_line(text, limit)
    assert not {unicodedata.category(character) for character in shown} & FORBIDDEN
    assert shown.isprintable()


@given(TEXTS, st.integers(1, 80))
def test_no_output_is_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(printable_line(text, limit)) <= limit
    assert printable_line(text, limit) in (printable_line(text), printable_line(text, limit).removesuffix("…") + "…")


@given(TEXTS, TEXTS)
def test_two_texts_that_differ_are_shown_differently(one: str, other: str) -> None:
    assert (printable_line(one) == printable_line(other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words", "plain words"),
        ("schön 日本 🙂", "schön 日本 🙂"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\u2028\u2029\x7f", "\\u2028\\u2029\\x7f"),
        ("half \ud800 a pair", "half \\ud800 a pair"),
        ("\\x1b", "\\\\x1b"),
    ],
)
def test_characters_without_a_printed_form_are_escaped(text: str, shown: str) -> None:
    assert printable_line(text) == shown


def test_a_text_is_cut_between_escapes_and_never_within_one() -> None:
    assert printable_line("abc\x1b\x1b", 8) == "abc\\x1b…"
    assert printable_line("abcdefghij", 5) == "abcd…"
    assert printable_line("abcde", 5) == "abcde"
    assert printable_line("a\x1b", 5) == "a\\x1b"


@pytest.mark.parametrize("unseen", ["\u034f", "\u115f", "\u3164", "\uffa0", "\ufe00", "\U000e0100"])
def test_what_is_printable_and_yet_unseen_is_shown_as_an_escape(unseen: str) -> None:
    assert printable_line(f"a{unseen}b") == f"a{unseen.encode('unicode_escape').decode()}b"
    assert not is_seen(unseen)


def test_the_selectors_of_everyday_signs_stay() -> None:
    assert printable_line("❤\ufe0f ☎\ufe0e") == "❤\ufe0f ☎\ufe0e"
