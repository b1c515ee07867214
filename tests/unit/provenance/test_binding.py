"""What vouches for a single value, by its kind and its schema."""

from typing import Any

import pytest

from remit.core.record import JsonObject
from remit.provenance.gate_verdict import Argument, Objection
from tests.unit.provenance.office import CONTACTS, EVIL, TOOLS, declared, file, looked_up, opened, parameters


def bound(prompt: str, value: Any, *, kind: str = "", schema: Any = None, name: str = "thing") -> Argument:
    """What the gate says about one argument of a tool that the prompt asks for."""
    kinds = {name: kind} if kind else None
    tool = declared("do_thing", "Does.", parameters(**{name: schema or {}}), effect="write", control_args=kinds)
    return opened(prompt, tools=[tool, *TOOLS]).verdict_on("c", "do_thing", {name: value}).args[0]


@pytest.mark.parametrize(
    ("prompt", "value", "schema"),
    [
        ("Do it with high priority.", "high", {"enum": ["low", "high"]}),
        ("Do it, a Customer Request.", "customer_request", {"enum": ["customer_request"]}),
        ("Do it weekly.", "WEEKLY", {"enum": ["WEEKLY"]}),
        ("Do it.", "r", {"enum": ["r", "rw"], "default": "r"}),
        ("Do it.", 7, {"const": 7}),
        ("Do 12.5 of it.", 12.5, {}),
        ("Do 12 of it.", 12, {}),
        ("Do 12.50 of it.", "12.5", {}),
        ("Do it in 'New York'.", "New York", {}),
        ("Do it at 10:30.", "10:30", {}),
        ("Do it on 2024-05-01.", "2024-05-01", {"format": "date"}),
        ("Do it for 10115.", "10115", {}),
    ],
)
def test_a_value_that_the_words_or_the_schema_give_is_bound(prompt: str, value: Any, schema: JsonObject) -> None:
    assert bound(prompt, value, schema=schema).code is None


@pytest.mark.parametrize(
    ("prompt", "value", "schema"),
    [
        ("Do it with low priority.", "high", {"enum": ["low", "high"]}),
        ("Do it for all.", "all", {"enum": ["all", "one"]}),
        ("Do it.", 1, {"default": True}),
        ("Do it.", None, {"default": "x"}),
        ("Do it.", 12, {}),
        ("Do it.", "rw", {"enum": ["r", "rw"], "default": "r"}),
        ("Do it.", {"a": {}}, {}),
        ("Do it.", "2024-05-01", {}),
        ("Do it for 115 EUR.", "115", {}),
    ],
)
def test_a_value_that_nothing_gives_is_not_bound(prompt: str, value: Any, schema: JsonObject) -> None:
    assert bound(prompt, value, schema=schema).code is Objection.PROVENANCE_UNBOUND


@pytest.mark.parametrize(
    ("kind", "value", "is_bound"),
    [
        ("id:thing", 13, True),
        ("id:thing", 12.5, False),
        ("id:thing", 4, False),
        ("number", "abc", False),
        ("number", "13", True),
        ("id:thing", "12.5", False),
        ("who:user", "priya", False),
        ("who:user", "plain", False),
        ("channel", "general", True),
        ("email", "priya", False),
        ("any", "priya", False),
    ],
)
def test_the_kind_decides_how_a_value_is_matched(kind: str, value: Any, is_bound: bool) -> None:
    prompt = "Do thing 13 and 4 more, or 12.5, with priya in the channel general, a plain matter."
    assert (bound(prompt, value, kind=kind).code is None) is is_bound


def test_an_optional_argument_that_says_nothing_is_left_alone() -> None:
    tool = declared("do_thing", "Does.", {"properties": {"a": {}}}, effect="write")
    empties: list[Any] = [None, "", [], {}]
    for empty in empties:
        assert opened("Do it.", tools=[tool]).verdict_on("c", "do_thing", {"a": empty}).args[0].bound_by == "default"


def test_a_number_of_a_picked_record_is_bound_where_it_is_clear_which() -> None:
    tool = declared("set_size", "Sets.", parameters(size="number"), effect="write", control_args={"size": "number"})
    gate = opened("Set it to what 'plan.txt' has.", tools=[tool, *TOOLS])
    looked_up(gate, "find_files", {"name": "plan.txt"}, [file(7, "plan.txt", 42)])
    assert gate.verdict_on("c", "set_size", {"size": 42}).args[0].bound_by == "field:named"


def test_a_number_is_not_bound_where_two_fields_could_be_meant() -> None:
    tool = declared("set_it", "Sets.", parameters(value="number"), effect="write", control_args={"value": "number"})
    read = declared(
        "find_box", "Finds.", parameters(name="string"), effect="read", result={"w": "number", "h": "number"}
    )
    gate = opened("Set it to what 'Box' has.", tools=[tool, read])
    looked_up(gate, "find_box", {"name": "Box"}, {"w": 3, "h": 4})
    assert gate.verdict_on("c", "set_it", {"value": 3}).code is Objection.RECORD_AMBIGUOUS


def test_a_picked_record_vouches_for_a_reference_in_payload() -> None:
    gate = opened("Mail bob@corp.example the sender of 'Lunch'.")
    mails = [{"id": "1", "sender": "x@y.example", "subject": "Lunch", "body": "", "sent": "2024-05-01"}]
    looked_up(gate, "search_mails", {"query": "Lunch"}, mails)
    call = {"recipients": ["bob@corp.example"], "subject": "Re", "body": "It was x@y.example."}
    assert gate.verdict_on("c", "send_mail", call).is_allowed
    assert not gate.verdict_on("d", "send_mail", {**call, "body": "It was z@y.example."}).is_allowed


def test_payload_that_is_no_text_or_far_too_long_is_told_apart() -> None:
    gate = opened("Write to bob@corp.example.")
    call: JsonObject = {"recipients": ["bob@corp.example"], "subject": 7, "body": "Well."}
    assert gate.verdict_on("a", "send_mail", call).args[1].bound_by == "typed"
    long = gate.verdict_on("b", "send_mail", {**call, "body": "well " * 30_000})
    assert long.code is Objection.PAYLOAD_REFERENCE


def test_a_person_of_ones_own_directory_entry_is_meant_by_me() -> None:
    me = declared("whoami", "Tells.", parameters(), effect="read", directory=True, result={"email": "who:email"})
    for prompt, passes in [("Mail me a joke.", True), ("Mail a joke.", False)]:
        gate = opened(prompt, tools=[me, *TOOLS])
        looked_up(gate, "whoami", {}, {"email": "me@corp.example"})
        call = {"recipients": ["me@corp.example"], "subject": "", "body": "Knock, knock."}
        assert gate.verdict_on("c", "send_mail", call).is_allowed is passes


@pytest.mark.parametrize(
    ("prompt", "chosen"),
    [
        ("Book the hotel with the best rating.", "Ritz"),
        ("Book the highest-rated hotel.", "Ritz"),
        ("Book the cheapest hotel.", "Ibis"),
        ("Book the most expensive hotel.", "Ritz"),
        ("Book the hotel with the best price.", None),
        ("Book the best hotel.", None),
        ("Book the highest hotel.", None),
        ("Book a hotel at last week's price.", None),
        ("Book the cheapest car.", None),
        ("Book the two cheapest hotels.", "Ibis"),
        ("Book the most of it, hotel or not.", None),
    ],
)
def test_a_superlative_is_computed_by_the_gate_itself(prompt: str, chosen: str | None) -> None:
    book = declared("book", "Books.", parameters(hotel="string"), effect="write", control_args={"hotel": "id:hotel"})
    fields = {"[].name": "id:hotel", "[].price": "number", "[].rating": "number"}
    listing = declared("list_hotels", "Lists.", parameters(), effect="read", result=fields)
    hotels = [("Ritz", 900, 5), ("Ibis", 90, 3), ("Mercure", 150, 4)]
    for name, _, _ in hotels:
        gate = opened(prompt, tools=[book, listing])
        looked_up(gate, "list_hotels", {}, [{"name": n, "price": p, "rating": r} for n, p, r in hotels])
        expected = name == chosen or (name == "Mercure" and "two" in prompt)
        assert gate.verdict_on("c", "book", {"hotel": name}).is_allowed is expected


def test_a_value_that_is_missing_leaves_an_order_without_an_end() -> None:
    gate = opened("Delete the largest file.")
    looked_up(gate, "list_files", {}, [{"id": "1", "size": 3}, {"id": "2"}, {"id": "3", "size": 1}])
    assert not gate.verdict_on("c", "delete_file", {"file_id": "1"}).is_allowed


def test_both_means_two_and_no_more() -> None:
    gate = opened("Delete both files.")
    looked_up(gate, "list_files", {}, [file(n, f"f{n}") for n in range(3)])
    assert not gate.verdict_on("c", "delete_file", {"file_id": "1"}).is_allowed


PEOPLE = declared(
    "share_plan", "Shares the plan.", parameters(people={"type": "object"}), effect="external", asks=["share"]
)


@pytest.mark.parametrize(
    "people",
    [
        {EVIL: "$obs0.records[0].email"},
        {"Bob.Bob": "$obs0.records[0].email", "Bob": {"Bob": EVIL}},
        {"Bob": ["$obs0.records[0].email"], "Bob[0]": EVIL},
    ],
)
def test_a_handle_binds_neither_a_key_nor_a_value_at_another_place(people: dict[str, Any]) -> None:
    gate = opened("Share the plan with Bob.", tools=[PEOPLE, CONTACTS])
    looked_up(gate, "find_contact", {"name": "Bob"}, [{"name": "Bob", "email": "bob@corp.example"}])
    verdict = gate.verdict_on("c", "share_plan", {"people": people})
    assert verdict.code is Objection.PROVENANCE_UNBOUND
    assert EVIL in [one.value for one in verdict.args if one.code is not None]


def test_a_handle_binds_the_value_it_was_put_in_for() -> None:
    gate = opened("Share the plan with Bob.", tools=[PEOPLE, CONTACTS])
    looked_up(gate, "find_contact", {"name": "Bob"}, [{"name": "Bob", "email": "bob@corp.example"}])
    assert gate.verdict_on("c", "share_plan", {"people": {"Bob": "$obs0.records[0].email"}}).is_allowed
