"""Laws of checking: both answers agree, and no schema causes more work than was counted."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from remit.core.record import JsonObject
from remit.core.schema.json_schema import compile_schema
from remit.core.schema.schema_work import References, ViolationListing

DEFINITIONS = 5
NAMES = st.sampled_from("ab")


@st.composite
def acyclic(draw: st.DrawFn) -> JsonObject:
    """Definitions that name later ones, in place or for a property, and end where every object is wrong."""
    definitions: JsonObject = {f"d{DEFINITIONS}": {"type": "integer"}}
    for number in range(DEFINITIONS):
        later = st.integers(number + 1, DEFINITIONS).map(lambda target: {"$ref": f"#/$defs/d{target}"})
        definitions[f"d{number}"] = {
            "allOf": draw(st.lists(later, min_size=1, max_size=3)),
            "properties": draw(st.dictionaries(NAMES, later, max_size=2)),
        }
    return {"$ref": "#/$defs/d0", "$defs": definitions}


@st.composite
def recursive(draw: st.DrawFn) -> JsonObject:
    """Definitions that name any other, with alternatives."""
    any_other = st.integers(0, DEFINITIONS).map(lambda target: {"$ref": f"#/$defs/d{target}"})
    plain = st.sampled_from([{"type": "integer"}, {"type": "object"}, {"maxProperties": 1}, {"required": ["a"]}])
    schemas = any_other | plain
    definitions = {
        f"d{number}": {
            draw(st.sampled_from(["allOf", "anyOf", "oneOf"])): draw(st.lists(schemas, min_size=1, max_size=3)),
            "properties": draw(st.dictionaries(NAMES, schemas, max_size=2)),
        }
        for number in range(DEFINITIONS + 1)
    }
    return {"$ref": "#/$defs/d0", "$defs": definitions}


OBJECTS: st.SearchStrategy[JsonObject] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(NAMES, inner, max_size=2), max_leaves=6
)
VALUES = st.recursive(
    st.integers() | st.text(max_size=2), lambda inner: st.dictionaries(NAMES, inner, max_size=2), max_leaves=8
)


@given(acyclic(), OBJECTS)
def test_no_more_is_wrong_than_was_counted(schema: JsonObject, value: JsonObject) -> None:
    counted = ViolationListing(References(schema, {}), 10**9).visits(schema, value, 200)
    assert len(compile_schema(schema).violations(value, limit=10**6)) <= counted


@given(recursive(), VALUES)
def test_a_value_is_valid_exactly_if_it_has_no_violations(schema: JsonObject, value: Any) -> None:
    checker = compile_schema(schema)
    assert checker.is_valid(value) is not bool(checker.violations(value))


@given(recursive(), VALUES)
def test_violations_are_the_same_for_every_caller(schema: JsonObject, value: Any) -> None:
    first, second = compile_schema(schema), compile_schema(schema)
    assert first.violations(value) == second.violations(value)
    assert first.violations(value, limit=1) == first.violations(value)[:1]
