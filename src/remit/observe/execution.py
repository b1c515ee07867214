"""A run as callers see it: ExecutionState, ExecutionContext and SystemResponse, read off the state.

Rule 1: these are views; nothing is kept here that the state does not say.
Rule 2: an open run has a response too: what it waits for, and what there is of an answer.
"""

from collections.abc import Mapping

from remit.core.arrivals import ModelAnswered
from remit.core.codec import arguments_in, read_json
from remit.core.contract import (
    CallStatus,
    ExecutionContext,
    ExecutionState,
    SystemError,  # noqa: A004  # the contract's own name for it
    SystemResponse,
    ToolCallMade,
    ValidationResult,
    WaitingFor,
)
from remit.core.failure import (
    ERRORS,
    REFUSALS,
    Ending,
    ErrorCode,
    Failure,
    FailureCategory,
    Refusal,
    Retryable,
    failure_of,
)
from remit.core.record import Text
from remit.core.rulings import Rung
from remit.core.signals import packet_id
from remit.core.tools import ToolChoiceMode
from remit.core.usage import TokenUsage
from remit.kernel.state import CallTrace, RunState, lifecycle, pinned, questions, standing_at, waiting_for

# How far up the ladder a call got, in the words of the contract. Verified and committed are settled in one turn.
STATUS_OF: dict[Rung, CallStatus] = {
    Rung.INTENDED: CallStatus.REFUSED,
    Rung.ATTEMPTED: CallStatus.ATTEMPTED,
    Rung.OBSERVED: CallStatus.OBSERVED,
    Rung.VERIFIED: CallStatus.OBSERVED,
    Rung.COMMITTED: CallStatus.COMMITTED,
}


def execution_state(state: RunState) -> ExecutionState:
    """Where a run stands in its lifecycle."""
    return ExecutionState(
        current=lifecycle(state),
        entered_at_ms=state.entered_at_ms,
        attempt=state.repairs + 1,
        total_steps=state.steps,
        last_error=error_of(state) or last_error_of(state),
        last_step=standing_at(state).name if state.node >= 0 else "",
    )


def execution_context(state: RunState) -> ExecutionContext:
    """A run as one object."""
    request = pinned(state).request
    return ExecutionContext(
        request_id=request.request_id,
        session_id=request.session_id,
        trace_id=request.trace_id,
        mode=request.mode,
        started_at_ms=state.started_at_ms,
        state=execution_state(state),
        selected_tools=selected_tools(state),
        metadata=request.metadata,
    )


def selected_tools(state: RunState) -> tuple[str, ...]:
    """The tools the run may call: registered, allowed by the boundary, and offered by the request."""
    manifest = pinned(state)
    allowed, offered, choice = manifest.boundary.allowed_tools, manifest.request.tools, manifest.request.tool_choice
    if choice.mode is ToolChoiceMode.NONE:
        return ()
    if choice.mode is ToolChoiceMode.FUNCTION:
        offered = (choice.function_name,)
    return tuple(
        tool.name
        for tool in manifest.tools
        if (allowed is None or tool.name in allowed) and (not offered or tool.name in offered)
    )


def response_of(state: RunState, content: str) -> SystemResponse:
    """What the caller is told. `content` is the text of the run's answer, wherever it lives."""
    request = pinned(state).request
    has_schema = request.output.schema is not None
    return SystemResponse(
        request_id=request.request_id,
        session_id=request.session_id,
        run_id=state.run_id,
        terminal_code=state.ending,
        waiting_for=_waiting_for(state),
        content="" if _is_withheld(state) else content,
        structured_output=_structured(state, content) if has_schema else None,
        tool_calls_made=_calls_made(state),
        validation=_validation(state) if has_schema or pinned(state).goal is not None else None,
        token_usage=TokenUsage(state.prompt_tokens, state.reasoning_tokens, state.output_tokens),
        error=error_of(state),
        warnings=_warnings(state),
    )


def error_of(state: RunState) -> SystemError | None:
    """Why the run failed, if it did."""
    failure = None if state.ending is None else failure_of(state.ending, state.error)
    if failure is None:
        return None
    message = state.message or f"the run ended as {state.ending}"
    return SystemError(failure.code, failure.category, _is_retryable(state, failure), message)


def last_error_of(state: RunState) -> SystemError | None:
    """The last thing that went wrong, whether or not the run recovered from it."""
    if not state.last_error:
        return None
    failure = _failure_named(state.last_error)
    message = f"{state.last_error} is the last failure of {state.steps} steps; the run went on"
    return SystemError(failure.code, failure.category, _is_retryable(state, failure), message)


def _failure_named(code: str) -> Failure:
    """What a code says to programs: an error, a refusal, how a child ended, or the kernel's own word for a loss."""
    if code in set(ErrorCode):
        row = ERRORS[ErrorCode(code)]
        return Failure(code, row.category, row.retryable)
    if code in set(Refusal):
        return Failure(code, REFUSALS[Refusal(code)].category, Retryable.NO)
    known = failure_of(Ending(code)) if code in set(Ending) else None
    # What was lost or not found lies outside, with a tool or a source of context, and asking again may find it.
    return known or Failure(code, FailureCategory.TOOL, Retryable.IF_IDEMPOTENT)


def _is_retryable(state: RunState, failure: Failure) -> bool:
    """Submitting again is safe for a tool's failure only when every tool that was called may be called again."""
    if failure.retryable is not Retryable.IF_IDEMPOTENT:
        return failure.retryable is Retryable.YES
    called = (state.tools[trace.tool] for trace in state.calls.values())
    return all(tool.idempotent or not tool.effect.is_mutating for tool in called)


def _waiting_for(state: RunState) -> WaitingFor | None:
    ending = waiting_for(state)
    if ending is None:
        return None
    asked = tuple(questions(state))
    # A run whose child is the one that asks has no question of its own.
    expires_at_ms = min((question.expires_at_ms for question in asked), default=0)
    return WaitingFor(ending, tuple(packet_id(state.run_id, question.id) for question in asked), expires_at_ms)


def _is_withheld(state: RunState) -> bool:
    """Whether an output does not fit and its contract is strict, so that nothing of it is returned."""
    return bool(state.answer_violations) and pinned(state).request.output.strict_validation


def _warnings(state: RunState) -> tuple[str, ...]:
    """What the caller should know who goes on with what there is: what was left open, and how an output does not fit."""
    left_open = (state.message,) if state.ending is Ending.PARTIAL_SUCCESS else ()
    if not state.answer_violations or _is_withheld(state):
        return left_open
    return (*left_open, *(f"output {v.path or '/'}: {v.message}" for v in state.answer_violations))


def _structured(state: RunState, content: str) -> object:
    """The output as a value: what fits, or without a strict contract also what can be read of one that does not."""
    if _is_withheld(state) or not content:
        return None
    try:
        return read_json(content)
    except (ValueError, RecursionError):
        return None  # The text of a tool that ended the loop is an answer without being an output of the model.


def _validation(state: RunState) -> ValidationResult:
    remaining = tuple(f"{violation.path or '/'}: {violation.message}" for violation in state.answer_violations)
    is_passed = state.ending in (Ending.SUCCESS, Ending.PARTIAL_SUCCESS)
    return ValidationResult(
        checks_passed=int(is_passed),
        checks_failed=state.repairs + int(state.ending is Ending.VALIDATION_FAIL),
        repair_attempts=state.repairs,
        violations=remaining,
    )


def _calls_made(state: RunState) -> tuple[ToolCallMade, ...]:
    """Every call that was proposed, in the order in which it was ordered or refused."""
    made = [(_seq_of(key), _call_made(state, key, trace)) for key, trace in state.calls.items()]
    if state.refused:
        proposed = {
            (call.tool, call.arguments_hash): call.arguments
            for entry in state.context
            if isinstance(entry, ModelAnswered)
            for call in entry.calls
        }
        made += [(trace.seq, _call_refused(trace, proposed)) for trace in state.refused]
        made.sort(key=lambda entry: entry[0])
    return tuple(call for _, call in made)


def _seq_of(command_id: str) -> int:
    return int(command_id.partition(".")[0])


def _call_refused(trace: CallTrace, proposed: Mapping[tuple[str, bytes], Text]) -> ToolCallMade:
    arguments = arguments_in(proposed.get((trace.tool, trace.arguments_hash), ""))
    return ToolCallMade(trace.tool, arguments, trace.code, 0, trace.call_id, STATUS_OF[trace.rung])


def _call_made(state: RunState, command_id: str, trace: CallTrace) -> ToolCallMade:
    status = STATUS_OF[trace.rung]
    # A call that the ending cut off has no outcome either, whatever its effect.
    is_cut_off = trace.rung is Rung.ATTEMPTED and command_id not in state.open
    if is_cut_off or command_id in state.doubted:
        status = CallStatus.OUTCOME_UNKNOWN
    elif trace.rung is Rung.OBSERVED and trace.code:
        status = CallStatus.FAILED
    # What failed left no result, only a code; as with a call that was refused, that is what the caller is told.
    result = trace.content or trace.code
    return ToolCallMade(trace.tool, arguments_in(trace.arguments), result, trace.duration_ms, trace.call_id, status)
