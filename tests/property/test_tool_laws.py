"""Laws of tools: the schema a model is shown and the converter behind it agree on every value."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from remit.core.record import JsonObject
from remit.core.schema.json_schema import compile_schema
from remit.tool.call.arguments import prepared, result_text
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import ToolFault
from remit.tool.declare.decorator import Tool, tool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Size:
    width: int
    tags: list[str] = field(default_factory=list)


class Address(BaseModel):
    street: str = Field(min_length=1, max_length=5)
    size: Size | None = None


class Row(TypedDict):
    name: str
    level: NotRequired[Level]


def plain(a: str, b: int, c: float, d: bool, e: None = None) -> None: ...
def choices(a: int | str | None, b: Literal["x", 2], c: Colour, d: Level = Level.LOW) -> None: ...
def collections(a: list[int], b: tuple[int, str], d: dict[str, float], e: list[list[bool]] | None = None) -> None: ...
def records(a: Size, b: Address, c: Row, d: list[Row] | Size) -> None: ...
def bounded(
    a: Annotated[int, Field(ge=-3, lt=5)],
    b: Annotated[float, Field(gt=0, le=1)],
    c: Annotated[list[int], Field(min_length=1, max_length=2)],
    d: Annotated[str, Field(pattern=r"^[ab]*$")] = "a",
) -> None: ...
def anything(a: Any, b: dict[str, Any], c: list[Any]) -> None: ...


SIGNATURES = (plain, choices, collections, records, bounded, anything)

# Numbers beyond a double have no canonical form, and so never reach a tool.
INTEGERS = st.integers(-(2**53) + 1, 2**53 - 1)
# From 1e21 on the canonical form of a whole number has an exponent, and what has one is no integer to a function.
NUMBERS = st.floats(-1e20, 1e20) | INTEGERS
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.sampled_from(["red", "x", 1, 2, 1.0, "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def fitting(schema: JsonObject, root: JsonObject) -> st.SearchStrategy[Any]:
    """Values that a schema of these signatures allows, mostly."""
    if "$ref" in schema:
        return fitting(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return st.one_of([fitting(choice, root) for choice in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    return KINDS[schema["type"]](schema, root) if "type" in schema else JSON


def integers(schema: JsonObject, root: JsonObject) -> st.SearchStrategy[Any]:
    low, high = schema.get("minimum", -(2**53) + 1), schema.get("exclusiveMaximum", 2**53) - 1
    whole = st.integers(low, high)
    return whole | whole.map(float)


def arrays(schema: JsonObject, root: JsonObject) -> st.SearchStrategy[Any]:
    if "prefixItems" in schema:
        return st.tuples(*(fitting(item, root) for item in schema["prefixItems"])).map(list)
    low, high = schema.get("minItems", 0), schema.get("maxItems", 3)
    return st.lists(fitting(schema.get("items", {}), root), min_size=low, max_size=high)


def objects(schema: JsonObject, root: JsonObject) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        inner = schema.get("additionalProperties", {})
        return st.dictionaries(TEXTS, fitting(inner if isinstance(inner, dict) else {}, root), max_size=3)
    parts = {name: fitting(part, root) for name, part in schema["properties"].items()}
    required = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: part for name, part in parts.items() if name in required},
        optional={name: part for name, part in parts.items() if name not in required},
    )


KINDS: dict[str, Callable[[JsonObject, JsonObject], st.SearchStrategy[Any]]] = {
    "null": lambda schema, root: st.none(),
    "boolean": lambda schema, root: st.booleans(),
    "integer": integers,
    "number": lambda schema, root: st.floats(0.01, 1) if "maximum" in schema else NUMBERS,
    "string": lambda schema, root: st.text("ab", min_size=1, max_size=5) | TEXTS,
    "array": arrays,
    "object": objects,
}

TOOLS = {function.__name__: tool(function) for function in SIGNATURES}
CHECKERS = {name: compile_schema(one.definition.parameters) for name, one in TOOLS.items()}
VALUES = {name: fitting(one.definition.parameters, one.definition.parameters) for name, one in TOOLS.items()}


def converts(one: Tool, arguments: JsonObject) -> bool:
    try:
        prepared(one, arguments, "key", CancelToken())
    except ToolFault:
        return False
    return True


@pytest.mark.parametrize("name", TOOLS)
@given(data=st.data())
def test_the_converter_takes_exactly_what_the_schema_allows(name: str, data: st.DataObject) -> None:
    arguments = data.draw(VALUES[name])
    # Half of the time one argument is replaced by something, or something is added.
    if data.draw(st.booleans()):
        arguments = {**arguments, data.draw(st.sampled_from([*arguments, "other"])): data.draw(JSON)}
    assert converts(TOOLS[name], arguments) == CHECKERS[name].is_valid(arguments)


@tool
def collected(a: set[int], b: frozenset[str]) -> None: ...


@given(a=st.lists(INTEGERS, max_size=4), b=st.lists(TEXTS, max_size=4))
def test_sets_take_whatever_the_schema_allows(a: list[int], b: list[str]) -> None:
    arguments = {"a": a, "b": b}
    if compile_schema(collected.definition.parameters).is_valid(arguments):
        assert prepared(collected, arguments, "", CancelToken()) == {"a": set(a), "b": frozenset(b)}


@tool
def untyped() -> Any: ...


@given(JSON)
def test_a_json_value_comes_out_as_itself(value: Any) -> None:
    text = result_text(untyped, value).content
    assert text == value if isinstance(value, str) else json.loads(text) == value
