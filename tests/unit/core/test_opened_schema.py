"""Schemas with their references followed: every field stands where it is."""

import pytest

from remit.core.record import JsonObject
from remit.core.schema.opened_schema import opened_schema

STRING: JsonObject = {"type": "string"}


def test_references_are_followed_wherever_schemas_stand() -> None:
    schema: JsonObject = {
        "$defs": {"line": {"properties": {"sku": {"$ref": "#/definitions/a~1b"}}}},
        "definitions": {"a/b": STRING},
        "properties": {
            "one": {"$ref": "#/$defs/line", "title": "One"},
            "many": {"items": {"$ref": "#/$defs/line"}},
            "pair": {"prefixItems": [{"$ref": "#/$defs/line"}, True]},
            "named": {"additionalProperties": {"$ref": "#/$defs/line"}},
            "maybe": {"anyOf": [{"$ref": "#/$defs/line"}, {"type": "null"}], "default": None},
        },
    }
    line = {"properties": {"sku": STRING}}
    assert opened_schema(schema)["properties"] == {
        "one": {**line, "title": "One"},
        "many": {"items": line},
        "pair": {"prefixItems": [line, True]},
        "named": {"additionalProperties": line},
        "maybe": {**line, "default": None},
    }


def test_a_choice_of_several_ways_stays_one() -> None:
    schema: JsonObject = {"anyOf": [STRING, {"type": "integer"}, {"type": "null"}]}
    assert opened_schema(schema) == schema
    assert opened_schema({"oneOf": [True, {"type": "null"}]}) == {"oneOf": [True, {"type": "null"}]}


@pytest.mark.parametrize("reference", ["https://a.example/x", "#/$defs/none", "#/$defs/none/deeper", "#/type"])
def test_what_names_nothing_in_it_stays_a_reference(reference: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"$ref": reference}}, "$defs": {}}
    assert opened_schema(schema) == schema


def test_a_schema_that_refers_to_itself_is_opened_once() -> None:
    tree: JsonObject = {"properties": {"name": STRING, "under": {"$ref": "#/$defs/tree"}}}
    found = opened_schema({"$defs": {"tree": tree}, "properties": {"root": {"$ref": "#/$defs/tree"}}})
    assert found["properties"]["root"]["properties"]["under"] == {"$ref": "#/$defs/tree"}


def test_definitions_that_would_grow_beyond_the_bound_stay_as_they_are() -> None:
    layers = {f"d{n}": {"properties": {name: {"$ref": f"#/$defs/d{n + 1}"} for name in "abcd"}} for n in range(12)}
    schema: JsonObject = {"$defs": {**layers, "d12": STRING}, "properties": {"a": {"$ref": "#/$defs/d0"}}}
    assert opened_schema(schema) is schema
