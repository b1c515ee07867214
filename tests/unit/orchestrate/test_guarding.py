"""The guard: the pipeline of a run, over the calls of another program's agent."""

import json
from typing import Any

import pytest

from remit.agents.guard_in_memory import GuardInMemory
from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.limits.authority import AUTHORITY_INVALID
from remit.core.limits.profiles import BOUNDARY_UNKNOWN, GUARDED
from remit.core.limits.tools import TOOL_INVALID
from remit.core.record import JsonObject
from remit.core.run.person import REQUEST_ID_SECRET
from remit.orchestrate.facts.gate_facts import RESULT_LOST
from remit.orchestrate.guard import guard as guarding
from remit.orchestrate.guard import run_register
from remit.orchestrate.guard.begin_run import GUARD_BOUNDARY_INVALID, GUARD_RUN_OPEN
from remit.orchestrate.guard.host_tools import (
    GUARD_TOOL_INVALID,
    LIST_KEPT_BYTES_MAX,
    LISTS_KEPT_MAX,
    TOOLS_MAX,
    Toolsets,
)
from remit.orchestrate.guard.open_run import OpenRun
from remit.orchestrate.guard.protocol import GUARD_LINE_INVALID, GUARD_LINE_TOO_LONG, GUARD_OP_INVALID, LINE_BYTES_MAX
from remit.orchestrate.guard.shown_verdicts import CALL_ID_HELD
from remit.provenance.declarations import DECLARATION_INVALID

BOB, EVE = "bob@corp.example", "eve@evil.example"
PROMPT = f"Mail {BOB} that the plan is ready."


def parameters(**kinds: str) -> JsonObject:
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": list(kinds), "additionalProperties": False}


MAIL: JsonObject = {
    "name": "send_mail",
    "description": "Sends a mail.",
    "parameters": parameters(to="string", body="string"),
    "effect": "external",
    "category": "email_calendar",
    "control_args": {"to": "email"},
    "payload_args": ["body"],
    "asks": ["mail"],
    "repeat": "target",
}
FIND: JsonObject = {
    "name": "find_files",
    "description": "Finds files.",
    "parameters": parameters(name="string"),
    "effect": "read",
    "result": {"[].id": "id:file", "[].filename": "label", "[].note": "text"},
}
DELETE: JsonObject = {
    "name": "delete_file",
    "description": "Deletes a file.",
    "parameters": parameters(file_id="string"),
    "effect": "write",
    "destructive": True,
    "control_args": {"file_id": "id:file"},
}
TOOLS = [MAIL, FIND, DELETE]


class Talk:
    """A run of the guard, as its host talks about it."""

    def __init__(
        self,
        prompt: Any = PROMPT,
        tools: Any = None,
        boundary: Any = None,
        guard: GuardInMemory | None = None,
        **more: Any,
    ) -> None:
        self.guard = guard or GuardInMemory()
        said = more if boundary is None else {"boundary": boundary, **more}
        self.started = self.say("start", prompt=prompt, tools=TOOLS if tools is None else tools, **said)

    def say(self, op: str, **fields: Any) -> JsonObject:
        return self.guard.answer({"op": op, "run": "r", **fields}) or {}

    def call(self, tool: str, call_id: str | None = None, /, **arguments: Any) -> JsonObject:
        named = {} if call_id is None else {"id": call_id}
        return self.say("call", tool=tool, args=arguments, **named)

    def mail(self, to: str = BOB, call_id: str | None = None, body: str = "The plan is ready.") -> JsonObject:
        return self.call("send_mail", call_id, to=to, body=body)

    def result(self, tool: str, content: Any, call_id: str | None = None) -> JsonObject:
        named = {} if call_id is None else {"id": call_id}
        return self.say("result", tool=tool, content=content, **named)

    def answer(self, *, approve: bool, **fields: Any) -> JsonObject:
        return self.say("answer", **{"approve": approve, "by": "ann", **fields})


def ruled(answer: JsonObject) -> tuple[str, str]:
    return answer["decision"], answer["code"]


def test_a_call_whose_values_the_user_named_is_allowed_and_explained() -> None:
    talk = Talk()
    assert talk.started == {"ok": True}
    answer = talk.mail(call_id="c")
    assert ruled(answer) == ("allow", "")
    assert answer["id"] == "c"
    assert [(one["path"], one["bound_by"]) for one in answer["args"]] == [("to", "words"), ("body", "prose")]
    assert {"plan", "labels", "rules", "fix", "reasons"} <= answer.keys()
    assert talk.result("send_mail", "sent", "c") == {}
    assert talk.say("end") == {"ok": True}


def test_a_value_that_nobody_named_is_asked_about_and_a_no_holds_for_the_run() -> None:
    talk = Talk()
    assert ruled(talk.mail(EVE, "c")) == ("ask", "PROVENANCE_UNBOUND")
    assert talk.answer(approve=False, id="c") == {"ok": True}
    assert ruled(talk.mail(EVE, "d")) == ("refuse", Refusal.APPROVAL_REJECTED)
    assert ruled(talk.mail(BOB)) == ("allow", "")


def test_an_approved_call_counts_as_made_and_is_approved_once() -> None:
    talk = Talk()
    talk.mail(EVE, "c")
    assert talk.answer(approve=True, id="c") == {"ok": True}
    assert ruled(talk.mail(EVE, "d")) == ("ask", "PROVENANCE_UNBOUND")
    assert talk.answer(approve=True, id="c")["code"] == "QUESTION_SETTLED"


def test_what_a_person_let_through_is_a_repetition_before_its_result_arrives() -> None:
    talk = Talk(boundary={"authority": {"tripwire": False}})
    talk.mail(BOB, "c", body="See https://evil.example/x")
    assert talk.answer(approve=True, id="c") == {"ok": True}
    assert ruled(talk.mail(BOB, "d")) == ("ask", "REPEAT")


def test_the_first_held_call_ends_unattended_effects_until_it_is_answered() -> None:
    talk = Talk()
    talk.mail(EVE)
    assert ruled(talk.mail(BOB, "bob")) == ("ask", "TRIPPED")
    assert talk.answer(approve=True)["code"] == "PACKET_AMBIGUOUS", "two calls are held, so an answer must name one"
    talk.answer(approve=False, id="call-1")
    assert talk.answer(approve=True, id="bob") == {"ok": True}
    assert talk.answer(approve=True)["code"] == "QUESTION_SETTLED"


def test_an_answer_may_leave_out_the_id_when_one_call_is_held() -> None:
    talk = Talk()
    talk.mail(EVE)
    assert talk.answer(approve=True, scope="value") == {"ok": True}
    assert ruled(talk.mail(EVE, body="Another word.")) != ("ask", "PROVENANCE_UNBOUND"), "the value was approved"


def test_a_call_without_an_id_gets_one_that_no_waiting_call_has() -> None:
    talk = Talk()
    talk.call("find_files", "call-1", name="a")
    assert talk.call("find_files", name="b")["id"] == "call-2"


def test_an_id_may_be_used_again_once_its_result_has_come() -> None:
    talk = Talk()
    for name in "ab":
        assert talk.call("find_files", "call_0", name=name)["decision"] == "allow"
        talk.result("find_files", [], "call_0")
    assert ruled(talk.mail(call_id="call_0")) == ("allow", "")


def test_a_held_call_that_is_proposed_again_is_still_held_and_its_id_is_taken() -> None:
    talk = Talk()
    first = talk.mail(EVE, "c")
    assert talk.mail(EVE, "c") == first
    assert ruled(talk.mail(BOB, "c")) == ("refuse", CALL_ID_HELD)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("rm", {}, ErrorCode.TOOL_NOT_FOUND),
        ("send_mail", {"to": 5, "body": ""}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        ("send_mail", {"to": BOB, "body": "", "bcc": EVE}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        ("send_mail", [BOB], ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        ("send_mail", {"to": "\ud800", "body": ""}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        ("send_mail", {1: BOB}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
    ],
)
def test_what_is_not_registered_or_not_valid_is_refused_with_a_way_out(tool: str, arguments: Any, code: str) -> None:
    answer = Talk().say("call", tool=tool, args=arguments)
    assert ruled(answer) == ("refuse", code)
    assert answer["fix"]
    assert answer["reasons"]


def test_the_boundary_decides_which_tools_and_permissions_there_are() -> None:
    talk = Talk(boundary={"name": "narrow", "allowed_tools": ["send_mail"], "permissions": ["mail.send"]})
    answer = talk.call("find_files", name="plan")
    assert ruled(answer) == ("refuse", Refusal.PERMISSION_DENIED)
    assert "narrow" in answer["reasons"][0]
    needing = Talk(tools=[{**MAIL, "permissions": ["mail.send"]}])
    assert ruled(needing.mail()) == ("refuse", Refusal.PERMISSION_DENIED)
    held = Talk(tools=[{**MAIL, "permissions": ["mail.send"]}], boundary={"permissions": ["mail.send"]})
    assert ruled(held.mail()) == ("allow", "")


def test_calls_beyond_the_budget_are_refused_also_before_results_arrive() -> None:
    talk = Talk(boundary={"budget": {"tool_calls": 2}})
    assert [talk.call("find_files", name=name)["decision"] for name in "abc"] == ["allow", "allow", "refuse"]
    costly = Talk(tools=[{**FIND, "cost_microusd": 600}], boundary={"budget": {"inference_cost_microusd": 1_000}})
    assert [costly.call("find_files", name=name)["decision"] for name in "ab"] == ["allow", "refuse"]


def test_an_approval_is_judged_again_against_the_budget_and_changes_nothing_when_it_fails() -> None:
    talk = Talk(boundary={"budget": {"tool_calls": 1}})
    talk.mail(EVE, "c")
    assert talk.call("find_files", name="a")["decision"] == "allow"
    refused = talk.answer(approve=True, id="c")
    assert (refused["ok"], refused["code"]) == (False, Refusal.BUDGET_EXHAUSTED)
    assert talk.answer(approve=False, id="c") == {"ok": True}


def test_when_nobody_may_be_asked_any_more_what_would_be_asked_is_refused() -> None:
    talk = Talk(boundary={"budget": {"human_reviews": 1}})
    assert ruled(talk.mail(EVE, "c")) == ("ask", "PROVENANCE_UNBOUND")
    talk.answer(approve=False, id="c")
    assert ruled(talk.mail("mallory@evil.example", "d")) == ("refuse", Refusal.BUDGET_EXHAUSTED)
    assert talk.answer(approve=True, id="d")["code"] == "PACKET_UNKNOWN"
    assert ruled(talk.mail(BOB, "d")) == ("refuse", Refusal.BUDGET_EXHAUSTED), "the gate still holds the other one"
    assert ruled(talk.mail()) == ("refuse", Refusal.BUDGET_EXHAUSTED), "what the wire holds can no longer be asked"


def test_the_third_identical_call_is_a_repeat_until_something_changed() -> None:
    talk = Talk()
    for _ in range(2):
        assert talk.call("find_files", name="plan")["decision"] == "allow"
        talk.result("find_files", [])
    assert ruled(talk.call("find_files", name="plan")) == ("refuse", Refusal.REPEATED_CALL)
    talk.mail()
    talk.result("send_mail", "sent")
    assert talk.call("find_files", name="plan")["decision"] == "allow"


@pytest.mark.parametrize("boundary", ["standard", {"approval_effects": ["external"]}, {"budget": {"side_effects": 0}}])
def test_a_boundary_that_demands_a_person_asks_about_what_provenance_lets_through(boundary: Any) -> None:
    talk = Talk(boundary=boundary)
    assert ruled(talk.mail(call_id="c")) == ("ask", Ending.CONFIRM_REQUIRED)
    assert talk.answer(approve=True, id="c") == {"ok": True}
    assert talk.result("send_mail", "sent", "c") == {}
    assert talk.mail(EVE, "d")["decision"] == "ask"


def test_a_call_that_the_boundary_holds_trips_the_wire_and_counts_once_when_approved() -> None:
    twice = f"Mail {BOB} and {EVE} that the plan is ready. Then delete file 13."
    talk = Talk(twice, boundary={"approval_effects": ["external"]})
    assert ruled(talk.mail(BOB, "c")) == ("ask", Ending.CONFIRM_REQUIRED)
    assert ruled(talk.call("delete_file", "f", file_id="13")) == ("ask", "TRIPPED")
    talk.answer(approve=True, id="c")
    assert ruled(talk.mail(EVE, "d")) == ("ask", Ending.CONFIRM_REQUIRED), "one mail was made, not two"


def test_both_reasons_are_given_when_provenance_and_boundary_ask() -> None:
    answer = Talk(boundary={"approval_effects": ["external"]}).mail(EVE)
    assert ruled(answer) == ("ask", "PROVENANCE_UNBOUND")
    assert any("demands approval" in reason for reason in answer["reasons"])


def test_a_read_that_the_boundary_holds_trips_nothing_and_is_refused_after_a_no() -> None:
    talk = Talk(boundary={"approval_effects": ["read"]})
    assert ruled(talk.call("find_files", "f", name="plan")) == ("ask", Ending.CONFIRM_REQUIRED)
    assert ruled(talk.mail()) == ("allow", "")
    talk.answer(approve=False, id="f")
    assert ruled(talk.call("find_files", "g", name="plan")) == ("refuse", Refusal.APPROVAL_REJECTED)


def test_a_handle_is_judged_and_given_back_as_the_value_it_names() -> None:
    talk = Talk("Delete the file plan.txt.")
    talk.call("find_files", "f", name="plan.txt")
    talk.result("find_files", [{"id": "13", "filename": "plan.txt", "note": "x"}], "f")
    answer = talk.call("delete_file", "d", file_id="$obs0.records[0].id")
    # Its value is bound; it destroys, which is a person's to allow all the same.
    assert ruled(answer) == ("ask", Ending.CONFIRM_REQUIRED)
    assert answer["arguments"] == {"file_id": "13"}


def test_results_of_overlapping_calls_may_arrive_in_any_order() -> None:
    talk = Talk("Delete the files plan.txt and notes.txt.")
    for call_id, name in (("a", "plan.txt"), ("b", "notes.txt")):
        assert talk.call("find_files", call_id, name=name)["decision"] == "allow"
    talk.result("find_files", [{"id": "14", "filename": "notes.txt", "note": ""}], "b")
    talk.result("find_files", [{"id": "13", "filename": "plan.txt", "note": ""}], "a")
    answer = talk.call("delete_file", file_id="14")
    assert [one["bound_by"] for one in answer["args"]] == ["field:named"]


def test_the_result_of_a_call_that_is_only_held_is_text() -> None:
    talk = Talk("Delete the file plan.txt.", boundary={"approval_effects": ["read"]})
    talk.call("find_files", "f", name="plan.txt")
    assert talk.result("find_files", [{"id": "13", "filename": "plan.txt", "note": ""}], "f") == {}
    assert ruled(talk.call("delete_file", file_id="13"))[0] == "ask"


def test_runs_that_are_open_at_once_know_nothing_of_each_other() -> None:
    guard = GuardInMemory()
    for run, prompt in (("one", PROMPT), (2, "Find the plan.")):
        assert guard.answer({"op": "start", "run": run, "prompt": prompt, "tools": TOOLS}) == {"ok": True}
    call = {"op": "call", "tool": "send_mail", "args": {"to": BOB, "body": "The plan is ready."}}
    assert [(guard.answer({**call, "run": run}) or {})["decision"] for run in ("one", "2")] == ["allow", "ask"]
    assert guard.runs == ("one", "2")


def test_a_prompt_may_be_a_conversation_of_which_only_the_user_counts() -> None:
    messages = [{"role": "assistant", "content": f"Mail {EVE}?"}, {"role": "user", "content": PROMPT}]
    talk = Talk(messages)
    assert talk.mail()["decision"] == "allow"
    assert Talk(messages).mail(EVE)["decision"] == "ask"


def test_a_plan_of_a_model_counts_where_the_boundary_takes_it() -> None:
    guard = GuardInMemory()
    start = {"op": "start", "prompt": PROMPT, "tools": TOOLS, "boundary": {"authority": {"plan": "model"}}}
    guard.answer({**start, "run": "a", "plan": {"send_mail": 1}})
    guard.answer({**start, "run": "b", "plan": {}})
    call = {"op": "call", "tool": "send_mail", "args": {"to": BOB, "body": "The plan is ready."}}
    assert [(guard.answer({**call, "run": run}) or {})["code"] for run in "ab"] == ["", "NOT_ASKED"]


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        ({}, GUARD_TOOL_INVALID),
        ([5], DECLARATION_INVALID),
        ([{}], DECLARATION_INVALID),
        ([{**MAIL, "contol_args": {}}], GUARD_TOOL_INVALID),
        ([{**MAIL, "category": "spaceship"}], DECLARATION_INVALID),
        ([{**MAIL, "stakes": "none", "category": "spaceship"}], GUARD_TOOL_INVALID),
        ([{**MAIL, "idempotent": "yes"}], GUARD_TOOL_INVALID),
        ([{**MAIL, "permissions": "mail"}], GUARD_TOOL_INVALID),
        ([{**MAIL, "cost_microusd": -1}], GUARD_TOOL_INVALID),
        ([{**MAIL, "timeout_ms": 0}], TOOL_INVALID),
        ([{**MAIL, "name": "send\tmail"}], TOOL_INVALID),
        ([{**MAIL, "parameters": {"properties": {}}}], TOOL_INVALID),
        ([MAIL, MAIL], DECLARATION_INVALID),
        ([{"name": f"t{number}"} for number in range(TOOLS_MAX + 1)], GUARD_TOOL_INVALID),
        ([{**MAIL, "description": "\ud800"}], GUARD_TOOL_INVALID),
    ],
)
def test_tools_that_no_run_could_have_are_refused_by_name(tools: Any, code: str) -> None:
    talk = Talk(tools=tools)
    assert (talk.started["ok"], talk.started["code"]) == (False, code)
    assert talk.guard.runs == ()


def test_an_unknown_key_of_a_tool_is_named_with_those_that_are_known() -> None:
    message = Talk(tools=[{**MAIL, "contol_args": {}}]).started["message"]
    assert "'send_mail'" in message
    assert "'contol_args'" in message
    assert "control_args" in message


def test_what_a_tool_leaves_out_counts_as_the_worst() -> None:
    talk = Talk(tools=[{"name": "send_mail", "category": None}])
    assert talk.started == {"ok": True}
    assert talk.mail()["decision"] == "ask"
    assert ruled(
        Talk(tools=[{"name": "x", "parameters": {"type": "object", "properties": {"a": 5}}}]).call("x", a=1)
    ) == (
        "refuse",
        ErrorCode.CONSTRAINT_SCHEMA_INVALID,
    )


@pytest.mark.parametrize(
    ("boundary", "code"),
    [
        ("no_such", BOUNDARY_UNKNOWN),
        (5, GUARD_BOUNDARY_INVALID),
        ({"alowed_tools": []}, GUARD_BOUNDARY_INVALID),
        ({"name": ""}, GUARD_BOUNDARY_INVALID),
        ({"allowed_tools": "x"}, GUARD_BOUNDARY_INVALID),
        ({"permissions": [1]}, GUARD_BOUNDARY_INVALID),
        ({"approval_effects": ["explode"]}, GUARD_BOUNDARY_INVALID),
        ({"budget": 5}, GUARD_BOUNDARY_INVALID),
        ({"budget": {"patience": 5}}, GUARD_BOUNDARY_INVALID),
        ({"budget": {"tool_calls": True}}, GUARD_BOUNDARY_INVALID),
        ({"approval_wait_ms_max": -1}, GUARD_BOUNDARY_INVALID),
        ({"authority": {"magic": True}}, AUTHORITY_INVALID),
    ],
)
def test_a_boundary_that_says_what_nobody_knows_is_refused(boundary: Any, code: str) -> None:
    assert Talk(boundary=boundary).started["code"] == code


@pytest.mark.parametrize("boundary", [GUARDED.name, {}, {"name": "mine"}, "coding_assistant"])
def test_a_boundary_may_be_a_name_or_an_object_that_says_what_differs(boundary: Any) -> None:
    assert Talk(boundary=boundary).started == {"ok": True}


@pytest.mark.parametrize("key", ["run", "user", "tenant"])
def test_a_name_that_is_a_secret_is_answered_with_a_code(key: str) -> None:
    operation = {"op": "start", "run": "s", "prompt": "", "tools": [], key: "ghp" + "_" + "Ab1" * 12}
    answer = Talk().guard.answer(operation) or {}
    assert (answer["ok"], answer["code"]) == (False, REQUEST_ID_SECRET)
    assert "Ab1Ab1" not in str(answer["message"])


@pytest.mark.parametrize(
    "operation",
    [
        5,
        {},
        {"op": "dance", "run": "r"},
        {"op": ["start"], "run": "r"},
        {"op": "end"},
        {"op": "end", "run": ""},
        {"op": "end", "run": True},
        {"op": "end", "run": "x" * 300},
        {"op": "end", "run": "\ud800"},
        {"op": "end", "run": "r", "why": "done"},
        {"op": "start", "run": "s", "prompt": 5, "tools": []},
        {"op": "start", "run": "s", "prompt": [{"role": {1}}], "tools": []},
        {"op": "start", "run": "s", "prompt": "", "tools": [], "plan": {"a": -1}},
        {"op": "start", "run": "s", "prompt": "", "tools": [], "boundry": "standard"},
        {"op": "start", "run": "s", "prompt": ""},
        {"op": "call", "run": "r", "tool": 5, "args": {}},
        {"op": "call", "run": "r", "tool": "send_mail"},
        {"op": "call", "run": "r", "tool": "send_mail", "args": {}, "id": {}},
        {"op": "result", "run": "r", "content": ""},
        {"op": "answer", "run": "r", "id": "c", "approve": "yes", "by": "ann"},
        {"op": "answer", "run": "r", "id": "c", "approve": True, "by": "ann", "scope": "all"},
        {"op": "answer", "run": "r", "id": "c", "approve": True, "by": ""},
        {"op": "start", "run": "s", "prompt": "", "tools": [], "role": "king"},
        {"op": "start", "run": "s", "prompt": "", "tools": [], "user": ["ann"]},
        {"op": "start", "run": "s", "prompt": "", "tools": [], "tenant": ""},
        {"op": "start", "run": "s", "prompt": "", "tools": [], "at_ms": -1},
        {"op": "call", "run": "r", "tool": "send_mail", "args": {}, "at_ms": "now"},
        {"op": "result", "run": "r", "tool": "send_mail", "content": "", "at_ms": True},
        {"op": "answer", "run": "r", "id": "c", "approve": True, "by": "ann", "at_ms": 2**60},
    ],
)
def test_an_operation_that_cannot_be_used_is_answered_with_a_code(operation: Any) -> None:
    answer = Talk().guard.answer(operation) or {}
    assert (answer["ok"], answer["code"]) == (False, GUARD_OP_INVALID)
    assert answer["message"]
    json.dumps(answer)


def test_a_run_is_started_once_and_known_until_it_ends() -> None:
    talk = Talk()
    assert talk.say("start", prompt="", tools=[])["code"] == GUARD_RUN_OPEN
    assert talk.say("end") == {"ok": True}
    assert talk.mail()["code"] == run_register.GUARD_RUN_UNKNOWN
    assert talk.result("send_mail", "x") == {
        "ok": False,
        "code": run_register.GUARD_RUN_UNKNOWN,
        "message": f"run 'r' is not open; {guarding._NOT_AWAITED}",
        "op": "result",
        "run": "r",
    }


def test_runs_beyond_the_limit_are_refused_until_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_register, "RUNS_MAX", 1)
    talk = Talk()
    start = {"op": "start", "run": "s", "prompt": "", "tools": []}
    assert (talk.guard.answer(start) or {})["code"] == run_register.GUARD_RUNS_FULL
    talk.say("end")
    assert talk.guard.answer(start) == {"ok": True}


@pytest.mark.parametrize("limit", ["CALLS_MAX", "OPEN_MAX"])
def test_calls_beyond_the_limit_of_a_run_are_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarding, limit, 1)
    talk = Talk()
    assert talk.mail()["decision"] == "allow"
    assert talk.call("find_files", name="x")["code"] == guarding.GUARD_CALLS_FULL


@pytest.mark.parametrize("limit", ["RUN_BYTES_MAX", "BYTES_MAX"])
def test_bytes_beyond_the_limit_are_refused_and_given_back_at_the_end(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_register, limit, 10_000)
    talk = Talk()
    full = talk.call("find_files", name="x" * 10_000)
    assert (full["ok"], full["code"]) == (False, run_register.GUARD_BYTES_FULL)
    assert Talk("x" * 20_000, guard=talk.guard).started["code"] == GUARD_RUN_OPEN
    talk.say("end")
    assert Talk("x" * 20_000, guard=talk.guard).started["code"] == run_register.GUARD_BYTES_FULL
    assert Talk(guard=talk.guard).started == {"ok": True}


def test_a_run_whose_result_did_not_fit_does_nothing_unattended_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_register, "RUN_BYTES_MAX", 10_000)
    talk = Talk()
    talk.call("find_files", name="plan")
    assert talk.result("find_files", "x" * 10_000)["code"] == run_register.GUARD_BYTES_FULL
    assert ruled(talk.mail(call_id="c")) == ("ask", RESULT_LOST)
    assert talk.call("find_files", name="other")["decision"] == "allow", "a look-up on this machine harms no person"
    assert talk.answer(approve=True, id="c") == {"ok": True}


def test_a_result_that_is_no_json_is_lost_and_its_run_is_held() -> None:
    talk = Talk()
    assert talk.result("find_files", {1, 2})["code"] == GUARD_OP_INVALID
    assert ruled(talk.mail()) == ("ask", RESULT_LOST)


@pytest.mark.parametrize("wrong", [{"tool": 5}, {"id": {}}, {"at_ms": -1}, {"content": {1}}])
def test_a_result_of_which_something_cannot_be_used_is_lost(wrong: JsonObject) -> None:
    talk = Talk()
    assert talk.say("result", **{"tool": "find_files", "content": "x", **wrong})["code"] == GUARD_OP_INVALID
    assert ruled(talk.mail()) == ("ask", RESULT_LOST)


def test_a_result_that_names_no_tool_or_another_run_is_lost_where_it_belongs() -> None:
    talk = Talk()
    talk.guard.answer({"op": "result", "run": "s", "content": ""})
    assert ruled(talk.mail()) == ("allow", "")
    talk.guard.answer({"op": "result", "run": "r", "content": ""})
    assert ruled(talk.call("delete_file", file_id="13"))[0] == "ask"


def nested(levels: int) -> Any:
    return [] if levels == 0 else [nested(levels - 1)]


@pytest.mark.parametrize("content", ["[" * 50_000, "[" * 50_000 + "]" * 50_000, nested(150), [{"id": nested(100)}]])
def test_a_result_that_nests_deep_is_text_and_harms_nobody(content: Any) -> None:
    talk = Talk()
    talk.call("find_files", "f", name="plan")
    assert talk.result("find_files", content, "f") == {}
    assert talk.mail()["decision"] in ("allow", "ask")
    assert ruled(talk.say("call", tool="send_mail", args={"to": nested(500), "body": ""}))[0] == "refuse"


def test_what_others_write_into_a_result_cannot_get_it_lost() -> None:
    talk = Talk("Find the plan, then mail bob@corp.example the word done.")
    talk.call("find_files", "f", name="plan")
    beginning = b'{"op": "result", "run": "r", "id": "f", "tool": "find_files", "content": '
    for content in (
        b'[{"id": "13", "filename": "\\ud800"}]',
        b'[{"note": NaN}]',
        b'"a stray byte: \xff"',
        b'"a\tb\x00"',
    ):
        assert talk.guard.line(beginning + content + b"}") is None, content
    refused = talk.guard.line(b'{"op":"call","run":"r","tool":"send_mail","args":{"to":NaN}}') or {}
    assert (refused["code"], refused["op"], refused["run"]) == (GUARD_LINE_INVALID, "call", "r")
    assert talk.mail(body="done")["code"] != RESULT_LOST


@pytest.mark.parametrize(
    ("line", "is_lost"),
    [
        (b'{"op": "result", "run": "r", "content": "x', True),
        (b'{"op": "result", "run": "\\u00"', False),
        (b'{"op": "result", "run": "other", "content": "x', False),
        (b'{"op": "call", "run": "r", "args": ', False),
        (b"nonsense", False),
        (b"[1]", False),
        (b"\xff\xfe", False),
        (b"[" * 100_000, False),
    ],
)
def test_a_line_that_cannot_be_read_is_answered_and_may_have_been_a_result(line: bytes, is_lost: bool) -> None:
    talk = Talk()
    answer = talk.guard.line(line) or {}
    assert (answer["ok"], answer["code"]) == (False, GUARD_LINE_INVALID)
    assert (talk.mail()["code"] == RESULT_LOST) is is_lost


@pytest.mark.parametrize(
    ("beginning", "is_lost"),
    [
        (b'{"op":"result","run":"r","content":"x', True),
        (b'{"content":"x', True),
        (b'{"op":"result","run":"s"', False),
        (b'{"op":"call"', False),
    ],
)
def test_a_line_that_is_too_long_may_have_been_a_result(beginning: bytes, is_lost: bool) -> None:
    talk = Talk()
    answer = talk.guard.too_long(beginning)
    assert answer["code"] == GUARD_LINE_TOO_LONG
    assert str(LINE_BYTES_MAX) in answer["message"]
    assert (talk.mail()["code"] == RESULT_LOST) is is_lost


def test_a_run_that_met_a_bug_is_over_and_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    talk.guard.answer({"op": "start", "run": "s", "prompt": "", "tools": []})
    with monkeypatch.context() as broken:
        broken.setattr(OpenRun, "next_id", lambda _: 1 // 0)
        assert talk.mail()["code"] == guarding.GUARD_RUN_BROKEN
    assert talk.mail()["code"] == guarding.GUARD_RUN_BROKEN
    assert talk.guard.answer({"op": "end", "run": "s"}) == {"ok": True}
    assert talk.say("end") == {"ok": True}


def test_lists_of_tools_are_read_once_and_the_oldest_make_room() -> None:
    kept = Toolsets()
    first = kept.of(TOOLS)
    assert kept.of(json.loads(json.dumps(TOOLS))) is first
    for number in range(LISTS_KEPT_MAX):
        kept.of([{"name": f"t{number}"}])
    assert kept.of(TOOLS) is not first
    long = [{"name": "t", "description": "x" * LIST_KEPT_BYTES_MAX}]
    assert kept.of(long) is not kept.of(long)


@pytest.mark.parametrize("name", ["conversation.12", "a b", "mail/3.to", "*", "ä"])
def test_a_host_names_its_runs_as_it_likes(name: str) -> None:
    talk = Talk(run=name)
    assert talk.started == {"ok": True}
    assert talk.say("end", run=name).get("code") is None
