"""Correlation: the identifiers that tie an event to its request, and the events that carry them.

Rule 1: every event holds the whole context; nothing about a request has to be guessed from its neighbours.
Rule 2: a span below another names it as its parent and says what caused it: the id of the tool call that the
        model asked for, the name of the plan step, or the replica of a vote.
Rule 3: an event has no defaults, so every one of its fields is always written.
Rule 4: these are views for people and tools; the journal is the truth they are made from.
"""

from typing import TypeAlias

import msgspec

from remit.core.record import Record
from remit.core.run.inference import FinishReason
from remit.core.run.lifecycle import LifecycleState


class CorrelationContext(Record):
    """Where an event belongs. The session is empty outside a conversation, the parent at the root."""

    request_id: str
    session_id: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    caused_by: str = ""


def below_tool_call(parent: CorrelationContext, *, span_id: str, tool_call_id: str) -> CorrelationContext:
    """The context of a tool's execution: caused by the call in the model's answer."""
    return _below(parent, span_id, tool_call_id)


def below_step(parent: CorrelationContext, *, span_id: str, step_name: str) -> CorrelationContext:
    """The context of a plan step's execution: caused by the step."""
    return _below(parent, span_id, step_name)


def _below(parent: CorrelationContext, span_id: str, caused_by: str) -> CorrelationContext:
    return msgspec.structs.replace(parent, span_id=span_id, parent_span_id=parent.span_id, caused_by=caused_by)


class InferenceStartEvent(Record, tag="inference_start"):
    """A model is about to be asked. A temperature of None is the engine's default."""

    correlation: CorrelationContext
    message_count: int
    tool_defs_count: int
    schema_present: bool
    grammar_present: bool
    temperature: float | None


class InferenceEndEvent(Record, tag="inference_end"):
    """A model answered or failed."""

    correlation: CorrelationContext
    duration_ms: int
    tokens_in: int
    tokens_out: int
    finish_reason: FinishReason
    tool_call_count: int


class ToolStartEvent(Record, tag="tool_start"):
    """A tool is about to be called. The hash is over the canonical arguments, in hexadecimal: equal calls show."""

    correlation: CorrelationContext
    tool_name: str
    tool_call_id: str
    args_hash: str


class ToolEndEvent(Record, tag="tool_end"):
    """A tool returned or failed; a failure names its code, a success leaves it empty."""

    correlation: CorrelationContext
    tool_name: str
    tool_call_id: str
    duration_ms: int
    success: bool
    error_code: str


class LifecycleTransitionEvent(Record, tag="lifecycle_transition"):
    """A run moved from one lifecycle state to another, and why."""

    correlation: CorrelationContext
    from_state: LifecycleState
    to_state: LifecycleState
    attempt: int
    reason: str


CorrelatedEvent: TypeAlias = (
    InferenceStartEvent | InferenceEndEvent | ToolStartEvent | ToolEndEvent | LifecycleTransitionEvent
)
