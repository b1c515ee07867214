"""A run as callers see it: views that say nothing the state does not say."""

import pytest

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.failure_families import FailureCategory
from remit.core.journal import arrivals
from remit.core.journal.commands import CallModel, CallTool, Retrieve
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import BlobRef, digest_of
from remit.core.run.contract import CallStatus, Mode, OutputContract, SystemRequest
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.messages import user_message
from remit.core.run.signals import packet_id
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_schema import Violation
from remit.core.work.goal import Criterion, Goal
from remit.kernel.state import CONTEXT_FAILED, RunState, pinned
from remit.observe.views.execution import (
    error_of,
    execution_context,
    execution_state,
    last_error_of,
    response_of,
    selected_tools,
)
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.scenarios import TOOLS
from tests.unit.kernel.builders import BEGINS_AT_MS, Run, manifest_of, wants

REACHES = [CallStatus]

BROKEN = (Violation("/n", "type", "is not a number"),)
NAMED = SystemRequest(
    (user_message("please"),), request_id="request", session_id="session", trace_id="trace", metadata={"shop": 7}
)


def structured() -> SystemRequest:
    return SystemRequest((user_message("please"),), output=OutputContract(schema={"type": "object"}))


# ExecutionState.


@pytest.mark.req("0.19")
def test_a_state_says_where_the_run_stands_since_when_and_after_how_many_steps() -> None:
    run = Run()
    run.proposes(wants("look"))
    state = execution_state(run.state)
    assert (state.current, state.last_step, state.total_steps) == (LifecycleState.EXECUTE, "act", 3)
    assert (state.entered_at_ms, state.attempt, state.last_error) == (BEGINS_AT_MS + 10, 1, None)


@pytest.mark.req("0.19")
def test_a_run_that_has_not_begun_is_in_init_and_made_no_step() -> None:
    state = execution_state(RunState())
    assert (state.current, state.last_step, state.total_steps) == (LifecycleState.INIT, "", 0)


@pytest.mark.req("0.19")
def test_an_answer_that_was_sent_back_makes_the_next_attempt() -> None:
    run = Run()
    run.says("{}", violations=BROKEN)
    assert execution_state(run.state).attempt == 2


@pytest.mark.req("0.19")
def test_the_last_error_stays_visible_after_the_run_recovered_from_it() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look")
    error = execution_state(run.state).last_error
    assert error is not None
    assert (error.code, error.category) == (ErrorCode.TOOL_EXECUTION_FAILED, FailureCategory.TOOL)
    assert error_of(run.state) is None


@pytest.mark.req("0.19")
def test_the_last_error_of_a_failed_run_is_why_it_failed() -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.breaks()
    error = execution_state(run.state).last_error
    assert error is not None
    assert error.code == ErrorCode.INFERENCE_ENGINE_ERROR


def refused() -> Run:
    run = Run()
    run.proposes(wants("secret"))
    return run


def without_context() -> Run:
    run = Run(manifest_of(retrieves_context=True))
    run.take(arrivals.ContextFailed(run.open(Retrieve)[0].id))
    return run


def with_a_child_that_failed() -> Run:
    run = Run()
    run.proposes(wants("ask_child"))
    run.heard_from_child(Ending.BUDGET_EXHAUSTED)
    return run


@pytest.mark.parametrize(
    ("run", "code", "category"),
    [
        (refused(), Refusal.PERMISSION_DENIED, FailureCategory.ORCHESTRATION),
        (without_context(), CONTEXT_FAILED, FailureCategory.TOOL),
        (with_a_child_that_failed(), Ending.BUDGET_EXHAUSTED, FailureCategory.ORCHESTRATION),
    ],
)
def test_a_last_error_may_be_a_refusal_a_loss_or_the_ending_of_a_child(
    run: Run, code: str, category: FailureCategory
) -> None:
    error = last_error_of(run.state)
    assert error is not None
    assert (error.code, error.category) == (code, category)


# ExecutionContext.


@pytest.mark.req("0.20")
def test_a_context_holds_what_was_fixed_at_the_start_and_what_changes() -> None:
    run = Run(manifest_of(request=NAMED))
    context = execution_context(run.state)
    assert (context.request_id, context.session_id, context.trace_id) == ("request", "session", "trace")
    assert (context.mode, context.started_at_ms, context.metadata) == (Mode.CHAT, BEGINS_AT_MS, {"shop": 7})
    assert context.state == execution_state(run.state)
    permitted = {*pinned(run.state).boundary.permissions}
    assert context.selected_tools == tuple(tool.name for tool in TOOLS if permitted.issuperset(tool.permissions))
    assert len(context.selected_tools) < len(TOOLS)
    assert context.candidates == ()


@pytest.mark.req("0.20", "3.23")
@pytest.mark.parametrize(
    ("tools", "choice", "allowed", "selected"),
    [
        (("look", "fetch"), ToolChoice(), None, ("look", "fetch")),
        ((), ToolChoice(), ("fetch", "unknown"), ("fetch",)),
        (("look",), ToolChoice(), ("fetch",), ()),
        ((), ToolChoice(ToolChoiceMode.NONE), None, ()),
        ((), ToolChoice(ToolChoiceMode.FUNCTION, "pay"), None, ("pay",)),
        (("pay", "look"), ToolChoice(ToolChoiceMode.REQUIRED), None, ("look", "pay")),
    ],
)
def test_the_selected_tools_are_registered_allowed_and_offered(
    tools: tuple[str, ...], choice: ToolChoice, allowed: tuple[str, ...] | None, selected: tuple[str, ...]
) -> None:
    request = SystemRequest((user_message("please"),), tools=tools, tool_choice=choice)
    run = Run(manifest_of(request=request, boundary=Boundary("test", allowed_tools=allowed)))
    assert selected_tools(run.state) == selected


# SystemResponse.


@pytest.mark.req("1.24")
def test_a_success_has_its_content_its_usage_and_no_error() -> None:
    run = Run(manifest_of(request=NAMED))
    run.says("hello")
    response = response_of(run.state, "hello")
    assert (response.request_id, response.session_id, response.run_id) == ("request", "session", "run")
    assert (response.terminal_code, response.content, response.error) == (Ending.SUCCESS, "hello", None)
    assert response.token_usage == TokenUsage(prompt_tokens=8, output_tokens=4)
    assert (response.waiting_for, response.validation, response.warnings) == (None, None, ())


def test_a_failure_says_why_and_keeps_what_there_is_of_an_answer() -> None:
    run = Run(manifest_of(graph=chat_graph(repairs_max=0), request=structured()))
    run.says("{", violations=BROKEN)
    response = response_of(run.state, "{")
    assert response.error is not None
    assert (response.error.code, response.error.retryable) == (ErrorCode.CONSTRAINT_SCHEMA_INVALID, True)
    assert response.error.message == "output /n: is not a number"
    assert (response.content, response.structured_output) == ("{", None)


def test_an_ending_without_words_is_told_by_its_name() -> None:
    run = Run(manifest_of(graph=chat_graph(tool_rounds_max=1)))
    run.state.end.ending = Ending.IMPOSSIBLE
    error = error_of(run.state)
    assert error is not None
    assert (error.code, error.message) == ("IMPOSSIBLE", "the run ended as IMPOSSIBLE")


def test_a_partial_success_warns_of_what_was_not_done() -> None:
    run = Run()
    run.proposes(wants("write"), wants("pay"))
    run.approves()
    run.returns("write")
    run.rejects()
    run.says("all done")
    response = response_of(run.state, "all done")
    assert (response.terminal_code, response.error) == (Ending.PARTIAL_SUCCESS, None)
    assert response.warnings == (run.state.end.message,)


def test_a_waiting_run_says_what_it_waits_for_and_until_when() -> None:
    run = Run()
    run.proposes(wants("write"))
    waiting = response_of(run.state, "").waiting_for
    assert waiting is not None
    question = run.question()
    assert (waiting.ending, waiting.packet_ids) == (
        Ending.CONFIRM_REQUIRED,
        (packet_id(run.state.run_id, question.id),),
    )
    assert waiting.expires_at_ms == question.expires_at_ms


@pytest.mark.parametrize(("content", "output"), [('{"n": 7}', {"n": 7}), ("", None), ("plain text", None)])
def test_structured_output_is_the_value_of_an_answer_that_passed(content: str, output: object) -> None:
    run = Run(manifest_of(request=structured()))
    run.says('{"n": 7}')
    assert response_of(run.state, content).structured_output == output


def test_validation_counts_what_passed_and_what_was_repaired() -> None:
    run = Run(manifest_of(request=structured()))
    run.says("{}", violations=BROKEN)
    run.says("{}")
    validation = response_of(run.state, "{}").validation
    assert validation is not None
    assert (validation.checks_passed, validation.checks_failed, validation.repair_attempts) == (1, 0, 1)
    assert validation.violations == ()


def test_validation_names_the_violations_that_remain() -> None:
    run = Run(manifest_of(graph=chat_graph(repairs_max=0), goal=Goal("be short", (Criterion("any", "visits > 0"),))))
    run.says("{}", violations=BROKEN)
    validation = response_of(run.state, "{}").validation
    assert validation is not None
    assert (validation.checks_passed, validation.checks_failed) == (0, 1)
    assert validation.violations == ("/n: is not a number",)


# The log of tool calls.


def statuses(run: Run) -> list[tuple[str, CallStatus]]:
    return [(call.name, call.status) for call in response_of(run.state, "").tool_calls_made]


def test_a_call_that_the_ending_cut_off_has_an_unknown_outcome_whatever_its_effect() -> None:
    run = Run()
    run.proposes(wants("look"))
    assert statuses(run) == [("look", CallStatus.ATTEMPTED)]
    run.take(arrivals.CancelRequested("ada"))
    assert statuses(run) == [("look", CallStatus.OUTCOME_UNKNOWN)]


def test_a_call_that_failed_tells_its_code_and_the_words_of_the_tool_in_place_of_a_result() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look")
    (made,) = response_of(run.state, "").tool_calls_made
    assert (made.status, made.result) == (CallStatus.FAILED, "TOOL_EXECUTION_FAILED: it broke")
    assert (made.code, made.error) == (ErrorCode.TOOL_EXECUTION_FAILED, "it broke")


def test_every_proposed_call_is_told_in_order_with_what_became_of_it() -> None:
    run = Run()
    run.proposes(wants("look", 1), wants("nothing"), wants("fetch"), wants("write"), wants("look", 2))
    run.returns("look")
    run.fails("fetch")
    run.approves()
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert sorted(statuses(run)) == sorted(
        [
            ("look", CallStatus.COMMITTED),
            ("nothing", CallStatus.REFUSED),
            ("fetch", CallStatus.FAILED),
            ("write", CallStatus.OUTCOME_UNKNOWN),
            ("look", CallStatus.ATTEMPTED),
        ]
    )


def test_what_a_child_said_is_observed() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    run.heard_from_child()
    assert statuses(run) == [("ask_child", CallStatus.OBSERVED)]


def test_a_call_is_told_with_its_arguments_result_and_duration() -> None:
    run = Run()
    run.proposes(wants("look", 7, call_id="call_7"))
    run.returns()
    made = response_of(run.state, "").tool_calls_made[0]
    assert (made.name, made.call_id, made.arguments) == ("look", "call_7", {"n": 7})
    assert (made.result, made.duration_ms) == ('{"ok": true}', 7)


def test_a_refused_call_is_told_with_its_arguments_and_its_code() -> None:
    made = response_of(refused().state, "").tool_calls_made[0]
    assert (made.arguments, made.result, made.duration_ms) == ({"n": 1}, Refusal.PERMISSION_DENIED, 0)


def test_calls_of_later_answers_come_later() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.returns()
    run.proposes(wants("secret"))
    run.proposes(wants("fetch"))
    assert [name for name, _ in statuses(run)] == ["look", "secret", "fetch"]


# Whether the caller may submit the same request again.


@pytest.mark.req("0.26")
@pytest.mark.parametrize(("tool", "is_retryable"), [("look", True), ("put", True), ("write", False)])
def test_a_failed_tool_is_retryable_when_every_called_tool_may_be_called_again(tool: str, is_retryable: bool) -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.proposes(wants(tool))
    if run.state.people.asking:
        run.approves()
    run.fails(tool)
    error = error_of(run.state)
    assert error is not None
    assert (error.code, error.retryable) == (ErrorCode.TOOL_EXECUTION_FAILED, is_retryable)


@pytest.mark.req("0.26")
def test_a_cancelled_run_is_not_retryable_as_it_stands() -> None:
    run = Run()
    run.proposes(wants("look"))
    assert run.open(CallTool) != []
    run.take(arrivals.CancelRequested("ada"))
    error = error_of(run.state)
    assert error is not None
    assert not error.retryable


@pytest.mark.req("0.4")
def test_an_answer_that_lives_in_blobs_is_told_in_full() -> None:
    run = Run(manifest_of(request=structured()))
    text = '{"text": "' + "x" * 5000 + '"}'
    reference = BlobRef(digest_of(text.encode()), len(text))
    run.take(arrivals.ModelAnswered(run.open(CallModel)[0].id, reference, usage=TokenUsage(8, 0, 4)))
    response = response_of(run.state, text)
    assert (response.content, response.structured_output) == (text, {"text": "x" * 5000})
