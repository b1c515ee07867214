"""A grammar that would fill the stack or the memory of the process is refused before llguidance reads it."""

import json
from typing import Any

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.constraint.grammar.hazards import ENTRIES_MAX, LEVELS_MAX, hazard_in
from remit.constraint.grammar.notation import MARK, check_grammar
from remit.core.failure import RequestRejected


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
