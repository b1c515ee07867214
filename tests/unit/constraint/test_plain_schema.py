"""Schemas made plain: what must hold together is one schema, and what is lost is told."""

from typing import Any

import pytest

from remit.constraint.grammar.plain_schema import Plain, Plainer, both, is_same_value, joined_schemas


def plain(schema: dict[str, Any]) -> tuple[Plain, list[str]]:
    lost: list[str] = []
    return Plainer(schema).plain(schema, lost.append), lost


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"title": "T", "type": "string"}, {"type": ["string"]}),
        ({"const": 1}, {"enum": [1]}),
        (
            {"allOf": [{"minLength": 1, "maxLength": 9}, {"minLength": 3, "maxLength": 7}]},
            {"minLength": 3, "maxLength": 7},
        ),
        ({"allOf": [{"required": ["a"]}, {"required": ["b", "a"]}]}, {"required": ["a", "b"]}),
        ({"allOf": [{"type": "number"}, {"type": ["integer", "null"]}]}, {"type": ["integer"]}),
        ({"allOf": [{"type": ["integer"]}, {"type": ["number"]}]}, {"type": ["integer"]}),
        ({"$ref": "#", "minLength": 2}, {"minLength": 2}),
        ({"allOf": [{"format": "date"}, {"format": "date"}]}, {"format": "date"}),
        (
            {
                "allOf": [
                    {"patternProperties": {"^a": {"minLength": 1}}},
                    {"patternProperties": {"^a": {"maxLength": 2}}},
                ]
            },
            {
                "properties": {},
                "patternProperties": {"^a": {"allOf": [{"minLength": 1}, {"maxLength": 2}]}},
                "additionalProperties": True,
            },
        ),
        (
            {"allOf": [{"additionalProperties": {"minLength": 1}}, {"properties": {"a": {"maxLength": 2}}}]},
            {
                "properties": {"a": {"allOf": [{"minLength": 1}, {"maxLength": 2}]}},
                "additionalProperties": {"minLength": 1},
            },
        ),
        ({"allOf": [{"items": False}, {"items": {"type": "null"}}]}, {"items": False}),
        (
            {"anyOf": [{"minimum": 1}], "oneOf": [{"maximum": 2}]},
            {"anyOf": [{"allOf": [{"minimum": 1}, {"maximum": 2}]}]},
        ),
    ],
)
def test_a_schema_is_made_plain(schema: dict[str, Any], expected: Plain) -> None:
    assert plain(schema)[0] == expected


@pytest.mark.parametrize(
    ("schema", "lost"),
    [
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, ["pattern"]),
        ({"oneOf": [{}]}, ["oneOf"]),
        ({"allOf": [{"minLength": 1}, {"maxLength": 1}]}, []),
    ],
)
def test_what_is_lost_is_told(schema: dict[str, Any], lost: list[str]) -> None:
    assert plain(schema)[1] == lost


def test_nothing_fits_what_nothing_fits_and_anything_adds_nothing() -> None:
    assert joined_schemas(False, {}, print) is False
    assert joined_schemas(True, {"minLength": 1}, print) == {"minLength": 1}
    assert both(True, {"minLength": 1}) == both({"minLength": 1}, True) == {"minLength": 1}
    assert both({}, False) is False


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 2], False),
        ("a", None, False),
    ],
)
def test_values_are_equal_as_a_schema_sees_them(one: Any, other: Any, expected: bool) -> None:
    assert is_same_value(one, other) is expected


def test_a_reference_by_another_name_is_not_followed() -> None:
    schema: dict[str, Any] = {"$ref": "#here", "$defs": {"a": {"$anchor": "here"}}}
    assert Plainer(schema).target("#here") is None
    assert Plainer({"$defs": {"a": {"$id": "urn:a"}}}).target("#/$defs/a") is None
    assert Plainer({"enum": [{"$id": "urn:a"}], "$defs": {"a": True}}).target("#/$defs/a") is True
