"""Patterns whose time is bounded."""

import random
import time

import pytest

from remit.core.failure import RequestRejected
from remit.validate.safe_regex import PATTERN_WORK_MAX, compile_pattern


@pytest.mark.parametrize(
    "source",
    [
        "(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(?>a)b", r"(a)\1", r"(?P<n>a)(?P=n)", r"(?<n>a)\k<n>", "a++", "a*+", "a?+",
        "a{2}+", "a{2}?+", "(?x)a b", "(?(1)a|b)", "(?#note)a", r"\Ka", r"\Ga", "\\",
    ],
)  # fmt: skip
def test_what_could_backtrack_is_refused_with_its_place(source: str) -> None:
    with pytest.raises(RequestRejected, match="at character") as caught:
        compile_pattern(source)
    assert caught.value.code == "PATTERN_REFUSED"


@pytest.mark.parametrize("source", ["(", ")", "a)", "*", "a{2,1}", "(?i-i:ab)", "{"])
def test_what_is_no_regular_expression_is_refused(source: str) -> None:
    with pytest.raises(RequestRejected, match="no regular expression"):
        compile_pattern(source)


@pytest.mark.parametrize("source", ["[a", "[]a]", "[^]a]", "[a[b]]", "[a&&[b]]"])
def test_a_class_that_engines_read_differently_is_refused(source: str) -> None:
    with pytest.raises(RequestRejected, match="is not plain"):
        compile_pattern(source)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("x" * 501, "pattern_chars_max=500"),
        ("a{99999}", "100000 atoms"),
        ("((a{999}){999}){999}", "multiply beyond all bounds"),
    ],
)
def test_a_pattern_that_would_grow_too_large_is_refused(source: str, named: str) -> None:
    with pytest.raises(RequestRejected, match=named):
        compile_pattern(source)


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        ("b+", "aabbcc", (2, "b")),
        ("(?i)secret", "My Secret!", (3, "Secret")),
        (r"\b\d{3}-\d{2}-\d{4}\b", "call 123-45-6789 now", (5, "123-45-6789")),
        (r"[\]\[a-c]+?x", "zz]ax", (3, "ax")),
        ("(?:ab|(?P<n>cd)){2}", "xxabcdxx", (2, "abcd")),
        (r"\p{Lu}\x41\u0042", "éÉABé", (1, "ÉAB")),
        ("a.b", "a\nb a_b", (4, "a_b")),
        ("(?s)a.b", "a\nb", (0, "a\nb")),
        ("^", "abc", (0, "")),
        ("a|b", "xb", (1, "b")),
    ],
)  # fmt: skip
def test_a_pattern_is_found_where_it_stands(source: str, text: str, found: tuple[int, str]) -> None:
    pattern = compile_pattern(source)
    assert pattern.occurs_in(text)
    assert pattern.first_in(text) == found


def test_a_match_behind_the_first_window_is_found() -> None:
    assert compile_pattern("needle").first_in("x" * 100_003 + "needle" + "x" * 9000) == (100_003, "needle")


def test_a_match_longer_than_a_window_has_no_short_place() -> None:
    pattern, text = compile_pattern("(?s)^a.*b$"), "a" + "x" * 10_000 + "b"
    assert pattern.occurs_in(text)
    assert pattern.first_in(text) is None


def test_where_halving_goes_astray_the_window_says_where() -> None:
    found = compile_pattern("^(?:a|abc)$").first_in("abc")
    assert found == (0, "a")
    anchored = compile_pattern("^a$|^abcd$|c").first_in("abcd")
    assert anchored is not None
    assert anchored.text in "abcd"


def test_a_pattern_does_not_occur_where_it_does_not() -> None:
    pattern = compile_pattern("z")
    assert not pattern.occurs_in("abc")
    assert pattern.first_in("abc") is None


def test_a_text_may_be_the_longer_the_lighter_the_pattern_is() -> None:
    light, heavy = compile_pattern("a+"), compile_pattern("(?:a.{9}){9}")
    assert heavy.weight > 90 > light.weight
    assert light.chars_max > 1_000_000 > heavy.chars_max
    assert heavy.chars_max == PATTERN_WORK_MAX // heavy.weight


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", ["(a+)+$", "(a|aa)+$", "(?:.{1,40}){40}z", "a.{47}z", "[ab]*a[ab]{40}z", "(?:a?){1900}z"]
)
def test_patterns_that_ruin_others_take_seconds_at_most(source: str) -> None:
    pattern = compile_pattern(source)
    chance = random.Random(7)
    began = time.process_time()
    for text in ("a" * 1_000_000 + "!", "".join(chance.choices("abé漢", k=1_000_000))):
        pattern.occurs_in(text[: pattern.chars_max])
    assert time.process_time() - began < 20
