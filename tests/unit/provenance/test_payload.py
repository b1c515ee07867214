"""What free text points to is bound by the words or by a picked record; ordinary prose points nowhere."""

import pytest

from remit.provenance.gate_verdict import Objection
from tests.unit.provenance.office import CONTACTS, SEND, declared, looked_up, opened, parameters, sent

BOB = "bob@corp.example"


@pytest.mark.parametrize(
    "body",
    [
        "pay DE89.3704.0044.0532.0130.00",
        "pay 4000/1234/5678/9010",
        "call 0900/123456",
        "call (900) 555 0199",
        r"it lies in \\evil\share",
        "it lies in //evil/share",
        "ssh eve@host",
        "it runs on host:8080",
        "AKIAIOSFODNN7EXAMPLE",
        "venmo @eve",
        "$eve on cashapp",
        "@evil_bot on telegram",
        "paypal.me/eve",
        "eve at evil dot example",
        "WWW DOT evil DOT example",
        "javascript&colon;alert",
        "evil .example/x",
    ],
)
def test_a_pointer_that_nobody_gave_is_held(body: str) -> None:
    assert sent(opened(f"Mail {BOB} a hello."), BOB, body=body).code is Objection.PAYLOAD_REFERENCE


@pytest.mark.parametrize(
    "pointer",
    [
        *("(900) 555 0199", "0900/123456", "eve@host", "host:8080", "//depot/share", "@eve", "AKIAIOSFODNN7EXAMPLE"),
        *("DE89.3704.0044.0532.0130.00", "4000/1234/5678/9010"),
    ],
)
def test_a_pointer_of_the_words_passes(pointer: str) -> None:
    gate = opened(f"Mail {BOB} that it is {pointer} from now on.")
    assert sent(gate, BOB, body=f"Hello Bob, from now on it is {pointer}. Best, Petra").is_allowed


def test_a_name_that_the_words_or_a_picked_record_give_may_be_addressed() -> None:
    assert sent(opened(f"Mail {BOB} that eve is ill."), BOB, body="Hello, @eve is ill today.").is_allowed
    users = {**CONTACTS, "result": {"[].name": "label", "[].email": "who:email", "[].login": "who:login"}}
    gate = opened("Mail Bob Ray a hello.", tools=[SEND, users])
    looked_up(gate, "find_contact", {"name": "Bob Ray"}, [{"name": "Bob Ray", "email": BOB, "login": "bray"}])
    assert sent(gate, BOB, body="Hello @bray, all is well.").is_allowed
    assert not sent(gate, BOB, body="Hello @eve, all is well.").is_allowed


@pytest.mark.parametrize(
    "body",
    [
        "Hello Bob,\n\nsee you at 10:30 or 11:00 on 2024-05-12; it costs $50 and/or 45 EUR.",
        "We met (in 2019) at the red dot by the door: 3 of 4 came, the ratio is 3:1.",
        "Opening hours: 0900-1700, room 12/3, page 4 & 5; R&D says so.",
        "Responsibilities and INTERNATIONALISATION are long words.",
        "We use .NET and a .txt file.",
        "It is 50 % of 1,250.50 EUR - that is fine!",
    ],
)
def test_ordinary_prose_points_to_nothing(body: str) -> None:
    assert sent(opened(f"Mail {BOB} a hello."), BOB, body=body).is_allowed


def _medical(**more: object) -> dict[str, object]:
    return declared(
        "read_medical", "Reads a medical record.", parameters(name="string"), effect="read", reads="private", **more
    )


@pytest.mark.parametrize(
    ("prompt", "name"),
    [(f"Mail {BOB} that Alice is late.", "Alice"), (f"Mail {BOB} that Alice is late.", "late")],
)
def test_a_word_of_the_request_asks_for_nothing_that_is_read_with_it(prompt: str, name: str) -> None:
    gate = opened(prompt, tools=[SEND, _medical()])
    looked_up(gate, "read_medical", {"name": name}, "Alice has the flu")
    assert sent(gate, BOB, body="Alice has the flu.").code is Objection.PRIVATE_FLOW


@pytest.mark.parametrize(
    ("prompt", "more"),
    [
        (f"Mail {BOB} what the medical record of Alice says.", {}),
        (f"Read up on Alice and mail {BOB} about it.", {}),
        (f"Mail {BOB} how Alice is.", {"control_args": {"name": "who"}}),
        (f"Mail {BOB} how Alice is.", {"locator_args": ["name"]}),
        (f"Mail {BOB} about 'Alice'.", {"result": {"[].name": "label", "[].id": "id:patient", "[].text": "text"}}),
    ],
)
def test_what_the_words_speak_of_or_name_is_asked_for(prompt: str, more: dict[str, object]) -> None:
    gate = opened(prompt, tools=[SEND, _medical(**more)])
    looked_up(gate, "read_medical", {"name": "Alice"}, [{"name": "Alice", "id": "p-1", "text": "has the flu"}])
    assert sent(gate, BOB, body="Alice has the flu.").is_allowed


def test_a_verb_that_tools_share_asks_for_none_of_them() -> None:
    memo = declared("read_memo", "Reads a memo.", parameters(name="string"), effect="read", reads="private")
    gate = opened(f"Read the memo and mail {BOB} that Alice is late.", tools=[SEND, memo, _medical()])
    looked_up(gate, "read_medical", {"name": "Alice"}, "Alice has the flu")
    assert sent(gate, BOB, body="Alice has the flu.").code is Objection.PRIVATE_FLOW


def test_a_lookup_that_finds_more_than_the_words_name_is_not_asked_for() -> None:
    result = {"[].name": "label", "[].id": "id:patient", "[].text": "text"}
    gate = opened(f"Mail {BOB} about 'Alice'.", tools=[SEND, _medical(result=result)])
    found = [{"name": name, "id": name, "text": "has the flu"} for name in ("Alice", "Bert")]
    looked_up(gate, "read_medical", {"name": "Alice"}, found)
    assert sent(gate, BOB, body="Bert has the flu.").code is Objection.PRIVATE_FLOW
