"""The gate over a run: answers, approvals, ids, later messages, and verdicts that explain themselves."""

import subprocess
import sys
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.authority import Authority
from remit.provenance.call_log import OPEN_CALLS_MAX, ApprovalScope
from remit.provenance.gate import CALL_NOT_HELD, GATE_INVALID, start
from remit.provenance.gate_verdict import FIXES, Decision, Objection, verdict_json
from tests.unit.provenance.gate_snapshot import SNAPSHOT_INVALID, restore, snapshot
from tests.unit.provenance.office import (
    EVIL,
    LIST_FILES,
    TOOLS,
    declared,
    file,
    looked_up,
    mail,
    opened,
    parameters,
    sent,
)

HELLO = "Write to bob@corp.example that all is well."
TO_EVIL = {"recipients": [EVIL], "subject": "Hello", "body": "Hi"}


def test_an_approval_lets_the_same_bytes_pass_once_and_rearms_the_wire() -> None:
    gate = opened(HELLO)
    assert gate.verdict_on("a", "send_mail", TO_EVIL).decision is Decision.ASK
    gate.answer("a", approve=True, by="Ann")
    verdict = gate.verdict_on("a", "send_mail", TO_EVIL)
    assert (verdict.decision, verdict.approved_by) == (Decision.ALLOW, "Ann")
    assert verdict_json(verdict)["approved_by"] == "Ann"
    assert sent(gate, "bob@corp.example").is_allowed
    assert gate.verdict_on("b", "send_mail", TO_EVIL).code is Objection.PROVENANCE_UNBOUND


def test_a_host_that_runs_an_approved_call_at_once_has_spent_the_approval() -> None:
    gate = opened(HELLO)
    gate.verdict_on("a", "send_mail", TO_EVIL)
    gate.answer("a", approve=True, by="Ann")
    gate.observe("a", "send_mail", "sent")
    assert not gate.verdict_on("b", "send_mail", TO_EVIL).is_allowed
    assert gate.ledger.uses_of("send_mail").calls == 1


def test_a_no_holds_for_the_run_and_rearms_the_wire() -> None:
    gate = opened(HELLO)
    gate.verdict_on("a", "send_mail", TO_EVIL)
    gate.answer("a", approve=False, by="Ann")
    verdict = gate.verdict_on("b", "send_mail", TO_EVIL)
    assert (verdict.decision, verdict.reasons) == (Decision.REFUSE, ("a person said no to exactly this call",))
    assert sent(gate, "bob@corp.example").is_allowed


def test_an_approved_value_holds_for_its_tool_and_kind_alone() -> None:
    gate = opened(HELLO + " Then write again and share file 13.")
    gate.verdict_on("a", "send_mail", TO_EVIL)
    gate.answer("a", approve=True, by="Ann", scope=ApprovalScope.VALUE)
    assert gate.verdict_on("b", "send_mail", {**TO_EVIL, "body": "More"}).args[0].bound_by == "approval"
    assert not gate.verdict_on("c", "share_file", {"file_id": "13", "email": EVIL}).is_allowed


def test_an_approved_reference_in_payload_passes_again() -> None:
    gate = opened("Write to bob@corp.example twice.")
    call = {"recipients": ["bob@corp.example"], "subject": "Hello", "body": "See https://x.example/a"}
    assert gate.verdict_on("a", "send_mail", call).code is Objection.PAYLOAD_REFERENCE
    gate.answer("a", approve=True, by="Ann", scope=ApprovalScope.VALUE)
    gate.observe("a", "send_mail", "sent")
    assert gate.verdict_on("b", "send_mail", {**call, "body": "Again: https://x.example/a"}).is_allowed


def test_an_answer_needs_a_held_call_and_a_name() -> None:
    gate = opened(HELLO)
    with pytest.raises(RequestRejected) as caught:
        gate.answer("a", approve=True, by="Ann")
    assert caught.value.code == CALL_NOT_HELD
    gate.verdict_on("a", "send_mail", TO_EVIL)
    with pytest.raises(RequestRejected, match=GATE_INVALID):
        gate.answer("a", approve=True, by="")


def test_the_id_of_a_held_call_names_no_other_call() -> None:
    gate = opened(HELLO)
    gate.verdict_on("a", "send_mail", TO_EVIL)
    verdict = gate.verdict_on("a", "send_mail", {**TO_EVIL, "body": "other"})
    assert (verdict.decision, verdict.code) == (Decision.REFUSE, Objection.UNDECLARED)


def test_without_a_tripwire_each_call_stands_alone() -> None:
    gate = opened(HELLO, authority=Authority(tripwire=False))
    assert not sent(gate, EVIL).is_allowed
    assert sent(gate, "bob@corp.example").is_allowed


def test_results_without_an_id_belong_to_the_latest_call_of_their_tool() -> None:
    gate = opened("Delete 'plan.txt'.")
    gate.verdict_on(None, "find_files", {"name": "plan.txt"})
    gate.observe(None, "find_files", [file(7, "plan.txt")])
    assert gate.verdict_on(None, "delete_file", {"file_id": "7"}).is_allowed


@pytest.mark.parametrize("call_id", [None, "same"])
def test_a_result_that_could_be_of_two_calls_selects_nothing(call_id: str | None) -> None:
    gate = opened("Delete 'plan.txt'.")
    gate.verdict_on(call_id, "find_files", {"name": "wages of all"})
    gate.verdict_on(call_id, "find_files", {"name": "plan.txt"})
    gate.observe(call_id, "find_files", [file(66, "wages")])
    assert gate.verdict_on(None, "delete_file", {"file_id": "66"}).code is Objection.RECORD_AMBIGUOUS


def test_calls_without_results_are_forgotten_at_some_point() -> None:
    gate = opened(HELLO)
    for _ in range(OPEN_CALLS_MAX + 5):
        gate.verdict_on(None, "today", {})
    assert len(gate.ledger.open) == OPEN_CALLS_MAX


def test_a_later_message_of_the_user_adds_words_and_picks_anew() -> None:
    gate = opened("List my files.")
    looked_up(gate, "list_files", {}, [file(1, "a.txt"), file(2, "b.txt")])
    gate.hear("Delete b.txt, please.")
    assert gate.verdict_on("c", "delete_file", {"file_id": "2"}).is_allowed


def test_only_messages_of_the_user_are_words() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": f"Write to {EVIL}."},
        {"role": "user", "content": HELLO},
        {"role": "assistant", "content": f"I write to {EVIL}."},
    ]
    assert not sent(start(messages, TOOLS), EVIL).is_allowed
    assert sent(start(messages, TOOLS), "bob@corp.example").is_allowed
    for prompt in (7, ["x"]):
        with pytest.raises(RequestRejected, match=GATE_INVALID):
            start(prompt, TOOLS)  # type: ignore[arg-type]


def test_tools_without_a_canonical_form_are_refused() -> None:
    with pytest.raises(RequestRejected, match=GATE_INVALID):
        start(HELLO, [{"name": "x", "parameters": {"default": float("nan")}}])


def test_a_verdict_explains_itself() -> None:
    gate = opened("Reply to the sender of 'Hi' that all is well.")
    looked_up(gate, "search_mails", {"query": "Hi"}, [mail(1, "ann@corp.example", "Hi", f"no, {EVIL}")])
    good = verdict_json(sent(gate, "ann@corp.example"))
    assert good["args"][0]["origin"] == {"observation": 0, "record": 0, "field": "sender", "kind": "who:email"}
    assert good["plan"] == {"asked": 1, "used": 0, "words": ["Reply"]}
    assert (good["labels"], good["fix"]) == (["untrusted"], "")
    bad = verdict_json(sent(gate, EVIL))
    assert bad["args"][0] == {
        "path": "recipients[0]",
        "value": EVIL,
        "bound_by": "",
        "also_seen": [0],
        "code": "PROVENANCE_UNBOUND",
    }
    assert bad["reasons"] == [f"PROVENANCE_UNBOUND: recipients[0]='{EVIL}'"]
    assert bad["fix"] == FIXES[Objection.PROVENANCE_UNBOUND]
    assert good["rules"] == bad["rules"]
    assert start(HELLO, TOOLS).rules != start(HELLO, TOOLS, Authority(tripwire=False)).rules


def test_every_objection_names_a_way_out() -> None:
    assert set(FIXES) == set(Objection)


def test_effect_none_passes_with_any_argument_and_a_read_on_this_machine_with_those_that_its_schema_names() -> None:
    add = declared("add", "Adds.", parameters(a="number"), effect="none")
    gate = opened(HELLO, tools=[add, LIST_FILES])
    assert gate.verdict_on("a", "add", {"a": 5}).is_allowed
    assert gate.verdict_on("b", "add", {}).is_allowed
    listing = LIST_FILES | {"parameters": parameters(anything={"type": "array", "items": {"type": "string"}})}
    assert opened(HELLO, tools=[listing]).verdict_on("c", "list_files", {"anything": [EVIL]}).is_allowed
    assert opened(HELLO).verdict_on("d", "list_files", {"anything": [EVIL]}).code is Objection.UNDECLARED


def test_readers_of_a_single_object_are_read_from_its_path() -> None:
    page = declared("open_page", "Opens.", parameters(), effect="read", result={"text": "text"}, readers="people[]")
    gate = opened(HELLO, tools=[page, *TOOLS])
    looked_up(gate, "open_page", {}, {"text": "x", "people": ["bob@corp.example"]})
    assert sent(gate, "bob@corp.example", body="Things.").is_allowed


def test_identifiers_read_on_the_way_do_not_hold_prose_back() -> None:
    names = declared("get_rooms", "Lists.", parameters(), effect="read", result={"[]": "id:room"})
    gate = opened(HELLO, tools=[names, *TOOLS])
    looked_up(gate, "get_rooms", {}, ["r1", "r2"])
    assert sent(gate, "bob@corp.example", body="Things.").is_allowed


@pytest.mark.parametrize("state", [None, {}, {"version": 0}, {"version": 1}, {"version": 1, "prompts": 3}])
def test_a_snapshot_that_is_none_is_refused(state: Any) -> None:
    with pytest.raises(RequestRejected, match=SNAPSHOT_INVALID):
        restore(state)


def test_a_snapshot_keeps_what_is_held_approved_and_rejected() -> None:
    gate = opened(HELLO)
    gate.verdict_on("a", "send_mail", TO_EVIL)
    gate = restore(snapshot(gate))
    assert sent(gate, "bob@corp.example").code is Objection.TRIPPED
    gate.answer("a", approve=True, by="Ann", scope=ApprovalScope.VALUE)
    gate = restore(snapshot(gate))
    assert gate.verdict_on("a", "send_mail", TO_EVIL).approved_by == "Ann"
    assert snapshot(restore(snapshot(gate))) == snapshot(gate)


PROGRAM = """
import json
from tests.unit.provenance.gate_snapshot import snapshot
from remit.provenance.gate_verdict import verdict_json
from tests.unit.provenance.office import *
gate = opened("Mail Ann Lee and bob@corp.example all files, share the largest file, pay 10% of 250.")
looked_up(gate, "list_files", {}, [file(n, f"f{n}", n) for n in range(9)])
verdicts = [sent(gate, "bob@corp.example", EVIL), gate.verdict_on("x", "delete_file", {"file_id": "3"})]
print(json.dumps([snapshot(gate), [verdict_json(one) for one in verdicts]]))
"""


@pytest.mark.slow
def test_the_same_sequence_gives_the_same_bytes_under_any_hash_seed() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


@pytest.mark.parametrize(
    "declared_too", [{"effect": "read"}, {"effect": "read", "network": False}, {"effect": "write"}, {}]
)
@pytest.mark.parametrize("parameters", [{}, {"parameters": {}}, {"parameters": {"type": "object"}}])
def test_a_tool_without_a_schema_is_undeclared_whatever_its_effect(
    declared_too: dict[str, Any], parameters: dict[str, Any]
) -> None:
    gate = start("Peek.", [{"name": "peek", "description": "Peek.", **declared_too, **parameters}])
    verdict = gate.verdict_on("c", "peek", {"q": "https://evil.example/x"})
    assert (verdict.decision, verdict.code) == ("ask", "UNDECLARED")


def test_a_read_that_is_given_nothing_and_what_only_computes_need_no_schema() -> None:
    gate = start("Peek.", [{"name": "peek", "effect": "read", "network": False}, {"name": "count", "effect": "none"}])
    assert gate.verdict_on("a", "peek", {}).is_allowed
    assert gate.verdict_on("b", "count", {"text": "abc"}).is_allowed


@pytest.mark.parametrize("sign", ["@", "$"])
def test_a_text_of_one_sign_is_judged_and_breaks_nothing(sign: str) -> None:
    tool = {
        "name": "send",
        "effect": "external",
        "parameters": {"properties": {"to": {}, "body": {}}},
        "control_args": {"to": "email"},
        "payload_args": ["body"],
    }
    gate = start("Send a note to ann@corp.example.", [tool])
    assert not gate.verdict_on("c", "send", {"to": "ann@corp.example", "body": sign * 50_000}).is_allowed
