"""Whether a text follows a grammar: GBNF by every open way, llguidance by itself."""

import pytest

from remit.constraint.grammar import matching
from remit.constraint.grammar.matching import TEXT_CHARS_MAX, Fit, read_with

JSON = r"""root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""
LARK = '%llguidance {}\nstart: /a+/ "b"'

OPTIONS = 'root ::= ("a"|"aa"|"aaa")* ("a"?){2000}'
DOUBLING = 'root ::= "a" root "x" | "a" root "y" | "a"'

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
    # Ambiguous, but every letter leads back to the ways that were open before.
    (OPTIONS, "a" * 1000, Fit.FITS),
    (OPTIONS, "a" * 1000 + "b", Fit.BROKEN),
    # Every letter doubles the ways, so llguidance is asked.
    (DOUBLING, "a" * 300, Fit.CUT),
    (DOUBLING, "a" * 300 + "xy" * 149 + "x", Fit.FITS),
    (DOUBLING, "a" * 300 + "xy" * 150, Fit.BROKEN),
    ("%llguidance {}\nstart: nothing", "a", Fit.UNDECIDED),
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


def test_of_a_text_too_long_to_check_nothing_is_said() -> None:
    reading = read_with("root ::= .*", "a" * (TEXT_CHARS_MAX + 1))
    assert (reading.fit, f"text_chars_max={TEXT_CHARS_MAX}" in reading.problem) == (Fit.UNDECIDED, True)


def test_a_text_with_more_ways_than_are_followed_is_read_by_llguidance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "WAYS_MAX", 3)
    ambiguous = 'root ::= ("a" | "a" "b" | "a" "c" | "a" "d" | "a" "e")'
    assert [read_with(ambiguous, text).fit for text in ("a", "ad", "", "ax")] == [
        Fit.FITS,
        Fit.FITS,
        Fit.CUT,
        Fit.BROKEN,
    ]


def test_reading_ends_where_it_becomes_too_ambiguous() -> None:
    # To go on with fifty thousand ways to the end would take an hour.
    assert read_with(DOUBLING, "a" * TEXT_CHARS_MAX).fit is Fit.CUT


def test_who_gives_up_calls_no_text_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "STEPS_MAX", 10)
    monkeypatch.setattr(matching, "TRANSLATED_WORK_MAX", 10)
    for text in ("a" * 30, "a" * 30 + "b"):
        reading = read_with(OPTIONS, text)
        assert reading.fit is Fit.UNDECIDED
        assert "steps_max=10" in reading.problem
        assert "llguidance could not read it" in reading.problem


def test_where_llguidance_cannot_be_asked_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "STEPS_MAX", 10)
    # More rules than a stack of llguidance bears.
    reading = read_with("root ::= " + "[a]? " * 1900 + "[a]*", "aaa")
    assert (reading.fit, "levels_max=800" in reading.problem) == (Fit.UNDECIDED, True)


def test_ways_that_are_forgotten_to_save_room_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "KEPT_MAX", 5)
    text = '{"a": [1, -2.5e3, {"b": null}], "c": ["x", "x", "y"]}'
    assert read_with(JSON, text).fit is Fit.FITS
    assert read_with(JSON, text.replace("null", "nil")).at == text.index("null") + 1
