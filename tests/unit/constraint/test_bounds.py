"""What a schema leaves open is bounded in the grammar, and what it says is kept as far as anybody could reach it."""

from typing import Any

import pytest

from remit.constraint.grammar.bounds import (
    FRACTION_STEP,
    INTEGER_BOUND,
    ITEMS_BOUND,
    ITEMS_MAX,
    PROPERTIES_BOUND,
    TEXT_CHARS_BOUND,
    bounded,
)

OPEN = [
    ({"type": "string"}, {"maxLength": TEXT_CHARS_BOUND}),
    ({"type": "string", "minLength": 1000}, {"maxLength": 1000}),
    ({"type": ["string", "null"]}, {"maxLength": TEXT_CHARS_BOUND}),
    ({"type": "array"}, {"maxItems": ITEMS_BOUND}),
    ({"type": "array", "minItems": 40}, {"maxItems": 40}),
    ({"type": "array", "prefixItems": [{}] * 20}, {"maxItems": 20}),
    ({"type": "object"}, {"maxProperties": PROPERTIES_BOUND}),
    ({"type": "object", "properties": {}}, {"additionalProperties": False}),
    ({"type": "integer"}, {"minimum": -INTEGER_BOUND, "maximum": INTEGER_BOUND}),
    ({"type": "integer", "minimum": 10**18}, {"maximum": 10**18}),
    ({"type": "integer", "maximum": -(10**18)}, {"minimum": -(10**18)}),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9}, {}),
    ({"type": "number"}, {"minimum": -INTEGER_BOUND, "maximum": INTEGER_BOUND, "multipleOf": FRACTION_STEP}),
    ({"type": "number", "minimum": 0.5, "maximum": 0.50000001}, {}),
    ({"type": "number", "minimum": 1e300}, {"maximum": 1e300}),
    ({"type": "number", "maximum": -1e300}, {"minimum": -1e300}),
    ({"type": "array", "maxItems": 10**9}, {"maxItems": ITEMS_MAX}),
    ({"minItems": 1e9}, {"minItems": ITEMS_MAX}),
    ({"type": "array", "minItems": 10**9}, {"minItems": ITEMS_MAX, "maxItems": ITEMS_MAX}),
]
CLOSED: list[dict[str, Any]] = [
    {"type": "string", "maxLength": 3},
    {"type": "string", "enum": ["a"]},
    {"type": "string", "pattern": "a"},
    {"type": "string", "format": "date"},
    {"type": "array", "maxItems": 900},
    {"type": "array", "const": []},
    {"type": "object", "maxProperties": 99},
    {"type": "object", "const": {}},
    {"type": "object", "properties": {}, "additionalProperties": True},
    {"type": "integer", "minimum": 1, "maximum": 2},
    {"type": "integer", "enum": [1]},
    {"type": "number", "const": 1.5},
    {"type": "boolean"},
    {"$ref": "#/$defs/a"},
    {"type": "string", "minLength": "three", "maxLength": 3},
]


@pytest.mark.parametrize(("schema", "added"), OPEN)
def test_what_is_open_gets_a_bound(schema: dict[str, Any], added: dict[str, Any]) -> None:
    assert bounded(schema) == {**schema, **added}


@pytest.mark.parametrize("schema", CLOSED)
def test_what_is_closed_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert bounded(schema) == schema


def test_a_limit_that_is_no_number_is_left_to_the_check_of_the_schema() -> None:
    assert bounded({"type": "string", "minLength": "three"})["maxLength"] == TEXT_CHARS_BOUND


def test_schemas_inside_schemas_are_bounded_and_the_given_one_is_not_touched() -> None:
    text = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {"a": text, "b": {"anyOf": [text, {"type": "null"}]}, "c": {"type": "array", "items": text}},
        "additionalProperties": text,
        "$defs": {"d": text},
    }
    found = bounded(schema)
    limited = {"type": "string", "maxLength": TEXT_CHARS_BOUND}
    assert found["properties"]["a"] == found["properties"]["b"]["anyOf"][0] == limited
    assert found["properties"]["c"]["items"] == found["additionalProperties"] == found["$defs"]["d"] == limited
    assert text == {"type": "string"}
    assert "maxProperties" not in schema


def member(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT: dict[str, Any] = {"type": "string", "maxLength": 3}
A_AND_B: dict[str, Any] = {
    "type": ["object"],
    "properties": {"a": TEXT, "b": TEXT},
    "required": ["a", "b"],
    "additionalProperties": False,
}
TOGETHER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"allOf": [member(a=TEXT), member(b=TEXT)]}, A_AND_B),
    ({**member(a=TEXT), "allOf": [member(b=TEXT)], "title": "Both"}, {**A_AND_B, "title": "Both"}),
    (
        {**member(a=TEXT), "oneOf": [member(b=TEXT), {"maxProperties": 1}]},
        {
            "anyOf": [
                A_AND_B,
                {**A_AND_B, "properties": {"a": TEXT}, "required": ["a"], "maxProperties": 1},
            ]
        },
    ),
]


@pytest.mark.parametrize(("schema", "expected"), TOGETHER)
def test_what_must_hold_together_is_closed_as_one(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert bounded(schema) == expected


def test_a_definition_that_others_extend_forbids_nothing_of_theirs() -> None:
    schema = {"$ref": "#/$defs/base", **member(b=TEXT), "$defs": {"base": member(a=TEXT)}}
    found = bounded(schema)
    assert set(found["properties"]) == {"a", "b"}
    assert found["additionalProperties"] is False
    assert found["$defs"]["base"]["additionalProperties"] is False


@pytest.mark.parametrize(
    "ways",
    [
        # Two patterns cannot be one, and no value fits the second.
        [{"type": "string", "pattern": "^a"}, {"pattern": "b$"}],
        [{"type": "object", "properties": {"a": {}}}, False],
    ],
)
def test_what_cannot_be_joined_without_loss_stays_as_it_is(ways: list[Any]) -> None:
    schema: dict[str, Any] = {"allOf": ways, "$defs": {"text": {"type": "string"}}}
    found = bounded(schema)
    assert found["allOf"] == ways
    assert found["$defs"]["text"]["maxLength"] == TEXT_CHARS_BOUND


def test_what_others_refer_to_stays_where_it_is() -> None:
    schema: dict[str, Any] = {
        "allOf": [member(a=TEXT), member(b={"$ref": "#/allOf/0/properties/a"})],
        "$defs": {"none": True},
    }
    assert bounded(schema) == schema


def test_an_object_that_must_fit_itself_and_more_is_joined_once() -> None:
    again: dict[str, Any] = {"allOf": [{"$ref": "#"}, {"required": ["x"]}]}
    found = bounded({"type": "object", "properties": {"x": TEXT, "next": again}})
    assert found["properties"]["next"]["required"] == ["x"]
    assert found["properties"]["next"]["properties"]["next"] == again


def test_a_schema_that_grows_without_end_is_left_alone() -> None:
    names = {name: {"allOf": [{"$ref": "#"}, {"$ref": "#"}]} for name in "abcdefgh"}
    schema = {"allOf": [{"properties": names}, {"properties": names}]}
    assert bounded(schema)["properties"].keys() == names.keys()
