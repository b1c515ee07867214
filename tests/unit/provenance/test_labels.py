"""Results become records and an index; what nothing vouches for stays text."""

from typing import Any

import pytest

from remit.core.limits.authority import Inference
from remit.provenance.declarations import declaration_of
from remit.provenance.origins.labels import ORIGINS_MAX, Observation, OriginIndex, index_key
from remit.provenance.origins.records import (
    RECORDS_MAX,
    REFERENCES_MAX,
    VALUES_MAX,
    ResultLayout,
    groups_along,
    leaf_values,
    read_content,
    references_of,
)

FIELDS = {"[].id": "id:file", "[].tags[]": "who:user", "[].name": "label", "[].part.size": "number"}


def made(content: Any, result: Any = FIELDS, inference: Inference = Inference.OFF) -> Any:
    return groups_along(
        ResultLayout(declaration_of({"name": "list_files", "result": result})), read_content(content), inference
    )


def test_declared_fields_become_records_and_the_rest_is_text() -> None:
    content = [
        {"id": "1", "tags": ["a", "b", "c"], "name": "n", "part": {"size": 3}, "note": "hi", "other": {"x": ["deep"]}}
    ]
    groups, texts = made(content)
    assert groups["[]"].records == ({"id": "1", "tags[]": ["a", "b", "c"], "name": "n", "part.size": 3},)
    assert texts == ["n", "hi", "deep"]


def test_text_that_is_json_is_read_like_json_and_other_text_is_not() -> None:
    assert made('[{"id": "1"}]')[0]["[]"].records == ({"id": "1"},)
    assert made("id: 1") == ({}, ["id: 1"])
    assert read_content('{"a": NaN}') == '{"a": NaN}'
    assert read_content('"text"') == "text"
    assert read_content("[" * 100_000) == "[" * 100_000
    huge = "[" + " " * 17_000_000 + "]"
    assert read_content(huge) is huge


def test_each_value_of_an_object_may_be_a_record_labelled_by_its_key() -> None:
    groups, _ = made({"Ritz": {"price": 9}, "Ibis": {"price": 1}}, {"*.price": "number"})
    assert groups["*"].records == ({"@key": "Ritz", "price": 9}, {"@key": "Ibis", "price": 1})


def test_a_key_that_spells_a_step_is_no_step() -> None:
    for key in ("[]", "*", "@key", "@field"):
        assert made({key: {"id": "1"}, "x": 1})[0] == {}


def test_what_exceeds_a_limit_is_dropped_and_the_group_says_so() -> None:
    groups, _ = made([{"id": str(n)} for n in range(RECORDS_MAX + 1)])
    assert (len(groups["[]"].records), groups["[]"].is_cut) == (RECORDS_MAX, True)
    groups, _ = made([{"id": "1", "tags": [f"u{n}" for n in range(VALUES_MAX + 1)]}])
    assert groups["[]"].is_cut
    assert made([{"id": "1", "name": "x" * 300}])[0]["[]"].records == ({"id": "1"},)
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    assert made(deep) == ({}, [])


def test_numbers_and_dates_are_read_off_values_and_marked() -> None:
    content = [{"id": "1", "size": 3, "on": "2024-05-01", "up": True, "none": None, "inf": float("inf")}]
    assert made(content)[0]["[]"].kinds == {**KINDS, "size": "~number", "on": "~date"}
    assert made(content, inference=Inference.TYPED)[0]["[]"].kinds == {**KINDS, "size": "number", "on": "date"}


KINDS = {"id": "id:file", "tags[]": "who:user", "name": "label", "part.size": "number"}


def test_identities_are_read_off_keys_only_when_the_operator_says_so() -> None:
    content = {"mails": [{"id": 3, "owner_id": "x1", "from": "a@b.example"}], "total": 1}
    groups, _ = made(content, None, Inference.IDENTITY)
    assert groups["mails[]"].kinds == {"id": "id:files", "owner_id": "id:owner", "from": "who:email"}
    assert groups[""].kinds == {"total": "number"}
    assert made([{"id": "7"}], None, Inference.IDENTITY)[0]["[]"].records == ({"id": "7"},)
    assert made(content, None) == ({}, ["x1", "a@b.example"])
    assert made("x", None, Inference.IDENTITY) == ({}, ["x"])


def test_the_index_keeps_the_first_and_the_latest_origins() -> None:
    index = OriginIndex()
    groups, _ = made([{"id": "1"}])
    for _ in range(ORIGINS_MAX * 2):
        index.add(Observation("c", "list_files", groups))
    found = [origin.observation for origin in index.origins_of("1")]
    assert (len(found), found[0], found[-1]) == (ORIGINS_MAX, 0, ORIGINS_MAX * 2 - 1)
    assert index.origins_of(1) == index.origins_of("1")
    assert index.seen_in("nowhere") is None


def test_a_number_and_a_text_have_exact_keys() -> None:
    assert index_key(1.0) == index_key(1) == "1"
    assert index_key("1.0") == "1.0"
    assert index_key(None) == "None"


def test_references_of_texts_are_noted_once_and_bounded() -> None:
    assert references_of(["a@b.example and a@b.example", "c@d.example"]) == (
        ("email", "a@b.example"),
        ("email", "c@d.example"),
    )
    assert (
        len(references_of([" ".join(f"u{n}@b.example" for n in range(REFERENCES_MAX + 9)), "z@z.example"]))
        == REFERENCES_MAX
    )


@pytest.mark.parametrize(
    ("segments", "values"),
    [
        (("a", "[]", "b"), [1, 2]),
        (("a",), [{"b": 1}, {"b": 2}]),
        (("*", "[]", "b"), [1, 2]),
        (("x",), [None]),
        (("a", "b"), []),
    ],
)
def test_all_values_at_the_end_of_a_path_are_found(segments: tuple[str, ...], values: list[Any]) -> None:
    assert list(leaf_values({"a": [{"b": 1}, {"b": 2}]}, segments)) == values
