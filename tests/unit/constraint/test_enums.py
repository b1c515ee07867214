"""Enums: the one word that is meant, where the schema leaves no other text."""

from typing import Any

import pytest

from remit.constraint.reading import enums
from remit.constraint.reading.enums import Enums, schema_at, the_one_meant
from remit.constraint.reading.repair_log import RepairCode, RepairLog

COLOURS = {"enum": ["red", "dark_green", 3]}


def matched(schema: Any, value: Any, resources: Any = None) -> Any:
    return Enums(schema, resources or {}).match(value, 0, RepairLog()).value


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("RED", "red"),
        (" red.", "red"),
        ("Dark Green", "dark_green"),
        ("darkgreen", "dark_green"),
        ("re", None),
        ("", None),
    ],
)
def test_case_and_joints_make_no_difference_and_a_beginning_does(said: str, meant: str | None) -> None:
    assert the_one_meant(said, ["red", "dark_green"]) == meant


def test_where_two_words_fit_none_is_meant() -> None:
    assert the_one_meant("Us", ["US", "us"]) is None
    assert the_one_meant("a b", ["a_b", "a-b"]) is None
    assert the_one_meant("A-B", ["a_b", "a-b"]) == "a-b"
    assert the_one_meant(".", ["", "."]) == "."


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (COLOURS, "Red", "red"),
        ({"properties": {"c": COLOURS}}, {"c": "RED", "d": "RED", "n": 1}, {"c": "red", "d": "RED", "n": 1}),
        ({"additionalProperties": COLOURS}, {"x": "RED"}, {"x": "red"}),
        ({"additionalProperties": COLOURS, "patternProperties": {"x": {}}}, {"x": "RED"}, {"x": "RED"}),
        ({"items": COLOURS}, ["RED", 1, ["RED"]], ["red", 1, ["RED"]]),
        ({"prefixItems": [COLOURS], "items": {}}, ["RED", "RED"], ["red", "RED"]),
        ({"allOf": [{"properties": {"c": COLOURS}}, {"type": "object"}]}, {"c": "RED"}, {"c": "red"}),
        ({"$ref": "#/$defs/c", "$defs": {"c": COLOURS}}, "RED", "red"),
        ({"$ref": "#c", "$defs": {"c": {"$anchor": "c", **COLOURS}}}, "RED", "RED"),
        ({"anyOf": [COLOURS, {"type": "null"}]}, "RED", "red"),
        ({"anyOf": [COLOURS, {"type": "string"}]}, "RED", "RED"),
        ({"anyOf": [COLOURS, False]}, "RED", "red"),
        ({"oneOf": [{"const": "yes"}, {"const": "no"}]}, "YES", "yes"),
        ({"const": "yes"}, "YES", "YES"),
        ({"anyOf": [{"type": "null"}]}, "RED", "RED"),
        ({"anyOf": [{"properties": {"c": COLOURS}}, {"type": "null"}]}, {"c": "RED"}, {"c": "red"}),
        ({"anyOf": [{"properties": {"c": COLOURS}}, {"type": "object"}]}, {"c": "RED"}, {"c": "RED"}),
        ({"oneOf": [{"items": COLOURS}, {"items": {"enum": ["blue"]}}]}, ["RED", "BLUE"], ["red", "blue"]),
        ({"$ref": "#", "items": {"$ref": "#/enum"}}, ["x"], ["x"]),
        (True, "RED", "RED"),
        ({"enum": "red", "anyOf": 1, "allOf": 1}, {"a": ["RED"]}, {"a": ["RED"]}),
    ],
)
def test_a_text_is_matched_where_the_schema_admits_nothing_else(schema: Any, value: Any, expected: Any) -> None:
    assert matched(schema, value) == expected


def test_the_words_of_a_resource_count() -> None:
    resources = {"urn:c": {"$defs": {"c": COLOURS}, "items": {"$ref": "#/$defs/c"}}}
    assert matched({"$ref": "urn:c"}, ["RED"], resources) == ["red"]
    assert matched({"anyOf": [{"$ref": "urn:c"}]}, ["RED"], resources) == ["RED"]
    assert matched({"$ref": "urn:none"}, ["RED"], resources) == ["RED"]


def test_a_match_is_a_repair_at_its_path_and_the_rest_is_named() -> None:
    log = RepairLog()
    found = Enums({"properties": {"a": COLOURS, "b": COLOURS}}, {}).match({"a": "RED", "b": "x"}, 0, log)
    (repair,) = log.repairs
    assert (repair.code, repair.path, repair.was, repair.became) == (RepairCode.ENUM_MATCHED, "/a", "RED", "red")
    assert found.unrecognized == {"/b"}


def test_more_work_than_is_allowed_is_left_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enums, "VISITS_MAX", 3)
    assert matched({"items": COLOURS}, ["RED"] * 5) == ["red", "red", "RED", "RED", "RED"]


@pytest.mark.parametrize(
    ("fragment", "found"),
    [("", {"a": [1]}), ("/a/0", 1), ("/a/1", None), ("/a/x", None), ("/b/c", None), ("name", None)],
)
def test_a_fragment_points_to_a_part_or_to_nothing(fragment: str, found: Any) -> None:
    assert schema_at({"a": [1]}, fragment) == found


def test_where_a_schema_lists_no_words_a_value_stays_the_very_same() -> None:
    value = {"a": "RED", "b": ["x"]}
    enums = Enums({"properties": {"a": {"type": "string"}}}, {})
    assert not enums.are_there
    assert enums.match(value, 0, RepairLog()) == (value, frozenset(), ())
    assert Enums({"$ref": "urn:colours"}, {"urn:colours": COLOURS}).are_there
