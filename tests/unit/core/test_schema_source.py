"""Where schemas come from: JSON Schemas, models, dataclasses, TypedDicts and plain types."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, Optional, Required, TypedDict

import pytest
from pydantic import BaseModel, Field
from typing_extensions import override

from remit.core.failure import RequestRejected
from remit.core.schema.json_schema import Schema, compile_schema
from remit.core.schema.schema_source import (
    SCHEMA_SOURCE_INVALID,
    TYPE_LEVELS_MAX,
    check_of,
    instance_reader,
    schema_of,
)


class Item(TypedDict, total=False):
    """A line of an order."""

    sku: Required[str]
    count: Annotated[int, Field(ge=1)]


class Order(TypedDict):
    """An order."""

    class_: Literal["a", "b"]
    items: list[Item]
    gift: NotRequired[Item | None]
    note: Optional[str]  # noqa: UP045 - the older spelling is what many write
    by_name: dict[str, Annotated[Item, "marked"]]


@dataclass
class Point:
    """A point."""

    x: int
    label: str = ""


class Tree(BaseModel):
    """A tree."""

    name: str = Field(alias="Name")
    below: "list[Tree]" = []


class Endless(TypedDict):
    """Holds itself."""

    again: "Endless"


@pytest.mark.parametrize(
    ("source", "fits", "breaks"),
    [
        ({"type": "integer"}, 1, "1"),
        (True, 1, None),
        (Schema(type="string"), "a", 1),
        (Point, {"x": 1}, {"x": "1"}),
        (Tree, {"Name": "a", "below": [{"Name": "b"}]}, {"name": "a"}),
        (list[int], [1], ["1"]),
        (Item, {"sku": "a"}, {"count": 1}),
        (Order, {"class_": "a", "items": [{"sku": "s"}], "note": None, "by_name": {}}, {"class_": "a", "items": []}),
        (Order, {"class_": "b", "items": [], "note": "", "gift": None, "by_name": {"x": {"sku": ""}}}, {"items": [1]}),
    ],
)
def test_a_source_stands_for_a_schema_that_tells_values_apart(source: Any, fits: Any, breaks: Any) -> None:
    checker = compile_schema(schema_of(source))
    assert checker.is_valid(fits)
    assert source is True or not checker.is_valid(breaks)


def test_a_json_schema_is_taken_as_it_is() -> None:
    schema = {"type": "object"}
    assert schema_of(schema) is schema


def test_keys_that_may_be_left_out_have_no_default() -> None:
    schema = schema_of(Item)
    assert isinstance(schema, dict)
    assert schema["required"] == ["sku"]
    assert "default" not in schema["properties"]["count"]


class Opaque:
    """Nothing that JSON can carry."""


@pytest.mark.parametrize("source", [3, "Nowhere", Opaque, list[Opaque], Endless])
def test_what_stands_for_no_schema_is_refused(source: Any) -> None:
    with pytest.raises(RequestRejected) as raised:
        schema_of(source)
    assert raised.value.code == SCHEMA_SOURCE_INVALID


def test_how_deep_types_may_nest_is_told() -> None:
    with pytest.raises(RequestRejected, match=f"type_levels_max={TYPE_LEVELS_MAX}"):
        schema_of(Endless)


class Dated(BaseModel):
    """A model whose JSON is not its Python."""

    day: date
    sizes: tuple[int, ...] = ()


def test_a_reader_makes_an_instance_of_a_type_and_leaves_json_as_it_is() -> None:
    assert instance_reader(Dated)({"day": "2026-01-02", "sizes": [1]}) == Dated(day=date(2026, 1, 2), sizes=(1,))
    assert instance_reader(list[int])([1]) == [1]
    assert instance_reader(Item)({"sku": "a"}) == {"sku": "a"}
    for schema in ({"type": "object"}, compile_schema({"type": "object"})):
        assert instance_reader(schema)({"day": 1}) == {"day": 1}


def test_a_reader_refuses_what_its_type_refuses() -> None:
    with pytest.raises(ValueError, match="day"):
        instance_reader(Dated)({"day": "never"})


class Raising(BaseModel):
    """Its own code raises what is no error of validation."""

    n: int

    @override
    def model_post_init(self, context: Any, /) -> None:
        if self.n > 9:
            raise RuntimeError("too large")


class Holder(BaseModel):
    """Holds what demands more than its schema says."""

    inner: list[Raising]


@pytest.mark.parametrize("source", [{"type": "integer"}, "int", True, Schema(type="string"), Point, Item, list[int]])
def test_what_a_schema_says_whole_is_not_looked_at_again(source: Any) -> None:
    assert check_of(source) is None


@pytest.mark.parametrize(
    ("source", "fits", "refused", "why"),
    [
        (date, '"2026-02-01"', '"soon"', "output /: Input should be a valid date"),
        (Raising, '{"n": 1}', '{"n": 10}', "the type of the output raised RuntimeError: too large"),
        (Holder, '{"inner": [{"n": 1}]}', '{"inner": [{"n": 10}]}', "raised RuntimeError"),
        (dict[date, int], '{"2026-02-01": 1}', '{"soon": 1}', "soon"),
        # Written with a list, it has no hash.
        (Annotated[date, ["a note"]], '"2026-02-01"', '"soon"', "valid date"),
    ],
)
def test_a_type_says_why_it_refuses_what_its_schema_admits(source: Any, fits: str, refused: str, why: str) -> None:
    check = check_of(source)
    assert check is not None
    assert check(fits) == []
    (said,) = check(refused)
    assert why in said


def test_what_the_schema_refuses_and_what_is_no_json_is_left_to_the_schema() -> None:
    check = check_of(Raising)
    assert check is not None
    assert check('{"n": "many"}') == []
    assert check("{") == []
