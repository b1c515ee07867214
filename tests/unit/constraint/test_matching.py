"""Whether a text follows a grammar: GBNF by every open way, llguidance by itself."""

import pytest

from remit.constraint import matching
from remit.constraint.matching import TEXT_CHARS_MAX, Fit, read_with

JSON = r"""root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""
LARK = '%llguidance {}\nstart: /a+/ "b"'

READINGS = [
    ('root ::= [a-z]+ "ing"', "singing", Fit.FITS),
    ('root ::= [a-z]+ "ing"', "sin", Fit.CUT),
    ('root ::= [a-z]+ "ing"', "sIn", Fit.BROKEN),
    ('root ::= "a" "b" | "ab" "c"', "ab", Fit.FITS),
    ('root ::= "a" "b" | "ab" "c"', "abc", Fit.FITS),
    ('root ::= ("a"*)* "b"', "aaab", Fit.FITS),
    ('root ::= "ab"{2,3}', "ababab", Fit.FITS),
    ('root ::= "ab"{2,3}', "ab", Fit.CUT),
    ('root ::= "ab"{2,3}', "abababab", Fit.BROKEN),
    ("root ::= .", "\n", Fit.FITS),
    ("root ::= [^a]", "a", Fit.BROKEN),
    ('root ::= "a"?', "", Fit.FITS),
    ('root ::= "(" root ")" | "x"', "((((x))))", Fit.FITS),
    ('root ::= "\\u00e9" [\\U0001F600]', "é\U0001f600", Fit.FITS),
    (JSON, '{"a": [1, -2.5e3, {"b": null}], "c": "\\u00e9"}', Fit.FITS),
    (JSON, '{"a": [1, ', Fit.CUT),
    (JSON, '{"a": 01x}', Fit.BROKEN),
    (LARK, "aab", Fit.FITS),
    (LARK, "aa", Fit.CUT),
    (LARK, "aé", Fit.BROKEN),
]


@pytest.mark.parametrize(("grammar", "text", "fit"), READINGS)
def test_a_text_fits_is_cut_or_is_broken(grammar: str, text: str, fit: Fit) -> None:
    reading = read_with(grammar, text)
    assert reading.fit is fit
    assert bool(reading.problem) is (fit is not Fit.FITS)


@pytest.mark.parametrize("grammar", ['root ::= "a"+ "b"', LARK])
def test_the_place_where_a_text_goes_wrong_is_told(grammar: str) -> None:
    reading = read_with(grammar, "aaX")
    assert (reading.at, reading.problem) == (2, "'X' at character 2 may not follow 'aa'")


def test_every_kind_of_fit_is_reached() -> None:
    assert {fit for _, _, fit in READINGS} == set(Fit)


def test_a_text_too_long_to_check_does_not_fit() -> None:
    reading = read_with("root ::= .*", "a" * (TEXT_CHARS_MAX + 1))
    assert (reading.fit, f"text_chars_max={TEXT_CHARS_MAX}" in reading.problem) == (Fit.BROKEN, True)


def test_a_grammar_too_ambiguous_to_check_fits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "WAYS_MAX", 3)
    reading = read_with('root ::= ("a" | "a" "b" | "a" "c" | "a" "d" | "a" "e")', "a")
    assert (reading.fit, "too ambiguous" in reading.problem) == (Fit.BROKEN, True)


def test_reading_ends_where_it_becomes_too_ambiguous() -> None:
    # Every letter doubles the ways; to go on with ten thousand of them to the end would take an hour.
    reading = read_with('root ::= "a" root "x" | "a" root "y" | "a"', "a" * TEXT_CHARS_MAX)
    assert (reading.fit, "too ambiguous" in reading.problem) == (Fit.BROKEN, True)


def test_a_grammar_that_llguidance_cannot_follow_fits_nothing() -> None:
    reading = read_with("%llguidance {}\nstart: nothing", "a")
    assert (reading.fit, "could not be checked" in reading.problem) == (Fit.BROKEN, True)
