"""The event log: what a run did, as events with their correlation, told while it happens or read off its turns.

Rule 1: events are made from turns alone, so a later reader of the journal gets the same ones.
Rule 2: what began has one end: its outcome, or the ending of the run that cut it off.
Rule 3: a run is a span and each of its commands one below it, named RUN.COMMAND. The command that starts a child
        has the child's own name, so the spans of a family make one tree.
Rule 4: inside a plan every event names the step, those of runs beneath it as well; every step that runs has one, and what
        the plan itself does for a step is caused by the step. In a replica of a vote every event is caused by the
        replica, as `replica 2`. A node that every plan has beside
        its steps (plan, prepare, check, done) stands under its own name, which no step may have.
Rule 5: an event log is told; it never decides anything and is no second truth.
"""

from collections.abc import Iterator
from enum import StrEnum
from threading import Lock
from typing import Protocol, TypeAlias

from remit.core.failure import ENDINGS, Ending
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.rulings import UNVERIFIED, Rung
from remit.core.journal.turn import Turn
from remit.core.record import Record, replace, size_bytes
from remit.core.run.correlation import (
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
from remit.core.run.inference import FinishReason
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.messages import Message, Role
from remit.core.work.graph import Ask, Sees
from remit.core.work.plan import ASK_PLANNER
from remit.kernel.state import RunState, graph_of_run, pinned
from remit.observe.fact import Fact, FactKind
from remit.observe.node_names import places_of
from remit.observe.reading import Reading
from remit.observe.steps import ANSWERED_STATUS, FAILED, PerformedStep, StepKind
from remit.observe.views.execution import attempt_of, offered_tools


class Action(StrEnum):
    """The kinds of things that events tell of."""

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


class Telling:
    """Makes events of turns, for as many runs as it is told of, children included."""

    def __init__(self) -> None:
        # Each run as it was read, and where it stands in its lifecycle; what is under way, by the name of its span.
        self._readings: dict[str, Reading] = {}
        self._stands: dict[str, LifecycleState] = {}
        # Which attempt each run was at before this turn: the turn that finds an answer wrong counts the next one already.
        self._attempts: dict[str, int] = {}
        self._open: dict[str, PerformedStep] = {}
        # Which call or step each child was started for, and the step of a plan that it works for.
        self._causes: dict[str, str] = {}
        self._beneath: dict[str, str] = {}

    def follow(self, state: RunState) -> None:
        """Learn what a run has under way that is followed from its middle on; its children are told of it."""
        if state.manifest is not None:
            self._readings[state.run_id] = reading = Reading.of(state)
            self._attempts[state.run_id] = attempt_of(state)
            for step in reading.steps.values():
                self._take_up(state, step)

    def events(self, state: RunState, turn: Turn) -> list[Event]:
        """Take in a turn and the state after it; gives the events that it tells."""
        if state.end.ending is not None and state.end.seq != turn.seq:
            return []  # An addendum: the run's spans have ended with it.
        if (reading := self._readings.get(state.run_id)) is None:
            reading = self._readings[state.run_id] = Reading.of(state) if turn.seq else Reading()
        facts = reading.take(turn)
        heard = {fact.step.id: fact.step for fact in facts if fact.kind is FactKind.HEARD}
        told = [
            Event(turn.at_ms, state.run_id, action, what, step)
            for fact in facts
            for action, what, step in self._told(state, fact, heard.get(fact.step.id))
        ]
        if state.end.ending is None:
            self._attempts[state.run_id] = attempt_of(state)
        return told

    def _told(self, state: RunState, fact: Fact, heard: PerformedStep | None) -> "Iterator[_Told]":
        """Take in a fact; gives the events that it tells. `heard` is its step as the outcome of this turn left it."""
        match fact.kind:
            case FactKind.STARTED:
                self._stands[state.run_id] = LifecycleState.INIT
            case FactKind.ENTERED:
                graph = graph_of_run(state)
                stands = graph.nodes[graph.index[fact.step.name]].lifecycle
                yield from self._moved(state, fact, stands, fact.step.status)
            case FactKind.ENDED:
                yield from self._doubted(state, fact)
                yield from self._moved(state, fact, ENDINGS[Ending(fact.step.name)].lifecycle, fact.step.name)
                for known in (self._readings, self._stands, self._attempts, self._causes, self._beneath):
                    known.pop(state.run_id, None)
            case FactKind.BEGUN:
                self._take_up(state, fact.step)
                yield from self._began(state, fact.step)
            case FactKind.SETTLED if self._open.pop(_span(state, fact.step), None) is not None:
                yield from self._settled(state, fact, heard)

    def _place(self, state: RunState, node: str) -> str:
        """The step of a plan that a node is, or for which the run works."""
        places = places_of(pinned(state).graph)
        return places.where(node) if places.steps else self._beneath.get(state.run_id, "")

    def _moved(self, state: RunState, fact: Fact, stands: LifecycleState, reason: str) -> "Iterator[_Told]":
        # Of a run that is followed from its middle on, it is not known where it stood before its first move.
        stood = self._stands.get(state.run_id, stands)
        self._stands[state.run_id] = stands
        if stands is not stood:
            node, run = fact.step.node, self._run(state)
            own = places_of(pinned(state).graph).step(node)
            context = replace(run, caused_by=own) if own else run
            before = self._attempts.get(state.run_id, 1)
            attempt = before if stands is LifecycleState.VALIDATE else attempt_of(state)
            moved = LifecycleTransitionEvent(context, stood, stands, attempt, reason)
            yield Action.LIFECYCLE, moved, self._place(state, node)

    def _take_up(self, state: RunState, step: PerformedStep) -> None:
        """Note that a step is under way; a child hears for what."""
        self._open.setdefault(_span(state, step), step)
        if step.kind is StepKind.CHILD:
            own = places_of(pinned(state).graph).step(step.node)
            self._causes[step.run_id] = own or step.call_id or step.id
            self._beneath[step.run_id] = self._place(state, step.node)

    def _began(self, state: RunState, step: PerformedStep) -> "Iterator[_Told]":
        place = self._place(state, step.node)
        if step.kind is StepKind.MODEL:
            yield Action.INFER, _inference_start(state, step, self._below_step(state, step)), place
        elif step.call_id:
            context = self._below_call(state, step)
            yield Action.TOOL, ToolStartEvent(context, step.tool, step.call_id, step.arguments_hash.hex()), place

    def _settled(self, state: RunState, fact: Fact, heard: PerformedStep | None) -> "Iterator[_Told]":
        step, place = fact.step, self._place(state, fact.step.node)
        took_ms = (heard.measured_ms if heard is not None else 0) or self._took_ms(state, fact, step)
        match step.kind:
            case StepKind.MODEL:
                yield Action.INFER, _inferred(self._below_step(state, step), heard, took_ms), place
            case StepKind.CONTEXT:
                size = size_bytes(heard.answered) if heard is not None else 0
                error = _why_cut(state) if heard is None else heard.reason
                yield Action.CONTEXT, ContextEvent(self._below_step(state, step), took_ms, size, error), place
            # Code that proposes the calls of a step is told by those calls.
            case StepKind.CODE if place and not step.proposed:
                error = _why_cut(state) if heard is None else heard.reason if heard.status == FAILED else ""
                yield Action.CODE, CodeEvent(self._below_step(state, step), step.name, took_ms, error), place
            case StepKind.TOOL | StepKind.CHILD if step.call_id:
                code = _code(state, step, was_cut=heard is None)
                yield Action.TOOL, self._called(state, step, took_ms, code), place

    def _doubted(self, state: RunState, fact: Fact) -> "Iterator[_Told]":
        """The ends of calls whose outcome is unknown; everything else was settled before the run ended."""
        for command_id, code in state.commands.doubted.items():
            step = self._readings[state.run_id].steps.get(command_id)
            if step is not None and step.kind is StepKind.TOOL and self._open.pop(_span(state, step), None) is not None:
                called = self._called(state, step, self._took_ms(state, fact, step), code)
                yield Action.TOOL, called, self._place(state, step.node)

    def _took_ms(self, state: RunState, fact: Fact, step: PerformedStep) -> int:
        return fact.at_ms - state.clock.started_at_ms - step.began_ms

    def _called(self, state: RunState, step: PerformedStep, took_ms: int, code: str) -> ToolEndEvent:
        return ToolEndEvent(
            correlation=self._below_call(state, step),
            tool_name=step.tool,
            tool_call_id=step.call_id,
            duration_ms=took_ms,
            success=not code,
            error_code=code,
        )

    def _below_step(self, state: RunState, step: PerformedStep) -> CorrelationContext:
        return below_step(
            self._run(state), span_id=_span(state, step), step_name=_replica(state) or self._place(state, step.node)
        )

    def _below_call(self, state: RunState, step: PerformedStep) -> CorrelationContext:
        # A plan makes its calls itself: no model asked for them, and their id is known to nothing else.
        if places_of(pinned(state).graph).steps:
            return self._below_step(state, step)
        return below_tool_call(self._run(state), span_id=_span(state, step), tool_call_id=step.call_id)

    def _run(self, state: RunState) -> CorrelationContext:
        manifest = pinned(state)
        request, parent = manifest.request, manifest.parent
        above = "" if parent is None else parent.run_id
        cause = "" if parent is None else _replica(state) or self._causes.get(state.run_id, parent.command_id)
        return CorrelationContext(
            request_id=request.request_id,
            session_id=request.session_id,
            trace_id=request.trace_id,
            span_id=state.run_id,
            parent_span_id=above,
            caused_by=cause,
        )


def _replica(state: RunState) -> str:
    """What a run is called that is a replica of a vote; empty for any other."""
    number = pinned(state).replica
    return f"replica {number}" if number else ""


_Told: TypeAlias = tuple[Action, _What, str]


def _inferred(context: CorrelationContext, heard: PerformedStep | None, took_ms: int) -> InferenceEndEvent:
    if heard is None:
        return InferenceEndEvent(
            correlation=context,
            duration_ms=took_ms,
            tokens_in=0,
            tokens_out=0,
            finish_reason=FinishReason.ERROR,
            tool_call_count=0,
        )
    usage, calls = heard.usage, len(heard.proposed)
    reason = FinishReason.TOOL if calls else FinishReason.STOP
    return InferenceEndEvent(
        correlation=context,
        duration_ms=usage.duration_ms or took_ms,
        tokens_in=usage.prompt_tokens,
        tokens_out=usage.completion_tokens,
        finish_reason=reason if heard.status == ANSWERED_STATUS else FinishReason.ERROR,
        tool_call_count=calls,
    )


def _inference_start(state: RunState, step: PerformedStep, context: CorrelationContext) -> InferenceStartEvent:
    """What this very call sends: what its node asks for comes before what the request asks for."""
    request, graph = pinned(state).request, graph_of_run(state)
    ask = graph.nodes[graph.index[step.node]].ask or Ask()
    offered = [name for name in offered_tools(state) if ask.tools is None or name in ask.tools]
    own = ask.words or ask.schema or ask.grammar
    return InferenceStartEvent(
        context,
        message_count=_shown(state, step, ask.sees) + bool(ask.instruction),
        tool_defs_count=0 if state.talk.is_wrapping else len(offered),
        schema_present=bool(ask.schema) if own else request.output.schema is not None,
        grammar_present=bool(ask.grammar if own else request.output.grammar),
        temperature=request.hints.temperature,
    )


def _shown(state: RunState, step: PerformedStep, sees: Sees) -> int:
    """How many messages of its context a call shows its model, evidence among them."""
    if sees is Sees.USER:
        return sum(message.role is Role.USER for message in pinned(state).request.messages)
    evidence = int(bool(state.talk.ephemeral))
    if sees is Sees.EVERYTHING:
        # What the model of a planner said is no part of what others are shown.
        return step.messages + evidence - (ASK_PLANNER in graph_of_run(state).index)
    asked = len(pinned(state).request.messages)
    if sees is Sees.REQUEST:
        return asked + evidence
    said = state.talk.context[asked : step.messages]
    result = next((one for one in reversed(said) if isinstance(one, Message) and one.role is Role.TOOL), None)
    if result is None:
        return asked + evidence
    calls = (call.call_id for one in said if isinstance(one, ModelAnswered) for call in one.calls)
    # A result is shown behind the call that it answers.
    return asked + evidence + 1 + (result.tool_call_id in calls)


def _code(state: RunState, step: PerformedStep, *, was_cut: bool) -> str:
    """Why a call failed; empty when it did not."""
    if step.kind is StepKind.TOOL:
        return "" if step.rung == Rung.COMMITTED or step.code == UNVERIFIED else step.code
    return _why_cut(state) if was_cut else str(state.calls.made[step.id].code)


def _why_cut(state: RunState) -> str:
    """The code of the ending that settled what had no outcome."""
    return str(state.end.error or state.end.ending)


def _span(state: RunState, step: PerformedStep) -> str:
    """The span of a step: that of the run which it started, or one of its own."""
    return step.run_id or f"{state.run_id}.{step.id}"
