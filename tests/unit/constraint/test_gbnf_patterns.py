"""Regular expressions in GBNF: what is read means the same, and what is not read is left to others."""

import json

import pytest

from remit.constraint.gbnf_json import SHARED
from remit.constraint.gbnf_parts import completed, sequence, written
from remit.constraint.gbnf_patterns import GROUPS_MAX, TIMES_MAX, pattern_part
from remit.constraint.grammar.matching import Fit, read_with
from remit.core.schema.json_schema import compile_schema

READ: list[tuple[str, list[str]]] = [
    ("^abc$", ["abc", "ab", "xabc"]),
    ("b", ["abc", "b", "a"]),
    ("^a|b$", ["ax", "xb", "x"]),
    ("^(?:ab|c)+d?$", ["abcd", "c", "d", "abab"]),
    ("^(a|)b$", ["ab", "b", "a"]),
    (r"^\d\D\w\W\s\S$", ["1a_! x", "11_! x"]),
    (r"^[\d\-x]{2,}$", ["1-x", "1", "--"]),
    (r"^[^\d]$", ["a", "1", "\n", '"', "\\"]),
    (r"^[a-c-]$", ["-", "b", "d"]),
    (r"^\x41\u0042\u{43}$", ["ABC", "abc"]),
    (r"^\n\t\r\f\v$", ["\n\t\r\f\v", "n"]),
    (r"^\.\/\-\\\"$", ['./-\\"', "a"]),
    ("^.$", ["a", "\n", "\r", "\x00", "\x1f", "\u2028", "😀", ""]),
    ("^a{2}b{1,}c{0,1}$", ["aab", "aabbc", "ab"]),
    ("^a*?b+?c??$", ["b", "aabc", "c"]),
    ("^[\x00-\x1f]$", ["\x00", "\n", "\x1f", "a"]),
    ("^a{0}$", ["", "a"]),
    ("^]}$", ["]}"]),
    ("^$", ["", "a"]),
    ("", ["", "a"]),
]
UNREAD = [
    *("(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", r"\ba", r"\B", "(?i)a", r"\p{L}", "(?<n>a)", r"\cA", "a++", "^(a*)*$"),
    *("(^a)", "(a$)", "a^", "a$b", "^*", "a{2}{3}", "a**", "[a", "(a", "a)", "a\\", "[[a]", r"[\d-z]", r"[z-\d]", "[z-a]"),
    *(r"\u{110000}", "(?:a?){2}", f"a{{{TIMES_MAX + 1}}}", "(" * (GROUPS_MAX + 1) + "a" + ")" * (GROUPS_MAX + 1), "{"),
]  # fmt: skip


def matches(pattern: str, text: str, fewest: int = 0, largest: int | None = None) -> bool:
    found = pattern_part(pattern, fewest, largest)
    assert found is not None
    rules = completed({**SHARED, "root": sequence(found[0])}, "root")
    grammar = "\n".join(f"{name} ::= {written(part)}" for name, part in rules.items())
    return read_with(grammar, json.dumps(text, ensure_ascii=False)[1:-1]).fit is Fit.FITS


@pytest.mark.parametrize(("pattern", "texts"), READ)
def test_an_expression_that_is_read_means_what_the_checker_means(pattern: str, texts: list[str]) -> None:
    checker = compile_schema({"pattern": pattern})
    assert [matches(pattern, text) for text in texts] == [checker.is_valid(text) for text in texts]


@pytest.mark.parametrize("pattern", UNREAD)
def test_what_is_not_read_has_no_part(pattern: str) -> None:
    assert pattern_part(pattern, 0, None) is None


@pytest.mark.parametrize(
    ("pattern", "fewest", "largest", "right", "wrong"),
    [
        ("^a*$", 1, 2, ["a", "aa"], ["", "aaa"]),
        ("^x[0-9]{1,9}y$", 4, 5, ["x12y", "x123y"], ["x1y", "x1234y"]),
        ("^x[0-9]+$", 0, None, ["x1"], ["x"]),
        ("^a+$|^b+$", 2, 2, ["aa", "bb"], ["a", "bbb"]),
        ("^ab?$", 2, 9, ["ab"], ["a"]),
    ],
)
def test_a_length_is_kept_to_where_one_repetition_can_give_way(
    pattern: str, fewest: int, largest: int | None, right: list[str], wrong: list[str]
) -> None:
    found = pattern_part(pattern, fewest, largest)
    assert found is not None
    assert found[1]
    assert all(matches(pattern, text, fewest, largest) for text in right)
    assert not any(matches(pattern, text, fewest, largest) for text in wrong)


@pytest.mark.parametrize(
    ("pattern", "fewest", "largest"), [("^a*b*$", 1, None), ("^(ab)*$", 2, 3), ("a", 2, None), ("^a*$", 2000, None)]
)
def test_a_length_that_is_not_kept_to_is_said_to_be_so(pattern: str, fewest: int, largest: int | None) -> None:
    found = pattern_part(pattern, fewest, largest)
    assert found is not None
    assert not found[1]
