"""The event log: what a run did, as events with their correlation, told while it happens or read off its turns.

Rule 1: events are made from turns alone, so whoever reads the journal later gets the same ones.
Rule 2: what began has one end: its outcome, or the ending of the run that cut it off.
Rule 3: a run is a span and each of its commands one below it, named RUN.COMMAND. The command that starts a child
        has the child's own name, so the spans of a family make one tree.
Rule 4: an event log is told; it never decides anything and is no second truth.
"""

from collections.abc import Iterable
from enum import StrEnum
from threading import Lock
from typing import Any, Protocol, TypeAlias

from remit.core.arrivals import ContextFailed, ContextFound, ModelAnswered, ModelFailed, RunStarted
from remit.core.commands import CallModel, CallTool, Command, Retrieve, StartChild
from remit.core.correlation import (
    CorrelatedEvent,
    CorrelationContext,
    InferenceEndEvent,
    InferenceStartEvent,
    LifecycleTransitionEvent,
    ToolEndEvent,
    ToolStartEvent,
    below_step,
    below_tool_call,
)
from remit.core.events import Turn
from remit.core.failure import ENDINGS
from remit.core.inference import FinishReason
from remit.core.lifecycle import LifecycleState
from remit.core.record import Record, size_bytes
from remit.core.rulings import CallSettled, CommandSettled, NodeEntered, RunEnded, Rung
from remit.core.usage import TokenUsage
from remit.kernel.state import RunState, compiled, pinned
from remit.observe.execution import selected_tools


class Action(StrEnum):
    """What kind of thing happened."""

    INFER = "infer"
    TOOL = "tool"
    CONTEXT = "context"
    LIFECYCLE = "lifecycle"


class ContextEvent(Record, tag="context"):
    """Evidence was asked for. An error means that the exchange went on without any."""

    correlation: CorrelationContext
    duration_ms: int
    size_bytes: int
    error: str


class Event(Record):
    """One thing that happened in a run, and when."""

    at_ms: int
    run_id: str
    action: Action
    what: CorrelatedEvent | ContextEvent


class EventLog(Protocol):
    """Takes events as they happen."""

    def record(self, event: Event) -> None:
        """Take one event. Whatever is raised here is logged, and the run goes on."""


class InMemoryEventLog:
    """Keeps events until it is dropped. It may be read from another thread while a run goes on."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = Lock()

    def record(self, event: Event) -> None:
        """Keep one event."""
        with self._lock:
            self._events.append(event)

    def events(self) -> list[Event]:
        """All events so far, oldest first; the list is the caller's own, and events never change."""
        with self._lock:
            return list(self._events)


_What: TypeAlias = CorrelatedEvent | ContextEvent


class Telling:
    """Makes events of turns, for as many runs as it is told of, children included."""

    def __init__(self) -> None:
        # What is under way, by the name of its span, and since when; where each run stands in its lifecycle.
        self._open: dict[str, tuple[Command, int]] = {}
        self._stands: dict[str, LifecycleState] = {}
        # Which call each child was started for.
        self._causes: dict[str, str] = {}

    def events(self, state: RunState, turn: Turn) -> list[Event]:
        """What a turn tells, given the run as it stands after it."""
        if state.ending is not None and state.ended_seq != turn.seq:
            return []  # An addendum: the run's spans have ended with it.
        if isinstance(turn.arrival, RunStarted):
            self._stands[state.run_id] = LifecycleState.INIT
        said: list[Event] = []
        for decision in turn.decisions:
            match decision:
                case NodeEntered():
                    graph = compiled(state)
                    stands = graph.nodes[graph.index[decision.node]].lifecycle
                    said += self._moved(state, turn, stands, str(decision.outcome))
                case RunEnded():
                    said += self._doubted(state, turn)
                    said += self._moved(state, turn, ENDINGS[decision.ending].lifecycle, decision.ending.value)
                    self._forget(state)
                case CallModel() | CallTool() | StartChild() | Retrieve():
                    said += self._began(state, turn, decision)
                case CommandSettled() | CallSettled():
                    said += self._settled(state, turn, decision)
        return said

    def _moved(self, state: RunState, turn: Turn, stands: LifecycleState, reason: str) -> list[Event]:
        # Of a run that is followed from its middle on, nobody here knows where it stood before its first move.
        stood = self._stands.get(state.run_id, stands)
        self._stands[state.run_id] = stands
        if stands is stood:
            return []
        moved = LifecycleTransitionEvent(self._run(state), stood, stands, state.repairs + 1, reason)
        return [_event(state, turn, Action.LIFECYCLE, moved)]

    def _forget(self, state: RunState) -> None:
        del self._stands[state.run_id]
        self._causes.pop(state.run_id, None)

    def _began(self, state: RunState, turn: Turn, command: Command) -> list[Event]:
        span = f"{state.run_id}.{command.id}"
        if isinstance(command, StartChild):
            self._causes[command.run_id] = command.call_id or command.id
        self._open[span] = (command, turn.at_ms)
        started: _What
        match command:
            case CallModel():
                started = _inference_start(state, command, below_step(self._run(state), span_id=span, step_name=""))
                return [_event(state, turn, Action.INFER, started)]
            case CallTool() | StartChild() if command.call_id:
                context = self._below_call(state, span, command.call_id)
                started = ToolStartEvent(context, command.tool, command.call_id, command.arguments_hash.hex())
                return [_event(state, turn, Action.TOOL, started)]
        return []

    def _settled(self, state: RunState, turn: Turn, ruling: CommandSettled | CallSettled) -> list[Event]:
        span = f"{state.run_id}.{ruling.command_id}"
        command, since_ms = self._open.pop(span, (None, 0))
        arrival: Any = turn.arrival if getattr(turn.arrival, "command_id", "") == ruling.command_id else None
        measured: int = getattr(arrival, "duration_ms", 0)
        took_ms = measured or turn.at_ms - since_ms
        match command:
            case CallModel():
                return [_event(state, turn, Action.INFER, self._inferred(state, span, arrival, took_ms))]
            case Retrieve():
                return [_event(state, turn, Action.CONTEXT, self._looked_up(state, span, arrival, took_ms))]
            case CallTool() | StartChild() if command.call_id:
                code = _code(state, ruling, was_cut=arrival is None)
                return [_event(state, turn, Action.TOOL, self._called(state, span, command, took_ms, code))]
        return []

    def _doubted(self, state: RunState, turn: Turn) -> list[Event]:
        """The ends of calls whose outcome nobody knows; everything else was settled before the run ended."""
        said: list[Event] = []
        for command_id, code in state.doubted.items():
            span = f"{state.run_id}.{command_id}"
            command, since_ms = self._open.pop(span, (None, 0))
            if isinstance(command, CallTool):
                called = self._called(state, span, command, turn.at_ms - since_ms, code)
                said.append(_event(state, turn, Action.TOOL, called))
        return said

    def _inferred(self, state: RunState, span: str, arrival: object, took_ms: int) -> InferenceEndEvent:
        context = below_step(self._run(state), span_id=span, step_name="")
        answered = arrival if isinstance(arrival, ModelAnswered | ModelFailed) else None
        usage = TokenUsage() if answered is None else answered.usage
        calls = len(answered.calls) if isinstance(answered, ModelAnswered) else 0
        reason = FinishReason.TOOL if calls else FinishReason.STOP
        return InferenceEndEvent(
            context,
            usage.duration_ms or took_ms,
            usage.prompt_tokens,
            usage.completion_tokens,
            reason if isinstance(answered, ModelAnswered) else FinishReason.ERROR,
            calls,
        )

    def _looked_up(self, state: RunState, span: str, arrival: object, took_ms: int) -> ContextEvent:
        context = below_step(self._run(state), span_id=span, step_name="")
        if isinstance(arrival, ContextFound):
            return ContextEvent(context, took_ms, size_bytes(arrival.text), "")
        error = arrival.error if isinstance(arrival, ContextFailed) else _why_cut(state)
        return ContextEvent(context, took_ms, 0, error)

    def _called(
        self, state: RunState, span: str, command: CallTool | StartChild, took_ms: int, code: str
    ) -> ToolEndEvent:
        context = self._below_call(state, span, command.call_id)
        return ToolEndEvent(context, command.tool, command.call_id, took_ms, not code, code)

    def _below_call(self, state: RunState, span: str, call_id: str) -> CorrelationContext:
        return below_tool_call(self._run(state), span_id=span, tool_call_id=call_id)

    def _run(self, state: RunState) -> CorrelationContext:
        manifest = pinned(state)
        request, parent = manifest.request, manifest.parent
        above = "" if parent is None else parent.run_id
        cause = "" if parent is None else self._causes.get(state.run_id, parent.command_id)
        return CorrelationContext(request.request_id, request.session_id, request.trace_id, state.run_id, above, cause)


def events_of(followed: Iterable[tuple[Turn, RunState]]) -> list[Event]:
    """The events of one run, from its turns and the state after each; observe/history.py gives both."""
    telling = Telling()
    return [event for turn, state in followed for event in telling.events(state, turn)]


def _event(state: RunState, turn: Turn, action: Action, what: _What) -> Event:
    return Event(turn.at_ms, state.run_id, action, what)


def _inference_start(state: RunState, command: CallModel, context: CorrelationContext) -> InferenceStartEvent:
    request = pinned(state).request
    return InferenceStartEvent(
        context,
        message_count=command.messages_count + bool(state.ephemeral),
        tool_defs_count=len(selected_tools(state)),
        schema_present=request.output.schema is not None,
        grammar_present=bool(request.output.grammar),
        temperature=request.hints.temperature,
    )


def _code(state: RunState, ruling: CommandSettled | CallSettled, *, was_cut: bool) -> str:
    """Why a call failed; empty when it did not."""
    if isinstance(ruling, CallSettled):
        return "" if ruling.rung is Rung.COMMITTED else str(ruling.code)
    return _why_cut(state) if was_cut else str(state.calls[ruling.command_id].code)


def _why_cut(state: RunState) -> str:
    """The code of the ending that settled what had no outcome."""
    return str(state.error or state.ending)
