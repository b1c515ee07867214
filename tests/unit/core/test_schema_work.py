"""Counting the work of a schema: where references lead, and that no count falls short."""

from typing import Any

import msgspec
import pytest

from remit.core.record import JsonObject
from remit.core.schema.schema_work import (
    NAMESAKES_MAX,
    ReferenceLost,
    References,
    ViolationListing,
    is_deeper,
    parts_of,
    pointer,
    visits_of,
)

MANY = 1_000_000


def targets_of(schema: JsonObject, node: JsonObject, registry: dict[str, JsonObject] | None = None) -> list[Any]:
    return References(schema, registry or {}).targets(node)


def visits(schema: JsonObject, value: Any, most: int = MANY, levels: int = 200) -> int:
    return ViolationListing(References(schema, {}), most).visits(schema, value, levels)


@pytest.mark.parametrize(
    ("base", "target", "reference"),
    [
        ("", {}, "#/$defs/t"),
        ("http://x/root.json", {}, "#/$defs/t"),
        ("http://x/root.json", {}, "root.json#/$defs/t"),
        ("http://x/root.json", {"$id": "folder/t.json"}, "http://x/folder/t.json"),
        ("http://x/root.json#", {"$id": "t.json#"}, "t.json"),
        ("", {"$anchor": "here"}, "#here"),
        ("", {"$dynamicAnchor": "here"}, "#here"),
        ("", {"$id": "#here"}, "#here"),
        ("urn:example:root", {"$anchor": "here"}, "urn:example:root#here"),
        ("urn:example:root", {"$anchor": "here"}, "#here"),
    ],
)
def test_a_reference_leads_to_its_target_by_pointer_uri_or_anchor(
    base: str, target: JsonObject, reference: str
) -> None:
    node = {"$ref": reference}
    schema = {"allOf": [node], "$defs": {"t": target}} | ({"$id": base} if base else {})
    assert [found is target for found in targets_of(schema, node)] == [True]


def test_a_pointer_may_be_escaped_and_may_count_into_arrays() -> None:
    target: JsonObject = {}
    node = {"$ref": "#/$defs/a~1b%25~0c/anyOf/1"}
    schema = {"$defs": {"a/b%~c": {"anyOf": [{}, target]}}, "not": node}
    assert [found is target for found in targets_of(schema, node)] == [True]


@pytest.mark.parametrize(
    "reference", ["#/$defs/none", "#/not/5", "#/not/$ref/deeper", "#none", "http://x/none", "t.json"]
)
def test_a_reference_to_nothing_is_lost_with_its_place(reference: str) -> None:
    node = {"$ref": reference}
    with pytest.raises(ReferenceLost) as caught:
        targets_of({"not": node}, node)
    assert caught.value.path == "/not/$ref"
    assert repr(reference) in str(caught.value)


def test_a_reference_leads_into_the_registry_and_back() -> None:
    there, back = {"$ref": "http://x/a"}, {"$ref": "http://x/root#/$defs/t"}
    schema = {"$id": "http://x/root", "$defs": {"t": {}}, "not": there}
    references = References(schema, {"http://x/a": back})
    assert references.targets(there) == [back]
    assert [found is schema["$defs"]["t"] for found in references.targets(back)] == [True]  # type: ignore[index]


def test_a_dynamic_reference_may_lead_to_every_schema_of_its_name() -> None:
    node = {"$dynamicRef": "#node"}
    first, second = {"$dynamicAnchor": "node"}, {"$id": "other", "$dynamicAnchor": "node"}
    found = targets_of({"$defs": {"a": first, "b": second}, "not": node}, node)
    assert [any(each is wanted for each in found) for wanted in (first, second)] == [True, True]


def test_a_recursive_reference_may_lead_to_every_recursive_anchor() -> None:
    node = {"$recursiveRef": "#"}
    other = {"$id": "other", "$recursiveAnchor": True}
    schema = {"$defs": {"a": other}, "not": node}
    found = targets_of(schema, node)
    assert [any(each is wanted for each in found) for wanted in (schema, other)] == [True, True]


def test_a_name_that_too_many_schemas_bear_is_refused() -> None:
    def anchored(count: int) -> JsonObject:
        return {"allOf": [{"$dynamicAnchor": "node"} for _ in range(count)]}

    References(anchored(NAMESAKES_MAX), {})
    with pytest.raises(ValueError, match=f"namesakes_max={NAMESAKES_MAX}"):
        References(anchored(NAMESAKES_MAX + 1), {})


def test_visits_count_every_way_and_stop_at_a_cycle() -> None:
    schema: JsonObject = {
        "$defs": {"leaf": {}, "twice": {"allOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/leaf"}]}},
        "allOf": [{"$ref": "#/$defs/twice"}, {"$ref": "#/$defs/twice"}],
        "items": {"$ref": "#"},
    }
    # Each `twice` is itself, its array, two references and two leaves; the root adds itself, its array, its two
    # references, and `items` with the root it leads back to.
    assert visits_of(schema, References(schema, {}), MANY) == 2 * 6 + 4 + 2
    assert visits_of(schema, References(schema, {}), 10) == 11


def test_definitions_below_the_root_may_be_properties_and_count() -> None:
    schema: JsonObject = {"properties": {"$defs": {"not": {}}}}
    assert visits_of(schema, References(schema, {}), MANY) == 4


def test_listing_counts_each_part_of_the_value_by_every_way() -> None:
    schema: JsonObject = {
        "properties": {"rows": {"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "absent": {}},
        "required": ["rows"],
        "enum": [{}],
    }
    # The root, `rows`, and for each of three rows the items and both alternatives.
    assert visits(schema, {"rows": [1, 2, 3]}) == 2 + 3 * 3
    assert visits(schema, "no object") == 1


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"not": {}}, 1, 2),
        ({"if": True, "then": {}, "else": {}}, 1, 4),
        ({"dependentSchemas": {"a": {}, "b": {}}}, {"a": 1}, 3),
        ({"patternProperties": {"^a": {}, "^b": {}}}, {"x": 1, "y": 2}, 5),
        ({"additionalProperties": {}}, {"x": 1, "y": 2}, 3),
        ({"prefixItems": [{}, {}], "items": {}}, [1, 2], 7),
        ({"items": False}, [1, 2], 3),
        ({"unknown": {}}, [1, 2], 3),
        ({"properties": {}}, [1], 1),
        (True, [1], 1),
    ],
)
def test_each_keyword_meets_the_parts_it_concerns(schema: Any, value: Any, expected: int) -> None:
    assert visits(schema, value) == expected


def test_a_schema_that_only_refers_to_itself_is_met_once() -> None:
    assert visits({"$ref": "#"}, 1) == 2


def test_listing_gives_up_at_its_bounds() -> None:
    schema: JsonObject = {"items": {"items": {"$ref": "#"}}}
    value: Any = []
    for _ in range(60):
        value = [value, value]
    assert visits(schema, value, levels=20) == MANY + 1
    assert visits({"items": {}}, [1, 2, 3], most=3) == 4
    assert visits({"items": {}}, list(range(300, 310)), most=5) == 6


def test_depth_counts_objects_and_arrays() -> None:
    assert not is_deeper("text", 0)
    assert is_deeper([], 0)
    assert not is_deeper({"a": [1]}, 2)
    assert is_deeper({"a": [[]]}, 2)
    assert not is_deeper([1, "x", None], 1)


def test_a_pointer_escapes_tilde_and_slash() -> None:
    assert pointer([]) == ""
    assert pointer(["a/b", 0, "~"]) == "/a~1b/0/~0"


def test_what_stands_in_an_array_is_reached() -> None:
    inner: JsonObject = {"type": "string"}
    schema: JsonObject = {"allOf": [inner], "$defs": {"unused": {}}}
    assert id(inner) in References(schema, {}).reached(schema)


# Refers to one definition from two places.
TWICE: JsonObject = {
    "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}},
    "$defs": {"x": {"type": "string"}},
}


@pytest.mark.parametrize(
    ("schema", "parts"),
    [
        ({}, 1),
        ({"properties": {"a": {"type": "string"}, "b": True}, "required": ["a"]}, 7),
        ({"properties": {"a": {"$ref": "#"}}}, 0),
        ({"$dynamicAnchor": "here", "items": {"$dynamicRef": "#here"}}, 0),
        # Each reference leads to parts of its own.
        (TWICE, 10),
        # A property of that name refers to nothing.
        ({"properties": {"$ref": {}}}, 3),
    ],
)
def test_the_parts_of_a_schema_are_counted_unless_one_contains_itself(schema: JsonObject, parts: int) -> None:
    assert parts_of(schema, References(schema, {})) == parts


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"anyOf": [{"items": {"type": "integer"}}, {"type": "object", "additionalProperties": {"minLength": 3}}]},
        {
            "allOf": [{"not": {"enum": [1]}}, {"patternProperties": {"a": False, "b": True}}],
            "propertyNames": {"maxLength": 1},
        },
        TWICE,
        {"anyOf": [TWICE, {"items": {"$ref": "#/$defs/x"}}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"enum": [1, 2]}}},
    ],
)
@pytest.mark.parametrize("value", [1, [1, [2, "x"]], {"a": [1, 2], "bb": {"c": None}}])
def test_no_listing_meets_more_than_the_parts_of_a_schema_times_those_of_a_value(
    schema: JsonObject, value: Any
) -> None:
    assert visits(schema, value) <= parts_of(schema, References(schema, {})) * len(msgspec.json.encode(value))
