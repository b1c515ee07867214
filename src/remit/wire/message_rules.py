"""What a message of the wire must say. The same rules hold for what is read and for what is written.

Rule 1: of the table RULES the first eight rows are the wire's own rules; the others demand what a loop could not do without.
Rule 2: a rule names the field, its value and what it may be.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from remit.core.limits.tools import ToolChoiceMode
from remit.core.record import Record
from remit.core.run.lifecycle import AgentRole, LoopState, Outcome
from remit.core.run.messages import Role
from remit.core.run.signals import Signal
from remit.wire.message_records import (
    AgentIdentity,
    AgentRequest,
    AgentResponse,
    Attachment,
    ChatMessage,
    ConstructedContext,
    ContextEvent,
    ContextSource,
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopEntity,
    LoopFailedEvent,
    ResponseAction,
    ResponseBlock,
    SignalMessage,
    TaskMessage,
    Trajectory,
    TrajectoryStep,
    UserMessage,
    UserResponse,
    WireSignal,
    WireToolCall,
    WireToolChoice,
    WireToolDefinition,
    WireToolResult,
)
from remit.wire.message_texts import ZERO_MOMENT, moment_ms
from remit.wire.subjects import ID_CHARS_MAX


class ResponseStatus(StrEnum):
    """What a model's response is."""

    COMPLETE = "complete"
    TOOL_CALL = "tool_call"
    ERROR = "error"


class TrajectoryStepType(StrEnum):
    """What a step of a trajectory is."""

    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"


class ContextEventType(StrEnum):
    """What became of a context."""

    COMPACTION_STARTING = "compaction_starting"
    COMPACTION_COMPLETE = "compaction_complete"
    GC_COMPLETE = "gc_complete"


class ResponseType(StrEnum):
    """What a user is told."""

    TEXT = "text"
    STATUS = "status"
    RESULT = "result"
    ERROR = "error"
    PROMPT = "prompt"
    STREAM = "stream"


BLOCK_TYPES = ("text", "code", "diff", "file", "progress")
ACTION_TYPES = ("button", "reaction")
ACTION_STYLES = ("primary", "danger", "secondary")
ATTACHMENT_TYPES = ("file", "image", "code", "url")
SOURCE_TYPES = ("graph_entity", "graph_relationship", "document")

# Rules give what is wrong with a record, in words; nothing where it is in order.
Rule = Callable[[Any], Iterator[str]]


def needs(*fields: str) -> Rule:
    """The rule that these fields hold something."""

    def rule(record: Record) -> Iterator[str]:
        for field in fields:
            value: object = getattr(record, field)
            # The zero moment of other languages is none.
            if not value or value == ZERO_MOMENT:
                yield f"{field} is empty, and needed"

    return rule


def is_one_of(field: str, known: Collection[str], *, or_empty: bool = False) -> Rule:
    """The rule that a field is one of the known words."""

    def rule(record: Record) -> Iterator[str]:
        value: str = getattr(record, field)
        if value not in known and not (or_empty and not value):
            yield f"{field}={value[:80]!r} is none of {', '.join(known)}"

    return rule


def is_moment(*fields: str) -> Rule:
    """The rule that fields which hold something hold a moment."""

    def rule(record: Record) -> Iterator[str]:
        for field in fields:
            value: str = getattr(record, field)
            try:
                moment_ms(value)
            except ValueError:
                yield f"{field}={value[:80]!r} is no moment of RFC 3339, such as 2026-03-13T10:11:12.5Z"

    return rule


def is_id(*fields: str) -> Rule:
    """The rule that a text can be an id: not too long, and printable."""

    def rule(record: Record) -> Iterator[str]:
        for field in fields:
            value: str = getattr(record, field)
            if len(value) > ID_CHARS_MAX or not value.isprintable():
                yield f"{field}={value[:80]!r} has {len(value)} characters; an id has at most {ID_CHARS_MAX} printable ones"

    return rule


def records_keep_rules(field: str, kind: type[Record]) -> Rule:
    """The rule that the records in a field keep the rules of their kind."""

    def rule(record: Record) -> Iterator[str]:
        held = getattr(record, field)
        parts = [held] if isinstance(held, kind) else list(held.values()) if isinstance(held, dict) else held or ()
        for place, part in enumerate(parts):
            shown = field if isinstance(held, kind) else f"{field}[{place}]"
            yield from (f"{shown}: {problem}" for problem in problems_of(part))

    return rule


def _says_something(message: ChatMessage) -> Iterator[str]:
    if not (message.content or message.reasoning_content or message.tool_calls):
        yield "content, reasoning_content and tool_calls are empty; one of them is needed"


def _answers_a_call(message: ChatMessage) -> Iterator[str]:
    if message.role == Role.TOOL and not message.tool_call_id:
        yield "tool_call_id is empty, and a message of role tool needs it"


def _is_positive(entity: LoopEntity) -> Iterator[str]:
    if entity.max_iterations < 1:
        yield f"max_iterations={entity.max_iterations} is not positive"


def _names_its_function(choice: WireToolChoice) -> Iterator[str]:
    if (choice.mode == ToolChoiceMode.FUNCTION) != bool(choice.function_name):
        yield f"mode={choice.mode!r} with function_name={choice.function_name[:80]!r}; mode function names one, and no other"


def _asks_something(task: TaskMessage) -> Iterator[str]:
    if task.prompt and not task.prompt.strip():
        yield "prompt holds nothing but blanks; say what is wanted"


def _has_room_below(task: TaskMessage) -> Iterator[str]:
    if task.max_depth and task.depth > task.max_depth:
        yield f"depth={task.depth} exceeds max_depth={task.max_depth}"


def _holds_content(message: UserMessage) -> Iterator[str]:
    if not (message.content.strip() or message.attachments):
        yield "content is empty and there are no attachments; say something"


def _fits_its_status(response: AgentResponse) -> Iterator[str]:
    if response.status == ResponseStatus.ERROR and not response.error:
        yield "status=error without an error; say what failed"
    if response.status == ResponseStatus.TOOL_CALL and not (response.message and response.message.tool_calls):
        yield "status=tool_call without tool_calls in its message"


def _is_a_share(event: ContextEvent) -> Iterator[str]:
    # More than the whole context can be in use before it is compacted.
    if not 0 <= event.utilization <= 100:
        yield f"utilization={event.utilization} is no share from 0 up"


def _has_outcome(outcome: Outcome) -> Rule:
    return is_one_of("outcome", (outcome.value,))


_ROLES, _LOOP_STATES = tuple(AgentRole), tuple(LoopState)
_CHANNEL = is_id("channel_type", "channel_id", "user_id")

RULES: Mapping[type[Record], tuple[Rule, ...]] = MappingProxyType(
    {
        AgentRequest: (
            needs("request_id", "messages"),
            is_one_of("role", _ROLES),
            is_id("request_id", "loop_id"),
            records_keep_rules("messages", ChatMessage),
            records_keep_rules("tools", WireToolDefinition),
            records_keep_rules("tool_choice", WireToolChoice),
        ),
        AgentResponse: (
            is_one_of("status", tuple(ResponseStatus)),
            needs("request_id"),
            is_id("request_id"),
            records_keep_rules("message", ChatMessage),
            _fits_its_status,
        ),
        ChatMessage: (
            is_one_of("role", tuple(Role)),
            _says_something,
            _answers_a_call,
            records_keep_rules("tool_calls", WireToolCall),
        ),
        WireToolDefinition: (needs("name", "parameters"),),
        WireToolCall: (needs("id", "name"), is_id("id", "loop_id", "trace_id")),
        WireToolResult: (needs("call_id"), is_id("call_id", "loop_id", "trace_id")),
        TrajectoryStep: (
            is_one_of("step_type", tuple(TrajectoryStepType)),
            needs("timestamp"),
            is_moment("timestamp"),
            records_keep_rules("messages", ChatMessage),
            records_keep_rules("tool_calls", WireToolCall),
        ),
        LoopEntity: (
            needs("id"),
            is_one_of("state", _LOOP_STATES),
            _is_positive,
            is_one_of("state_before_pause", _LOOP_STATES, or_empty=True),
            is_one_of("outcome", tuple(Outcome), or_empty=True),
            is_moment("started_at", "timeout_at", "cancelled_at", "completed_at"),
            records_keep_rules("pending_tool_results", WireToolResult),
            records_keep_rules("identity", AgentIdentity),
        ),
        WireToolChoice: (is_one_of("mode", tuple(ToolChoiceMode)), _names_its_function),
        ContextSource: (is_one_of("type", SOURCE_TYPES), needs("id")),
        ConstructedContext: (
            needs("content"),
            records_keep_rules("sources", ContextSource),
            is_moment("constructed_at"),
        ),
        TaskMessage: (
            needs("task_id", "prompt"),
            is_id("task_id", "loop_id", "parent_loop_id", "context_request_id"),
            _CHANNEL,
            is_one_of("role", _ROLES, or_empty=True),
            _asks_something,
            _has_room_below,
            records_keep_rules("context", ConstructedContext),
            records_keep_rules("tools", WireToolDefinition),
            records_keep_rules("tool_choice", WireToolChoice),
        ),
        Attachment: (is_one_of("type", ATTACHMENT_TYPES), needs("name")),
        UserMessage: (
            needs("message_id", "channel_type", "channel_id", "user_id", "timestamp"),
            is_id("message_id", "reply_to", "thread_id", "context_request_id"),
            _CHANNEL,
            _holds_content,
            is_moment("timestamp"),
            records_keep_rules("attachments", Attachment),
        ),
        WireSignal: (
            is_one_of("type", tuple(Signal)),
            needs("loop_id", "user_id"),
            is_id("signal_id", "loop_id"),
            _CHANNEL,
            is_moment("timestamp"),
        ),
        SignalMessage: (
            is_one_of("type", tuple(Signal)),
            needs("loop_id"),
            is_id("loop_id"),
            is_moment("timestamp"),
        ),
        ResponseBlock: (is_one_of("type", BLOCK_TYPES),),
        ResponseAction: (
            needs("id", "label"),
            is_one_of("type", ACTION_TYPES),
            is_one_of("signal", tuple(Signal)),
            is_one_of("style", ACTION_STYLES, or_empty=True),
        ),
        UserResponse: (
            needs("response_id", "channel_type", "channel_id", "timestamp"),
            is_one_of("type", tuple(ResponseType)),
            is_moment("timestamp"),
            _CHANNEL,
            records_keep_rules("blocks", ResponseBlock),
            records_keep_rules("actions", ResponseAction),
        ),
        LoopCreatedEvent: (needs("loop_id", "task_id", "created_at"), is_moment("created_at")),
        LoopCompletedEvent: (
            needs("loop_id", "task_id", "completed_at"),
            _has_outcome(Outcome.SUCCESS),
            is_moment("completed_at"),
        ),
        LoopFailedEvent: (
            needs("loop_id", "task_id", "reason", "failed_at"),
            _has_outcome(Outcome.FAILED),
            is_moment("failed_at"),
        ),
        LoopCancelledEvent: (
            needs("loop_id", "task_id", "cancelled_at"),
            _has_outcome(Outcome.CANCELLED),
            is_moment("cancelled_at"),
        ),
        ContextEvent: (is_one_of("type", tuple(ContextEventType)), needs("loop_id"), _is_a_share),
        AgentIdentity: (needs("did", "display_name"), is_moment("created", "updated")),
        Trajectory: (
            needs("loop_id", "start_time"),
            is_moment("start_time", "end_time"),
            records_keep_rules("steps", TrajectoryStep),
            is_one_of("outcome", tuple(Outcome), or_empty=True),
        ),
    }
)


def problems_of(record: Record) -> Iterator[str]:
    """What is wrong with a record, the first thing first."""
    for rule in RULES[type(record)]:
        yield from rule(record)
