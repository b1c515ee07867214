"""The book of orders: what a look-up supplies, and which effect equals which order."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.work.orders import orders_of
from remit.provenance.declarations import declarations_of
from remit.provenance.gate import Gate, start
from remit.provenance.gate_verdict import verdict_json
from remit.provenance.order_book import leased_book
from remit.provenance.order_checks import check_orders

TOOLS: list[dict[str, Any]] = [
    {
        "name": "find",
        "effect": "read",
        "network": False,
        "parameters": {"properties": {"q": {}}},
        "result": {"[].id": "id:file", "[].name": "label", "[].size": "number", "[].to[]": "who:email"},
    },
    {"name": "read", "effect": "read", "network": False, "parameters": {"properties": {"path": {}}}},
    {
        "name": "act",
        "effect": "external",
        "parameters": {"properties": {"file": {}, "n": {}, "to": {}, "body": {}, "soft": {"default": True}}},
        "control_args": {"file": "id:file", "to": "email"},
        "payload_args": ["body"],
        "result": {"id": "id:job"},
    },
    {
        "name": "stop",
        "effect": "external",
        "parameters": {"properties": {"job": {}}},
        "control_args": {"job": "id:job"},
    },
]
FILES = [
    {"id": "f1", "name": "plan", "size": 3, "to": ["ann@x.example"]},
    {"id": "f2", "name": "plans", "size": 9, "to": ["ann@x.example", "bob@x.example"]},
]


def lookup(**said: Any) -> dict[str, Any]:
    return {"lookup": {"tool": "find", "arguments": {"q": "plan"}, "field": "id", **said}}


def gate_with(*orders: dict[str, Any], found: Any = FILES) -> Gate:
    gate = start("Do it.", TOOLS, orders=orders_of(orders))
    gate.verdict_on("r", "find", {"q": "plan"})
    gate.observe("r", "find", found)
    return gate


def passes(gate: Gate, tool: str = "act", /, **arguments: Any) -> bool:
    return gate.verdict_on(None, tool, arguments).is_allowed


@pytest.mark.parametrize(
    ("value", "argument", "expected"),
    [
        (lookup(where=[{"field": "name", "=": "plan"}]), "file", "f1"),
        (lookup(where=[{"field": "name", "starts": "plans"}]), "file", "f2"),
        (lookup(where=[{"field": "name", "contains": "ans"}]), "file", "f2"),
        (lookup(where=[{"field": "to", "=": "bob@x.example"}]), "file", "f2"),
        (lookup(pick={"max": "size"}), "file", "f2"),
        (lookup(field="size", pick={"max": "size"}, plus=1), "n", 10),
        (lookup(field="size", pick={"max": "size"}, minus=0.5), "n", 8.5),
        (lookup(field="size", pick={"max": "size"}, times=2), "n", 18),
        (lookup(field="to", where=[{"field": "name", "=": "plan"}]), "to", "ann@x.example"),
    ],
)
def test_a_look_up_supplies_the_field_of_the_one_record_that_is_left(value: Any, argument: str, expected: Any) -> None:
    gate = gate_with({"tool": "act", "args": {argument: value}})
    assert not passes(gate, **{argument: "another"})
    assert passes(gate, **{argument: expected})


@pytest.mark.parametrize(
    ("value", "argument", "given", "why"),
    [
        (lookup(), "file", "f1", "2 records fit, and one is needed"),
        (lookup(where=[{"field": "name", "=": "none"}]), "file", "f1", "0 records fit"),
        (lookup(field="name", where=[{"field": "name", "=": "plan"}]), "n", "plan", "of kind label"),
        (lookup(field="size", pick={"max": "size"}), "file", 9, "and id:file is wanted"),
        (lookup(field="to", pick={"max": "size"}), "to", "ann@x.example", "has 2 values of to"),
        (lookup(pick={"max": "size"}, plus=1), "file", "f2", "and no number"),
        ({"lookup": {"tool": "find", "arguments": {"q": "other"}, "field": "id"}}, "file", "f1", "was not read yet"),
        ({"named": {"tool": "read", "arguments": {}, "kind": "email"}}, "to", "a@x.example", "was not read yet"),
    ],
)
def test_what_a_look_up_does_not_single_out_supplies_nothing(value: Any, argument: str, given: Any, why: str) -> None:
    gate = gate_with({"tool": "act", "args": {argument: value}})
    verdict = gate.verdict_on(None, "act", {argument: given})
    assert (verdict.is_allowed, verdict.code) == (False, "BEYOND_ORDERS")
    assert why in verdict.reasons[0]


def test_a_result_without_the_field_supplies_nothing() -> None:
    gate = gate_with({"tool": "act", "args": {"file": lookup()}}, found=[])
    assert "0 groups of records" in gate.verdict_on(None, "act", {"file": "f1"}).reasons[0]


@pytest.mark.parametrize(
    ("text", "expected"), [("write to ann@x.example", True), ("ann@x.example or eve@x.example", False)]
)
def test_the_only_value_of_a_kind_in_a_named_source_is_supplied(text: str, expected: bool) -> None:
    order = {"tool": "act", "args": {"to": {"named": {"tool": "read", "arguments": {"path": "a"}, "kind": "email"}}}}
    gate = start("Do it.", TOOLS, orders=orders_of([order]))
    gate.verdict_on("r", "read", {"path": "a"})
    gate.observe("r", "read", text)
    assert passes(gate, to="ann@x.example") is expected


def test_a_field_of_a_record_counts_as_a_value_of_a_named_source() -> None:
    order = {"tool": "act", "args": {"to": {"named": {"tool": "find", "arguments": {"q": "plan"}, "kind": "email"}}}}
    assert passes(gate_with(order, found=FILES[:1]), to="ann@x.example")


def test_a_later_order_takes_what_an_earlier_one_returned() -> None:
    gate = gate_with(
        {"tool": "act", "args": {"n": 1}}, {"tool": "stop", "args": {"job": {"order": {"number": 1, "field": "id"}}}}
    )
    assert "has returned nothing yet" in gate.verdict_on(None, "stop", {"job": "j1"}).reasons[0]
    gate = gate_with(
        {"tool": "act", "args": {"n": 1}}, {"tool": "stop", "args": {"job": {"order": {"number": 1, "field": "id"}}}}
    )
    assert gate.verdict_on("a", "act", {"n": 1}).is_allowed
    gate.observe("a", "act", {"id": "j1"})
    assert not passes(gate, "stop", job="j2")
    assert passes(gate, "stop", job="j1")


def test_what_is_read_after_the_first_effect_changes_no_look_up() -> None:
    gate = start(
        "Do it.",
        TOOLS,
        orders=orders_of([{"tool": "act", "args": {"n": 1}}, {"tool": "act", "args": {"file": lookup()}}]),
    )
    assert passes(gate, n=1)
    gate.verdict_on("r", "find", {"q": "plan"})
    gate.observe("r", "find", FILES[:1])
    assert not passes(gate, file="f1")


def test_a_template_is_filled_and_compared() -> None:
    wording = {
        "template": "Plan {name} of {size}",
        "slots": {"name": "A", "size": lookup(field="size", pick={"max": "size"})},
    }
    order = {"tool": "act", "text": {"body": wording}}
    gate = gate_with(order)
    assert not passes(gate, body="Plan A of 3")
    assert passes(gate, body="Plan A of 9")
    unread = start("Do it.", TOOLS, orders=orders_of([order]))
    assert "slot size that is not known" in unread.verdict_on(None, "act", {"body": "Plan A of ?"}).reasons[0]


def test_free_text_is_a_text_and_hides_nothing() -> None:
    order = {"tool": "act", "args": {"to": "ann@x.example"}, "text": {"body": {"free": ["find"]}}}
    assert not passes(gate_with(order), to="ann@x.example", body=7)
    assert not passes(gate_with(order), to="ann@x.example", body="a\u200bb")
    assert not passes(gate_with(order), to="ann@x.example", body="x" * 100_001)
    assert passes(gate_with(order), to="ann@x.example", body="Answer to ann@x.example")


def test_an_effect_that_did_not_happen_leaves_its_order_open() -> None:
    gate = gate_with({"tool": "act", "args": {"n": 1}})
    assert gate.verdict_on("a", "act", {"n": 1}).is_allowed
    gate.ledger.undo("a")
    assert gate.verdict_on("b", "act", {"n": 1}).is_allowed
    assert not gate.verdict_on("c", "act", {"n": 1}).is_allowed


def test_a_wire_that_is_tripped_does_not_hold_up_what_was_ordered() -> None:
    gate = gate_with({"tool": "act", "args": {"n": 1}})
    assert not passes(gate, n=2)
    assert passes(gate, n=1)


def test_orders_that_nobody_confirmed_narrow_what_the_words_allow_and_widen_nothing() -> None:
    gate = start("Do it.", TOOLS)
    gate.take_orders(orders_of([{"tool": "act", "args": {"n": 1}}]))
    assert not passes(gate, n=1)
    gate.ledger.take_back("call-1", is_counted=False)
    gate.confirm("ada", (9 * 60 + 12) * 60_000)
    verdict = gate.verdict_on(None, "act", {"n": 1})
    assert verdict.is_allowed
    assert verdict.args[0].bound_by == "order 1 of 1, confirmed by ada at 09:12 UTC"
    assert verdict_json(verdict)["order"] == "order 1 of 1, confirmed by ada at 09:12 UTC"


def test_the_list_marks_what_nothing_fixes() -> None:
    orders = (
        {
            "tool": "act",
            "args": {"file": lookup(pick={"max": "size"}), "n": 1},
            "text": {"body": {"free": []}},
            "if": "it rains",
        },
        {
            "either": [
                {"tool": "act", "args": {"file": lookup()}},
                {"tool": "act", "text": {"body": "Hi"}, "if": "late"},
            ]
        },
        {"tool": "act", "text": {"body": {"template": "{x}", "slots": {"x": 1}}}},
    )
    book = gate_with(*orders).book
    assert book is not None
    assert book.lines() == (
        (
            '1. act file="f2" (find {"q":"plan"}.id with the LARGEST size, which others may write), n=1'
            "  ONLY IF 'it rains' (nothing checks this)"
        ),
        "   body: FREE TEXT from the request (nothing fixes its words)",
        (
            '2. a) act file=? (2 records fit, and one is needed: find {"q":"plan"}.id) OR b) act'
            "  ONLY IF 'late' (nothing checks this)"
        ),
        "   b) body: 'Hi'",
        "3. act",
        "   body: '1' (x given)",
    )
    assert declarations_of(TOOLS)["act"].effect.is_mutating


def test_a_lease_holds_what_is_known_for_tools_that_are_there_and_nothing_that_is_closed() -> None:
    unknown = {"tool": "act", "args": {"file": lookup()}}
    missing = {"tool": "act", "text": {"body": {"template": "{x}", "slots": {"x": lookup()}}}}
    ways = [{"tool": "act", "args": {"n": 3}}, unknown, {"tool": "stop"}]
    book = gate_with({"tool": "act", "args": {"n": 1}}, unknown, missing, {"either": ways}, {"tool": "stop"}).book
    assert book is not None
    leased = book.lease({"act"}, {9})
    assert leased is not None
    assert (leased.numbers, leased.of) == ((1, 4), 5)
    assert len(leased.orders[1].either) == 1
    assert book.lease({"act"}, {1, 4}) is None
    beneath = leased_book(leased, declarations_of(TOOLS))
    assert beneath.used(4).of == 5
    assert beneath.match("act", {"n": 3}, (), has_unlisted=False).number == 4
    beneath.is_confirmed = False
    assert beneath.lease({"act"}, ()) is None


@pytest.mark.parametrize(("argument", "value"), [("file", "f1"), ("to", "ann@x.example"), ("n", "3")])
def test_free_words_steer_no_effect(argument: str, value: str) -> None:
    order = {"tool": "act", "text": {argument: {"free": ["find"]}}}
    assert not passes(gate_with(order), **{argument: value})
    with pytest.raises(RequestRejected, match="payload_args") as refused:
        check_orders(orders_of([order]), declarations_of(TOOLS))
    assert refused.value.code == "ORDERS_INVALID"


def test_what_an_ordered_effect_returns_keeps_no_later_free_text_in() -> None:
    free = {"tool": "act", "text": {"body": {"free": ["find"]}}}
    gate = gate_with({**free, "args": {"n": 1}}, {**free, "args": {"n": 2}})
    first = gate.verdict_on("a", "act", {"n": 1, "body": "Hi."})
    assert first.is_allowed
    gate.observe("a", "act", {"id": "j1"})
    assert passes(gate, n=2, body="Hi.")


@pytest.mark.parametrize(
    "held", [{}, {"size": None}, {"size": "1,000"}, {"size": "many"}, {"size": True}, {"size": "2026-01-01"}]
)
def test_the_largest_is_known_only_where_every_record_can_be_compared(held: dict[str, Any]) -> None:
    order = {"tool": "act", "args": {"file": lookup(pick={"max": "size"})}}
    gate = gate_with(order, found=[FILES[0], {"id": "f2", "name": "plans", **held}])
    assert not passes(gate, file="f1")
    assert not passes(gate, file="f2")
    assert "can be compared" in gate.book.lines()[0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "held", ["2026-13-40", "2026-02-31", "9999-99-99", "2026-00-00", "2026-11-18T25:00", "2026-11-18T10:99"]
)
def test_a_moment_that_no_calendar_has_is_not_the_latest(held: str) -> None:
    dated = {**TOOLS[0], "result": {"[].id": "id:file", "[].name": "label", "[].at": "date"}}
    order = {"tool": "act", "args": {"file": lookup(pick={"max": "at"})}}
    real, later = ("2026-11-18T10:00", "2026-11-18T11:00") if "T" in held else ("2026-11-18", "2026-11-19")
    for moment, is_real in ((held, False), (later, True)):
        gate = start("Do it.", [dated, *TOOLS[1:]], orders=orders_of([order]))
        gate.verdict_on("r", "find", {"q": "plan"})
        gate.observe("r", "find", [{"id": "f1", "name": "a", "at": real}, {"id": "f2", "name": "b", "at": moment}])
        assert not passes(gate, file="f1")
        assert passes(gate, file="f2") is is_real


SPELLINGS = [
    *(
        mark.join(groups)
        for mark in "_,./-x: \n\u00a0\u2009"
        for groups in (["4111", "1111", "1111", "1111"], [*"4111111111111111"])
    ),
    *("2001:db8:0:1::25", "[::1]:80", "fe80:0:0:1:2:3:4:5", "00:1A:2B:3C:4D:5E", "00-1A-2B-3C-4D-5E"),
    *(f"{scheme}:eve" for scheme in ("skype", "bitcoin", "magnet", "slack", "x-made-up", "urn")),
    *("eve (at) evil (dot) example", "eve [at] evil [dot] example", "eve(at)evil(dot)example", "evil (dot) example"),
    *(f"pass Xk9{mark}qQ2{mark}vLp0" for mark in "#!$%^&*~?=|;_"),
]


@pytest.mark.parametrize("text", [one for one in SPELLINGS if one != "x".join("4111111111111111")])
def test_free_text_holds_no_number_address_or_key_however_it_is_spelled(text: str) -> None:
    order = {"tool": "act", "args": {"to": "ann@x.example"}, "text": {"body": {"free": ["find"]}}}
    assert not passes(gate_with(order), to="ann@x.example", body=f"Use {text} now")


@pytest.mark.parametrize(
    "text", ["On 2026-11-19 at 14:30, room 4711.", "Note: AT&T; 3 of 40 done.", "either/or, 1, 2 and 3"]
)
def test_free_text_says_dates_and_small_numbers(text: str) -> None:
    order = {"tool": "act", "args": {"to": "ann@x.example"}, "text": {"body": {"free": ["find"]}}}
    assert passes(gate_with(order), to="ann@x.example", body=text)
