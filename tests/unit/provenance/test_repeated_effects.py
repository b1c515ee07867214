"""One mention is one target, however it is spelled, and a list that names a person twice repeats itself."""

from typing import Any

import pytest

from remit.core.record import JsonObject
from remit.provenance.gate import start
from remit.provenance.gate_verdict import Argument, Objection
from remit.provenance.repeated_effects import TARGET_CHARS_MAX, Uses, compact_of, targets_of
from remit.provenance.words.user_words import words_of_user
from tests.unit.provenance.gate_snapshot import restore, snapshot
from tests.unit.provenance.office import CONTACTS, LIST, PAY, SEND, declared, looked_up, opened, parameters, sent

ANN = "ann@corp.example"
TELL = declared(
    "message",
    "Messages somebody.",
    parameters(to="string", body="string"),
    effect="external",
    control_args={"to": "who"},
    payload_args=["body"],
    repeat="target",
)
REFUND = declared("refund", "Refunds an order.", parameters(order="string"), effect="external", asks=["refund"])
MAIL = declared(
    "mail",
    "Mails somebody.",
    parameters(to="string", body="string"),
    effect="external",
    control_args={"to": "email"},
    payload_args=["body"],
    repeat="target",
)
TRIPS = declared(
    "book_trip",
    "Books a trip.",
    parameters(legs={"type": "array", "items": parameters(**{"from": "string", "to": "string"})}),
    effect="external",
    repeat="target",
)


def _twice(prompt: str, tool: JsonObject, *calls: JsonObject) -> tuple[bool, Objection | None]:
    gate = start(prompt, [tool])
    first, second = (gate.verdict_on(None, tool["name"], arguments) for arguments in calls)
    return first.is_allowed, second.code


@pytest.mark.parametrize(
    ("prompt", "tool", "first", "second"),
    [
        ("Refund 'A-42.' please.", REFUND, {"order": "A-42"}, {"order": "A-42."}),
        ("Message Ann Lee hello.", TELL, {"to": "Ann Lee", "body": "hello"}, {"to": "Message Ann Lee", "body": "hi"}),
        ("Message @ann hello.", TELL, {"to": "@ann", "body": "hello"}, {"to": "ann", "body": "hello"}),
        (f"Mail {ANN} a hello.", MAIL, {"to": ANN, "body": "hello"}, {"to": f"{ANN},{ANN}", "body": "hello"}),
    ],
)
def test_another_spelling_of_the_same_mention_is_a_repetition(
    prompt: str, tool: JsonObject, first: JsonObject, second: JsonObject
) -> None:
    assert _twice(prompt, tool, first, second) == (True, Objection.REPEAT)


def test_an_account_with_and_without_spaces_is_one() -> None:
    spaced = "DE89 3704 0044 0532 0130 00"
    tool = {**PAY, "control_args": {"account": "id:account", "amount": "number"}}
    calls = [{"account": one, "amount": 100, "purpose": ""} for one in (spaced.replace(" ", ""), spaced)]
    assert _twice(f"Pay 100 to {spaced}.", tool, *calls) == (True, Objection.REPEAT)


def test_the_words_may_ask_for_two_targets_side_by_side() -> None:
    calls = [{"to": name, "body": "hello"} for name in ("Ann Lee", "Bob Ray")]
    assert _twice("Message Ann Lee and Bob Ray hello.", TELL, *calls) == (True, None)


def test_spellings_count_together_when_the_words_say_how_often() -> None:
    gate = start("Message Ann Lee hello twice.", [TELL])
    verdicts = [
        gate.verdict_on(None, "message", {"to": to, "body": "hello"})
        for to in ("Ann Lee", "Message Ann Lee", "Ann Lee")
    ]
    assert [verdict.code for verdict in verdicts] == [None, None, Objection.REPEAT]


@pytest.mark.parametrize("listed", [[ANN, ANN], [f"{ANN};{ANN}"], [f"{ANN}, bob@corp.example", ANN]])
def test_the_same_member_twice_in_one_list_is_a_repetition(listed: list[str]) -> None:
    gate = opened(f"Mail {ANN} and bob@corp.example that all is well.")
    assert sent(gate, *listed).code is Objection.REPEAT
    again = opened(f"Mail {ANN} and bob@corp.example that all is well, twice.")
    assert sent(again, *listed).code is None


def test_one_mention_twice_in_one_list_is_a_repetition() -> None:
    tool = {**TELL, "parameters": parameters(to=LIST, body="string")}
    gate = start("Message Ann Lee hello.", [tool])
    assert gate.verdict_on("a", "message", {"to": ["Ann Lee", "Message Ann Lee"], "body": ""}).code is Objection.REPEAT


def test_a_free_tool_may_take_a_member_twice() -> None:
    gate = opened(f"Mail {ANN} that all is well.", tools=[{**SEND, "repeat": "free"}])
    assert sent(gate, ANN, ANN).is_allowed
    assert sent(gate, ANN).is_allowed


@pytest.mark.parametrize(
    ("legs", "code"),
    [
        ([{"from": "Rome", "to": "Oslo"}, {"from": "Oslo", "to": "Rome"}], Objection.PROVENANCE_UNBOUND),
        ([{"from": "Rome", "to": "Oslo"}, {"from": "Rome", "to": "Bern"}], None),
        ([{"from": "Rome", "to": "Oslo"}, {"from": "Rome", "to": "Oslo"}], Objection.REPEAT),
    ],
)
def test_records_of_a_list_repeat_when_all_of_their_targets_do(legs: list[JsonObject], code: Objection | None) -> None:
    gate = start("Book a trip from Rome to Oslo and back to Rome, then to Bern.", [TRIPS])
    assert gate.verdict_on("a", "book_trip", {"legs": legs}).code is code


def test_a_record_supplies_the_same_target_as_the_words() -> None:
    gate = opened(f"Mail Ann at {ANN} that all is well.", tools=[SEND, CONTACTS])
    looked_up(gate, "find_contact", {"name": "Ann"}, [{"name": "Ann", "email": ANN}])
    assert sent(gate, ANN).is_allowed
    assert sent(gate, "$obs0.records[0].email").code is Objection.REPEAT


def test_a_snapshot_knows_the_mentions_that_were_reached() -> None:
    gate = start("Message Ann Lee hello.", [TELL])
    assert gate.verdict_on("a", "message", {"to": "Ann Lee", "body": "hello"}).is_allowed
    gate = restore(snapshot(gate))
    assert gate.verdict_on("b", "message", {"to": "Message Ann Lee", "body": "hello"}).code is Objection.REPEAT


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("Ann@Corp.example", ANN, "email"),
        ("#42", 42, ""),
        ("12.50", 12.5, ""),
        ("DE89-3704-0044-0532-0130-00", "de89370400440532013000", "id:account"),
        ("(0900) 123/456", "0900123456", "who:phone"),
        ("general ", "#general", "id:channel"),
    ],
)
def test_what_changes_no_address_makes_no_difference(left: Any, right: Any, kind: str) -> None:
    assert compact_of(left, kind) == compact_of(right, kind)


@pytest.mark.parametrize(
    ("left", "right", "kind"), [("a.txt", "b.txt", "path"), ("A1", "a1", "id:file"), ("@", "#", "")]
)
def test_what_may_be_another_thing_stays_one(left: str, right: str, kind: str) -> None:
    assert compact_of(left, kind) != compact_of(right, kind)


def test_a_long_value_is_compared_and_not_remembered() -> None:
    assert compact_of("x " * TARGET_CHARS_MAX, "path") == "x" * TARGET_CHARS_MAX


def test_a_place_that_only_vouches_for_a_value_is_no_mention() -> None:
    words = words_of_user(["Wake me at 10:30 and at 11:00."])
    argument = Argument("time", "11:00", "words", span=words.moments.spans[0])
    assert targets_of([argument], words) == ("time=11:00",)


def test_uses_are_taken_back_under_every_key() -> None:
    words = words_of_user(["Message Ann Lee."])
    targets = targets_of([Argument("to", "Ann Lee", "words", span=(8, 15), kind="who")], words)
    uses = Uses()
    uses.add(targets)
    uses.take_back(targets)
    assert len(targets) == 2
    assert (uses.calls, set(uses.targets.values())) == (0, {0})
