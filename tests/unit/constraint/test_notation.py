"""A grammar is checked before anybody uses it, whichever notation it has."""

import sys

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_CHARS_MAX, GRAMMAR_INVALID
from remit.constraint.grammar.notation import GRAMMAR_UNCHECKABLE, check_grammar, is_gbnf
from remit.core.failure import RequestRejected


def refusal_of(grammar: str) -> RequestRejected:
    with pytest.raises(RequestRejected) as raised:
        check_grammar(grammar)
    return raised.value


@pytest.mark.parametrize(
    "grammar", ['root ::= "yes" | "no"', "%llguidance {}\nstart: /a+/", "\n %llguidance {}\nstart: A\nA: /a/"]
)
def test_a_right_grammar_passes(grammar: str) -> None:
    check_grammar(grammar)


def test_the_mark_of_llguidance_tells_the_notations_apart() -> None:
    assert is_gbnf('root ::= "a"')
    assert not is_gbnf(' %llguidance {}\nstart: "a"')


def test_a_wrong_gbnf_is_refused() -> None:
    refusal = refusal_of("root ::= x")
    assert (refusal.code, refusal.details) == (GRAMMAR_INVALID, {"line": 1, "column": 10})


@pytest.mark.parametrize(
    ("grammar", "place", "told"),
    [
        ("%llguidance {}\nstart: foo", {"line": 2, "column": 8}, "unknown name"),
        ('%llguidance {}\nstart: "a', {"line": 2, "column": 10}, "lexer error"),
        ('%llguidance {}\nstart: %json {"type": "sentence"}', {"line": 2, "column": 8}, "JSON schema"),
    ],
)
def test_what_llama_would_ignore_in_silence_is_refused_with_its_place(
    grammar: str, place: dict[str, int], told: str
) -> None:
    refusal = refusal_of(grammar)
    assert (refusal.code, refusal.details) == (GRAMMAR_INVALID, place)
    assert told in refusal.message
    assert "\n" not in refusal.message


def test_a_refusal_without_a_place_says_what_is_wrong() -> None:
    refusal = refusal_of("%llguidance {}")
    assert (refusal.code, refusal.details) == (GRAMMAR_INVALID, {})


def test_a_grammar_too_long_is_refused() -> None:
    assert f"grammar_chars_max={GRAMMAR_CHARS_MAX}" in refusal_of("%llguidance {}" + " " * GRAMMAR_CHARS_MAX).message


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    refusal = refusal_of('%llguidance {}\nstart: "a"')
    assert (refusal.code, "pip install 'remit[local]'" in refusal.message) == (GRAMMAR_UNCHECKABLE, True)
    check_grammar('root ::= "a"')
