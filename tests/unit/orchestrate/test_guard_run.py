"""One guarded run: conditions, rates, people, time and endings, as a run of ours has them."""

from typing import Any

import pytest

from remit.agents.guard_in_memory import GuardInMemory
from remit.core.failure import ArrivalFault, Ending, ErrorCode, Refusal, RequestRejected
from remit.core.limits.authority import AUTHORITY_INVALID, Authority, PlanSource
from remit.core.limits.boundary import Condition
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import BOUNDARY_UNKNOWN, GUARDED, KNOWN
from remit.core.limits.tools import Effect
from remit.core.record import JsonObject, replace
from remit.core.run.person import PERSON_INVALID
from remit.kernel.authority.intake import GOAL_REFUSED
from remit.orchestrate.guard.begin_run import GUARD_BOUNDARY_INVALID, boundary_of_start
from remit.orchestrate.guard.shown_verdicts import FIXES, RUN_STOPPED
from tests.unit.orchestrate.test_guarding import BOB, EVE, FIND, MAIL, Talk, parameters, ruled

# Tuesday, the 14th of November 2023, at 22:13 UTC.
NIGHT_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
PAY: JsonObject = {
    "name": "pay",
    "description": "Pays money to an account.",
    "parameters": parameters(account="string"),
    "effect": "external",
    "category": "payment",
    "control_args": {"account": "id:account"},
    "asks": ["pay"],
}
DIARY: JsonObject = {"name": "diary", "parameters": parameters(), "effect": "read", "reads": "secret"}
PAYS = "Pay account DE-1."
FOUR_EYES: JsonObject = {"tools": {"four_eyes": ["payment"]}}


def condition(when: str, then: str = "refuse", message: str = "") -> JsonObject:
    return {"conditions": [{"name": "mine", "when": when, "then": then, "message": message}]}


def pays(boundary: Any = FOUR_EYES, **more: Any) -> Talk:
    talk = Talk(PAYS, [PAY], boundary, **more)
    assert talk.started == {"ok": True}, talk.started
    return talk


def test_four_eyes_are_two_people_and_the_call_is_held_until_both_said_yes() -> None:
    talk = pays()
    verdict = talk.call("pay", "p", account="DE-1")
    assert (*ruled(verdict), verdict["approvals_needed"]) == ("ask", Ending.CONFIRM_REQUIRED, 2)
    assert talk.answer(approve=True, by="Ann") == {"ok": True, "waiting_for": 1}
    assert talk.call("pay", "p", account="DE-1") == verdict, "it is still held"
    for same in ("Ann", " ann ", "ANN"):
        again = talk.answer(approve=True, by=same)
        assert (again["ok"], again["code"]) == (False, ArrivalFault.ALREADY_APPROVED)
    assert talk.answer(approve=True, by="bob") == {"ok": True}
    assert talk.answer(approve=True, by="cyd")["code"] == "QUESTION_SETTLED"
    assert talk.result("pay", "paid", "p") == {}


def test_an_approver_whose_name_is_invisible_approves_nothing() -> None:
    talk = pays()
    talk.call("pay", "p", account="DE-1")
    assert talk.answer(approve=True, by="\u200b")["code"] == PERSON_INVALID
    assert talk.answer(approve=False, by="ann") == {"ok": True}


def test_whom_a_guarded_run_is_for_does_not_approve_its_calls() -> None:
    talk = pays(user="cleo")
    talk.call("pay", "p", account="DE-1")
    for by, code in (("Cleo", ArrivalFault.SELF_APPROVAL), ("c1eo", ArrivalFault.NAME_CONFUSABLE)):
        assert talk.answer(approve=True, by=by)["code"] == code
    assert talk.answer(approve=True, by="ann") == {"ok": True, "waiting_for": 1}


def test_one_no_of_four_eyes_is_a_no() -> None:
    talk = pays()
    talk.call("pay", "p", account="DE-1")
    talk.answer(approve=True, by="ann")
    assert talk.answer(approve=False, by="bob") == {"ok": True}
    assert ruled(talk.call("pay", "q", account="DE-1")) == ("refuse", Refusal.APPROVAL_REJECTED)


def test_a_value_passes_for_the_run_only_if_everybody_said_so() -> None:
    for scopes, code in ((("value", "call"), "PROVENANCE_UNBOUND"), (("value", "value"), "REPEAT")):
        talk = pays()
        assert ruled(talk.call("pay", "p", account="DE-666")) == ("ask", "PROVENANCE_UNBOUND")
        for by, scope in zip(("ann", "bob"), scopes, strict=True):
            talk.answer(approve=True, by=by, scope=scope)
        talk.result("pay", "paid", "p")
        assert talk.call("pay", "q", account="DE-666")["code"] == code


def test_what_is_read_beyond_the_boundary_is_for_a_person() -> None:
    talk = Talk(tools=[DIARY, FIND], boundary={"observations": {"reads_max": "private"}})
    answer = talk.call("diary")
    assert ruled(answer) == ("ask", Ending.CONFIRM_REQUIRED)
    assert "secret" in answer["reasons"][0]
    assert ruled(talk.call("find_files", name="plan")) == ("allow", "")


@pytest.mark.parametrize(
    ("when", "to", "code"),
    [
        ('"secret" in labels && changes', BOB, Refusal.CONDITION_HELD),
        ('objection == "PROVENANCE_UNBOUND"', EVE, Refusal.CONDITION_HELD),
        ("changes && !bound", EVE, Refusal.CONDITION_HELD),
        ('changes && args.to == "' + BOB + '"', BOB, Refusal.CONDITION_HELD),
    ],
)
def test_conditions_see_what_the_gate_found(when: str, to: str, code: str) -> None:
    talk = Talk(f"Read the diary, then mail {BOB} that the plan is ready.", [MAIL, DIARY], condition(when))
    talk.call("diary", "d")
    talk.result("diary", "Dear diary!", "d")
    assert talk.mail(to)["code"] == code


def test_a_condition_over_what_is_bound_lets_pass_what_is() -> None:
    assert ruled(Talk(boundary=condition("changes && !bound")).mail()) == ("allow", "")


def test_a_refused_call_leaves_no_trace_in_the_gate() -> None:
    talk = Talk(boundary=condition('args.body == "no"'), tools=[MAIL])
    assert ruled(talk.mail(EVE, body="no")) == ("refuse", Refusal.CONDITION_HELD)
    assert ruled(talk.mail(BOB, body="no")) == ("refuse", Refusal.CONDITION_HELD)
    assert ruled(talk.mail(BOB)) == ("allow", ""), "no wire is tripped and nothing is a repetition"


def test_the_stricter_of_two_objections_speaks() -> None:
    rules = [
        {"name": "a", "when": "changes", "then": "ask"},
        {"name": "b", "when": f'changes && args.to == "{EVE}"', "then": "refuse"},
    ]
    talk = Talk(boundary={"conditions": rules})
    assert ruled(talk.mail(EVE)) == ("refuse", Refusal.CONDITION_HELD)
    assert ruled(talk.mail(BOB)) == ("ask", Ending.CONFIRM_REQUIRED)


def test_the_hour_and_the_day_are_those_of_the_operation() -> None:
    rule = condition("changes && (hour < 8 || hour >= 20)")
    assert ruled(Talk(boundary=rule, at_ms=NIGHT_MS).say("call", **_a_mail(), at_ms=NIGHT_MS))[0] == "refuse"
    assert (
        ruled(Talk(boundary=rule, at_ms=NIGHT_MS).say("call", **_a_mail(), at_ms=NIGHT_MS + 12 * HOUR_MS))[0] == "allow"
    )
    assert (
        ruled(Talk(boundary=condition("weekday == 2"), at_ms=NIGHT_MS).say("call", **_a_mail(), at_ms=0))[0] == "refuse"
    )


def _a_mail() -> JsonObject:
    return {"tool": "send_mail", "args": {"to": BOB, "body": "The plan is ready."}}


class SaidClock:
    """Tells the time that a test set."""

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return self.at_ms


def test_without_a_word_of_the_host_the_clock_counts_and_never_goes_back() -> None:
    clock = SaidClock(NIGHT_MS)
    talk = Talk(boundary=condition("changes && hour >= 20"), guard=GuardInMemory(clock=clock))
    clock.at_ms = NIGHT_MS + 12 * HOUR_MS
    assert ruled(talk.say("call", **_a_mail())) == ("allow", "")
    clock.at_ms = NIGHT_MS
    later = talk.call("delete_file", file_id="13")
    assert later["code"] != Refusal.CONDITION_HELD, "the clock was set back, and the run was not"


def test_rates_are_kept_over_time() -> None:
    talk = Talk(tools=[{**FIND, "rate": [1, 1_000]}], at_ms=5)
    find: JsonObject = {"tool": "find_files"}
    assert ruled(talk.say("call", **find, args={"name": "a"}, at_ms=5)) == ("allow", "")
    assert ruled(talk.say("call", **find, args={"name": "b"}, at_ms=900)) == ("refuse", Refusal.RATE_LIMITED)
    assert ruled(talk.say("call", **find, args={"name": "b"}, at_ms=1_100)) == ("allow", "")


def test_a_cheaper_tool_comes_first() -> None:
    talk = Talk(tools=[{**DIARY, "alternative": "find_files"}, FIND])
    refused = talk.call("diary")
    assert (*ruled(refused), refused["fix"]) == ("refuse", Refusal.LEAST_TOOL, FIXES[Refusal.LEAST_TOOL])
    talk.call("find_files", name="plan")
    assert ruled(talk.call("diary")) == ("allow", "")


def test_a_boundary_that_only_audits_allows_and_says_what_it_would_have_objected_to() -> None:
    talk = Talk(boundary={"mode": "audit", "approval_effects": ["external"], "allowed_tools": ["find_files"]})
    answer = talk.mail(EVE, "c")
    assert ruled(answer) == ("allow", "")
    assert [(one["decision"], one["code"]) for one in answer["noted"]] == [
        ("refuse", Refusal.PERMISSION_DENIED),
        ("ask", "PROVENANCE_UNBOUND"),
        ("ask", Ending.CONFIRM_REQUIRED),
    ]
    assert answer["reasons"] == [one["reason"] for one in answer["noted"]]
    assert talk.result("send_mail", "sent", "c") == {}
    assert "noted" not in talk.call("find_files", name="plan")


def test_what_keeps_a_run_whole_is_refused_in_an_audit_too() -> None:
    talk = Talk(boundary={"mode": "audit", "budget": {"tool_calls": 1}})
    talk.call("find_files", name="a")
    assert ruled(talk.call("find_files", name="b")) == ("refuse", Refusal.BUDGET_EXHAUSTED)


def test_a_request_that_the_boundary_does_not_want_is_turned_away_at_the_start() -> None:
    intake = {"intake": [{"name": "no_pay", "when": 'prompt.contains("Pay") || user == "eve"', "message": "not here"}]}
    talk = Talk(PAYS, [PAY], intake)
    assert (talk.started["ok"], talk.started["code"]) == (False, GOAL_REFUSED)
    assert "not here" in talk.started["message"]
    assert talk.guard.runs == ()
    assert Talk(boundary=intake, user="eve").started["code"] == GOAL_REFUSED
    assert Talk(boundary=intake, user="ann").started == {"ok": True}


@pytest.mark.parametrize(
    ("when", "more"),
    [
        ('user == "ann"', {"user": "ann"}),
        ('tenant == "7"', {"tenant": 7}),
        ('role == "reviewer"', {"role": "reviewer"}),
        ('user == "" && tenant == "" && role == "general"', {}),
    ],
)
def test_conditions_know_who_asks_and_for_whom(when: str, more: JsonObject) -> None:
    assert ruled(Talk(boundary=condition(when), **more).mail()) == ("refuse", Refusal.CONDITION_HELD)


def test_a_condition_that_nobody_could_decide_is_refused_at_the_start() -> None:
    assert Talk(boundary=condition("no_such_name > 1")).started["ok"] is False


def test_a_condition_that_stops_ends_the_run_for_every_later_call() -> None:
    talk = Talk(boundary=condition(f'changes && args.to == "{EVE}"', "stop", "she is no friend"))
    held = Talk(boundary=condition(f'changes && args.to == "{EVE}"', "stop"))
    stopped = talk.mail(EVE)
    assert (*ruled(stopped), stopped["stop"]) == ("refuse", Refusal.UNSAFE, True)
    assert stopped["fix"]
    later = talk.mail(BOB, "later")
    assert (*ruled(later), later["stop"], later["id"]) == ("refuse", RUN_STOPPED, True, "later")
    assert "she is no friend" in later["reasons"][0]
    assert ruled(talk.call("find_files", name="plan")) == ("refuse", RUN_STOPPED)
    assert talk.result("find_files", "x") == {}
    assert talk.say("end") == {"ok": True}
    assert "stop" not in held.mail(BOB)


def test_nothing_is_approved_any_more_once_a_run_was_stopped() -> None:
    talk = Talk(boundary=condition('tool == "delete_file"', "stop"))
    talk.mail(EVE, "c")
    talk.call("delete_file", file_id="13")
    refused = talk.answer(approve=True, id="c")
    assert (refused["ok"], refused["code"], refused["stop"]) == (False, RUN_STOPPED, True)
    assert talk.answer(approve=False, id="c") == {"ok": True}


def test_an_approval_that_runs_into_a_condition_that_stops_stops_the_run() -> None:
    talk = Talk(boundary=condition("changes && at_ms >= 50", "stop"), at_ms=0)
    talk.say("call", **{**_a_mail(), "args": {"to": EVE, "body": ""}}, id="c", at_ms=0)
    refused = talk.answer(approve=True, id="c", at_ms=60)
    assert (refused["code"], refused["stop"]) == (Refusal.UNSAFE, True)
    assert ruled(talk.call("find_files", name="plan")) == ("refuse", RUN_STOPPED)


def test_silence_is_a_no() -> None:
    talk = Talk(boundary={"approval_wait_ms_max": 1_000}, at_ms=0)
    talk.say("call", **{**_a_mail(), "args": {"to": EVE, "body": ""}}, id="c", at_ms=0)
    assert talk.answer(approve=True, id="c", at_ms=1_000)["code"] == "QUESTION_SETTLED"
    again = talk.say("call", **{**_a_mail(), "args": {"to": EVE, "body": ""}}, id="d", at_ms=1_001)
    assert ruled(again) == ("refuse", Refusal.APPROVAL_EXPIRED)
    assert again["reasons"] == ["the question about exactly this call expired without an answer, which is a no"]


def test_a_question_that_nobody_answers_goes_to_the_next_and_waits_again() -> None:
    boundary = {"approval_wait_ms_max": 1_000, "escalation": {"on_silence": ["operator"]}}
    talk = Talk(boundary=boundary, at_ms=0)
    talk.say("call", **{**_a_mail(), "args": {"to": EVE, "body": ""}}, id="c", at_ms=0)
    talk.say("call", tool="find_files", args={"name": "a"}, at_ms=1_500)
    assert talk.answer(approve=True, id="c", at_ms=2_000) == {"ok": True}
    assert talk.result("send_mail", "sent", "c") == {}


def test_an_error_is_text_and_a_failure_that_conditions_count() -> None:
    talk = Talk("Delete the file plan.txt.", boundary=condition("failures_after_change > 0"))
    talk.mail(BOB, "m")
    found = '[{"id": "13", "filename": "plan.txt"}]'
    talk.call("find_files", "f", name="plan.txt")
    assert talk.say("result", tool="find_files", id="f", content=found, error=True) == {}
    assert talk.call("delete_file", file_id="13")["code"] == "PROVENANCE_UNBOUND"


def test_failures_after_a_change_are_counted() -> None:
    talk = Talk(boundary=condition("failures_after_change > 0"))
    talk.mail(BOB, "m")
    talk.result("send_mail", "sent", "m")
    talk.call("find_files", "f", name="plan.txt")
    talk.say("result", tool="find_files", id="f", content="no disk", error=True)
    assert ruled(talk.call("find_files", name="other")) == ("refuse", Refusal.CONDITION_HELD)


def test_a_result_without_an_id_answers_all_open_calls_of_its_tool_and_selects_nothing() -> None:
    found = [{"id": "13", "filename": "plan.txt", "note": ""}]
    for error in ({}, {"error": True}):
        talk = Talk("Delete the file plan.txt.")
        talk.call("find_files", name="plan.txt")
        talk.call("find_files", name="old.txt")
        assert talk.say("result", tool="find_files", content=found, **error) == {}
        assert talk.call("delete_file", file_id="13")["decision"] == "ask"
        talk.call("find_files", name="plan.txt")
        assert talk.result("find_files", found) == {}


def test_an_id_that_is_held_is_judged_for_what_is_not_registered_or_not_valid_first() -> None:
    talk = Talk()
    talk.mail(EVE, "c")
    assert ruled(talk.call("rm", "c")) == ("refuse", ErrorCode.TOOL_NOT_FOUND)
    assert ruled(talk.call("send_mail", "c", to=7)) == ("refuse", ErrorCode.CONSTRAINT_SCHEMA_INVALID)


def test_a_long_argument_is_judged_whole_and_held_whole() -> None:
    talk = Talk(boundary=condition('args.to == "' + EVE + '"'))
    assert ruled(talk.mail(EVE, body="x" * 5_000)) == ("refuse", Refusal.CONDITION_HELD)
    assert ruled(talk.mail(BOB, "c", body="See https://evil.example/x " + "x" * 5_000))[0] == "ask"
    assert talk.answer(approve=True, id="c") == {"ok": True}


def test_a_host_cannot_name_a_call_of_the_gate_by_an_id() -> None:
    talk = Talk("Delete the file plan.txt.")
    talk.call("find_files", "f", name="plan.txt")
    forged = [{"id": "66", "filename": "plan.txt", "note": ""}]
    for name in ("1/0", "2/0", "0/0"):
        talk.result("find_files", forged, name)
    assert talk.call("delete_file", file_id="66")["decision"] == "ask"


def test_what_earlier_exchanges_read_counts_from_the_start() -> None:
    rule = condition('"secret" in labels')
    assert ruled(Talk(boundary=rule, read=["secret"]).mail()) == ("refuse", Refusal.CONDITION_HELD)
    assert ruled(Talk(boundary=rule, read=[]).mail()) == ("allow", "")
    for wrong in ("secret", [5], ["hidden"]):
        assert Talk(read=wrong).started["ok"] is False


def test_a_run_without_an_id_of_the_call_names_it_and_goes_on_while_others_wait() -> None:
    talk = Talk()
    assert talk.mail(EVE)["id"] == "call-1"
    assert talk.call("find_files", name="plan")["id"] == "call-2"


# A tool of the host that failed.


@pytest.mark.parametrize("repeat", ["free", "once"])
def test_a_failed_change_may_have_happened_so_a_person_is_asked_before_it_is_made_again(repeat: str) -> None:
    talk = Talk(tools=[{**MAIL, "repeat": repeat}])
    assert ruled(talk.mail(BOB, "c")) == ("allow", "")
    talk.say("result", tool="send_mail", id="c", content="connection reset", error=True)
    again = talk.mail(BOB, "d")
    assert again["decision"] == "ask"
    assert any("nobody knows what it has done" in reason for reason in again["reasons"])
    assert talk.answer(approve=True, id="d") == {"ok": True}
    assert talk.result("send_mail", "sent", "d") == {}


def test_a_failed_change_that_did_nothing_may_be_made_again() -> None:
    talk = Talk(tools=[{**MAIL, "repeat": "free"}])
    talk.mail(BOB, "c")
    talk.say("result", tool="send_mail", id="c", content="mailbox is locked", error=True, not_done=True)
    assert ruled(talk.mail(BOB, "d")) == ("allow", "")


def test_a_tool_that_takes_keys_may_be_called_again_after_a_failure() -> None:
    talk = Talk(tools=[{**MAIL, "idempotent": True, "repeat": "free"}])
    talk.mail(BOB, "c")
    talk.say("result", tool="send_mail", id="c", content="connection reset", error=True)
    assert ruled(talk.mail(BOB, "d")) == ("allow", "")


def test_a_failed_read_is_simply_read_again() -> None:
    talk = Talk()
    talk.call("find_files", "f", name="plan.txt")
    talk.say("result", tool="find_files", id="f", content="no disk", error=True)
    assert talk.call("find_files", "g", name="plan.txt")["decision"] == "allow"


def test_a_run_that_brings_no_boundary_is_guarded() -> None:
    assert boundary_of_start(None) == boundary_of_start({}) == replace(GUARDED, authority=Authority())


@pytest.mark.parametrize("name", list(KNOWN))
def test_a_boundary_of_the_house_is_known_by_name_and_brings_its_gate(name: str) -> None:
    known = KNOWN[name]
    assert boundary_of_start(name) == replace(known, authority=known.authority or Authority())


def test_an_object_says_how_a_run_differs_from_the_guarded_one() -> None:
    said = {
        "name": "mine",
        "allowed_tools": ["look"],
        "approval_effects": ["write"],
        "permissions": ["p"],
        "budget": {"tool_calls": 3},
        "approval_wait_ms_max": 5,
        "authority": {"plan": "model"},
    }
    assert boundary_of_start(said) == replace(
        GUARDED,
        name="mine",
        allowed_tools=("look",),
        approval_effects=(Effect.WRITE,),
        permissions=("p",),
        budget=replace(GUARDED.budget, tool_calls=3),
        approval_wait_ms_max=5,
        authority=Authority(plan=PlanSource.MODEL),
    )


def test_null_counts_as_absent() -> None:
    said = dict.fromkeys(("name", "allowed_tools", "approval_effects", "permissions", "budget", "authority"))
    assert boundary_of_start(said) == boundary_of_start(None)


def test_the_keys_of_a_file_may_be_used_as_well() -> None:
    said = {"tools": {"allowed": ["look"]}, "conditions": [{"name": "c", "when": "changes"}]}
    assert boundary_of_start(said).allowed_tools == ("look",)
    assert boundary_of_start(said).conditions == (Condition("c", "changes"),)
    assert boundary_of_start({"extends": "standard", "budget": {"steps": 2}}).budget == Budget(steps=2)


@pytest.mark.parametrize(
    ("said", "code", "key"),
    [
        ("nobody", BOUNDARY_UNKNOWN, ""),
        (5, GUARD_BOUNDARY_INVALID, "boundary"),
        ({"allowed_tools": "look"}, GUARD_BOUNDARY_INVALID, "allowed_tools"),
        ({"approval_wait_ms_max": -1}, GUARD_BOUNDARY_INVALID, "approval_wait_ms_max"),
        ({"permissions": [], "tools": {"permissions": []}}, GUARD_BOUNDARY_INVALID, "tools.permissions"),
        ({"conditions": [{"name": "c", "when": "moon"}]}, GUARD_BOUNDARY_INVALID, "conditions[0].when"),
        ({"authority": "off"}, AUTHORITY_INVALID, "authority"),
        ({"authority": {"tripwire": 5}}, AUTHORITY_INVALID, "tripwire"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_key(said: Any, code: str, key: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        boundary_of_start(said)
    assert (caught.value.code, caught.value.details.get("key", "")) == (code, key)
