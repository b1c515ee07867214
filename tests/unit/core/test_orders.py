"""Orders are read strictly: what cannot be read is refused with its number, its key and what may stand there."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import canonical_json
from remit.core.work.orders import (
    ALTERNATIVES_MAX,
    ARGUMENTS_MAX,
    CONDITIONS_MAX,
    ORDERS_MAX,
    Comparison,
    Exact,
    Literal,
    NumberChange,
    Order,
    defaults_of,
    orders_json,
    orders_of,
    reads_of,
)

REACHES = [Comparison, NumberChange]

LOOKUP = {"tool": "find", "arguments": {"n": 1}, "field": "id"}


def _one(**said: Any) -> list[dict[str, Any]]:
    return [{"tool": "act", **said}]


def _value(**said: Any) -> list[dict[str, Any]]:
    return _one(args={"a": {"lookup": {**LOOKUP, **said}}})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("act", "orders: orders='act'; use a list of orders"),
        ([{"tool": "act"}] * (ORDERS_MAX + 1), f"at most {ORDERS_MAX} orders"),
        (["act"], "order 1: order='act'; use a JSON object"),
        (_one(why="so"), "order 1: order='why'; use one of tool, args, text, if, either"),
        ([{}], "order 1: tool=None; use a text of 1 to 200 characters"),
        ([{"tool": ""}], "order 1: tool=''"),
        (_one(args=[]), "order 1: args="),
        (_one(text=[]), "order 1: text="),
        (_one(args={str(n): n for n in range(ARGUMENTS_MAX + 1)}), f"at most {ARGUMENTS_MAX} arguments"),
        (_one(args={"a": 1}, text={"a": "x"}), "an argument once, in `args` or in `text`"),
        (_one(args={"a": float("nan")}), "order 1: a=nan; use a JSON value"),
        (_one(**{"if": ""}), "order 1: if=''"),
        ([{"tool": "x"}, {"either": [], "tool": "act"}], "order 2: either='tool'; use `either` alone"),
        ([{"either": [{"tool": "a"}]}], f"a list of 2 to {ALTERNATIVES_MAX} orders"),
        ([{"either": [{"tool": "a"}, {"either": []}]}], "order 1: order='either'"),
        (_one(args={"a": {"lookup": 7}}), "order 1: lookup=7; use a JSON object"),
        (_value(arguments=7), "order 1: arguments=7"),
        (_value(where=7), f"at most {CONDITIONS_MAX} conditions"),
        (_value(where=[{"field": "a"}]), "a field and one of =, contains, starts"),
        (_value(pick="max"), "order 1: pick='max'; use a JSON object"),
        (_value(plus=1, minus=2), "one of plus, minus, times"),
        (_value(plus=True), "order 1: plus=True; use a number"),
        (_one(args={"a": {"order": {"number": 1, "field": "id"}}}), "the number of an earlier order, from 1"),
        (_one(args={"a": {"named": {"tool": "find"}}}), "order 1: kind=None"),
        (_one(text={"a": 7}), "order 1: a=7; use a JSON object"),
        (_one(text={"a": {"free": "find"}}), "use a text, {exact: text}"),
        (_one(text={"a": {"template": "to {x}", "slots": {"y": 1}}}), "a slot that stands in the template as {y}"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(given: Any, words: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        orders_of(given)
    assert refused.value.code == "ORDERS_INVALID"
    assert words in refused.value.message


def test_every_form_is_read_and_written_back() -> None:
    given = [
        {
            "tool": "act",
            "args": {"plain": 1, "same": {"literal": {"lookup": 1}}, "two": {"a": 1, "b": 2}},
            "if": "it is free",
        },
        {
            "tool": "act",
            "args": {
                "largest": {"lookup": {**LOOKUP, "pick": {"max": "size"}, "times": 2}},
                "found": {"lookup": {**LOOKUP, "where": [{"field": "name", "contains": "x"}], "pick": "only"}},
                "got": {"order": {"number": 1, "field": "id"}},
                "named": {"named": {"tool": "read", "kind": "email"}},
            },
            "text": {"plain": "Hi", "free": {"free": ["read"]}, "filled": {"template": "to {x}", "slots": {"x": 1}}},
        },
        {"either": [{"tool": "a"}, {"tool": "b", "if": "late"}], "if": "early"},
    ]
    orders = orders_of(given)
    assert orders_of(orders_json(orders)) == orders
    assert orders_of(orders) == orders
    assert reads_of(orders) == (("find", '{"n":1}'), ("read", "{}"))
    assert orders[0].args[0] == ("plain", Literal("1"))
    assert dict(orders[1].text)["plain"] == Exact("Hi")
    assert orders[2] == Order(either=(Order("a"), Order("b", note="late")), note="early")


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ({"tool": "act", "args": {"to": {"value": {"lookup": {"tool": "find", "field": "id"}}}}}, "to"),
        ({"tool": "act", "args": {"to": [{"order": {"number": 1, "field": "id"}}]}}, "to"),
        ({"tool": "act", "text": {"body": {"template": "Dear {name}"}}}, "slots"),
    ],
)
def test_a_look_up_within_a_value_and_a_slot_that_nothing_fills_are_refused(order: dict[str, Any], key: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        orders_of([order])
    assert refused.value.details == {"order": 1, "key": key}


def test_a_value_that_looks_like_a_look_up_is_written_as_a_literal() -> None:
    odd = {"value": {"lookup": {"tool": "find", "field": "id"}}}
    (order,) = orders_of([{"tool": "act", "args": {"to": {"literal": odd}, "mode": {"kind": {"lookup": "x"}}}}])
    assert dict(order.args)["to"] == Literal(canonical_json(odd).decode())


def test_what_a_tool_fills_in_is_read_off_its_schema() -> None:
    properties = {"hive": {"type": "string"}, "fire": {"type": "boolean", "default": True}, "odd": True}
    assert defaults_of({"properties": properties}) == {"fire": True}
    assert defaults_of({"type": "object"}) == {}
