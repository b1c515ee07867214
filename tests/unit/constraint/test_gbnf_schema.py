"""A schema in GBNF: what fits can be written, what is kept out is kept out, and the rest is named."""

import json
from typing import Any

import pytest

from remit.constraint.gbnf_rulebook import RULES_MAX
from remit.constraint.gbnf_schema import GBNF_EMPTY, gbnf_of, schema_grammar
from remit.constraint.grammar.gbnf import GRAMMAR_CHARS_MAX
from remit.constraint.grammar.lark import in_lark
from remit.constraint.grammar.matching import Fit, read_with
from remit.constraint.grammar.notation import is_gbnf
from remit.constraint.grammar.plain_schema import GBNF_TOO_LARGE, STEPS_MAX
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject
from remit.core.schema.json_schema import CONFIG_SCHEMA_INVALID


def fits(schema: JsonObject, text: str) -> bool:
    return read_with(gbnf_of(schema), text).fit is Fit.FITS


def widened(schema: JsonObject) -> list[tuple[str, str]]:
    return [(each.path, each.keyword) for each in schema_grammar(schema).widened]


def refusal_of(schema: JsonObject) -> RequestRejected:
    with pytest.raises(RequestRejected) as raised:
        gbnf_of(schema)
    return raised.value


PERSON: JsonObject = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "email": {"type": "string"}},
    "required": ["age"],
    "additionalProperties": False,
}
OPEN: JsonObject = {"properties": {"a": {"type": "null"}, "ab": {}}, "type": "object"}
TREE: JsonObject = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "left": {"$ref": "#/$defs/node"}},
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}

# A schema, texts of it, and texts that it does not admit. None of these is widened.
EXACT: list[tuple[JsonObject, list[str], list[str]]] = [
    (PERSON, ['{"age":3}', '{"name":"A", "age": 3}', '{"age":3,"email":""}'], ["{}", '{"age":3,"name":"A"}', '{"age":-1}']),
    ({**PERSON, "required": []}, ["{}", '{"email":"e"}', '{"name":"A","email":"e"}'], ['{"age":3,}', '{,"age":3}']),
    ({**PERSON, "required": ["email"]}, ['{"email":""}', '{"name":"","email":""}'], ['{"age":1}']),
    (OPEN, ["{}", '{"a":null,"b":[1]}', '{"aa":1,"abc":{}}', '{"":0}', '{"\\n":0}'], ['{"a":1}', '{"b":1,"a":null}', '{"b":1,"ab":2}', '{"b":1,"\\u0061":2}']),
    ({"type": "object"}, ["{}", '{"any": [true]}'], ["[]"]),
    ({"type": "object", "minProperties": 1, "maxProperties": 2}, ['{"a":1}', '{"a":1,"b":2}'], ["{}", '{"a":1,"b":2,"c":3}']),
    ({"type": "object", "maxProperties": 0}, ["{}"], ['{"a":1}']),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, ['{"a":1}'], ['{"a":"1"}']),
    ({"type": "object", "additionalProperties": False}, ["{}"], ['{"a":1}']),
    ({"type": "object", "patternProperties": {"^x-": {"type": "null"}}, "additionalProperties": False}, ['{"x-y":null}'], ['{"y":null}', '{"x-":1}']),
    ({"type": "object", "propertyNames": {"pattern": "^[a-z]$"}}, ['{"a":1}'], ['{"A":1}']),
    ({"type": "object", "propertyNames": {"enum": ["a", "b", 3]}}, ['{"b":1}'], ['{"c":1}']),
    ({"type": "object", "properties": {"no": False, "yes": {"type": "null"}}}, ['{"yes":null}', "{}"], ['{"no":1}']),
    ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1, 2,3]"], ["[1,]", '["1"]']),
    ({"type": "array", "minItems": 1, "maxItems": 2}, ["[1]", "[[],{}]"], ["[]", "[1,2,3]"]),
    ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    ({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}]}, ["[]", "[null]", "[null,true,7]"], ["[true]"]),
    ({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False, "minItems": 1}, ["[null]", "[null,false]"], ["[]", "[null,true,1]"]),
    ({"type": "array", "prefixItems": [{"type": "null"}, {}], "minItems": 2, "maxItems": 3}, ["[null,1]", "[null,1,2]"], ["[null]", "[null,1,2,3]"]),
    ({"type": "array", "prefixItems": [{"type": "null"}, {}], "maxItems": 1}, ["[null]"], ["[null,1]"]),
    ({"type": "array", "items": False}, ["[]"], ["[1]"]),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "null"}], "additionalItems": False}, ["[null]"], ["[1]", "[null,1]"]),
    ({"type": "string"}, ['""', '"\\"\\u00e9é\\n"', '"\\ud83d\\ude00"'], ["'a'", '"\n"', '"\\x"', '"\\ud83d"', '"\\ude00"']),
    ({"type": "string", "minLength": 1, "maxLength": 2}, ['"a"', '"\\ud83d\\ude00😀"'], ['""', '"abc"']),
    ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}, ['"AB-1"'], ['"AB-"', '"xAB-1"']),
    ({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3}, ['"ab"', '"abc"'], ['"a"', '"abcd"']),
    ({"type": "string", "format": "date"}, ['"2024-02-29"', '"2023-12-31"'], ['"2023-13-01"', '"2023-04-31"', '"2023-02-30"']),
    ({"type": "string", "format": "time"}, ['"23:59:60Z"', '"01:02:03.25+01:30"'], ['"24:00:00Z"', '"01:02:03"']),
    ({"type": "string", "format": "date-time"}, ['"2024-02-29T01:02:03Z"'], ['"2024-02-29 01:02:03Z"']),
    ({"type": "string", "format": "uuid"}, ['"3f2b8c1e-9a4d-4E7f-8b6a-0c5d1e2f3a4b"'], ['"3f2b8c1e"']),
    ({"type": "integer"}, ["0", "-7", "123456789012345678901234567890"], ["01", "-0", "1.0", "+1", "1e3"]),
    ({"type": "integer", "minimum": 0.5, "exclusiveMaximum": 3}, ["1", "2"], ["0", "3"]),
    ({"type": "integer", "exclusiveMinimum": -3, "maximum": -1.5}, ["-2"], ["-3", "-1"]),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3, "exclusiveMinimum": True}, ["4"], ["3"]),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3, "exclusiveMinimum": False}, ["3"], ["2"]),
    ({"type": "number"}, ["0", "-1.5", "1e300", "2.5E-7", "5.0"], ["01", ".5", "1.", "--1"]),
    ({"type": "number", "minimum": 0}, ["0", "1.5"], ["-1.5"]),
    ({"type": "boolean"}, ["true", "false"], ["null"]),
    ({"type": ["integer", "null"]}, ["1", "null"], ['"1"']),
    ({"enum": ["é", 1, None, [1, {"a": 2}]]}, ['"é"', '"\\u00e9"', "1", "null", '[1, {"a":2}]'], ['"e"', "[1]"]),
    ({"enum": [1, "a", 5], "type": "integer", "minimum": 2}, ["5"], ["1", '"a"']),
    ({"const": {"b": 1, "a": []}}, ['{"b":1,"a":[]}'], ['{"a":[],"b":1}']),
    ({"const": 1, "enum": [1.0, 2]}, ["1.0"], ["2"]),
    ({"anyOf": [{"type": "null"}, {"type": "integer", "maximum": 1, "minimum": 1}]}, ["null", "1"], ["2"]),
    ({"type": "object", "properties": {"a": {"type": "null"}}, "anyOf": [{"required": ["a"]}, {"maxProperties": 0}], "additionalProperties": False}, ['{"a":null}'], []),
    ({"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}, {"properties": {"b": {"type": "null"}}, "additionalProperties": True}]}, ['{"a":null,"b":null}', '{"a":null}'], ['{"b":null}']),
    ({"allOf": [{"properties": {"a": {"type": "null"}}, "additionalProperties": False}, {"type": "object", "properties": {"b": {}}}]}, ["{}", '{"a":null}'], ['{"b":1}']),
    ({"allOf": [{"type": ["integer", "string"]}, {"type": "number", "minimum": 3}, {"maximum": 5, "minimum": 4}]}, ["4", "5"], ["3", '"a"', "6"]),
    ({"allOf": [{"enum": [1, 2, "3"]}, {"enum": [2.0, 3]}]}, ["2"], ["1", "3"]),
    ({"allOf": [{"type": "array", "prefixItems": [{"type": "integer"}]}, {"items": {"minimum": 5, "type": "number"}, "maxItems": 1, "minItems": 1}]}, ["[5]"], ["[4]", "[5.5]", "[]"]),
    ({"allOf": [True, {"type": "null"}, {}]}, ["null"], ["1"]),
    ({"allOf": [{"anyOf": [{"type": "null"}, {"type": "integer"}]}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}]}, ["7"], ["null", '"a"']),
    (TREE, ['{"value":1}', '{"value":1,"left":{"value":2}}'], ['{"left":{"value":2}}', '{"value":1,"left":1}']),
    ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, ["null"], ["1"]),
    ({"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}], "$defs": {"b": {"anyOf": [{"$ref": "#"}, {"const": 1}]}}}, ["null", "1"], ["2"]),
    ({"$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}}, ['"a"'], ['"ab"', "1"]),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": {"type": "string"}}}, ['"abc"'], ["1"]),
    ({}, ["1", '{"a":[null,true]}'], ["nul", "{a:1}"]),
    ({"description": "Anything."}, ["1"], []),
    ({"minimum": 3, "type": ["null", "integer"]}, ["null", "3"], ["2"]),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}, "b": {}}, "$defs": {"no": False}}, ['{"b":1}'], ['{"a":1}']),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(EXACT)))
def test_a_grammar_admits_what_the_schema_admits(case: int) -> None:
    schema, right, wrong = EXACT[case]
    assert [text for text in right if not fits(schema, text)] == []
    assert [text for text in wrong if fits(schema, text)] == []


# What is not kept to, and a text that is admitted although the schema does not.
WIDER: list[tuple[JsonObject, list[tuple[str, str]], str]] = [
    ({"type": "array", "uniqueItems": True, "contains": {"const": 1}}, [("", "contains"), ("", "uniqueItems")], "[2,2]"),
    ({"type": "integer", "multipleOf": 3}, [("", "multipleOf")], "4"),
    ({"type": "number", "minimum": 1, "maximum": 2}, [("", "minimum"), ("", "maximum")], "3.5"),
    ({"type": "integer", "minimum": 10**40}, [("", "minimum")], "1"),
    ({"type": "string", "pattern": r"^(a)\1$"}, [("", "pattern")], '"b"'),
    ({"type": "string", "format": "email"}, [("", "format")], '"no"'),
    ({"type": "string", "format": "date", "pattern": "^a$"}, [("", "format")], '"a"'),
    ({"type": "string", "pattern": "^(ab)+$", "maxLength": 3}, [("", "maxLength")], '"abab"'),
    ({"type": "string", "pattern": "^a*b*$", "minLength": 3}, [("", "minLength")], '"a"'),
    ({"type": "string", "maxLength": 5000}, [("", "maxLength")], f'"{"a" * 5001}"'),
    ({"type": "string", "minLength": 5000}, [("", "minLength")], f'"{"a" * 1000}"'),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, [("", "oneOf")], "1"),
    ({"not": {"const": 1}, "type": "integer"}, [("", "not")], "1"),
    ({"type": "null", "if": {}, "then": False}, [("", "if")], "null"),
    ({"type": "object", "required": ["a"]}, [("", "required")], "{}"),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, [("", "dependentRequired")], '{"a":1}'),
    ({"type": "object", "properties": {"é": {}}}, [("", "additionalProperties")], '{"é":1,"é":2}'),
    ({"type": "object", "properties": {"n" * 400: {}}}, [("", "additionalProperties")], "{}"),
    ({"type": "object", "properties": {"a": {}}, "minProperties": 1}, [("", "minProperties")], "{}"),
    ({"type": "object", "properties": {"a": {}}, "maxProperties": 0}, [("", "maxProperties")], '{"a":1}'),
    ({"type": "object", "properties": {"a": {}}, "propertyNames": {"maxLength": 1}}, [("", "propertyNames")], '{"bb":1}'),
    ({"type": "object", "propertyNames": {"not": {"const": "a"}}}, [("", "propertyNames")], '{"a":1}'),
    ({"type": "object", "patternProperties": {"^(?=a)a": {"type": "null"}}, "additionalProperties": False}, [("", "patternProperties")], '{"b":null}'),
    ({"type": "object", "patternProperties": {"^a": {"type": "null"}}}, [("", "patternProperties")], '{"a":1}'),
    ({"type": "array", "items": {"$ref": "other.json"}, "$defs": {"o": {"$id": "other.json", "type": "null"}}}, [("/items", "$ref")], "[1]"),
    ({"type": "integer", "$ref": "other.json", "$defs": {"o": {"$id": "other.json", "minimum": 3}}}, [("", "$ref")], "1"),
    ({"enum": [{"a": 1}, 2], "properties": {"a": {"type": "null"}}}, [("", "properties")], '{"a":1}'),
    ({"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "b$"}]}, [("", "pattern")], '"a"'),
    ({"allOf": [{"type": "object", "patternProperties": {"^a": {}}, "additionalProperties": False}, {"properties": {"b": {}}}]}, [("", "additionalProperties"), ("", "patternProperties")], '{"b":1}'),
    ({"allOf": [{"anyOf": [{"maximum": n} for n in range(6)]}, {"anyOf": [{"minimum": n} for n in range(6)], "type": "integer"}]}, [("", "anyOf")], "-1"),
    ({"type": "array", "prefixItems": [{"type": "string", "maxLength": 900}] * 1 + [{"type": "string", "maxLength": 900 - n} for n in range(30)]}, [(f"/prefixItems/{n}", "maxLength") for n in range(23, 31)], "[]"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(WIDER)))
def test_what_is_not_kept_to_is_named_with_its_place(case: int) -> None:
    schema, named, text = WIDER[case]
    assert sorted(widened(schema)) == sorted(named)
    assert fits(schema, text)


def test_the_head_of_the_grammar_names_what_it_does_not_keep_to() -> None:
    schema = {
        "type": "object",
        "properties": {"a b\n": {"type": "array", "uniqueItems": True}},
        "additionalProperties": False,
    }
    first, *_ = gbnf_of(schema).splitlines()
    assert first == "# not kept to: uniqueItems at /properties/a%20b%0A"
    assert is_gbnf(gbnf_of(schema))


def test_where_many_properties_may_come_the_declared_ones_are_counted_off() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {}}, "required": ["a"], "maxProperties": 2}
    assert fits(schema, '{"a":1,"b":2}')
    assert not fits(schema, '{"a":1,"b":2,"c":3}')
    assert widened(schema) == [("", "maxProperties")]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "string", "pattern": "^ab*$", "minLength": 5, "maxLength": 4},
        {"enum": [1], "type": "string"},
        {"allOf": [{"type": "string"}, False]},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_schema_that_no_value_fits_is_refused(schema: JsonObject) -> None:
    assert refusal_of(schema).code == GBNF_EMPTY


def doubling(levels: int) -> JsonObject:
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**twice, f"d{levels}": {"type": "null"}}}


@pytest.mark.parametrize(
    ("schema", "code", "limit"),
    [
        ({"enum": list(range(GRAMMAR_CHARS_MAX // 5))}, GBNF_TOO_LARGE, GRAMMAR_CHARS_MAX),
        ({"properties": {f"p{n}": {"minLength": n} for n in range(RULES_MAX)}}, GBNF_TOO_LARGE, RULES_MAX),
        (doubling(13), GBNF_TOO_LARGE, STEPS_MAX),
    ],
)
def test_a_schema_whose_grammar_is_too_large_is_refused(schema: JsonObject, code: str, limit: int) -> None:
    refusal = refusal_of(schema)
    assert (refusal.code, refusal.details) == (code, {"limit": limit})
    assert f"={limit}" in refusal.message


@pytest.mark.parametrize(
    "schema", [{"type": "sentence"}, {"$ref": "#/$defs/none"}, {"const": float("inf")}, {"pattern": "("}]
)
def test_what_is_no_schema_is_refused_as_everywhere(schema: JsonObject) -> None:
    assert refusal_of(schema).code == CONFIG_SCHEMA_INVALID


def test_the_local_engine_can_be_held_to_it() -> None:
    lark = in_lark(gbnf_of(PERSON))
    assert read_with(lark, json.dumps({"name": "Ada", "age": 36})).fit is Fit.FITS
    assert read_with(lark, '{"age":"36"}').fit is Fit.BROKEN


def test_parts_that_say_the_same_share_a_rule() -> None:
    name: dict[str, Any] = {"type": "string", "maxLength": 7}
    pair = {"first": name, "second": {**name, "description": "The other."}}
    text = gbnf_of({"type": "object", "properties": pair, "additionalProperties": False})
    assert text.count("char{0,7}") == 1


def test_an_object_that_must_fit_itself_and_more_comes_to_an_end() -> None:
    inner = {"allOf": [{"$ref": "#"}, {"required": ["x"]}]}
    schema: JsonObject = {
        "type": "object",
        "properties": {"x": {"type": "null"}, "next": inner},
        "additionalProperties": False,
    }
    assert fits(schema, '{"next":{"x":null,"next":{"x":null}}}')
    assert not fits(schema, '{"next":{"next":{"x":null}}}')
