"""Paths of arguments: what stands within one is named, and is what counts."""

from typing import Any

import pytest

from remit.core.limits.argument_paths import root_of, values_at
from remit.core.limits.boundary import Boundary
from remit.core.limits.purchases import UNTOLD_AMOUNT, amount_in
from remit.core.limits.tools import Effect, ToolDefinition, check_definition
from remit.kernel.authority.call_flags import names_people, people_in
from remit.kernel.authority.outside_paths import is_path

SAID: dict[str, Any] = {
    "order": {"lines": [{"cents": 5, "to": "ann"}, {"cents": 7, "to": "bob"}, 3], "sum": 12},
    "odd.name": 1,
    "flat": [1],
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("order.lines[].cents", [5, 7]),
        ("order.sum", [12]),
        ("flat", [[1]]),
        ("flat[]", [1]),
        ("odd.name", [1]),
        ("order.none", []),
        ("order[]", []),
        ("none", []),
        ("none.deeper", []),
    ],
)
def test_a_path_leads_to_every_value_there(path: str, values: list[object]) -> None:
    assert [*values_at(SAID, path)] == values


def test_a_path_begins_with_its_argument() -> None:
    assert [root_of(path) for path in ("a", "a.b", "a[].b", "a[]")] == ["a"] * 4


def made(*kinds: tuple[str, str]) -> ToolDefinition:
    line = {"type": "object", "properties": {"cents": {"type": "integer"}, "to": {"type": "string"}}}
    order = {"type": "object", "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}}}
    schema = {
        "type": "object",
        "$defs": {"line": line, "order": order},
        "properties": {"order": {"$ref": "#/$defs/order"}},
    }
    return ToolDefinition("place", "Places.", schema, effect=Effect.EXTERNAL, control_args=kinds)


def test_money_and_people_within_an_argument_are_counted_as_those_at_its_top() -> None:
    tool = made(("order.lines[].cents", "money"), ("order.lines[].to", "id:client"))
    check_definition(tool)
    assert amount_in(SAID, tool) == 12
    assert amount_in({"order": {}}, tool) == UNTOLD_AMOUNT
    boundary = Boundary("b", identities=("id:client",))
    assert people_in(SAID, tool, boundary) == ["ann", "bob"]
    assert names_people(tool, boundary)
    assert not names_people(made(("order.lines[].cents", "money")), boundary)
    assert is_path("cents", made(("order.lines[].cents", "path")))


def test_people_behind_references_are_found_by_their_names() -> None:
    schema = {
        "type": "object",
        "$defs": {"visit": {"type": "object", "properties": {"client_id": {"type": "string"}}}},
        "properties": {"visit": {"$ref": "#/$defs/visit"}},
    }
    tool = ToolDefinition("note_visit", "Notes.", schema, effect=Effect.WRITE)
    assert names_people(tool, Boundary("b", identities=("who:client",)))
