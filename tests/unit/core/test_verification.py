"""What verifies could have said no: which schemas and which tools."""

from typing import Any

import pytest

from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.limits.verification import could_refuse, is_unverified, verifier_of
from remit.core.record import JsonObject

RECEIPT: JsonObject = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "string"},
        {"type": "null"},
        {"type": "boolean"},
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"id": {"type": "string"}}},
        {"type": "object", "required": [], "minProperties": 0},
        {"type": "array"},
        {"type": "array", "items": {"type": "string"}, "minItems": 0},
        {"type": ["string", "null"]},
        {"type": ["integer", "string"]},
        {"type": "string", "pattern": ".*"},
        {"type": "string", "minLength": 0},
        {"type": "string", "format": "date"},
        {"type": "string", "description": "a receipt", "examples": ["r-1"], "default": "r-0"},
        {"required": ["id"]},
        {"minimum": 1},
        {"anyOf": [RECEIPT, {"type": "null"}]},
        {"oneOf": [RECEIPT, {"type": "string"}]},
        {"anyOf": []},
        {"allOf": [{"type": "object"}, {}]},
        {"$ref": "#/$defs/Text", "$defs": {"Text": {"type": "string"}}},
        {"$ref": "#/$defs/Lost"},
        {"$ref": "#/$defs/Self", "$defs": {"Self": {"$ref": "#/$defs/Self"}}},
        {"$ref": "https://example.com/receipt.json"},
        {"type": "unheard_of"},
        {"type": "string", "minLength": 1},
        {"type": "string", "maxLength": 500},
        {"type": "string", "pattern": "^[A-Za-z]+"},
        {"type": "string", "pattern": "r-[0-9]+|.*declined"},
        {"type": "object", "minProperties": 1},
        {"type": "object", "maxProperties": 0},
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"cents": {"type": "integer"}}},
        {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
        {"type": "object", "properties": {"paid": {"type": "boolean"}}, "required": ["paid"]},
        {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]},
        {"type": "object", "required": ["Error"]},
        {"type": "object", "properties": {"code": {"type": "integer"}}, "required": ["code", "message"]},
        {"type": "array", "minItems": 1},
        {"type": "array", "maxItems": 3},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "prefixItems": [RECEIPT]},
        {"enum": [True, False]},
        {"enum": ["booked", None]},
        {"const": False},
        {"enum": []},
        {"type": "array", "uniqueItems": True},
        {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    ],
)
def test_a_schema_that_an_error_message_or_nothing_at_all_would_pass_checks_nothing(schema: Any) -> None:
    assert not could_refuse(schema)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        RECEIPT,
        {"type": "integer"},
        {"type": "number"},
        {"type": ["integer", "number"]},
        {"enum": ["booked", "declined"]},
        {"const": True},
        {"type": "boolean", "const": True},
        {"type": "string", "pattern": "^r-[0-9]+$"},
        {"type": "string", "pattern": "\\p{L}+"},
        {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]},
        {"type": "object", "properties": {"status": {"enum": ["sent", "bounced"]}}, "required": ["status"]},
        {"type": "object", "properties": {"code": {"type": "string", "pattern": "^r-"}}, "required": ["code"]},
        {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok", "receipt"]},
        {"type": "array", "contains": {"type": "integer"}},
        {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        {"type": "array", "prefixItems": [{"type": "string"}, RECEIPT], "minItems": 2},
        {"anyOf": [RECEIPT, {"type": "integer"}]},
        {"allOf": [{"type": "object"}, RECEIPT]},
        {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": RECEIPT}},
    ],
)
def test_a_schema_that_says_more_than_the_type_of_a_result_checks_it(schema: Any) -> None:
    assert could_refuse(schema)


def test_a_schema_that_refers_to_itself_everywhere_is_looked_at_once_per_place() -> None:
    names = [f"D{n}" for n in range(40)]
    every = {"type": "object", "properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}}
    assert not could_refuse({"$ref": "#/$defs/D0", "$defs": dict.fromkeys(names, every)})


def test_a_tool_is_verified_by_its_function_or_by_a_schema_that_could_refuse() -> None:
    def tool(**said: Any) -> ToolDefinition:
        return ToolDefinition("pay", "pay", {"type": "object"}, **said)

    assert verifier_of(tool(verifier="is_booked")) == "is_booked"
    assert verifier_of(tool(result=RECEIPT)) == "schema"
    assert verifier_of(tool(result={"type": "string"})) == ""
    assert is_unverified(tool())
    assert is_unverified(tool(effect=Effect.WRITE))
    assert not is_unverified(tool(effect=Effect.READ))
    assert not is_unverified(tool(result=RECEIPT))
