"""The event log: what a run did, as events with their correlation, told while it happens or read off its turns.

Rule 1: events are made from turns alone, so whoever reads the journal later gets the same ones.
Rule 2: what began has one end: its outcome, or the ending of the run that cut it off.
Rule 3: a run is a span and each of its commands one below it, named RUN.COMMAND. The command that starts a child
        has the child's own name, so the spans of a family make one tree.
Rule 4: inside a plan every event names the step, those of runs beneath it as well; every step that runs has one, and what
        the plan itself does for a step is caused by the step. A node that every plan has beside
        its steps (plan, prepare, check, done) stands under its own name, which no step may have.
Rule 5: an event log is told; it never decides anything and is no second truth.
"""

from collections.abc import Iterable
from enum import StrEnum
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeAlias

from remit.core.arrivals import CodeFailed, ContextFailed, ContextFound, ModelAnswered, ModelFailed, RunStarted
from remit.core.commands import CallCode, CallModel, CallTool, Command, Retrieve, StartChild
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
from remit.core.record import Record, replace, size_bytes
from remit.core.rulings import UNVERIFIED, CallSettled, CommandSettled, NodeEntered, RunEnded, Rung
from remit.core.usage import TokenUsage
from remit.kernel.state import RunState, compiled, pinned, standing_at
from remit.observe.execution import attempt_of, offered_tools
from remit.observe.places import places_of


class Action(StrEnum):
    """What kind of thing happened."""

    INFER = "infer"
    TOOL = "tool"
    CONTEXT = "context"
    CODE = "code"
    LIFECYCLE = "lifecycle"


class ContextEvent(Record, tag="context"):
    """Evidence was asked for. An error means that the exchange went on without any."""

    correlation: CorrelationContext
    duration_ms: int
    size_bytes: int
    error: str


class CodeEvent(Record, tag="code"):
    """Code was run for a step of a plan: a function, a ranking, a choice, a check. An error says why it came to nothing."""

    correlation: CorrelationContext
    name: str
    duration_ms: int
    error: str


class Event(Record):
    """One thing that happened in a run, and when; inside a plan, at which step."""

    at_ms: int
    run_id: str
    action: Action
    what: CorrelatedEvent | ContextEvent | CodeEvent
    step_name: str = ""


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


_What: TypeAlias = CorrelatedEvent | ContextEvent | CodeEvent


class _Open(NamedTuple):
    """What is under way: since when, and at which step of a plan."""

    command: Command
    since_ms: int
    step: str


class Telling:
    """Makes events of turns, for as many runs as it is told of, children included."""

    def __init__(self) -> None:
        # What is under way, by the name of its span; where each run stands in its lifecycle, and at which node.
        self._open: dict[str, _Open] = {}
        self._stands: dict[str, LifecycleState] = {}
        self._nodes: dict[str, str] = {}
        # Which call or step each child was started for, and the step of a plan that it works for.
        self._causes: dict[str, str] = {}
        self._beneath: dict[str, str] = {}

    def follow(self, state: RunState) -> None:
        """Learn what a run has under way that is followed from its middle on; its children are told of it."""
        if state.node >= 0:
            self._nodes.setdefault(state.run_id, standing_at(state).name)
        for command in state.open.values():
            if isinstance(command, CallModel | CallTool | StartChild | Retrieve | CallCode):
                self._take_up(state, command, state.at_ms)

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
                    self._nodes[state.run_id] = decision.node
                    stands = graph.nodes[graph.index[decision.node]].lifecycle
                    said += self._moved(state, turn, stands, str(decision.outcome))
                case RunEnded():
                    said += self._doubted(state, turn)
                    said += self._moved(state, turn, ENDINGS[decision.ending].lifecycle, decision.ending.value)
                    self._forget(state)
                case CallModel() | CallTool() | StartChild() | Retrieve() | CallCode():
                    said += self._began(state, turn, decision)
                case CommandSettled() | CallSettled():
                    said += self._settled(state, turn, decision)
        return said

    def _step(self, state: RunState) -> str:
        """The step of a plan at which the run stands, or for which it works."""
        places = places_of(pinned(state).graph)
        if not places.steps:
            return self._beneath.get(state.run_id, "")
        node = self._nodes.get(state.run_id) or (standing_at(state).name if state.node >= 0 else "")
        return places.where(node)

    def _own_step(self, state: RunState) -> str:
        """The step at which a plan stands; empty between its steps, and in a run that is no plan."""
        return places_of(pinned(state).graph).step(self._nodes.get(state.run_id, ""))

    def _moved(self, state: RunState, turn: Turn, stands: LifecycleState, reason: str) -> list[Event]:
        # Of a run that is followed from its middle on, nobody here knows where it stood before its first move.
        stood = self._stands.get(state.run_id, stands)
        self._stands[state.run_id] = stands
        if stands is stood:
            return []
        run, step = self._run(state), self._own_step(state)
        context = replace(run, caused_by=step) if step else run
        moved = LifecycleTransitionEvent(context, stood, stands, attempt_of(state), reason)
        return [_event(state, turn, Action.LIFECYCLE, moved, self._step(state))]

    def _forget(self, state: RunState) -> None:
        for known in (self._stands, self._nodes, self._causes, self._beneath):
            known.pop(state.run_id, None)

    def _take_up(self, state: RunState, command: Command, at_ms: int) -> None:
        """Note that a command is under way, and for which step; a child hears of it."""
        step = self._step(state)
        self._open.setdefault(_span(state, command.id), _Open(command, at_ms, step))
        if isinstance(command, StartChild):
            self._causes[command.run_id] = self._own_step(state) or command.call_id or command.id
            self._beneath[command.run_id] = step

    def _began(self, state: RunState, turn: Turn, command: Command) -> list[Event]:
        span, step = _span(state, command.id), self._step(state)
        self._take_up(state, command, turn.at_ms)
        started: _What
        match command:
            case CallModel():
                started = _inference_start(state, command, self._below_step(state, span, step))
                return [_event(state, turn, Action.INFER, started, step)]
            case CallTool() | StartChild() if command.call_id:
                context = self._below_call(state, span, command.call_id, step)
                started = ToolStartEvent(context, command.tool, command.call_id, command.arguments_hash.hex())
                return [_event(state, turn, Action.TOOL, started, step)]
        return []

    def _settled(self, state: RunState, turn: Turn, ruling: CommandSettled | CallSettled) -> list[Event]:
        span = _span(state, ruling.command_id)
        began = self._open.pop(span, None)
        if began is None:
            return []
        arrival: Any = turn.arrival if getattr(turn.arrival, "command_id", "") == ruling.command_id else None
        measured: int = getattr(arrival, "duration_ms", 0)
        took_ms, step = measured or turn.at_ms - began.since_ms, began.step
        match began.command:
            case CallModel():
                context = self._below_step(state, span, step)
                return [_event(state, turn, Action.INFER, _inferred(context, arrival, took_ms), step)]
            case Retrieve():
                context = self._below_step(state, span, step)
                return [_event(state, turn, Action.CONTEXT, _looked_up(state, context, arrival, took_ms), step)]
            # Code that proposes the calls of a step is told by those calls.
            case CallCode() as command if step and not getattr(arrival, "calls", ()):
                context = self._below_step(state, span, step)
                ran = CodeEvent(context, command.name, took_ms, _why_it_failed(state, arrival))
                return [_event(state, turn, Action.CODE, ran, step)]
            case CallTool() | StartChild() as command if command.call_id:
                code = _code(state, ruling, was_cut=arrival is None)
                called = self._called(state, began, took_ms, code)
                return [_event(state, turn, Action.TOOL, called, step)]
        return []

    def _doubted(self, state: RunState, turn: Turn) -> list[Event]:
        """The ends of calls whose outcome nobody knows; everything else was settled before the run ended."""
        said: list[Event] = []
        for command_id, code in state.doubted.items():
            span = _span(state, command_id)
            began = self._open.pop(span, None)
            if began is not None and isinstance(began.command, CallTool):
                called = self._called(state, began, turn.at_ms - began.since_ms, code)
                said.append(_event(state, turn, Action.TOOL, called, began.step))
        return said

    def _called(self, state: RunState, began: _Open, took_ms: int, code: str) -> ToolEndEvent:
        command = began.command
        assert isinstance(command, CallTool | StartChild), "only calls are told as calls"
        context = self._below_call(state, _span(state, command.id), command.call_id, began.step)
        return ToolEndEvent(context, command.tool, command.call_id, took_ms, not code, code)

    def _below_step(self, state: RunState, span: str, step: str) -> CorrelationContext:
        return below_step(self._run(state), span_id=span, step_name=step)

    def _below_call(self, state: RunState, span: str, call_id: str, step: str) -> CorrelationContext:
        # A plan makes its calls itself: no model asked for them, and their id is known to nobody else.
        if places_of(pinned(state).graph).steps:
            return self._below_step(state, span, step)
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


def _event(state: RunState, turn: Turn, action: Action, what: _What, step: str) -> Event:
    return Event(turn.at_ms, state.run_id, action, what, step)


def _inferred(context: CorrelationContext, arrival: object, took_ms: int) -> InferenceEndEvent:
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


def _looked_up(state: RunState, context: CorrelationContext, arrival: object, took_ms: int) -> ContextEvent:
    if isinstance(arrival, ContextFound):
        return ContextEvent(context, took_ms, size_bytes(arrival.text), "")
    error = arrival.error if isinstance(arrival, ContextFailed) else _why_cut(state)
    return ContextEvent(context, took_ms, 0, error)


def _why_it_failed(state: RunState, arrival: object) -> str:
    """Why code came to nothing; empty where it returned."""
    if isinstance(arrival, CodeFailed):
        return arrival.error
    return _why_cut(state) if arrival is None else ""


def _inference_start(state: RunState, command: CallModel, context: CorrelationContext) -> InferenceStartEvent:
    request = pinned(state).request
    return InferenceStartEvent(
        context,
        message_count=command.messages_count + bool(state.ephemeral),
        tool_defs_count=len(offered_tools(state)),
        schema_present=request.output.schema is not None,
        grammar_present=bool(request.output.grammar),
        temperature=request.hints.temperature,
    )


def _code(state: RunState, ruling: CommandSettled | CallSettled, *, was_cut: bool) -> str:
    """Why a call failed; empty when it did not."""
    if isinstance(ruling, CallSettled):
        return "" if ruling.rung is Rung.COMMITTED or ruling.code == UNVERIFIED else str(ruling.code)
    return _why_cut(state) if was_cut else str(state.calls[ruling.command_id].code)


def _why_cut(state: RunState) -> str:
    """The code of the ending that settled what had no outcome."""
    return str(state.error or state.ending)


def _span(state: RunState, command_id: str) -> str:
    """The span of a command: that of the run which it started, or one of its own."""
    return state.beneath.get(command_id) or f"{state.run_id}.{command_id}"
