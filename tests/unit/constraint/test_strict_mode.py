"""Strict mode: every property required, what was optional nullable, and the values brought back."""

from typing import Any

import pytest

from remit.constraint.strict_mode import STRICT_MODE_UNSUPPORTED, StrictMode
from remit.core.failure import RequestRejected

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "note": {"type": "string"},
                "gone": {"type": ["string", "null"]},
                "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"$ref": "#"}], "items": False},
            },
            "required": ["name"],
        }
    },
}


def test_every_property_is_required_and_no_other_allowed() -> None:
    schema = StrictMode(
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": True}, "required": ["a"]}
    ).schema
    assert schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"anyOf": [True, {"type": "null"}]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_what_was_left_out_is_null_there_and_gone_again_here() -> None:
    mode = StrictMode(TREE)
    value = {"name": "a", "gone": None, "below": [{"name": "b", "gone": "x"}], "pair": [1, {"name": "c", "gone": None}]}
    there = mode.filled(value)
    assert there["note"] is None
    assert there["below"][0] == {"name": "b", "gone": "x", "note": None, "below": None, "pair": None}
    assert mode.restored(there) == value


def test_what_is_optional_and_nullable_comes_back_as_null() -> None:
    mode = StrictMode(TREE)
    assert mode.restored(mode.filled({"name": "a"})) == {"name": "a", "gone": None}


def test_of_alternatives_the_one_that_fits_speaks() -> None:
    cat = {
        "type": "object",
        "properties": {"lives": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["lives"],
    }
    dog = {
        "type": "object",
        "properties": {"tail": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["tail"],
    }
    mode = StrictMode({"type": "array", "items": {"anyOf": [cat, dog, {"type": "integer"}, False]}})
    value = [{"lives": 9}, {"tail": "long"}, 7, {"tail": "short", "age": 1}]
    assert mode.restored(mode.filled(value)) == value
    assert mode.restored(["fits nothing"]) == ["fits nothing"]


def test_what_nobody_declared_passes_as_it_is() -> None:
    mode = StrictMode({"properties": {"a": {"type": "integer"}}})
    assert mode.restored({"a": None, "more": None}) == {"more": None}
    assert mode.restored(3) == 3


def test_a_circle_of_references_ends() -> None:
    circle = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, True]}}}
    assert StrictMode(circle).restored({"a": None}) == {"a": None}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "object"}, "/"),
        ({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}, "/"),
        ({"properties": {"a": {"type": "object", "additionalProperties": True, "properties": {}}}}, "/properties/a"),
        ({"properties": {"a": {"allOf": [{}]}}}, "/properties/a"),
        ({"items": {"not": {}}}, "/items"),
        ({"anyOf": [{"minProperties": 1}]}, "/anyOf/0"),
        ({"$defs": {"a": {"patternProperties": {"x": {}}}}}, "/$defs/a"),
        ({"$ref": "#/$defs/a", "properties": {}, "$defs": {"a": {}}}, "/"),
    ],
)
def test_what_strict_mode_cannot_say_is_refused_with_its_place(schema: Any, path: str) -> None:
    with pytest.raises(RequestRejected, match=f"schema at {path}: ".replace("$", r"\$")) as raised:
        StrictMode(schema)
    assert raised.value.code == STRICT_MODE_UNSUPPORTED
