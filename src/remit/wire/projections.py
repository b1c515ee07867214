"""Projections, from the house to the wire: a run as its loop, its trajectory and its events, read off its state and its journal.

Rule 1: these are views. Nothing of a run is decided by them, and none is read back.
Rule 2: a long text is given in full where the caller can fetch it and a message has room for it, else by its digest.
Rule 3: the outcome, the loop state and the codes are those of core/failure.py; nothing is translated twice.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from remit.core.failure import ENDINGS, Ending
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import arguments_in
from remit.core.journal.commands import CallTool
from remit.core.journal.rulings import ContextCompressed, RunEnded, Rung
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Dimension
from remit.core.record import Record, size_bytes
from remit.core.run.lifecycle import LoopState, Outcome
from remit.core.run.manifest import Manifest
from remit.core.run.messages import Message, Role
from remit.kernel.state import RunState, loop_state, loop_state_unpaused, pinned
from remit.observe.reading import Reading
from remit.observe.steps import CANCEL, PerformedStep, StepKind
from remit.observe.views.execution import error_of, run_usage
from remit.wire.call_events import (
    RequestOf,
    TextOf,
    by_digest,
    call_result,
    chat_of,
    outcomes_of,
    plainly_asked,
    proposed_by,
    requests_of_turn,
)
from remit.wire.inbound import Route, route_of
from remit.wire.message_records import (
    AgentIdentity,
    ContextEvent,
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopEntity,
    LoopFailedEvent,
    Trajectory,
    TrajectoryStep,
    WireToolResult,
)
from remit.wire.message_rules import ContextEventType, TrajectoryStepType
from remit.wire.message_texts import fitting, moment
from remit.wire.told_talk import call_id_of, request_id_of, talk_of

LoopEnded: TypeAlias = LoopCompletedEvent | LoopFailedEvent | LoopCancelledEvent

# What of a conversation a step of a run shows its model.
Shown: TypeAlias = Callable[[RunState, PerformedStep, tuple[Message, ...]], tuple[Message, ...]]

_CALLS = (StepKind.TOOL, StepKind.REFUSED)


class LoopDepth(NamedTuple):
    """How deep a loop stands, 0 for one that stands beneath no other, and how deep it and those beneath it may."""

    depth: int
    most: int


def loop_depth(state: RunState) -> LoopDepth:
    """How deep the loop of a run stands, by the wire and by the house together."""
    manifest = pinned(state)
    said = route_of(manifest.request).depth
    return LoopDepth(manifest.depth + said, manifest.caps[Dimension.DEPTH] + said)


def loop_entity(
    state: RunState, reading: Reading, *, text: TextOf = by_digest, identity: AgentIdentity | None = None
) -> LoopEntity:
    """A run as its bucket shows it."""
    manifest, ending = pinned(state), state.end.ending
    route, now = route_of(manifest.request), loop_state(state)
    cancelled_by, cancelled_at_ms = _cancelled(state, reading)
    error = error_of(state)
    is_paused = now is LoopState.PAUSED and state.place.paused
    return LoopEntity(
        id=state.run_id,
        task_id=manifest.request.request_id,
        state=now.value,
        role=manifest.role.value,
        model=_model(manifest),
        iterations=state.counts.iterations,
        max_iterations=manifest.request.hints.max_iterations,
        pending_tool_results=_pending(state, text),
        started_at=moment(state.clock.started_at_ms),
        timeout_at=moment(state.clock.deadline_at_ms),
        parent_loop_id=_parent(manifest, route),
        depth=loop_depth(state).depth,
        max_depth=loop_depth(state).most,
        # What is under way goes on: the run pauses where it would order the next thing.
        pause_requested=is_paused and bool(state.commands.open),
        pause_requested_by=state.place.paused_by if is_paused else "",
        state_before_pause=loop_state_unpaused(state).value if is_paused else "",
        cancelled_by=cancelled_by,
        cancelled_at=moment(cancelled_at_ms),
        user_id=manifest.request.user_id,
        channel_type=route.channel_type,
        channel_id=route.channel_id,
        workflow_slug=route.workflow_slug,
        workflow_step=route.workflow_step,
        outcome="" if ending is None else ENDINGS[ending].outcome.value,
        result="" if ending is None else fitting(text(state.result.answer)),
        error="" if error is None else fitting(f"{error.code}: {error.message}"),
        completed_at=moment(reading.ended_at_ms) if ending is not None else "",
        identity=identity,
    )


def loop_created(manifest: Manifest, at_ms: int) -> LoopCreatedEvent:
    """The event of a run that has begun."""
    route = route_of(manifest.request)
    return LoopCreatedEvent(
        loop_id=manifest.run_id,
        task_id=manifest.request.request_id,
        role=manifest.role.value,
        model=_model(manifest),
        workflow_slug=route.workflow_slug,
        workflow_step=route.workflow_step,
        context_request_id=route.context_request_id,
        max_iterations=manifest.request.hints.max_iterations,
        created_at=moment(at_ms),
    )


def loop_ended(state: RunState, reading: Reading, *, text: TextOf = by_digest) -> LoopEnded:
    """The event of a run that has ended: it completed, failed or was cancelled."""
    manifest, ending = pinned(state), state.end.ending
    assert ending is not None, "the run has ended"
    row, route, usage = ENDINGS[ending], route_of(manifest.request), run_usage(state)
    at, request = moment(reading.ended_at_ms), manifest.request
    if row.outcome is Outcome.CANCELLED:
        return LoopCancelledEvent(
            loop_id=state.run_id,
            task_id=request.request_id,
            outcome=row.outcome.value,
            cancelled_by=_cancelled(state, reading)[0],
            workflow_slug=route.workflow_slug,
            workflow_step=route.workflow_step,
            cancelled_at=at,
        )
    if row.outcome is Outcome.SUCCESS:
        return LoopCompletedEvent(
            loop_id=state.run_id,
            task_id=request.request_id,
            outcome=row.outcome.value,
            role=manifest.role.value,
            result=fitting(text(state.result.answer)),
            model=_model(manifest),
            iterations=state.counts.iterations,
            tokens_in=usage.prompt_tokens,
            tokens_out=usage.completion_tokens,
            parent_loop=_parent(manifest, route),
            workflow_slug=route.workflow_slug,
            workflow_step=route.workflow_step,
            completed_at=at,
            channel_type=route.channel_type,
            channel_id=route.channel_id,
            user_id=request.user_id,
        )
    error = error_of(state)
    return LoopFailedEvent(
        loop_id=state.run_id,
        task_id=request.request_id,
        outcome=row.outcome.value,
        reason=ending.value,
        error="" if error is None else fitting(f"{error.code}: {error.message}"),
        role=manifest.role.value,
        model=_model(manifest),
        iterations=state.counts.iterations,
        tokens_in=usage.prompt_tokens,
        tokens_out=usage.completion_tokens,
        workflow_slug=route.workflow_slug,
        workflow_step=route.workflow_step,
        failed_at=at,
        channel_type=route.channel_type,
        channel_id=route.channel_id,
        user_id=request.user_id,
    )


def context_events(turn: Turn, state: RunState) -> Iterator[ContextEvent]:
    """What became of the context of a run in a turn; the state is that after the turn.

    Compressing is one ruling, so its beginning and its end are told together. When an exchange of a session is over, what
    its tools returned is not carried into the next one.
    """
    cap = max(state.spending.caps[Dimension.CONTEXT_TOKENS], 1)
    after, iteration = state.talk.context_tokens, state.counts.iterations
    for decision in turn.decisions:
        if isinstance(decision, ContextCompressed):
            before = after + decision.tokens_saved
            yield ContextEvent(
                type=ContextEventType.COMPACTION_STARTING.value,
                loop_id=state.run_id,
                iteration=iteration,
                utilization=round(before / cap, 4),
            )
            yield ContextEvent(
                type=ContextEventType.COMPACTION_COMPLETE.value,
                loop_id=state.run_id,
                iteration=iteration,
                utilization=round(after / cap, 4),
                tokens_saved=decision.tokens_saved,
                summary=f"results of {len(decision.messages)} earlier calls are shown by their digest",
            )
        elif isinstance(decision, RunEnded) and pinned(state).session is not None:
            results = [entry for entry in state.talk.context if isinstance(entry, Message) and entry.role is Role.TOOL]
            if results:
                yield ContextEvent(
                    type=ContextEventType.GC_COMPLETE.value,
                    loop_id=state.run_id,
                    iteration=iteration,
                    tokens_saved=sum(size_bytes(entry.content) for entry in results),
                    summary=f"results of {len(results)} calls are not carried into the next exchange",
                )


def turn_messages(
    turn: Turn, state: RunState, reading: Reading, *, text: TextOf = by_digest, asked: RequestOf = plainly_asked
) -> Iterator[Record]:
    """Every message that the wire is told of a turn; the state and the reading are those after it.

    Of a run that was forked, what was copied was told as its origin's.
    """
    if is_copied(turn, state):
        return
    if begins(turn, state):
        yield loop_created(pinned(state), turn.at_ms)
    yield from outcomes_of(turn, state, text)
    yield from context_events(turn, state)
    yield from requests_of_turn(turn, state, text, asked)
    if any(isinstance(decision, RunEnded) for decision in turn.decisions):
        yield loop_ended(state, reading, text=text)


def is_copied(turn: Turn, state: RunState) -> bool:
    """Whether a turn is another run's, copied into a fork of it."""
    return turn.seq <= _last_copied(state)


def begins(turn: Turn, state: RunState) -> bool:
    """Whether a turn is the first of a run's own."""
    return turn.seq == _last_copied(state) + 1


def _last_copied(state: RunState) -> int:
    origin = pinned(state).forked_from
    return -1 if origin is None else origin.seq


def trajectory_of(
    state: RunState,
    reading: Reading,
    *,
    text: TextOf = by_digest,
    is_full: bool = False,
    shown: Shown = lambda state, step, messages: messages,
) -> Trajectory:
    """The way of a run so far: its model calls and its tool calls, in the order in which they were ordered or refused.

    `shown` says what of a conversation a step shows its model.
    """
    steps: list[TrajectoryStep] = []
    for step in reading.steps.values():
        if step.kind is StepKind.MODEL:
            messages = shown(state, step, _talk_before(state, reading, step))
            steps.append(_model_step(state, reading, step, messages, text, is_full=is_full))
        elif step.kind in _CALLS or (step.kind is StepKind.CHILD and step.tool):
            steps.append(_tool_step(reading, step, text))
    ended = state.end.ending
    until_ms = reading.ended_at_ms or reading.began_at_ms + reading.now_ms
    return Trajectory(
        loop_id=state.run_id,
        start_time=moment(reading.began_at_ms),
        end_time=moment(reading.ended_at_ms),
        steps=tuple(steps),
        outcome="" if ended is None else ENDINGS[ended].outcome.value,
        total_tokens_in=sum(step.tokens_in for step in steps),
        total_tokens_out=sum(step.tokens_out for step in steps),
        duration=until_ms - reading.began_at_ms,
    )


def _model_step(
    state: RunState,
    reading: Reading,
    step: PerformedStep,
    shown: tuple[Message, ...],
    text: TextOf,
    *,
    is_full: bool,
) -> TrajectoryStep:
    asked = [entry for entry in shown if entry.role is not Role.ASSISTANT]
    answer = _answer(state, step.id)
    return TrajectoryStep(
        timestamp=moment(reading.began_at_ms + step.began_ms),
        step_type=TrajectoryStepType.MODEL_CALL.value,
        request_id=request_id_of(state.run_id, step.id),
        prompt=text(asked[-1].content) if asked else "",
        response=text(step.answered) or step.reason,
        tokens_in=step.usage.prompt_tokens,
        tokens_out=step.usage.completion_tokens,
        duration=max(step.duration_ms, 0),
        messages=chat_of(shown, text) if is_full else (),
        tool_calls=proposed_by(state.run_id, answer) if is_full and answer is not None else (),
        model=step.model or step.name,
    )


def _tool_step(reading: Reading, step: PerformedStep, text: TextOf) -> TrajectoryStep:
    said = text(step.answered)
    return TrajectoryStep(
        timestamp=moment(reading.began_at_ms + step.began_ms),
        step_type=TrajectoryStepType.TOOL_CALL.value,
        tool_name=step.tool or step.name,
        # A call that delegates is asked in words.
        tool_arguments={"prompt": text(step.asked)} if step.kind is StepKind.CHILD else arguments_in(step.asked),
        tool_result=said or ": ".join(part for part in (step.code, step.reason) if part),
        duration=max(step.duration_ms, 0),
    )


def _talk_before(state: RunState, reading: Reading, step: PerformedStep) -> tuple[Message, ...]:
    """The conversation that stood before a model call, with evidence where it had been found by then."""
    found = (one.until_seq for one in reading.steps.values() if one.kind is StepKind.CONTEXT and one.until_seq >= 0)
    return talk_of(state, step.messages, has_evidence=min(found, default=step.seq) <= step.seq)


def _answer(state: RunState, command_id: str) -> ModelAnswered | None:
    answers = (entry for entry in state.talk.context if isinstance(entry, ModelAnswered))
    return next((answer for answer in answers if answer.command_id == command_id), None)


def _pending(state: RunState, text: TextOf) -> dict[str, WireToolResult]:
    """Results of the latest answer's calls, while others of them are still under way."""
    if not any(isinstance(command, CallTool) for command in state.commands.open.values()):
        return {}
    wanted = {(call.call_id, call.tool, call.arguments_hash) for call in state.calls.proposed}
    came = {
        call_id_of(state, key, trace.call_id, trace.tool, trace.arguments_hash): trace
        for key, trace in state.calls.made.items()
        if (trace.call_id, trace.tool, trace.arguments_hash) in wanted and trace.rung is not Rung.ATTEMPTED
    }
    return {call_id: call_result(state.run_id, trace, call_id, text) for call_id, trace in came.items()}


def _cancelled(state: RunState, reading: Reading) -> tuple[str, int]:
    """The person who cancelled a run, and when; no person did where the run ran out of time."""
    if state.end.ending is None or ENDINGS[state.end.ending].outcome is not Outcome.CANCELLED:
        return "", 0
    signals = [step for step in reading.steps.values() if step.kind is StepKind.SIGNAL and step.name == CANCEL]
    by = signals[-1].by if signals and state.end.ending is Ending.USER_CANCEL else ""
    return by, reading.ended_at_ms


def _model(manifest: Manifest) -> str:
    return manifest.models[0].name if manifest.models else ""


def _parent(manifest: Manifest, route: Route) -> str:
    return route.parent_loop_id if manifest.parent is None else manifest.parent.run_id
