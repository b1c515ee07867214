"""Inbound, from the wire to the house: a task becomes a request, a signal of the wire one of ours.

Rule 1: a task says what is wanted. What may be done is never taken from it: tools are chosen among those that are
        registered, depth only narrows, and context that was built elsewhere is evidence, not words of the user.
Rule 2: `loop_id` is the id of a run; to continue a loop is to start the next run of its session. So every task that begins a
        loop begins a session, whose name follows from the task: a task that comes twice finds its session taken.
Rule 3: ids of tasks and messages are those of their sender: what another user sends under the same id is another task.
Rule 4: what only the wire knows of a task (channel, thread, workflow) travels in the metadata of its request under a key of
        its own, which no sender may fill, and so reaches every tool call and every child beside the sender's metadata.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import canonical_hash
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import JsonObject, Record
from remit.core.run.contract import ExecutionHints, SystemRequest
from remit.core.run.lifecycle import AgentRole
from remit.core.run.lineage import derived_id
from remit.core.run.messages import Message, user_message
from remit.core.run.signals import PAYLOAD_KEYS, Signal, UserSignal, check_payload_keys
from remit.wire.message_records import (
    MAX_TOKENS_DEFAULT,
    TEMPERATURE_DEFAULT,
    Attachment,
    ConstructedContext,
    ContextSource,
    SignalMessage,
    TaskMessage,
    WireSignal,
    WireToolChoice,
)
from remit.wire.message_texts import moment_ms
from remit.wire.payloads import checked_record

WIRE_METADATA_RESERVED = "WIRE_METADATA_RESERVED"
WIRE_LOOP_UNKNOWN = "WIRE_LOOP_UNKNOWN"
WIRE_PACKET_UNCLEAR = "WIRE_PACKET_UNCLEAR"
WIRE_SENDER_UNCLEAR = "WIRE_SENDER_UNCLEAR"

# How models are asked for loops of the wire, whose shapes say nothing of it: what ModelConfig says where it is absent.
HINTS = ExecutionHints(temperature=TEMPERATURE_DEFAULT, max_tokens=MAX_TOKENS_DEFAULT)
# What makes a task the one that came before.
_SAME = ("messages", "tools", "tool_choice", "metadata")
# The key of a request's metadata that holds the route.
ROUTE_KEY = "agentic"
# What a payload of a signal may say in a bare text, by the signal.
_SAID_AS = {Signal.FEEDBACK: "text"}


class Route(Record, kw_only=True):
    """What the wire knows of a run beside the task: where replies go, and which workflow and loop it belongs to."""

    channel_type: str = ""
    channel_id: str = ""
    thread_id: str = ""
    message_id: str = ""
    workflow_slug: str = ""
    workflow_step: str = ""
    context_request_id: str = ""
    parent_loop_id: str = ""
    depth: int = 0
    max_depth: int = 0
    # What was built before the task was sent; whichever process looks for evidence finds it here.
    context: ConstructedContext | None = None


class TaskOrder(Record, kw_only=True):
    """What a system starts for a task: the request, and the terms that the task narrows.

    An empty model stands for the worker's own. `continues` names the loop whose session the request belongs to.
    """

    request: SystemRequest
    role: AgentRole = AgentRole.GENERAL
    model: str = ""
    context: ConstructedContext | None = None
    budget: Budget = Budget()
    continues: str = ""


class PrebuiltContext:
    """Gives a loop the context that came with its task, and looks nothing up: a provider of context for a kit."""

    def __init__(self, context: ConstructedContext) -> None:
        self._context = context

    def build(self, query: str) -> Sequence[Message]:
        """The context as it was built, under its sources."""
        return (user_message(_evidence(self._context)),)


def start_of_task(task: TaskMessage, *, session_id: str = "", thread_id: str = "", message_id: str = "") -> TaskOrder:
    """What is started for a task. A task that continues a loop is given the session of that loop.

    Raises RequestRejected for a task that breaks a rule of the wire, fills the reserved key of the metadata, or continues a
    loop whose session is not known.
    """
    checked_record(task)
    if ROUTE_KEY in task.metadata:
        message = f"metadata.{ROUTE_KEY} of task {task.task_id[:80]!r} is kept for the wire; name yours otherwise"
        raise RequestRejected(WIRE_METADATA_RESERVED, message)
    if task.loop_id and not session_id:
        message = (
            f"loop {task.loop_id[:80]!r} is not known here, or has no session to continue; leave loop_id out to begin"
        )
        raise RequestRejected(WIRE_LOOP_UNKNOWN, message, {"loop_id": task.loop_id[:80]})
    route = Route(
        channel_type=task.channel_type,
        channel_id=task.channel_id,
        thread_id=thread_id,
        message_id=message_id,
        workflow_slug=task.workflow_slug,
        workflow_step=task.workflow_step,
        context_request_id=task.context_request_id,
        parent_loop_id=task.parent_loop_id,
        depth=task.depth,
        max_depth=task.max_depth,
        context=task.context,
    )
    told: JsonObject = msgspec.to_builtins(route)
    request = SystemRequest(
        (user_message(task.prompt),),
        request_id=task.task_id,
        session_id=session_id or session_of_task(task.task_id, task.user_id),
        hints=HINTS,
        tools=tuple([tool.name for tool in task.tools]),
        tool_choice=choice_of(task.tool_choice),
        user_id=task.user_id,
        metadata={**task.metadata, **({ROUTE_KEY: told} if told else {})},
    )
    budget = Budget(depth=task.max_depth - task.depth) if task.max_depth else Budget()
    return TaskOrder(
        request=request,
        role=AgentRole(task.role or AgentRole.GENERAL),
        model=task.model,
        context=task.context,
        budget=budget,
        continues=task.loop_id,
    )


def session_of_task(task_id: str, user_id: str = "") -> str:
    """The session that a task of a user begins: the same for a task that comes twice, and no other user's."""
    return f"task-{derived_id(f'agent.task {user_id}' if user_id else 'agent.task', task_id)}"


def is_same_task(request: SystemRequest, started: SystemRequest) -> bool:
    """Whether a request asks for what another one under the same id has asked for."""
    return all(getattr(request, name) == getattr(started, name) for name in _SAME)


def choice_of(choice: WireToolChoice | None) -> ToolChoice:
    """How freely a model chooses, in the words of the house."""
    return ToolChoice() if choice is None else ToolChoice(ToolChoiceMode(choice.mode), choice.function_name)


def route_of(request: SystemRequest) -> Route:
    """The route of a request; an empty one where the request did not come by the wire."""
    try:
        return msgspec.convert(request.metadata.get(ROUTE_KEY, {}), Route)
    except msgspec.ValidationError:
        # A caller from Python uses the key for something else.
        return Route()


def given_context(request: SystemRequest) -> str:
    """The context that came with the task of a request, as it is shown; empty where none did."""
    context = route_of(request).context if ROUTE_KEY in request.metadata else None
    return "" if context is None else _evidence(context)


def call_metadata(request: SystemRequest) -> JsonObject:
    """The metadata of a request as its calls carry it: all of it but the context, which is evidence for the model alone."""
    told = request.metadata.get(ROUTE_KEY)
    if not isinstance(told, dict) or "context" not in told:
        return request.metadata
    return {**request.metadata, ROUTE_KEY: {key: value for key, value in told.items() if key != "context"}}


def attached(attachments: Sequence[Attachment]) -> ConstructedContext | None:
    """What came with a message, as context: it is evidence that a user sent, and none of their own words."""
    if not attachments:
        return None
    content = "\n\n".join([_shown(attachment) for attachment in attachments])
    sources = tuple([ContextSource(type="document", id=attachment.name) for attachment in attachments])
    # Without a tokenizer, the bytes are a bound that holds for every model.
    return ConstructedContext(content=content, token_count=len(content.encode()), sources=sources)


def signal_of(said: WireSignal | SignalMessage, *, sender: str = "", pending: Sequence[str] = ()) -> UserSignal:
    """A signal of the wire as the house knows it; `pending` are the packets that the run waits for.

    The sender is who the connection belongs to. Raises RequestRejected where the signal names another user, or answers a
    packet without naming one while not exactly one waits.
    """
    checked_record(said)
    if isinstance(said, SignalMessage):
        said = WireSignal(type=said.type, loop_id=said.loop_id, payload=said.reason, timestamp=said.timestamp)
    if not (sender or said.user_id) or (sender and said.user_id and sender != said.user_id):
        message = f"signal {said.type!r} is of user {said.user_id[:80]!r} and came from {sender[:80]!r}; send your own"
        raise RequestRejected(WIRE_SENDER_UNCLEAR, message)
    kind = Signal(said.type)
    payload = _payload_of(said.payload, kind)
    if kind in (Signal.APPROVE, Signal.REJECT) and not payload.get("packet_id"):
        payload["packet_id"] = _only(said.loop_id, pending)
    return UserSignal(
        # The same signal has the same name when it comes twice.
        signal_id=said.signal_id or canonical_hash(msgspec.to_builtins(said)).hex()[:32],
        type=kind,
        run_id=said.loop_id,
        user_id=sender or said.user_id,
        channel_type=said.channel_type,
        channel_id=said.channel_id,
        payload=payload,
        at_ms=moment_ms(said.timestamp),
    )


def _payload_of(held: Any, kind: Signal) -> JsonObject:
    """What a signal says beside its kind: a bare text is the reason, or the words of feedback."""
    if isinstance(held, str):
        return {_SAID_AS.get(kind, "reason"): held} if held else {}
    if not isinstance(held, dict):
        return {}
    if kind in (Signal.APPROVE, Signal.REJECT):
        check_payload_keys(held)
    return {key: held[key] for key in PAYLOAD_KEYS if key in held}


def _evidence(context: ConstructedContext) -> str:
    named = ", ".join(f"{source.type} {source.id}" for source in context.sources)
    return (f"Context ({named}):\n" if named else "Context:\n") + context.content


def _only(loop_id: str, pending: Sequence[str]) -> str:
    if len(pending) == 1:
        return pending[0]
    waits = f"{len(pending)} packets wait: {', '.join(pending)}" if pending else "nothing waits"
    message = f"loop {loop_id[:80]!r}: payload.packet_id names no packet, and {waits}; name the one that is meant"
    raise RequestRejected(WIRE_PACKET_UNCLEAR, message, {"loop_id": loop_id[:80]})


def _shown(attachment: Attachment) -> str:
    said = ", ".join(part for part in (attachment.type, attachment.mime_type, attachment.url) if part)
    return f"[{attachment.name}] ({said})" + (f"\n{attachment.content}" if attachment.content else "")
