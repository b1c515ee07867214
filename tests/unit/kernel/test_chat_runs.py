"""Whole chats: the stations they pass, the failures they can end with, and what they recover from."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from remit.core.failure import Ending, ErrorCode, failure_of
from remit.core.failure_families import FailureCategory
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import ReconcileTool, TimerPurpose
from remit.core.limits.budget import Budget
from remit.core.run.contract import Mode
from remit.core.run.lifecycle import LIFECYCLE_TRANSITIONS, LifecycleState
from remit.core.schema.json_schema import Violation
from remit.core.work.goal import Criterion, Goal, RequiredAction
from remit.core.work.graph import Node, NodeKind
from remit.kernel.state import graph_of_run, lifecycle
from remit.observe.views.execution import error_of, response_of
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.laws.every_law import keep_the_law
from tests.simulation.play import demo_manifest, demo_world
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

REACHES = [FailureCategory]

NO_RETRIES = Budget(retries=0)
BROKEN = (Violation("/n", "type", "is not a number"),)
NO_JSON = (Violation("", "json", "expected value"),)


def stations(run: Run) -> list[LifecycleState]:
    """The stations a run has passed, each once where it stood still."""
    labels = {node.name: node.lifecycle for node in graph_of_run(run.state).nodes}
    passed = [LifecycleState.INIT, *(labels[name] for name in run.path())]
    return [after for before, after in pairwise([None, *passed]) if before is not after and after is not None]


# The row of the chat in the table of lifecycles.


@pytest.mark.req("0.15", "0.21")
def test_a_chat_passes_init_prepare_execute_validate_and_complete() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.returns()
    run.says("done")
    assert stations(run) == ["INIT", "PREPARE", "EXECUTE", "VALIDATE", "COMPLETE"]
    assert lifecycle(run.state) is LifecycleState.COMPLETE


@pytest.mark.req("0.15", "0.21")
def test_a_repair_goes_back_from_validate_to_execute() -> None:
    run = Run()
    run.says("{}", violations=BROKEN)
    run.says("7")
    assert stations(run) == ["INIT", "PREPARE", "EXECUTE", "VALIDATE", "EXECUTE", "VALIDATE", "COMPLETE"]


@pytest.mark.req("0.15", "0.21")
@pytest.mark.parametrize(
    ("arrival", "station"),
    [
        (arrivals.CancelRequested("ada"), LifecycleState.CANCELLED),
        (arrivals.ModelFailed("0.4", ErrorCode.INFERENCE_CONTEXT_EXCEEDED), LifecycleState.ERROR),
    ],
)
def test_a_chat_is_broken_off_from_wherever_it_stands(arrival: arrivals.Arrival, station: LifecycleState) -> None:
    run = Run()
    run.take(arrival)
    assert stations(run) == ["INIT", "PREPARE", "EXECUTE", station]
    assert all(after in LIFECYCLE_TRANSITIONS[before] for before, after in pairwise(stations(run)))


# The codes a run can end with, and how it comes to each.


def model_fails(code: ErrorCode) -> Run:
    run = Run(manifest_of(budget=NO_RETRIES))
    run.breaks(code)
    return run


def tool_fails(code: ErrorCode) -> Run:
    run = Run(manifest_of(budget=NO_RETRIES))
    run.proposes(wants("look"))
    run.fails("look", code)
    return run


def calls_an_unknown_tool(code: ErrorCode) -> Run:
    run = Run()
    for n in range(3):
        run.proposes(wants("nothing", n))
    return run


def breaks_its_contract(code: ErrorCode) -> Run:
    run = Run(manifest_of(graph=chat_graph(repairs_max=0)))
    run.says("{}", violations=NO_JSON if code is ErrorCode.CONSTRAINT_JSON_INVALID else BROKEN)
    return run


def breaks_a_rule(code: ErrorCode) -> Run:
    goal = Goal("be short", (Criterion("short", guard="answer_bytes < 3"),))
    run = Run(manifest_of(graph=chat_graph(repairs_max=0), goal=goal))
    run.says("far too long")
    return run


def claims_what_it_did_not_do(code: ErrorCode) -> Run:
    goal = Goal("look", required_actions=(RequiredAction("look"),))
    run = Run(manifest_of(graph=chat_graph(repairs_max=0), goal=goal))
    run.says("I looked")
    return run


def goes_round_too_often(code: ErrorCode) -> Run:
    run = Run(manifest_of(graph=chat_graph(tool_rounds_max=1)))
    run.proposes(wants("look", 1))
    run.returns()
    run.proposes(wants("look", 2))
    return run


def children_disagree(code: ErrorCode) -> Run:
    run = Run(manifest_of(graph=in_line(Node("fan", NodeKind.MAP, prompt="go", children=1))))
    run.heard_from_child(Ending.IMPOSSIBLE)
    return run


def runs_out_of_time(code: ErrorCode) -> Run:
    run = Run()
    run.rings(TimerPurpose.DEADLINE)
    return run


def is_cancelled(code: ErrorCode) -> Run:
    run = Run()
    run.take(arrivals.CancelRequested("ada"))
    return run


# The other four are found at the door, or by rooms beside the kernel.
WAYS: dict[ErrorCode, Callable[[ErrorCode], Run]] = {
    ErrorCode.INFERENCE_ENGINE_ERROR: model_fails,
    ErrorCode.INFERENCE_MODEL_UNAVAILABLE: model_fails,
    ErrorCode.INFERENCE_CONTEXT_EXCEEDED: model_fails,
    ErrorCode.INFERENCE_MALFORMED_RESPONSE: model_fails,
    ErrorCode.TOOL_NOT_FOUND: calls_an_unknown_tool,
    ErrorCode.TOOL_EXECUTION_FAILED: tool_fails,
    ErrorCode.TOOL_TIMEOUT: tool_fails,
    ErrorCode.TOOL_UNAVAILABLE: tool_fails,
    ErrorCode.CONSTRAINT_SCHEMA_INVALID: breaks_its_contract,
    ErrorCode.CONSTRAINT_JSON_INVALID: breaks_its_contract,
    ErrorCode.VALIDATION_RULE_FAILED: breaks_a_rule,
    ErrorCode.VALIDATION_SEMANTIC_FAILED: claims_what_it_did_not_do,
    ErrorCode.ORCHESTRATION_ITERATION_LIMIT: goes_round_too_often,
    ErrorCode.ORCHESTRATION_NO_CONSENSUS: children_disagree,
    ErrorCode.CONFIG_NO_ENGINE: model_fails,
    ErrorCode.CONFIG_GRAMMAR_NOT_FOUND: model_fails,
    ErrorCode.CONFIG_PART_MISSING: model_fails,
    ErrorCode.CANCELLED_TIMEOUT: runs_out_of_time,
    ErrorCode.CANCELLED_SIGNAL: is_cancelled,
}


@pytest.mark.req("0.22", "0.26")
@pytest.mark.parametrize("code", WAYS)
def test_a_run_can_end_with_this_code_and_says_so_to_its_caller(code: ErrorCode) -> None:
    run = WAYS[code](code)
    error = error_of(run.state)
    assert error is not None
    assert (run.state.end.error, error.code) == (code, code)
    assert run.state.end.ending is not None
    failure = failure_of(run.state.end.ending, run.state.end.error)
    assert failure is not None
    assert error.category is failure.category


# The row of the chat in the matrix of patterns and failures.


@pytest.mark.parametrize(
    ("category", "code"),
    [
        (FailureCategory.INFERENCE, ErrorCode.INFERENCE_ENGINE_ERROR),
        (FailureCategory.TOOL, ErrorCode.TOOL_EXECUTION_FAILED),
        (FailureCategory.CANCELLATION, ErrorCode.CANCELLED_SIGNAL),
        (FailureCategory.ORCHESTRATION, ErrorCode.ORCHESTRATION_ITERATION_LIMIT),
        (FailureCategory.CONSTRAINT, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        (FailureCategory.CONFIGURATION, ErrorCode.CONFIG_NO_ENGINE),
    ],
)
def test_a_chat_can_emit_failures_of_this_category(category: FailureCategory, code: ErrorCode) -> None:
    error = response_of(WAYS[code](code).state, "").error
    assert error is not None
    assert error.category is category


@pytest.mark.parametrize("code", [ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_TIMEOUT, ErrorCode.TOOL_UNAVAILABLE])
def test_a_chat_recovers_from_a_failed_tool(code: ErrorCode) -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look", code)
    run.proposes(wants("look"))
    run.returns()
    run.says("found it after all")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_chat_recovers_from_a_tool_it_does_not_have() -> None:
    run = Run()
    run.proposes(wants("nothing"))
    run.proposes(wants("look"))
    run.returns()
    run.says("then with another")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_chat_recovers_from_an_effect_that_did_not_happen() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.fails("pay", ErrorCode.TOOL_TIMEOUT)
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.NO))
    run.proposes(wants("pay"))
    run.approves()
    run.returns()
    run.says("paid")
    assert run.state.end.ending is Ending.SUCCESS


# The same in every process and every thread.


@pytest.mark.req("1.20")
def test_the_same_script_writes_the_same_bytes() -> None:
    first, second = demo_world(), demo_world()
    assert first.finish(demo_manifest()).journal == second.finish(demo_manifest()).journal
    keep_the_law(first)


@pytest.mark.req("3.30")
def test_runs_in_many_threads_do_not_touch_each_other() -> None:
    def journal(_: int) -> list[bytes]:
        run = Run()
        for n in range(5):
            run.proposes(wants("look", n), wants("write", n))
            run.returns()
            run.approves()
            run.returns()
        run.says("done")
        return run.journal

    with ThreadPoolExecutor(8) as pool:
        journals = list(pool.map(journal, range(32)))
    assert all(written == journals[0] for written in journals)


@pytest.mark.req("1.24")
def test_a_caller_sees_a_request_go_in_and_a_response_come_out() -> None:
    world = demo_world()
    run = world.finish(demo_manifest())
    response = response_of(run.state, str(run.state.result.answer))
    assert (response.terminal_code, response.content, response.error) == (Ending.SUCCESS, "Order 42 is refunded.", None)
    assert demo_manifest().request.mode is Mode.CHAT
