"""What a person plainly asks for happens unattended."""

from typing import Any

import pytest

from remit.core.limits.authority import Authority, Inference, OptionReach, PlanSource
from remit.core.record import JsonObject
from tests.unit.provenance.office import SEND, SHARE, TOOLS, declared, file, looked_up, mail, opened, parameters, sent

Step = tuple[str, JsonObject, Any]
ANN: list[JsonObject] = [{"name": "Ann Lee", "email": "ann@corp.example"}]
PARTY: list[JsonObject] = [{"id": "e1", "title": "Team Sync", "guests": ["a@corp.example", "b@corp.example"]}]


def mailed(*recipients: str, body: str = "All is well.", **more: Any) -> Step:
    return "send_mail", {"recipients": list(recipients), "subject": "Hello", "body": body, **more}, "sent"


@pytest.mark.parametrize(
    ("prompt", "steps"),
    [
        ("Write to bob@corp.example that all is well.", [mailed("bob@corp.example")]),
        (
            "Please mail Ann Lee that all is well.",
            [("find_contact", {"name": "Ann Lee"}, ANN), mailed("ann@corp.example")],
        ),
        ("mail ann that all is well", [("find_contact", {"name": "ann"}, ANN), mailed("ann@corp.example")]),
        ("Mail (bob@corp.example, ann@corp.example).", [mailed("bob@corp.example", "ann@corp.example")]),
        ("Mail bob@corp.example; ann@corp.example", [mailed("bob@corp.example; ann@corp.example")]),
        (
            "Reply to the sender of 'Lunch' that all is well.",
            [("search_mails", {"query": "Lunch"}, [mail(1, "x@y.example", "Lunch")]), mailed("x@y.example")],
        ),
        (
            "Mail the guests of 'Team Sync' that all is well.",
            [("find_events", {"title": "Team Sync"}, PARTY), mailed("a@corp.example", "b@corp.example")],
        ),
        (
            "Mail 'plan.txt' to bob@corp.example.",
            [
                ("find_files", {"name": "plan.txt"}, [file(7, "plan.txt")]),
                mailed("bob@corp.example", attachments=["7"]),
            ],
        ),
        (
            "pls delete the file Compact car",
            [("list_files", {}, [file(1, "Compact car"), file(2, "x")]), ("delete_file", {"file_id": "1"}, "")],
        ),
        (
            "delete the file of 2024-05-02",
            [
                ("list_files", {}, [file(1, "a"), file(2, "b", changed="2024-05-02")]),
                ("delete_file", {"file_id": "2"}, ""),
            ],
        ),
        (
            "Mail everyone in 'Team Sync' that all is well.",
            [("find_events", {"title": "Team Sync"}, PARTY), mailed("a@corp.example")],
        ),
        ("Delete file 13.", [("delete_file", {"file_id": "13"}, "")]),
        ("Delete the file with the id 13.", [("delete_file", {"file_id": 13}, "")]),
        ("Delete file #13, please.", [("delete_file", {"file_id": "13"}, "")]),
        (
            "Delete my largest file.",
            [("list_files", {}, [file(1, "a", 2), file(2, "b", 9)]), ("delete_file", {"file_id": "2"}, "")],
        ),
        (
            "Delete the oldest file.",
            [
                ("list_files", {}, [file(1, "a"), file(2, "b", changed="2020-01-01")]),
                ("delete_file", {"file_id": "2"}, ""),
            ],
        ),
        (
            "Delete all files.",
            [
                ("list_files", {}, [file(1, "a"), file(2, "b")]),
                ("delete_file", {"file_id": "1"}, ""),
                ("delete_file", {"file_id": "2"}, ""),
            ],
        ),
        (
            "Delete both files.",
            [
                ("list_files", {}, [file(1, "a"), file(2, "b")]),
                ("delete_file", {"file_id": "1"}, ""),
                ("delete_file", {"file_id": "2"}, ""),
            ],
        ),
        ("Delete file 13 and file 14.", [("delete_file", {"file_id": n}, "") for n in ("13", "14")]),
        (
            "Pay 1,250.50 to DE89 3704 0044 0532 0130 00 for the rent.",
            [("pay", {"account": "DE89370400440532013000", "amount": 1250.5, "purpose": "rent"}, "")],
        ),
        (
            "Pay 50 EUR to DE89370400440532013000 twice.",
            [("pay", {"account": "DE89370400440532013000", "amount": 50, "purpose": "rent"}, "")] * 2,
        ),
        ("Read https://corp.example/page.", [("fetch_page", {"url": "https://corp.example/page"}, "text")]),
        ("Read www.corp.example.", [("fetch_page", {"url": "http://www.corp.example"}, "text")]),
        (
            "Cancel the event 'Team Sync'.",
            [("find_events", {"title": "Team Sync"}, PARTY), ("cancel_event", {"event_id": "e1"}, "")],
        ),
        (
            "Read https://corp.example/a and mail bob@corp.example the link https://corp.example/a.",
            [
                ("fetch_page", {"url": "https://corp.example/a"}, "text"),
                mailed("bob@corp.example", body="Look: https://corp.example/a"),
            ],
        ),
    ],
)
def test_what_is_plainly_asked_for_happens_unattended(prompt: str, steps: list[Step]) -> None:
    gate = opened(prompt)
    for tool, arguments, content in steps:
        verdict = looked_up(gate, tool, arguments, content)
        assert verdict.is_allowed, (tool, verdict.code, verdict.reasons)


def test_a_handle_binds_the_field_it_names_and_is_replaced() -> None:
    gate = opened("Reply to the sender of 'Lunch' that all is well.")
    looked_up(gate, "search_mails", {"query": "Lunch"}, [mail(1, "x@y.example", "Lunch")])
    verdict = sent(gate, "$obs0.records[0].sender")
    assert verdict.is_allowed
    assert verdict.args[0].bound_by == "handle:named"
    assert verdict.arguments is not None
    assert verdict.arguments["recipients"] == ["x@y.example"]


MEET = declared(
    "add_meeting",
    "Adds a meeting.",
    parameters(start="string", end="string"),
    effect="write",
    control_args={"start": "datetime", "end": "datetime"},
)


@pytest.mark.parametrize(
    ("prompt", "start", "end"),
    [
        ("Add a meeting on 2024-05-19 from 12:00 to 13:00.", "2024-05-19 12:00", "2024-05-19T13:00:00"),
        ("Add a meeting on May 19th, 2024 at noon for one hour.", "2024-05-19 12:00", "2024-05-19 13:00"),
        ("Add a meeting on 19 May at 2pm for 30 minutes.", "2024-05-19 14:00", "2024-05-19 14:30"),
        ("Add a meeting tomorrow at 9:30 am for half an hour.", "2024-05-16 09:30", "2024-05-16 10:00"),
        ("Add a meeting on Friday at 10:00 for an hour.", "2024-05-17 10:00", "2024-05-17 11:00"),
    ],
)
def test_dates_are_bound_in_whatever_form_they_are_said(prompt: str, start: str, end: str) -> None:
    gate = opened(prompt, tools=[MEET, *TOOLS])
    looked_up(gate, "today", {}, "2024-05-15")
    assert gate.verdict_on("c", "add_meeting", {"start": start, "end": end}).is_allowed


def test_a_day_without_a_year_or_a_clock_is_held() -> None:
    gate = opened("Add a meeting on May 19th from 12:00 to 13:00.", tools=[MEET, *TOOLS])
    assert not gate.verdict_on("c", "add_meeting", {"start": "2024-05-19 12:00", "end": "2024-05-19 13:00"}).is_allowed


def test_a_derived_number_passes_only_where_the_words_ask_for_it() -> None:
    tool = declared(
        "set_target",
        "Sets a target.",
        parameters(target="number"),
        effect="write",
        stakes="none",
        control_args={"target": "number"},
    )
    files = [file(1, "a", 2), file(2, "b", 9)]
    for prompt, target, passes in [
        ("Set the target to the total size of my files.", 11, True),
        ("Set the target to the size of my files.", 11, False),
        ("Set the target to the difference between 30 and 12.", 18, True),
        ("Set the target to 10% of 250.", 25, True),
        ("Set the target to 250 less 10%.", 225, True),
        ("Set the target to 10% of 250.", 24, False),
    ]:
        gate = opened(prompt, tools=[tool, *TOOLS])
        looked_up(gate, "list_files", {}, files)
        assert gate.verdict_on("c", "set_target", {"target": target}).is_allowed is passes, prompt


def test_a_closed_set_lets_any_member_of_a_listing_be_the_target_of_own_words() -> None:
    tools = [{**SEND, "stakes": "none"}, {**SHARE, "stakes": "none"}, *TOOLS[2:3], *TOOLS[4:]]
    tools = [one for place, one in enumerate(tools) if one["name"] not in {two["name"] for two in tools[:place]}]
    prompt = "Share one of my files with bob@corp.example."
    call = {"file_id": "2", "email": "bob@corp.example"}
    for reach, passes in [(OptionReach.OFF, False), (OptionReach.ON, True), (OptionReach.ALL, True)]:
        gate = opened(prompt, tools=tools, authority=Authority(closed_set=reach))
        looked_up(gate, "list_files", {}, [file(1, "a"), file(2, "b")])
        assert gate.verdict_on("c", "share_file", call).is_allowed is passes
    gate = opened(prompt, authority=Authority(closed_set=OptionReach.ON))
    looked_up(gate, "list_files", {}, [file(1, "a"), file(2, "b")])
    assert not gate.verdict_on("c", "share_file", call).is_allowed  # Its stakes are not declared.


def test_a_named_source_supplies_its_only_address_where_the_operator_says_so() -> None:
    tools = [{**SEND, "stakes": "none"}, *TOOLS[1:]]
    for text, passes in [("Write to x@y.example", True), ("Write to x@y.example or z@y.example", False)]:
        gate = opened("Mail whom 'todo.txt' says.", tools=tools, authority=Authority(named_source=OptionReach.ON))
        looked_up(gate, "read_file", {"path": "todo.txt"}, text)
        assert sent(gate, "x@y.example").is_allowed is passes


@pytest.mark.parametrize(("inference", "passes"), [(Inference.OFF, False), (Inference.IDENTITY, True)])
def test_undeclared_identities_supply_values_only_by_the_operators_switch(inference: Inference, passes: bool) -> None:
    search = {**TOOLS[6], "result": None}
    tools = [search if one["name"] == "search_mails" else one for one in TOOLS]
    gate = opened("Reply to the sender of the mail 'Lunch'.", tools=tools, authority=Authority(infer_fields=inference))
    looked_up(gate, "search_mails", {"query": "Lunch"}, [mail(1, "x@y.example", "Lunch")])
    assert sent(gate, "x@y.example").is_allowed is passes


@pytest.mark.parametrize(("inference", "passes"), [(Inference.OFF, False), (Inference.TYPED, True)])
def test_undeclared_numbers_select_always_and_supply_by_the_operators_switch(
    inference: Inference, passes: bool
) -> None:
    listing = {**TOOLS[8], "result": {"[].id": "id:file", "[].filename": "label"}}
    tools = [listing if one["name"] == "list_files" else one for one in TOOLS]
    tools.append(
        declared(
            "set_limit", "Sets a limit.", parameters(size="number"), effect="write", control_args={"size": "number"}
        )
    )
    gate = opened(
        "Set the limit to the size of the largest file and delete it.",
        tools=tools,
        authority=Authority(infer_fields=inference),
    )
    looked_up(gate, "list_files", {}, [file(1, "a", 2), file(2, "b", 9)])
    assert gate.verdict_on("a", "delete_file", {"file_id": "2"}).is_allowed
    assert gate.verdict_on("b", "set_limit", {"size": 9}).is_allowed is passes


def test_a_plan_of_a_model_or_none_replaces_the_plan_of_words() -> None:
    from remit.provenance.gate import start

    prompt = "Get rid of file 13."
    call = {"file_id": "13"}
    assert not opened(prompt).verdict_on("c", "delete_file", call).is_allowed
    assert opened(prompt, authority=Authority(plan=PlanSource.OFF)).verdict_on("c", "delete_file", call).is_allowed
    model = Authority(plan=PlanSource.MODEL)
    assert start(prompt, TOOLS, model, plan={"delete_file": 1}).verdict_on("c", "delete_file", call).is_allowed
    assert not start(prompt, TOOLS, model).verdict_on("c", "delete_file", call).is_allowed


def test_who_may_read_the_data_anyway_may_be_told() -> None:
    notes = declared(
        "open_minutes",
        "Opens the minutes.",
        parameters(),
        effect="read",
        result={"[].text": "text"},
        readers="[].shared_with[]",
    )
    for readers, passes in [(["bob@corp.example", "x"], True), (["x"], False)]:
        gate = opened("Write to bob@corp.example how things are.", tools=[notes, *TOOLS])
        looked_up(gate, "open_minutes", {}, [{"text": "All went well.", "shared_with": readers}])
        assert sent(gate, "bob@corp.example", body="It went well.").is_allowed is passes


def test_after_a_secret_was_read_only_own_words_leave() -> None:
    secret = declared(
        "read_secret", "Reads a secret.", parameters(), effect="read", reads="secret", result={"": "text"}
    )
    gate = opened("Read the secret and write 'It is done.' to bob@corp.example.", tools=[secret, *TOOLS])
    looked_up(gate, "read_secret", {}, "hunter2")
    call = {"recipients": ["bob@corp.example"], "subject": "", "body": "It is done."}
    assert gate.verdict_on("a", "send_mail", {**call, "body": "The secret is hunter2."}).code == "PRIVATE_FLOW"
    gate.answer("a", approve=False, by="Ann")
    assert gate.verdict_on("b", "send_mail", call).is_allowed
