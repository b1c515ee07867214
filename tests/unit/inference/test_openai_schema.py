"""A schema is told to the vendor in strict mode where the vendor can keep to it, and as it is where it cannot."""

from typing import Any

import pytest

from remit.inference.openai.request_schema import is_strict, is_tellable, open_format, strict_format, told_strictly

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
PARAMETERS = {"type": "object", "properties": {"word": {"type": "string"}}}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({"type": "string"}, True),
        ({"type": "array", "items": CLOSED}, True),
        ({"anyOf": [CLOSED, {"type": "null"}]}, True),
        (PARAMETERS, False),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "properties": 3}, False),
        ({"type": "object"}, False),
        ({"anyOf": [CLOSED, PARAMETERS]}, False),
        ({**CLOSED, "properties": {"a": PARAMETERS}}, False),
    ],
)
def test_the_vendor_is_asked_to_be_strict_only_where_it_can_be(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) is strict


def test_a_server_that_takes_any_schema_gets_it_as_it_is() -> None:
    for schema, strict in ((CLOSED, True), (PARAMETERS, False)):
        assert open_format(schema) == {"name": "answer", "schema": schema, "strict": strict}


def test_the_vendor_is_told_what_it_knows_and_not_what_it_would_refuse() -> None:
    text = {"type": "string", "minLength": 1, "default": "x", "description": "A word.", "examples": ["a"]}
    figures = {"type": "array", "items": {"type": ["integer", "null"], "minimum": 0, "default": 3}, "uniqueItems": True}
    schema = {
        **closed(default=text, figures=figures, either={"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"node": closed(next={"anyOf": [{"$ref": "#", "description": "Again."}, {"type": "null"}]})},
    }
    told = closed(
        default={"type": "string", "description": "A word."},
        figures={"type": "array", "items": {"type": ["integer", "null"], "minimum": 0}},
        either={"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
    )
    defs = {"node": closed(next={"anyOf": [{"$ref": "#"}, {"type": "null"}]})}
    assert strict_format(schema) == {"name": "answer", "schema": {**told, "$defs": defs}, "strict": True}


@pytest.mark.parametrize(
    ("member", "told"),
    [
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "format": "iri"}, {"type": "string"}),
        ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a+$"}),
        ({"type": "string", "pattern": "(?=a)b"}, {"type": "string"}),
        ({"type": "string", "pattern": "(?<!a)b"}, {"type": "string"}),
        ({"type": "string", "pattern": r"(a)\1"}, {"type": "string"}),
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    ],
)
def test_formats_and_patterns_that_the_vendor_does_not_know_are_left_to_validation(
    member: dict[str, Any], told: dict[str, Any]
) -> None:
    assert told_strictly(closed(a=member)) == closed(a=told)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = closed(a=schema)
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        PARAMETERS,
        {"type": "string"},
        {"type": "array", "items": CLOSED},
        {"anyOf": [CLOSED, {"type": "null"}]},
        {**CLOSED, "anyOf": [CLOSED]},
        {**CLOSED, "not": {"const": {"a": "b"}}},
        closed(a={}),
        closed(a=True),
        closed(a={"const": 3}),
        closed(a={"oneOf": [{"type": "string"}]}),
        closed(a={"type": ["object", "null"]}),
        closed(a={"type": "array"}),
        closed(a={"type": "array", "items": True}),
        closed(a={"$ref": "#/properties/b"}, b={"type": "string"}),
        closed(a={"$ref": "#/$defs/missing"}),
        nested(100_000),
    ],
)
def test_what_the_vendor_cannot_keep_to_is_asked_for_without_strict_mode(schema: dict[str, Any]) -> None:
    assert not is_tellable(schema)
    assert strict_format(schema) == {"name": "answer", "schema": schema, "strict": False}
