"""What outcomes leave behind for conditions: flags that are raised and lowered, purchases, denials, and what stops at once."""

import pytest

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal.arrivals import ModelAnswered, ToolFailed, ToolReturned
from remit.core.journal.commands import CallModel, CallTool
from remit.core.journal.rulings import CallNoted, CallSettled, RunEnded
from remit.core.limits.boundary import At, Boundary, BoundaryMode, Condition, Then
from remit.core.limits.budget import Budget
from remit.core.limits.tool_trust import Trust
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.kernel.authority.call_flags import (
    concerns_of,
    declares_tests,
    flags_now,
    names_people,
    people_in,
    purchased_so_far,
)
from remit.kernel.authority.conditions import CONDITIONS_INVALID, check_conditions
from tests.simulation.scenarios import PARAMETERS
from tests.unit.kernel.builders import Run, lawful, manifest_of, wants

CHANGE = ToolDefinition("change", "", PARAMETERS, effect=Effect.WRITE)
TESTS = ToolDefinition("suite", "", PARAMETERS, effect=Effect.NONE, flags=(("exit_code", "tests_failed"),))
LOOK = ToolDefinition("look", "", PARAMETERS, effect=Effect.READ, network=False, flags=(("risk", "vendor_risk"),))
BUY = ToolDefinition("buy", "", PARAMETERS, effect=Effect.EXTERNAL, control_args=(("n", "money"),))
TOOLS = (CHANGE, TESTS, LOOK, BUY)
FREE = Boundary("free", approval_effects=(), approval_categories=(), budget=Budget(side_effects=9))


def run_of(*conditions: Condition, mode: BoundaryMode = BoundaryMode.ENFORCE) -> Run:
    return Run(manifest_of(boundary=replace(FREE, conditions=conditions, mode=mode), tools=TOOLS))


def returned(run: Run, tool: str, *flags: str) -> None:
    """The model calls a tool, which returns and raises these flags."""
    run.proposes(wants(tool, len(run.state.calls.made)))
    if not run.open(CallTool):
        run.approves()
    (command,) = run.open(CallTool)
    run.take(ToolReturned(command.id, "{}", b"e" * 32, flags=flags))


def failed(run: Run, tool: str, *flags: str) -> None:
    run.proposes(wants(tool, len(run.state.calls.made)))
    (command,) = run.open(CallTool)
    run.take(ToolFailed(command.id, ErrorCode.TOOL_EXECUTION_FAILED, "broke", b"e" * 32, flags=flags))


def test_a_flag_stays_up_and_names_the_tool_that_raised_it_first() -> None:
    run = run_of()
    returned(run, "look", "vendor_risk")
    returned(run, "look")
    returned(run, "change", "vendor_risk")
    assert lawful(run).state.calls.flags == {"vendor_risk": "look"}
    assert [one.raised for one in run.all(CallSettled)] == [("vendor_risk",), (), ("vendor_risk",)]


def test_tests_count_once_something_was_changed_and_the_latest_run_decides() -> None:
    run = run_of()
    returned(run, "suite", "tests_failed")
    assert run.state.calls.flags == {}, "nothing was changed before"
    returned(run, "change")
    returned(run, "suite", "tests_failed", "slow")
    assert run.state.calls.flags == {"tests_failed": "suite", "slow": "suite"}
    returned(run, "suite")
    assert run.state.calls.flags == {"slow": "suite"}
    failed(run, "suite")
    assert "tests_failed" in run.state.calls.flags


def test_a_tool_of_the_sandbox_that_is_called_so_is_taken_for_a_test_run() -> None:
    named = replace(TESTS, name="run_tests", category=ToolCategory.SANDBOX, flags=())
    assert declares_tests(named)
    assert not declares_tests(replace(named, category=None))
    assert not declares_tests(replace(named, flags=(("a", "other"),)))
    assert not declares_tests(LOOK)


@pytest.mark.parametrize("outcome", [returned, failed])
def test_a_condition_at_an_observation_stops_the_run_at_once(outcome: object) -> None:
    run = run_of(Condition("leak", '"secret_read" in flags', Then.STOP, "no", At.OBSERVATION))
    assert callable(outcome)
    outcome(run, "look", "secret_read")
    ended = run.last(RunEnded)
    assert (ended.ending, ended.message) == (Ending.UNSAFE_DETECTION, "look: condition leak: no")


def test_one_that_does_not_hold_or_looks_at_calls_stops_nothing_there() -> None:
    run = run_of(
        Condition("leak", '"secret_read" in flags', Then.STOP, "", At.OBSERVATION),
        Condition("later", '"vendor_risk" in flags', Then.STOP),
    )
    returned(run, "look", "vendor_risk")
    assert run.state.end.ending is None
    run.proposes(wants("change"))
    assert run.last(RunEnded).ending is Ending.UNSAFE_DETECTION


def test_a_boundary_that_only_audits_notes_what_an_observation_would_have_stopped() -> None:
    run = run_of(Condition("leak", "true", Then.STOP, "no", At.OBSERVATION), mode=BoundaryMode.AUDIT)
    returned(run, "look", "vendor_risk")
    assert run.state.end.ending is None
    assert [one.reason for one in run.all(CallNoted)] == ["condition leak: no"]


def test_a_condition_at_an_answer_stops_a_run_that_would_have_succeeded() -> None:
    run = run_of(Condition("claims", "size(ungrounded) > 0", Then.STOP, "no", At.ANSWER))
    run.take(ModelAnswered(run.open(CallModel)[0].id, "see x", tokens_bound=20, ungrounded=("x",)))
    assert run.last(RunEnded).ending is Ending.UNSAFE_DETECTION
    fine = run_of(Condition("claims", "size(ungrounded) > 0", Then.STOP, "no", At.ANSWER))
    fine.says("fine")
    assert fine.last(RunEnded).ending is Ending.SUCCESS


def test_a_run_whose_last_tests_failed_after_a_change_does_not_succeed() -> None:
    run = run_of()
    returned(run, "change")
    returned(run, "suite", "tests_failed")
    for _ in range(5):
        if run.state.end.ending is None:
            run.says("Tests pass.")
    ended = run.last(RunEnded)
    assert ended.ending is Ending.VALIDATION_FAIL
    assert "the last test run after a change failed" in ended.message


@pytest.mark.parametrize("at", [At.OBSERVATION, At.ANSWER])
@pytest.mark.parametrize("then", [Then.ASK, Then.REFUSE])
def test_at_an_observation_or_an_answer_a_condition_can_only_stop(at: At, then: Then) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_conditions(replace(FREE, conditions=(Condition("c", "true", then, "", at),)))
    assert refused.value.code == CONDITIONS_INVALID


def test_purchases_count_when_they_are_ordered_those_of_this_turn_too() -> None:
    run = run_of()
    returned(run, "look")
    run.proposes(wants("buy", 30), wants("buy", 40))
    for _ in range(2):
        run.approves()
    assert [command.amount for command in run.open(CallTool)] == [30, 40]
    assert run.state.effects.purchased == 70
    tally = run.tally()
    assert purchased_so_far(tally) == 70
    tally.issue(replace(run.open(CallTool)[0], id="x"))
    assert purchased_so_far(tally) == 100


def test_what_a_person_or_silence_denied_is_counted() -> None:
    run = run_of()
    run.proposes(wants("change"))
    run.rejects()
    assert (run.state.people.rejections, run.state.counts.denials) == (1, 0)


def test_flags_of_this_turn_are_seen_with_those_before() -> None:
    run = run_of()
    returned(run, "look", "vendor_risk")
    tally = run.tally()
    tally.raised, tally.lowered = ("a",), ("vendor_risk",)
    assert flags_now(tally) == ["a"]


def test_concerns_are_those_of_the_tool_and_of_the_boundary() -> None:
    boundary = replace(FREE, concerns=(("regulated", ("look", "other")), ("production", ("change",))))
    assert concerns_of(replace(LOOK, concerns=("slow",)), boundary) == ["regulated", "slow"]


def schema(**properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("parameters", "fields", "tells"),
    [
        (schema(user_id={}), (), True),
        (schema(user=schema(id={})), (), True),
        (schema(query={}), (), False),
        (schema(query={}), (("[].owner", "who:user"),), True),
        (schema(query={}), (("[].owner", "who:vendor"),), False),
        ({"type": "object", "properties": {}}, (), False),
        ({"type": "object"}, (), False),
        ({"type": "object", "properties": {"user": True}}, (), True),
        ({"type": "object", "properties": []}, (), False),
    ],
)
def test_a_tool_tells_whom_it_is_about_by_its_arguments_or_its_results(
    parameters: JsonObject,
    fields: tuple[tuple[str, str], ...],
    tells: bool,
) -> None:
    tool = replace(LOOK, parameters=parameters, trust=Trust(fields=fields))
    assert names_people(tool, FREE) is tells


def test_people_are_looked_for_to_a_depth_and_no_deeper() -> None:
    deep: object = {"user_id": "eve"}
    for _ in range(20):
        deep = {"a": [deep]}
    assert people_in({"a": deep}, LOOK, FREE) == []
    assert people_in({"a": {"a": [{"user_id": "eve"}]}}, LOOK, FREE) == ["eve"]
