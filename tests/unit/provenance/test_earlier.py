"""Conversations: what earlier exchanges may supply, that they ask for nothing, and what was read in them."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.provenance.gate import GATE_INVALID, Gate, start
from remit.provenance.gate_verdict import GateVerdict, Objection
from remit.provenance.words.earlier import EARLIER_CHARS_MAX
from tests.unit.provenance.gate_snapshot import restore, snapshot
from tests.unit.provenance.office import CONTACTS, LIST_MAIL, TOOLS, file, looked_up, mail, sent

ACCOUNT = "DE89370400440532013000"
OTHER = "DE02500105170137075030"
BOB, ANN = "bob@corp.example", "ann@corp.example"
# The same tools, where nothing is at stake.
CALM = [{**tool, "stakes": "none", "destructive": False, "category": None} for tool in TOOLS]


def talk(*said: str, read: tuple[str, ...] = (), tools: Any = None) -> Gate:
    """A gate in a conversation, of which the last message is this exchange."""
    messages = [message for text in said for message in (_by("user", text), _by("assistant", f"Done: {text}"))]
    return start(messages[:-1], CALM if tools is None else tools, read=read)


def _by(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def paid(gate: Gate, account: str, amount: float) -> GateVerdict:
    return gate.verdict_on(None, "pay", {"account": account, "amount": amount, "purpose": ""})


def test_an_effect_of_an_earlier_exchange_is_not_asked_for_again() -> None:
    gate = talk(f"Pay 40 to {ACCOUNT}.", "Thanks! What is my balance?")
    verdict = paid(gate, ACCOUNT, 40)
    assert verdict.code is Objection.NOT_ASKED
    assert [argument.bound_by for argument in verdict.args[:2]] == ["earlier", "earlier"]


def test_what_is_said_while_the_run_is_open_asks() -> None:
    gate = talk(f"Pay 40 to {ACCOUNT}.", "Thanks! What is my balance?")
    gate.hear("Pay the same again.")
    assert paid(gate, ACCOUNT, 40).is_allowed
    assert paid(gate, ACCOUNT, 40).code is Objection.REPEAT
    gate = talk(f"Pay 40 to {ACCOUNT}.", "Thanks! What is my balance?", tools=TOOLS)
    gate.hear("Pay the same again.")
    assert paid(gate, ACCOUNT, 40).code is Objection.PROVENANCE_UNBOUND


def test_an_earlier_message_supplies_a_value_where_this_exchange_names_nothing() -> None:
    verdict = paid(talk(f"My landlord has {ACCOUNT}.", "Pay my landlord 40 euros."), ACCOUNT, 40)
    assert verdict.is_allowed
    assert [argument.bound_by for argument in verdict.args[:2]] == ["earlier", "words"]


def test_an_earlier_message_supplies_a_value_where_both_name_the_same() -> None:
    said = (f"Bob is at {BOB}.", "Carl is at carl@corp.example.", "Mail Bob that all is well.")
    assert sent(talk(*said), BOB).is_allowed
    assert sent(talk(*said), "carl@corp.example").code is Objection.PROVENANCE_UNBOUND


@pytest.mark.parametrize(
    "now", [f"Pay 20 to {OTHER}.", "Pay 20 to Lena Reuter.", "Pay lena 20.", "Pay both lena and carl 20."]
)
def test_a_message_that_names_a_new_person_has_left_the_earlier_ones_behind(now: str) -> None:
    assert paid(talk(f"Pay 40 to {ACCOUNT}.", now), ACCOUNT, 20).code is Objection.PROVENANCE_UNBOUND


@pytest.mark.parametrize("now", ["Pay 20€ to the same account.", "Pay 20 to it at 9:30."])
def test_figures_of_a_sentence_name_nobody_new(now: str) -> None:
    assert paid(talk(f"Pay 40 to {ACCOUNT}.", now), ACCOUNT, 20).is_allowed


def test_who_names_nothing_means_the_last_message_that_does() -> None:
    gate = talk(f"Pay 40 to {OTHER}.", f"Pay 50 to {ACCOUNT}.", "Thanks!", "Pay the same again.")
    assert paid(gate, OTHER, 40).code is Objection.PROVENANCE_UNBOUND
    gate = talk(f"Pay 40 to {OTHER}.", f"Pay 50 to {ACCOUNT}.", "Thanks!", "Pay the same again.")
    assert paid(gate, ACCOUNT, 50).is_allowed


def test_how_often_and_which_end_are_for_this_exchange_to_say() -> None:
    files = [file(1, "a", 10), file(2, "b", 20)]
    for earlier in ("Show all files.", "Show the largest file."):
        gate = talk(f"{earlier} Delete all files.", "Delete a file.")
        looked_up(gate, "list_files", {}, files)
        assert gate.verdict_on(None, "delete_file", {"file_id": "2"}).code is Objection.RECORD_AMBIGUOUS


def test_a_switch_that_was_asked_for_before_stays_off_now() -> None:
    call = {"file_id": "13", "email": BOB, "public": True}
    gate = talk(f"Share file 12 with {BOB}, public.", f"Share file 13 with {BOB}.")
    assert gate.verdict_on("a", "share_file", call).code is Objection.PROVENANCE_UNBOUND
    assert gate.verdict_on("b", "share_file", {**call, "public": False}).code is Objection.TRIPPED


def test_a_record_is_named_by_this_exchange_first_and_by_earlier_ones_if_it_names_none() -> None:
    files = [file(1, "plan.txt"), file(2, "old.txt")]
    gate = talk("Where is plan.txt?", "Delete it.")
    looked_up(gate, "list_files", {}, files)
    assert gate.verdict_on(None, "delete_file", {"file_id": "1"}).is_allowed
    gate = talk("Show old.txt, I mean the file beside plan.txt.", "Delete old.txt.")
    looked_up(gate, "list_files", {}, files)
    assert gate.verdict_on(None, "delete_file", {"file_id": "2"}).is_allowed
    assert gate.verdict_on(None, "delete_file", {"file_id": "1"}).code is Objection.RECORD_AMBIGUOUS


def test_a_person_is_looked_up_by_an_earlier_name_only_where_this_exchange_turns_to_nobody() -> None:
    found = [{"name": "Ann Lee", "email": ANN}]
    gate = talk("Write to Ann Lee that I am late.", "Write to her that I am there.")
    looked_up(gate, "find_contact", {"name": "Ann Lee"}, found)
    assert sent(gate, ANN).is_allowed
    gate = talk("Write to Ann Lee and Dora Stone.", "Write to Dora Stone that I am there.")
    looked_up(gate, "find_contact", {"name": "Ann Lee"}, found)
    assert not sent(gate, ANN).is_allowed


def test_a_lookup_by_earlier_words_was_not_asked_for_now() -> None:
    reader = {**LIST_MAIL, "name": "read_letters", "parameters": {"properties": {"box": {"type": "string"}}}}
    tools = [reader, *TOOLS]
    gate = talk("Look into 'Archive' for me.", f"Write to {BOB} that all is fine.", tools=tools)
    looked_up(gate, "read_letters", {"box": "Archive"}, [mail(1, ANN, "Secret", "the code")])
    assert sent(gate, BOB, body="She wrote the code").code is Objection.PRIVATE_FLOW


@pytest.mark.parametrize("label", ["private", "secret"])
def test_what_was_read_before_leaves_only_in_the_users_own_words(label: str) -> None:
    said = f"Write to {BOB} that all is well."
    gate = talk("What do my mails say?", said, read=(label,))
    assert gate.grounds.labels == gate.has_read == (label,)
    assert sent(gate, BOB, body="The code is harbour").code is Objection.PRIVATE_FLOW
    gate = talk("What do my mails say?", said, read=(label,))
    assert gate.verdict_on(None, "send_mail", {"recipients": [BOB], "subject": "", "body": "all is well"}).is_allowed
    assert sent(talk("What do my mails say?", said, read=("untrusted",)), BOB, body="So it is").is_allowed


def test_earlier_words_are_no_words_of_this_exchange_when_private_things_were_read() -> None:
    gate = talk("The code is harbour.", f"Write to {BOB} that all is well.", read=("private",))
    call = {"recipients": [BOB], "subject": "", "body": "The code is harbour."}
    assert gate.verdict_on(None, "send_mail", call).code is Objection.PRIVATE_FLOW


def test_what_a_run_has_read_is_told_asked_for_or_not() -> None:
    gate = start("What do my mails say?", TOOLS)
    assert not gate.has_read
    looked_up(gate, "list_mails", {}, [mail(1, ANN, "Hello", "Hi")])
    assert gate.has_read == ("private", "untrusted")
    assert gate.grounds.labels == ("untrusted",)
    gate = start("Write to Ann.", [CONTACTS])
    looked_up(gate, "find_contact", {"name": "Ann"}, [{"name": "Ann", "email": ANN}])
    assert "private" not in gate.has_read


def test_an_unknown_label_is_refused_by_name() -> None:
    with pytest.raises(RequestRejected, match=GATE_INVALID) as caught:
        start("Hi", TOOLS, read=("public",))
    assert "'public'" in caught.value.message


def test_the_last_message_is_this_exchange_even_if_it_is_no_text() -> None:
    messages: list[dict[str, Any]] = [_by("user", f"Write to {BOB}."), {"role": "user", "content": [{"text": "Hi"}]}]
    assert sent(start(messages, CALM), BOB).code is Objection.NOT_ASKED


def test_what_was_pasted_into_an_earlier_message_swallows_no_later_one() -> None:
    assert sent(talk("Look:\n```\nunfinished", f"Write to {BOB}."), BOB).is_allowed
    assert sent(talk("On Monday Ann wrote:\nHi", f"Write to {BOB}."), BOB).is_allowed


def test_the_oldest_messages_are_forgotten_and_the_last_is_always_read() -> None:
    long = "word " * (EARLIER_CHARS_MAX // 5)
    gate = talk(f"My landlord has {ACCOUNT}.", long, "Pay my landlord 40 euros.")
    assert len(gate.grounds.prompts) == 2
    assert paid(gate, ACCOUNT, 40).code is Objection.PROVENANCE_UNBOUND


def test_a_conversation_survives_a_snapshot() -> None:
    gate = talk(f"My landlord has {ACCOUNT}.", "Pay my landlord 40 euros.", read=("private",))
    again = restore(snapshot(gate))
    assert snapshot(again) == snapshot(gate)
    assert again.has_read == ("private",)
    assert paid(again, ACCOUNT, 40).args == paid(gate, ACCOUNT, 40).args
