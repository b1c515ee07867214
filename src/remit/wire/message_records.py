"""The shapes of the messages of the agentic wire, field by field, as JSON has them.

Rule 1: a field without a default of its own kind below is written always, even when it is empty; the others are written
        when they hold something. Absent, a field is empty: 0, "", false, [] or {}.
Rule 2: a moment is a text in RFC 3339, in UTC. The zero moment of other languages (year 1) reads as an absent one.
Rule 3: building a record checks nothing; message_rules.py judges what is read and what is written.
Rule 4: these shapes are for the wire alone. Nothing in the house keeps one; each is made from a run, or becomes one.
"""

from typing import Annotated, Any

import msgspec

from remit.core.record import JsonObject, Record
from remit.wire.message_texts import ZERO_MOMENT, WireMoment

# Beyond this a number is not the same number for every reader of JSON.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
# What a model is asked with where the wire does not say.
TEMPERATURE_DEFAULT = 0.2
MAX_TOKENS_DEFAULT = 4096


def _text() -> str:
    return ""


def _none() -> tuple[()]:
    return ()


def _zero() -> int:
    return 0


def _nothing() -> JsonObject:
    return {}


# Defaults of fields that are written always: what a function makes is never left out.
_ALWAYS_TEXT: str = msgspec.field(default_factory=_text)
_ALWAYS_NUMBER: int = msgspec.field(default_factory=_zero)


class ModelConfig(Record, kw_only=True):
    """How a model is asked. A temperature of 0 that is written is greedy.

    Who is asked in this shape and finds none takes the wire's default. In a request that a gateway tells, what is absent was
    said to no model.
    """

    temperature: float | None = None
    max_tokens: Count = 0

    def with_defaults(self) -> "ModelConfig":
        """The configuration with the wire's own defaults for what was left out."""
        temperature = TEMPERATURE_DEFAULT if self.temperature is None else self.temperature
        return ModelConfig(temperature=temperature, max_tokens=self.max_tokens or MAX_TOKENS_DEFAULT)


class WireToolChoice(Record, kw_only=True):
    """How freely a model chooses: auto, required, none or function, which names the function."""

    mode: str = _ALWAYS_TEXT
    function_name: str = ""


class WireToolDefinition(Record, kw_only=True):
    """A tool as a model is told of it. What a call may do is declared where the tool is registered, never here."""

    name: str = _ALWAYS_TEXT
    description: str = _ALWAYS_TEXT
    parameters: JsonObject = msgspec.field(default_factory=_nothing)


class WireToolCall(Record, kw_only=True):
    """A call of a tool, with the metadata of the task that it serves."""

    id: str = _ALWAYS_TEXT
    name: str = _ALWAYS_TEXT
    arguments: JsonObject = {}
    metadata: JsonObject = {}
    loop_id: str = ""
    trace_id: str = ""


class WireToolResult(Record, kw_only=True):
    """What a call came to. An error is a text in it; with `stop_loop` its content is the result of the loop."""

    call_id: str = _ALWAYS_TEXT
    name: str = ""
    content: str = ""
    error: str = ""
    metadata: JsonObject = {}
    loop_id: str = ""
    trace_id: str = ""
    stop_loop: bool = False


class ChatMessage(Record, kw_only=True):
    """One utterance. A thought may come as `reasoning`; it is written as `reasoning_content`, which wins."""

    role: str = _ALWAYS_TEXT
    content: str = ""
    name: str = ""
    reasoning_content: str = ""
    tool_calls: tuple[WireToolCall, ...] = ()
    tool_call_id: str = ""
    reasoning: str = ""

    def __post_init__(self) -> None:
        """Take a thought under its other name."""
        if self.reasoning:
            thought = self.reasoning_content or self.reasoning
            msgspec.structs.force_setattr(self, "reasoning_content", thought)
            msgspec.structs.force_setattr(self, "reasoning", "")


class WireTokenUsage(Record, kw_only=True):
    """Tokens that a request took."""

    prompt_tokens: Count = _ALWAYS_NUMBER
    completion_tokens: Count = _ALWAYS_NUMBER

    @property
    def total(self) -> int:
        """Both together."""
        return self.prompt_tokens + self.completion_tokens


class AgentRequest(Record, kw_only=True):
    """What a loop asks of a model."""

    request_id: str = _ALWAYS_TEXT
    loop_id: str = _ALWAYS_TEXT
    role: str = _ALWAYS_TEXT
    messages: tuple[ChatMessage, ...] = msgspec.field(default_factory=_none)
    model: str = _ALWAYS_TEXT
    max_tokens: Count = 0
    temperature: float | None = None
    tools: tuple[WireToolDefinition, ...] = ()
    tool_choice: WireToolChoice | None = None

    @property
    def config(self) -> ModelConfig:
        """How the model is asked, with the wire's defaults for what the request leaves out."""
        return ModelConfig(temperature=self.temperature, max_tokens=self.max_tokens).with_defaults()


class AgentResponse(Record, kw_only=True):
    """What a model answers: complete, `tool_call` or error."""

    request_id: str = _ALWAYS_TEXT
    status: str = _ALWAYS_TEXT
    message: ChatMessage | None = None
    error: str = ""
    token_usage: WireTokenUsage | None = None


class ContextSource(Record, kw_only=True):
    """Where a piece of context comes from: `graph_entity`, `graph_relationship` or document, and its id."""

    type: str = _ALWAYS_TEXT
    id: str = _ALWAYS_TEXT


class ConstructedContext(Record, kw_only=True):
    """Context that was built before the task was sent: it is shown as it is, and nothing is looked up."""

    content: str = _ALWAYS_TEXT
    token_count: Count = _ALWAYS_NUMBER
    entities: tuple[str, ...] = ()
    sources: tuple[ContextSource, ...] = ()
    constructed_at: WireMoment = ""

    def __post_init__(self) -> None:
        """Read the zero moment as none."""
        _drop_zero(self, "constructed_at")


class GraphContextSpec(Record, kw_only=True):
    """Which part of a graph a workflow wants as context."""

    entities: tuple[str, ...] = ()
    relationships: bool = False
    depth: Count = 0
    max_tokens: Count = 0


class TaskMessage(Record, kw_only=True):
    """A task for a loop: a new one, or the next exchange of the one that `loop_id` names."""

    loop_id: str = ""
    task_id: str = _ALWAYS_TEXT
    role: str = _ALWAYS_TEXT
    model: str = _ALWAYS_TEXT
    prompt: str = _ALWAYS_TEXT
    workflow_slug: str = ""
    workflow_step: str = ""
    channel_type: str = ""
    channel_id: str = ""
    user_id: str = ""
    parent_loop_id: str = ""
    depth: Count = 0
    max_depth: Count = 0
    context: ConstructedContext | None = None
    context_request_id: str = ""
    tools: tuple[WireToolDefinition, ...] = ()
    tool_choice: WireToolChoice | None = None
    metadata: JsonObject = {}


class Attachment(Record, kw_only=True):
    """What came with a message: file, image, code or url."""

    type: str = _ALWAYS_TEXT
    name: str = _ALWAYS_TEXT
    url: str = ""
    content: str = ""
    mime_type: str = ""
    size: Count = 0


class UserMessage(Record, kw_only=True):
    """What a user says, from any channel."""

    message_id: str = _ALWAYS_TEXT
    channel_type: str = _ALWAYS_TEXT
    channel_id: str = _ALWAYS_TEXT
    user_id: str = _ALWAYS_TEXT
    content: str = _ALWAYS_TEXT
    attachments: tuple[Attachment, ...] = ()
    reply_to: str = ""
    thread_id: str = ""
    metadata: dict[str, str] = {}
    context_request_id: str = ""
    timestamp: WireMoment = _ALWAYS_TEXT


class WireSignal(Record, kw_only=True):
    """A signal of a user to a loop."""

    signal_id: str = _ALWAYS_TEXT
    type: str = _ALWAYS_TEXT
    loop_id: str = _ALWAYS_TEXT
    user_id: str = _ALWAYS_TEXT
    channel_type: str = _ALWAYS_TEXT
    channel_id: str = _ALWAYS_TEXT
    payload: Any = None
    timestamp: WireMoment = _ALWAYS_TEXT


class SignalMessage(Record, kw_only=True):
    """A signal of a dispatcher, which says why and not who: the sender is known by its credentials."""

    loop_id: str = _ALWAYS_TEXT
    type: str = _ALWAYS_TEXT
    reason: str = _ALWAYS_TEXT
    timestamp: WireMoment = _ALWAYS_TEXT


class ResponseBlock(Record, kw_only=True):
    """A piece of a rich response: text, code, diff, file or progress."""

    type: str = _ALWAYS_TEXT
    content: str = _ALWAYS_TEXT
    lang: str = ""


class ResponseAction(Record, kw_only=True):
    """What a user may click: a button or a reaction that sends a signal."""

    id: str = _ALWAYS_TEXT
    type: str = _ALWAYS_TEXT
    label: str = _ALWAYS_TEXT
    signal: str = _ALWAYS_TEXT
    style: str = _ALWAYS_TEXT


class UserResponse(Record, kw_only=True):
    """What a user is told in their channel: text, status, result, error, prompt or stream."""

    response_id: str = _ALWAYS_TEXT
    channel_type: str = _ALWAYS_TEXT
    channel_id: str = _ALWAYS_TEXT
    user_id: str = _ALWAYS_TEXT
    in_reply_to: str = ""
    thread_id: str = ""
    type: str = _ALWAYS_TEXT
    content: str = _ALWAYS_TEXT
    blocks: tuple[ResponseBlock, ...] = ()
    actions: tuple[ResponseAction, ...] = ()
    timestamp: WireMoment = _ALWAYS_TEXT


class LoopCreatedEvent(Record, kw_only=True):
    """A loop was created."""

    loop_id: str = _ALWAYS_TEXT
    task_id: str = _ALWAYS_TEXT
    role: str = _ALWAYS_TEXT
    model: str = _ALWAYS_TEXT
    workflow_slug: str = ""
    workflow_step: str = ""
    context_request_id: str = ""
    max_iterations: Count = _ALWAYS_NUMBER
    created_at: WireMoment = _ALWAYS_TEXT


class LoopCompletedEvent(Record, kw_only=True):
    """A loop has answered."""

    loop_id: str = _ALWAYS_TEXT
    task_id: str = _ALWAYS_TEXT
    outcome: str = _ALWAYS_TEXT
    role: str = _ALWAYS_TEXT
    result: str = _ALWAYS_TEXT
    model: str = _ALWAYS_TEXT
    iterations: Count = _ALWAYS_NUMBER
    tokens_in: Count = _ALWAYS_NUMBER
    tokens_out: Count = _ALWAYS_NUMBER
    parent_loop: str = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    completed_at: WireMoment = _ALWAYS_TEXT
    channel_type: str = ""
    channel_id: str = ""
    user_id: str = ""


class LoopFailedEvent(Record, kw_only=True):
    """A loop has failed."""

    loop_id: str = _ALWAYS_TEXT
    task_id: str = _ALWAYS_TEXT
    outcome: str = _ALWAYS_TEXT
    reason: str = _ALWAYS_TEXT
    error: str = _ALWAYS_TEXT
    role: str = _ALWAYS_TEXT
    model: str = _ALWAYS_TEXT
    iterations: Count = _ALWAYS_NUMBER
    tokens_in: Count = _ALWAYS_NUMBER
    tokens_out: Count = _ALWAYS_NUMBER
    workflow_slug: str = ""
    workflow_step: str = ""
    failed_at: WireMoment = _ALWAYS_TEXT
    channel_type: str = ""
    channel_id: str = ""
    user_id: str = ""


class LoopCancelledEvent(Record, kw_only=True):
    """A loop was cancelled by a user."""

    loop_id: str = _ALWAYS_TEXT
    task_id: str = _ALWAYS_TEXT
    outcome: str = _ALWAYS_TEXT
    cancelled_by: str = _ALWAYS_TEXT
    workflow_slug: str = ""
    workflow_step: str = ""
    cancelled_at: WireMoment = _ALWAYS_TEXT


class ContextEvent(Record, kw_only=True):
    """What became of a loop's context: `compaction_starting`, `compaction_complete` or `gc_complete`."""

    type: str = _ALWAYS_TEXT
    loop_id: str = _ALWAYS_TEXT
    iteration: Count = _ALWAYS_NUMBER
    utilization: float = 0.0
    tokens_saved: Count = 0
    summary: str = ""


class AgentIdentity(Record, kw_only=True):
    """By which key an agent is known: its did:key, and a name for people."""

    did: str = _ALWAYS_TEXT
    display_name: str = _ALWAYS_TEXT
    credentials: tuple[JsonObject, ...] = ()
    internal_role: str = ""
    created: WireMoment = ""
    updated: WireMoment = ""
    metadata: JsonObject = {}

    def __post_init__(self) -> None:
        """Read the zero moment as none."""
        _drop_zero(self, "created", "updated")


class LoopEntity(Record, kw_only=True):
    """A loop as its bucket shows it: made from the journal, and never read back into it."""

    id: str = _ALWAYS_TEXT
    task_id: str = _ALWAYS_TEXT
    state: str = _ALWAYS_TEXT
    role: str = _ALWAYS_TEXT
    model: str = _ALWAYS_TEXT
    iterations: Count = _ALWAYS_NUMBER
    max_iterations: Count = _ALWAYS_NUMBER
    pending_tool_results: dict[str, WireToolResult] = {}
    started_at: WireMoment = ""
    timeout_at: WireMoment = ""
    parent_loop_id: str = ""
    depth: Count = 0
    max_depth: Count = 0
    pause_requested: bool = False
    pause_requested_by: str = ""
    state_before_pause: str = ""
    cancelled_by: str = ""
    cancelled_at: WireMoment = ""
    user_id: str = ""
    channel_type: str = ""
    channel_id: str = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    outcome: str = ""
    result: str = ""
    error: str = ""
    completed_at: WireMoment = ""
    identity: AgentIdentity | None = None

    def __post_init__(self) -> None:
        """Read the zero moment as none."""
        _drop_zero(self, "started_at", "timeout_at", "cancelled_at", "completed_at")


class TrajectoryStep(Record, kw_only=True):
    """One step: a `model_call` or a `tool_call`. Messages and `tool_calls` are there where the full detail was asked for."""

    timestamp: WireMoment = _ALWAYS_TEXT
    step_type: str = _ALWAYS_TEXT
    request_id: str = ""
    prompt: str = ""
    response: str = ""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tool_name: str = ""
    tool_arguments: JsonObject = {}
    tool_result: str = ""
    duration: Count = _ALWAYS_NUMBER
    messages: tuple[ChatMessage, ...] = ()
    tool_calls: tuple[WireToolCall, ...] = ()
    model: str = ""


class Trajectory(Record, kw_only=True):
    """The whole way of a loop. One too long for its bucket has no steps here and says under which digest they are kept."""

    loop_id: str = _ALWAYS_TEXT
    start_time: WireMoment = _ALWAYS_TEXT
    end_time: WireMoment = ""
    steps: tuple[TrajectoryStep, ...] = msgspec.field(default_factory=_none)
    outcome: str = ""
    total_tokens_in: Count = _ALWAYS_NUMBER
    total_tokens_out: Count = _ALWAYS_NUMBER
    duration: Count = _ALWAYS_NUMBER
    # Ours: of a trajectory beyond the limit of a bucket.
    steps_digest: str = ""
    steps_size: Count = 0


def _drop_zero(record: Record, *fields: str) -> None:
    for field in fields:
        if getattr(record, field) == ZERO_MOMENT:
            msgspec.structs.force_setattr(record, field, "")
