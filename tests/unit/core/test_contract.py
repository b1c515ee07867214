import msgspec
import pytest

from remit.core.failure import Ending, ErrorCode, RunFailed
from remit.core.failure_families import FailureCategory
from remit.core.limits.tools import ToolChoice
from remit.core.run.contract import (
    CallStatus,
    ConfidenceSource,
    ExecutionContext,
    ExecutionHints,
    ExecutionState,
    Mode,
    OutputContract,
    SystemError,  # noqa: A004
    SystemRequest,
    SystemResponse,
    ToolCallMade,
    ValidationResult,
    WaitingFor,
)
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.candidate import Candidate, ScoreMaker

CAUSE = SystemError(ErrorCode.TOOL_TIMEOUT, FailureCategory.TOOL, False, "lookup took 30 s")
ERROR = SystemError(
    ErrorCode.TOOL_UNAVAILABLE, FailureCategory.TOOL, True, "lookup is down", {"tool": "lookup"}, caused_by=CAUSE
)


@pytest.mark.req("0.1")
def test_a_request_carries_ids_intent_hints_output_and_capabilities() -> None:
    names = {"request_id", "session_id", "trace_id", "messages", "mode", "hints", "output", "tools"}
    assert names <= set(SystemRequest.__struct_fields__)
    assert list(Mode) == ["chat", "structured", "plan", "redundant"]


@pytest.mark.req("0.1")
def test_a_request_needs_only_its_messages() -> None:
    request = SystemRequest((user_message("hi"),))
    assert request.mode is Mode.CHAT
    assert (request.request_id, request.session_id, request.trace_id, request.tools) == ("", "", "", ())
    assert (request.hints, request.output, request.tool_choice) == (ExecutionHints(), OutputContract(), ToolChoice())


@pytest.mark.req("0.10")
def test_hints_left_out_mean_the_default_of_the_code_that_acts_on_them() -> None:
    hints = ExecutionHints()
    assert (hints.max_tokens, hints.timeout_ms, hints.temperature, hints.top_p) == (0, 0, None, 0.0)


@pytest.mark.req("0.10")
def test_options_and_a_greedy_temperature_arrive_as_they_were_sent() -> None:
    options = {"mirostat": 2, "logit_bias": {"50256": -100}, "stop": ["\n"]}
    sent = SystemRequest((user_message("hi"),), hints=ExecutionHints(temperature=0.0, options=options))
    read = msgspec.json.decode(msgspec.json.encode(sent), type=SystemRequest)
    assert read.hints.options == options
    assert read.hints.temperature == 0.0


@pytest.mark.req("3.7")
def test_tools_are_iterated_at_most_twenty_times_unless_said_otherwise() -> None:
    assert ExecutionHints().max_iterations == 20


def test_output_may_be_repaired_and_partly_valid_unless_said_otherwise() -> None:
    output = OutputContract()
    assert (output.schema, output.grammar) == (None, None)
    assert output.repair_allowed
    assert not output.strict_validation


@pytest.mark.req("0.4")
def test_a_response_echoes_ids_and_carries_output_quality_usage_and_error() -> None:
    response = SystemResponse(
        "req_1",
        "session_1",
        "run_1",
        terminal_code=Ending.SUCCESS,
        content="42",
        structured_output={"answer": 42},
        tool_calls_made=(ToolCallMade("add", {"a": 40, "b": 2}, "42", 3, "call_1", CallStatus.COMMITTED),),
        confidence=0.67,
        confidence_source=ConfidenceSource.VOTING,
        validation=ValidationResult(3, 1, 2, ("answer is not even",)),
        token_usage=TokenUsage(prompt_tokens=10, output_tokens=2),
        error=ERROR,
        warnings=("partial",),
    )
    assert msgspec.json.decode(msgspec.json.encode(response), type=SystemResponse) == response


@pytest.mark.req("0.4")
def test_a_response_without_output_contract_has_neither_structure_nor_validation_nor_confidence() -> None:
    response = SystemResponse("req_1", "", "run_1")
    assert response.structured_output is None
    assert response.validation is None
    assert response.confidence is None
    assert response.error is None
    assert list(ConfidenceSource) == ["voting", "validation", "retrieval"]


@pytest.mark.req("1.24")
def test_a_waiting_response_says_what_it_waits_for_in_snake_case() -> None:
    waiting = WaitingFor(Ending.CONFIRM_REQUIRED, ("3.1",), expires_at_ms=7)
    written = msgspec.json.decode(msgspec.json.encode(SystemResponse("req_1", "", "run_1", waiting_for=waiting)))
    assert written["waiting_for"] == {"ending": "CONFIRM_REQUIRED", "packet_ids": ["3.1"], "expires_at_ms": 7}


def test_an_error_is_code_category_retryable_message_details_and_cause() -> None:
    assert SystemError.__struct_fields__ == ("code", "category", "retryable", "message", "details", "caused_by")
    read = msgspec.json.decode(msgspec.json.encode(ERROR), type=SystemError)
    assert read == ERROR
    assert read.caused_by == CAUSE
    assert CAUSE.caused_by is None


def test_an_execution_state_tells_where_a_run_stands_and_what_went_wrong_last() -> None:
    state = ExecutionState(LifecycleState.EXECUTE, 5, attempt=2, total_steps=3, last_error=ERROR, last_step="extract")
    assert ExecutionState.__struct_fields__ == (
        "current",
        "entered_at_ms",
        "attempt",
        "total_steps",
        "last_error",
        "last_step",
    )
    assert msgspec.json.decode(msgspec.json.encode(state), type=ExecutionState) == state


def test_an_execution_context_holds_what_was_fixed_and_what_changed() -> None:
    state = ExecutionState(LifecycleState.PREPARE, 5)
    candidate = Candidate("text", "doc_1", 0.5, ScoreMaker.RERANK)
    context = ExecutionContext("r", "s", "t", Mode.PLAN, 1, state, ("lookup",), (candidate,), {"team": "a"})
    assert context.state.attempt == 1
    assert msgspec.json.decode(msgspec.json.encode(context), type=ExecutionContext) == context


def test_no_answer_of_a_run_that_failed_or_has_not_ended_can_be_missed() -> None:
    answered = SystemResponse("r", "s", "run", terminal_code=Ending.SUCCESS)
    assert answered.raise_for_error() is answered
    left = SystemResponse("r", "s", "run")
    failed = msgspec.structs.replace(
        answered, error=SystemError("TOOL_TIMEOUT", FailureCategory.TOOL, retryable=True, message="too slow")
    )
    waiting = msgspec.structs.replace(answered, waiting_for=WaitingFor(Ending.CONFIRM_REQUIRED, ("run/1.2",)))
    paused = msgspec.structs.replace(answered, waiting_for=WaitingFor(Ending.CONFIRM_REQUIRED))
    for response, said in (
        (failed, "too slow"),
        (waiting, "waits for run/1.2"),
        (paused, "waits for a person who resumes"),
        (left, "RUN_OPEN: run run has not ended, and waits for no person"),
    ):
        with pytest.raises(RunFailed, match=said):
            response.raise_for_error()
