"""Schemas: the subset that travels, the check, and the bounds on what strangers may send."""

import subprocess
import sys
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, ClassVar

import msgspec
import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.record import JsonObject
from remit.core.schema.json_schema import (
    CONFIG_SCHEMA_INVALID,
    MESSAGE_CHARS_MAX,
    SCHEMA_BYTES_MAX,
    VIOLATIONS_MAX,
    VISITS_MAX,
    Checker,
    JsonSchema,
    Schema,
    Violation,
    code_of,
    compile_schema,
    text_matcher,
)

ORDER: JsonObject = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "limit": {"type": "integer", "maximum": 10}},
    "required": ["order_id"],
    "additionalProperties": False,
}


def rejection_of(schema: Any, registry: dict[str, JsonObject] | None = None) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        compile_schema(schema, registry=registry)
    assert caught.value.code == CONFIG_SCHEMA_INVALID
    return caught.value


def nested(levels: int) -> JsonObject:
    value: JsonObject = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.req("1.9")
def test_the_subset_has_seven_keywords_and_keeps_them_all() -> None:
    data = {
        "type": "object",
        "description": "an order",
        "properties": {
            "state": {"type": "string", "enum": ["open", "closed"], "default": "open"},
            "lines": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["state"],
    }
    schema = msgspec.convert(data, Schema)
    assert schema.properties["state"].enum == ("open", "closed")
    assert schema.properties["lines"].items == Schema(type="integer")
    assert schema.to_json() == data
    assert len(Schema.__struct_fields__) == 7


@pytest.mark.req("1.9")
def test_keywords_that_say_nothing_are_not_written() -> None:
    assert Schema().to_json() == {}
    assert Schema(type="string").to_json() == {"type": "string"}


@pytest.mark.req("1.9")
def test_null_is_a_default_like_any_other() -> None:
    assert Schema(default=None).to_json() == {"default": None}
    assert Schema().default is msgspec.UNSET


@pytest.mark.req("1.9")
def test_the_subset_survives_the_journal() -> None:
    schema = Schema(type="array", items=Schema(enum=("a",), default="a"))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(schema), type=Schema) == schema


def test_a_value_that_fits_has_no_violations() -> None:
    checker = compile_schema(ORDER)
    assert checker.is_valid({"order_id": "42", "limit": 5})
    assert checker.violations({"order_id": "42", "limit": 5}) == ()


def test_violations_name_place_keyword_and_reason_in_order() -> None:
    found = compile_schema(ORDER).violations({"limit": 50, "colour": "red"})
    assert [(violation.path, violation.keyword) for violation in found] == [
        ("", "additionalProperties"),
        ("", "required"),
        ("/limit", "maximum"),
    ]
    assert found[2] == Violation("/limit", "maximum", "50 is greater than the maximum of 10")


@pytest.mark.parametrize(
    ("keywords", "code"),
    [
        (["enum"], ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED),
        (["enum", "enum"], ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED),
        (["enum", "maximum"], ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        (["maximum", "enum"], ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        (["value"], ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        (["json"], ErrorCode.CONSTRAINT_JSON_INVALID),
        (["enum", "json"], ErrorCode.CONSTRAINT_JSON_INVALID),
        (["grammar"], ErrorCode.CONSTRAINT_GRAMMAR_REJECTED),
        (["json", "grammar"], ErrorCode.CONSTRAINT_GRAMMAR_REJECTED),
        (["enum", "grammar_cut"], ErrorCode.CONSTRAINT_GRAMMAR_REJECTED),
        (["json", "length"], ErrorCode.INFERENCE_MALFORMED_RESPONSE),
    ],
)
def test_all_violations_together_have_one_code(keywords: list[str], code: ErrorCode) -> None:
    assert code_of([Violation("", keyword, "it does not fit") for keyword in keywords]) is code


def test_a_value_that_is_not_json_has_the_code_for_that() -> None:
    assert code_of(compile_schema(True).violations(float("inf"))) is ErrorCode.CONSTRAINT_JSON_INVALID
    no_json = Violation("/a", "const", "value is not JSON: says a text")
    assert code_of((no_json,)) is ErrorCode.CONSTRAINT_SCHEMA_INVALID


def test_a_path_is_an_escaped_json_pointer() -> None:
    checker = compile_schema({"properties": {"a/b": {"properties": {"~c": {"items": {"type": "string"}}}}}})
    assert [violation.path for violation in checker.violations({"a/b": {"~c": ["x", 1]}})] == ["/a~1b/~0c/1"]


def test_violations_stop_at_the_limit() -> None:
    checker = compile_schema({"items": {"type": "integer"}})
    assert len(checker.violations(["x"] * 50)) == VIOLATIONS_MAX
    assert len(checker.violations(["x"] * 50, limit=3)) == 3


def test_a_long_message_is_cut_in_the_middle_and_keeps_its_reason() -> None:
    (violation,) = compile_schema({"type": "integer"}).violations("x" * 5_000)
    assert len(violation.message) == MESSAGE_CHARS_MAX
    assert violation.message.startswith('"xxx')
    assert violation.message.endswith('is not of type "integer"')


def test_the_schemas_true_and_false_admit_everything_and_nothing() -> None:
    assert compile_schema(True).is_valid(object) is False
    assert compile_schema(True).is_valid({"any": "thing"})
    assert compile_schema(False).violations(1)[0].keyword == "falseSchema"


@pytest.mark.parametrize("value", [object(), {1: 2}, b"bytes", {"a": [{1, 2}]}, float("nan"), [float("inf")]])
def test_a_value_that_is_not_json_is_invalid_even_where_the_schema_does_not_look(value: Any) -> None:
    checker = compile_schema({})
    assert not checker.is_valid(value)
    assert [violation.keyword for violation in checker.violations(value)] == ["value"]


def test_a_value_known_to_be_json_is_checked_by_the_schema_alone() -> None:
    checker = compile_schema({"type": "integer"})
    assert checker.fits(7)
    assert not checker.fits("seven")
    with pytest.raises(ValueError, match="surrogates"):
        checker.fits("\ud800")


def test_half_a_surrogate_pair_is_invalid() -> None:
    checker = compile_schema({"maxLength": 3})
    assert not checker.is_valid("\ud800")
    assert [violation.keyword for violation in checker.violations("\ud800")] == ["value"]


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: (value,)])
def test_a_value_may_nest_so_deep_and_no_deeper(wrap: Any) -> None:
    extra = 0 if isinstance(wrap({}), dict) else 1
    checker = compile_schema({})
    assert checker.is_valid(wrap(nested(DEPTH_MAX - extra)))
    too_deep = wrap(nested(DEPTH_MAX - extra + 1))
    assert not checker.is_valid(too_deep)
    assert f"depth_max={DEPTH_MAX}" in checker.violations(too_deep)[0].message


def test_a_value_deep_enough_to_break_the_stack_is_merely_invalid() -> None:
    assert not compile_schema({"additionalProperties": {"$ref": "#"}}).is_valid(nested(100_000))


def test_the_draft_named_by_the_schema_is_honoured() -> None:
    # Draft 7 takes an array of schemas here, draft 2020-12 does not.
    items = [{"type": "integer"}, {"type": "string"}]
    assert rejection_of({"items": items}).details == {"path": "/items"}
    draft7 = compile_schema({"$schema": "http://json-schema.org/draft-07/schema#", "items": items})
    assert draft7.is_valid([1, "a"])
    assert not draft7.is_valid(["a", 1])


def test_a_schema_changed_after_compiling_changes_nothing() -> None:
    schema: JsonObject = {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}
    checker = compile_schema(schema)
    schema["$defs"]["n"] = {"$ref": "#/nowhere"}
    assert checker.violations("x")[0].keyword == "type"


@pytest.mark.parametrize(
    ("schema", "path", "part"),
    [
        ({"type": "strin"}, "/type", "strin"),
        ({"properties": {"a~/b": {"minimum": "x"}}}, "/properties/a~0~1b/minimum", "number"),
        ({"pattern": "("}, "/pattern", "regex"),
        ([1], "", "object"),
        ({"title": object()}, "", "unsupported"),
        ({"title": "\ud800"}, "", "surrogates"),
        ({"$ref": "#/$defs/none"}, "/$ref", "$defs"),
        ({"allOf": [{"$ref": "#anchor"}]}, "/allOf/0/$ref", "#anchor"),
        ({"$dynamicRef": "#node"}, "/$dynamicRef", "#node"),
        ({"$schema": "http://example.com/dialect"}, "/$schema", "draft"),
    ],
)
def test_a_bad_schema_is_rejected_with_its_place(schema: Any, path: str, part: str) -> None:
    rejection = rejection_of(schema)
    assert rejection.details == {"path": path}
    assert part in rejection.message
    assert len(rejection.message) < 2 * MESSAGE_CHARS_MAX


class CountingServer(BaseHTTPRequestHandler):
    hits: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.hits.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef", "$schema"])
@pytest.mark.slow
def test_nothing_is_ever_fetched(keyword: str) -> None:
    server = HTTPServer(("127.0.0.1", 0), CountingServer)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/schema.json"
    try:
        rejection = rejection_of({"properties": {"a": {keyword: address}}})
        rejection_of({"$ref": "urn:x"}, {"urn:x": {keyword: address}})
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert rejection.details == {"path": f"/properties/a/{keyword}"}
    assert address in rejection.message
    assert "nothing is fetched" in rejection.message
    assert CountingServer.hits == []


@pytest.mark.parametrize("keyword", ["const", "enum", "default", "examples"])
def test_data_that_looks_like_a_reference_is_left_alone(keyword: str) -> None:
    data = {"$ref": "http://example.com/x"}
    assert compile_schema({keyword: data if keyword in {"const", "default"} else [data]}).is_valid(data)


@pytest.mark.parametrize("address", ["http://example.com/x", "urn:example:x"])
def test_a_reference_into_the_registry_is_followed(address: str) -> None:
    checker = compile_schema({"items": {"$ref": address}}, registry={address: {"type": "integer"}})
    assert checker.is_valid([1])
    assert not checker.is_valid(["x"])


def test_the_meta_schemas_are_at_hand() -> None:
    checker = compile_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert checker.is_valid({"type": "string"})
    assert checker.violations({"type": 7})


def test_a_registry_that_is_no_schema_is_rejected() -> None:
    rejection_of({"$ref": "urn:x"}, {"urn:x": {"type": "strin"}})


def test_a_reference_the_library_cannot_follow_is_rejected_and_not_fetched() -> None:
    # Under a property that is called like data our own look passes it by; the library still may not fetch it.
    assert "nothing is fetched" in rejection_of({"properties": {"const": {"$ref": "http://127.0.0.1:9/x"}}}).message


def test_a_schema_may_be_so_large_and_no_larger() -> None:
    assert isinstance(compile_schema({"description": "x" * (SCHEMA_BYTES_MAX - 100)}), Checker)
    rejection = rejection_of({"description": "x" * SCHEMA_BYTES_MAX})
    assert f"schema_bytes_max={SCHEMA_BYTES_MAX}" in rejection.message


def test_a_schema_may_nest_so_deep_and_no_deeper() -> None:
    schema: JsonObject = {}
    for _ in range(DEPTH_MAX - 1):
        schema = {"not": schema}
    assert isinstance(compile_schema(schema), Checker)
    assert f"depth_max={DEPTH_MAX}" in rejection_of({"not": schema}).message
    assert f"depth_max={DEPTH_MAX}" in rejection_of(True, {"urn:x": {"not": schema}}).message


def doubling(levels: int) -> JsonObject:
    """Each definition names the next one twice."""
    definitions: JsonObject = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": definitions | {f"d{levels}": {"type": "integer"}}}


def test_a_small_schema_that_means_endless_work_is_refused() -> None:
    assert compile_schema(doubling(8)).is_valid(1)
    assert f"visits_max={VISITS_MAX}" in rejection_of(doubling(40)).message


def test_a_long_chain_of_references_is_no_problem() -> None:
    chain = {f"d{link}": {"$ref": f"#/$defs/d{link + 1}"} for link in range(2_000)}
    checker = compile_schema({"$ref": "#/$defs/d0", "$defs": chain | {"d2000": {"type": "integer"}}})
    assert checker.is_valid(1)
    assert checker.violations("x") != ()


def test_unused_definitions_cost_nothing() -> None:
    definitions = {f"d{number}": {"properties": {"a": {"$ref": "#/$defs/big"}}} for number in range(1_000)}
    big = {"properties": {f"p{number}": {"type": "string"} for number in range(200)}}
    assert compile_schema({"$ref": "#/$defs/d0", "$defs": definitions | {"big": big}}).is_valid({})


EXPRESSION: JsonObject = {
    "oneOf": [
        {"type": "integer"},
        *(
            {
                "type": "object",
                "properties": {"op": {"const": op}, "left": {"$ref": "#"}, "right": {"$ref": "#"}},
                "required": ["op", "left", "right"],
            }
            for op in ("add", "mul")
        ),
    ]
}


def expression(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"op": "mul", "left": leaf, "right": 1}
    return leaf


def test_a_recursive_schema_checks_a_deep_value() -> None:
    checker = compile_schema(EXPRESSION)
    assert checker.is_valid(expression(100, 7))
    assert not checker.is_valid(expression(100, "seven"))


def test_a_wrong_value_that_would_take_for_ever_to_explain_is_still_refused() -> None:
    checker = compile_schema(EXPRESSION)
    assert [violation.keyword for violation in checker.violations(expression(3, "seven"))] == ["oneOf"]
    (violation,) = checker.violations(expression(100, "seven"))
    assert violation.keyword == "value"
    assert f"visits_max={VISITS_MAX}" in violation.message


def test_a_text_that_makes_a_pattern_backtrack_without_end_does_not_match() -> None:
    checker = compile_schema({"pattern": r"^(?=(a+)+$)(a|aa)+\1b$"})
    assert not checker.is_valid("a" * 64)


def test_importing_the_room_does_not_load_the_library() -> None:
    program = "import sys, remit.core.schema.json_schema; print('jsonschema_rs' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "False"


@pytest.mark.parametrize("schema", [ORDER, EXPRESSION, True])
def test_is_valid_and_violations_agree(schema: JsonSchema) -> None:
    checker = compile_schema(schema)
    values: list[Any] = [None, 1, "x", [], {"order_id": "1"}, {"order_id": 1}, expression(2, 3), expression(2, None)]
    for value in values:
        assert checker.is_valid(value) is not bool(checker.violations(value))


UNKNOWN: JsonObject = {"$schema": "https://json-schema.org/v1"}


@pytest.mark.parametrize(
    "unused",
    [
        UNKNOWN,
        {"$schema": "https://example.com/mine", "$vocabulary": {"https://example.com/words": True}},
        {"type": 12},
        {"$ref": "no:where"},
        {"pattern": "("},
        {"$dynamicAnchor": "node", **UNKNOWN},
    ],
)
@pytest.mark.parametrize(
    "schema", [{"type": "integer"}, {"$ref": "x:used"}, {"$ref": "x:used#/$defs/inner"}, {"$dynamicRef": "x:used#node"}]
)
def test_a_resource_that_nothing_refers_to_spoils_nothing(schema: JsonObject, unused: JsonObject) -> None:
    used: JsonObject = {"$dynamicAnchor": "node", "type": "integer", "$defs": {"inner": {"type": "integer"}}}
    checker = compile_schema(schema, registry={"x:used": used, "x:unused": unused})
    assert checker.is_valid(1)
    assert not checker.is_valid("one")


def test_a_resource_that_is_used_is_judged_however_far_away() -> None:
    resources: dict[str, JsonObject] = {"x:a": {"$ref": "x:b#/$defs/c"}, "x:b": {**UNKNOWN, "$defs": {"c": True}}}
    for schema in ({"$ref": "x:a"}, {"items": {"$ref": "x:b"}}):
        with pytest.raises(RequestRejected) as raised:
            compile_schema(schema, registry=resources)
        assert raised.value.code == CONFIG_SCHEMA_INVALID


def test_true_is_a_resource_too() -> None:
    resources: dict[str, Any] = {"x:any": True, "x:unused": UNKNOWN}
    assert compile_schema({"$ref": "x:any"}, registry=resources).is_valid(1)


def test_names_that_unused_resources_share_are_not_counted() -> None:
    resources: dict[str, JsonObject] = {f"x:{number}": {"$dynamicAnchor": "n"} for number in range(100)}
    assert compile_schema({"type": "integer"}, registry=resources).is_valid(1)


def test_a_matcher_finds_any_of_many_patterns_in_a_text() -> None:
    is_found = text_matcher("|".join(f"name{number}" for number in range(100)))
    assert is_found("this is name42.")
    assert not is_found("this is a name")
    with pytest.raises(ValueError, match="surrogates"):
        is_found("\ud800")


def test_schemas_that_are_written_alike_are_compiled_once_and_no_caller_changes_what_was_compiled() -> None:
    schema: JsonObject = {"type": "object", "properties": {"once": {"type": "integer"}}}
    checker = compile_schema(schema)
    assert compile_schema({"type": "object", "properties": {"once": {"type": "integer"}}}) is checker
    schema["properties"]["once"]["type"] = "string"
    assert compile_schema(schema) is not checker
    assert checker.is_valid({"once": 1})
    assert not checker.is_valid({"once": "1"})


def test_a_schema_that_is_refused_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(RequestRejected):
            compile_schema({"type": "no type"})


def test_the_member_of_an_enum_of_texts_may_be_a_key() -> None:
    class Size(StrEnum):
        SMALL = "small"

    checker = compile_schema({"properties": {"small": {"type": "integer"}}})
    assert checker.is_valid({Size.SMALL: 1})
    assert not checker.is_valid({Size.SMALL: "1"})
