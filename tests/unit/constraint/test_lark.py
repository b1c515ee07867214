"""GBNF in the notation of llguidance admits the same texts, and no text holds its reader for long."""

import sys

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.constraint.grammar.lark import in_lark
from remit.constraint.grammar.matching import Fit, read_with
from remit.constraint.grammar.notation import GRAMMAR_UNCHECKABLE, is_gbnf
from remit.core.failure import RequestRejected
from tests.unit.constraint.test_matching import JSON

ARITHMETIC = 'root ::= sum\nsum ::= term | term "+" sum\nterm ::= [0-9] | "(" sum ")"'

SAME = [
    ('root ::= [a-z] "1" | [a-f] "2"', ["b1", "b2", "z2", "b", ""]),
    ('root ::= "a" "bd" | "abc" | "ab"', ["abd", "abc", "ab", "abe"]),
    ('root ::= [a-z]+ "ing"', ["singing", "sin", "sIn"]),
    ('root ::= ""', ["", "a"]),
    ('root ::= | "a"', ["", "a", "aa"]),
    ('root ::= "a"{0} "b"', ["b", "ab"]),
    ('root ::= "ab"{2,3} "c"{2,}', ["ababcc", "abababccc", "abcc", "ababc"]),
    ('root ::= "a"{2}{2}', ["aaaa", "aaa"]),
    ("root ::= .", ["\n", "\U0001f600", "", "ab"]),
    ("root ::= [^a-c\\n]", ["é", "\n", "b"]),
    ('root ::= [\\]\\-^/\\x00]+ "\\"\\\\/"', [']^-/\x00"\\/', "]"]),
    ('root ::= word rest\nrest ::= " " word rest | "."\nword ::= [a-z]+', ["a b c.", "a.", "a b"]),
    ('root ::= "a" root | "b" root "c" | "d"', ["aad", "badc", "bad"]),
    ("root ::= [a-z] root", ["abc", "A"]),
    (ARITHMETIC, ["1+(2+3)", "((1))", "(1", "1+"]),
    (JSON, ['{"a": [1, -2.5e3, {"b": null}], "c": "\\u00e9"}', '{"a": [1, ', '{"a": 01x}']),
]


@pytest.mark.parametrize(("grammar", "texts"), SAME)
def test_the_same_texts_fit_are_cut_and_are_broken(grammar: str, texts: list[str]) -> None:
    lark = in_lark(grammar)
    assert not is_gbnf(lark)
    assert [read_with(lark, text) for text in texts] == [read_with(grammar, text) for text in texts]


def test_what_is_lark_already_stays_as_it_is() -> None:
    lark = '%llguidance {}\nstart: "a"'
    assert in_lark(lark) == lark


@pytest.mark.parametrize(
    ("grammar", "text", "fit"),
    [
        # Each parenthesis doubles the ways in which the rest can be read.
        (ARITHMETIC, "(" * 200 + "1" + ")" * 200, Fit.FITS),
        ('root ::= "a" root "x" | "a" root "y" | "a"', "a" * 300, Fit.CUT),
        ('root ::= (("a"?){100}){100}', "a" * 50, Fit.FITS),
        ('root ::= [a-z] root | ""', "a" * 20_000, Fit.FITS),
    ],
)
def test_an_ambiguous_grammar_costs_nothing(grammar: str, text: str, fit: Fit) -> None:
    assert read_with(in_lark(grammar), text).fit is fit


@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= r0\n" + "\n".join(f"r{n} ::= r{n + 1}" for n in range(3000)) + '\nr3000 ::= "a"',
        'root ::= "a"' + "{1}" * 3000,
    ],
)
def test_a_grammar_that_would_end_the_process_is_refused(grammar: str) -> None:
    with pytest.raises(RequestRejected, match="levels_max") as raised:
        in_lark(grammar)
    assert raised.value.code == GRAMMAR_INVALID


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(RequestRejected) as raised:
        in_lark('root ::= "a"')
    assert raised.value.code == GRAMMAR_UNCHECKABLE
