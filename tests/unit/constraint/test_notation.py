"""A grammar is checked before anybody uses it, whichever notation it has."""

import json
import sys
from typing import Any

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_CHARS_MAX, GRAMMAR_INVALID
from remit.constraint.grammar.notation import (
    ENTRIES_MAX,
    GRAMMAR_UNCHECKABLE,
    LEVELS_MAX,
    MARK,
    check_grammar,
    hazard_in,
    is_gbnf,
)
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


def of(schema: Any) -> str:
    return f"{MARK} {{}}\nstart: %json {json.dumps(schema)}\n"


def chained(count: int, link: dict[str, Any]) -> dict[str, Any]:
    """Definitions of which each refers to the next; `link` holds the place of the reference as NEXT."""
    text = json.dumps(link)
    defined = {str(n): json.loads(text.replace("NEXT", f"#/$defs/{n + 1}")) for n in range(count)}
    return {"$ref": "#/$defs/0", "$defs": {**defined, str(count): {}}}


NEXT = {"$ref": "NEXT"}
LINKS: list[dict[str, Any]] = [NEXT, {"items": NEXT}, {"allOf": [NEXT]}, {"properties": {"a": NEXT}}]
RULES = "\n".join([f"{MARK} {{}}", "start: r0", *[f"r{n}: r{n + 1}" for n in range(3000)], 'r3000: "a"'])
GROUPS = "\n".join(
    [f"{MARK} {{}}", "start: r0", *[f"r{n}: {'(' * 10}r{n + 1}{')*' * 10}" for n in range(400)], 'r400: "a"']
)


@pytest.mark.parametrize(
    "grammar", [RULES, GROUPS, *[of(chained(1700, link)) for link in LINKS]], ids=lambda text: text[16:60]
)
def test_what_would_fill_the_stack_is_refused(grammar: str) -> None:
    with pytest.raises(RequestRejected, match=f"levels_max={LEVELS_MAX}") as raised:
        check_grammar(grammar)
    assert raised.value.code == GRAMMAR_INVALID


def test_references_that_are_no_names_count_for_the_whole() -> None:
    by_path = {f"p{n}": {"items": {"$ref": f"#/properties/p{n + 1}"}} for n in range(1000)}
    assert "levels_max" in hazard_in(of({"properties": {**by_path, "p1000": {}}}))
    unknown = {"anyOf": [{"$ref": f"other#{n}"} for n in range(1000)]}
    assert "levels_max" in hazard_in(of(unknown))
    through_a_list = {"anyOf": [{"$ref": f"#/anyOf/{n + 1}"} for n in range(1000)]}
    assert "levels_max" in hazard_in(of(through_a_list))
    assert hazard_in(of({"$defs": {"a/b~c": {}}, "$ref": "#/$defs/a~1b~0c"})) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "maxItems": 10**9},
        {"type": "array", "minItems": 1e9},
        {"anyOf": [{"type": "array", "maxItems": ENTRIES_MAX // 2 + n} for n in range(3)]},
        {"items": {"items": {"maxItems": ENTRIES_MAX}}, "maxItems": 1},
    ],
)
def test_what_would_fill_the_memory_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(RequestRejected, match=f"entries_max={ENTRIES_MAX}"):
        check_grammar(of(schema))
    # Letters can be written as numbers.
    hidden = of(schema).replace("maxItems", "max\\u0049tems").replace("minItems", "min\\u0049tems")
    assert "entries_max" in hazard_in(hidden)


@pytest.mark.parametrize(
    "grammar",
    [
        of({"type": "array", "maxItems": ENTRIES_MAX}),
        of(chained(200, {"items": NEXT})),
        of({"enum": ["maxItems", {"maxItems": "many"}, {"minItems": None}]}),
        f'{MARK} {{}}\nstart: "%json " /[(\\/]{{2,9}}/ "((((((((("',
        f"{MARK} {{}}\nstart: {'/[a-z]/ ' * (LEVELS_MAX + 1)}",
        f'{MARK} {{}}\nstart: "a" // ((((',
        f'{MARK} {{}}\nstart: %json {{"maxItems":',
    ],
)
def test_what_can_be_borne_is_no_hazard(grammar: str) -> None:
    assert hazard_in(grammar) == ""


def test_two_schemas_are_both_looked_at() -> None:
    small, large = json.dumps({"maxItems": 1}), json.dumps({"maxItems": ENTRIES_MAX})
    assert "entries_max" in hazard_in(f"{MARK} {{}}\nstart: a | b\na: %json {small}\nb: %json {large}\n")
    inside = json.dumps({"const": f"%json {large}"})
    assert hazard_in(f"{MARK} {{}}\nstart: %json {inside}\n") == ""
