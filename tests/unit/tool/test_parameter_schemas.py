"""Schemas say what constrains and nothing else, and results are checked only where their text is unambiguous."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from remit.core.record import JsonObject
from remit.tool.declare.parameter_schemas import parameters_schema, result_schema


class Titled(BaseModel):
    """A model whose field is called title."""

    title: str = Field(default="x", description="the title")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Row(TypedDict):
    a: int


@dataclass
class Node:
    children: list["Node"]


class Mood(StrEnum):
    GOOD = "good"


class Digit(StrEnum):
    ONE = "1"


class Level(Enum):
    LOW = 1


def of(annotation: Any) -> JsonObject:
    return result_schema(TypeAdapter(annotation))


def test_titles_go_but_a_property_of_that_name_stays() -> None:
    assert parameters_schema(Titled) == {
        "description": "A model whose field is called title.",
        "properties": {"title": {"default": "x", "description": "the title", "type": "string"}},
        "type": "object",
        "additionalProperties": False,
    }


def test_an_object_that_lists_its_properties_takes_no_others_unless_it_says_so() -> None:
    assert of(list[Row])["$defs"]["Row"]["additionalProperties"] is False
    assert of(Open)["additionalProperties"] is True
    assert of(dict[str, int]) == {"type": "object", "additionalProperties": {"type": "integer"}}


def test_a_schema_that_refers_to_itself_is_followed_once() -> None:
    assert of(Node)["$ref"] == "#/$defs/Node"
    assert of(Node | None) != {}


@pytest.mark.parametrize("annotation", [int, None, list[str], Row, Mood, Level, Literal["a", "b"], int | Literal["a"]])
def test_a_result_that_cannot_be_mistaken_has_a_schema(annotation: Any) -> None:
    assert of(annotation) != {}


@pytest.mark.parametrize("annotation", [str, str | None, Any, object, Literal["1"], Digit, bytes, int | str])
def test_a_text_that_could_be_read_as_something_else_has_no_schema(annotation: Any) -> None:
    assert of(annotation) == {}
