"""docs/wire.md: the messages of the agentic wire, made from their records, rules and one example of each.

Rule 1: fields, rules, subjects and categories are read from the code; an example is a record that passes its own rules.
Rule 2: the examples are stored in tests/golden/wire, byte for byte as they travel, and tests read them back.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from remit.core.record import Record
from remit.orchestrate.gateway import clerk, gateway, key_room, told_mark, webhook_channel
from remit.orchestrate.gateway.teller import CALL_KEPT_S, KEPT_S
from remit.wire import channels, credentials, envelopes, inbound, payloads, subjects
from remit.wire.channels import COMMAND_MARK, COMMANDS, Permission
from remit.wire.credentials import Capability
from remit.wire.envelopes import SEAL_HEADER, SKEW_MS_MAX, VALID_MS_MAX, Seal
from remit.wire.inbound import ROUTE_KEY
from remit.wire.message_records import (
    MAX_TOKENS_DEFAULT,
    TEMPERATURE_DEFAULT,
    AgentIdentity,
    AgentRequest,
    AgentResponse,
    Attachment,
    ChatMessage,
    ConstructedContext,
    ContextEvent,
    ContextSource,
    GraphContextSpec,
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopEntity,
    LoopFailedEvent,
    ModelConfig,
    ResponseAction,
    ResponseBlock,
    SignalMessage,
    TaskMessage,
    Trajectory,
    TrajectoryStep,
    UserMessage,
    UserResponse,
    WireSignal,
    WireTokenUsage,
    WireToolCall,
    WireToolChoice,
    WireToolDefinition,
    WireToolResult,
)
from remit.wire.message_rules import RULES, problems_of
from remit.wire.payloads import KINDS, MESSAGE_BYTES_MAX, TYPE_HEADER, posted, type_of
from remit.wire.subjects import (
    ADDRESSED_BY,
    CARRIES,
    DOMAIN,
    LOOPS_BUCKET,
    SCHEMA_VERSION,
    SEVEN,
    STREAM,
    TOLD,
    TRAJECTORIES_BUCKET,
    Category,
    SubjectFamily,
    subject_filter,
)
from scripts.markdown import code, fenced, paragraph, table

_AT = "2026-03-13T10:11:12.5Z"
_LATER = "2026-03-13T10:11:14Z"
_DID = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_READ = WireToolDefinition(name="read_file", description="Read the contents of a file", parameters=_SCHEMA)
_CALL = WireToolCall(
    id="call_001",
    name="read_file",
    arguments={"path": "main.py"},
    metadata={"project": "remit"},
    loop_id="loop_123",
    trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
)
_RESULT = WireToolResult(call_id="call_001", name="read_file", content="print('hi')", loop_id="loop_123")
_ASKED = (
    ChatMessage(role="system", content="You are a helpful assistant."),
    ChatMessage(role="user", content="Analyze this code for bugs."),
)
_ROUTE: Mapping[str, Any] = MappingProxyType({"channel_type": "slack", "channel_id": "C042", "user_id": "ann"})

# One of each kind, by the name of its file.
EXAMPLES: Mapping[str, Record] = MappingProxyType(
    {
        "task": TaskMessage(
            task_id="task_456",
            role="general",
            model="gpt-4",
            prompt="Analyze this code for bugs.",
            workflow_slug="add-user-auth",
            workflow_step="design",
            **_ROUTE,
            max_depth=2,
            context=ConstructedContext(
                content="The project has one module.",
                token_count=7,
                entities=("module.main",),
                sources=(ContextSource(type="document", id="docs/overview.md"),),
                constructed_at=_AT,
            ),
            context_request_id="ctx_9",
            tools=(_READ,),
            tool_choice=WireToolChoice(mode="function", function_name="read_file"),
            metadata={"project": "remit"},
        ),
        "user_message": UserMessage(
            message_id="msg_1",
            **_ROUTE,
            content="What does this do?",
            attachments=(
                Attachment(type="code", name="main.py", content="print('hi')", mime_type="text/x-python", size=11),
            ),
            reply_to="loop_123",
            thread_id="T7",
            metadata={"team": "core"},
            timestamp=_AT,
        ),
        "signal": WireSignal(
            signal_id="sig_1",
            type="reject",
            loop_id="loop_123",
            **_ROUTE,
            payload={"reason": "the address is wrong"},
            timestamp=_AT,
        ),
        "user_response": UserResponse(
            response_id="resp_1",
            **_ROUTE,
            in_reply_to="loop_123",
            thread_id="T7",
            type="prompt",
            content="May write_file be called?",
            blocks=(ResponseBlock(type="code", content='{"path":"main.py"}', lang="json"),),
            actions=(
                ResponseAction(id="loop_123/4.0", type="button", label="Approve", signal="approve", style="primary"),
                ResponseAction(id="loop_123/4.0", type="button", label="Reject", signal="reject", style="danger"),
            ),
            timestamp=_AT,
        ),
        "request": AgentRequest(
            request_id="loop_123:2.0",
            loop_id="loop_123",
            role="general",
            messages=_ASKED,
            model="gpt-4",
            max_tokens=2048,
            temperature=0.7,
            tools=(_READ,),
            tool_choice=WireToolChoice(mode="auto"),
        ),
        "response": AgentResponse(
            request_id="loop_123:2.0",
            status="tool_call",
            message=ChatMessage(role="assistant", reasoning_content="I need the file.", tool_calls=(_CALL,)),
            token_usage=WireTokenUsage(prompt_tokens=150, completion_tokens=200),
        ),
        "tool_call": _CALL,
        "tool_result": _RESULT,
        "loop_created": LoopCreatedEvent(
            loop_id="loop_123",
            task_id="task_456",
            role="general",
            model="gpt-4",
            workflow_slug="add-user-auth",
            workflow_step="design",
            context_request_id="ctx_9",
            max_iterations=20,
            created_at=_AT,
        ),
        "loop_completed": LoopCompletedEvent(
            loop_id="loop_123",
            task_id="task_456",
            outcome="success",
            role="general",
            result="I found 3 issues.",
            model="gpt-4",
            iterations=2,
            tokens_in=300,
            tokens_out=220,
            parent_loop="loop_100",
            workflow_slug="add-user-auth",
            workflow_step="design",
            completed_at=_LATER,
            **_ROUTE,
        ),
        "loop_failed": LoopFailedEvent(
            loop_id="loop_123",
            task_id="task_456",
            outcome="failed",
            reason="BUDGET_EXHAUSTED",
            error="tool_calls_used=5 reached tool_calls_max=5",
            role="general",
            model="gpt-4",
            iterations=6,
            tokens_in=900,
            tokens_out=400,
            failed_at=_LATER,
            **_ROUTE,
        ),
        "loop_cancelled": LoopCancelledEvent(
            loop_id="loop_123", task_id="task_456", outcome="cancelled", cancelled_by="ann", cancelled_at=_LATER
        ),
        "context_event": ContextEvent(
            type="compaction_complete",
            loop_id="loop_123",
            iteration=7,
            utilization=0.82,
            tokens_saved=5200,
            summary="results of 3 earlier calls are shown by their digest",
        ),
        "signal_message": SignalMessage(loop_id="loop_123", type="pause", reason="lunch", timestamp=_AT),
        "loop_entity": LoopEntity(
            id="loop_123",
            task_id="task_456",
            state="paused",
            role="architect",
            model="gpt-4",
            iterations=3,
            max_iterations=20,
            pending_tool_results={"call_001": _RESULT},
            started_at=_AT,
            timeout_at="2026-03-13T10:13:12.5Z",
            parent_loop_id="loop_100",
            depth=1,
            max_depth=2,
            pause_requested=True,
            pause_requested_by="ann",
            state_before_pause="architecting",
            cancelled_by="ann",
            cancelled_at=_LATER,
            **_ROUTE,
            workflow_slug="add-user-auth",
            workflow_step="design",
            outcome="cancelled",
            result="I found 1 issue so far.",
            error="CANCELLED_SIGNAL: ann cancelled it",
            completed_at=_LATER,
            identity=AgentIdentity(did=_DID, display_name="architect", internal_role="architect", created=_AT),
        ),
        "trajectory": Trajectory(
            loop_id="loop_123",
            start_time=_AT,
            end_time=_LATER,
            steps=(
                TrajectoryStep(
                    timestamp=_AT,
                    step_type="model_call",
                    request_id="loop_123:2.0",
                    prompt="Analyze this code for bugs.",
                    tokens_in=150,
                    tokens_out=200,
                    duration=1250,
                    messages=_ASKED,
                    tool_calls=(_CALL,),
                    model="gpt-4",
                ),
                TrajectoryStep(
                    timestamp=_AT,
                    step_type="tool_call",
                    tool_name="read_file",
                    tool_arguments={"path": "main.py"},
                    tool_result="print('hi')",
                    duration=50,
                ),
            ),
            outcome="success",
            total_tokens_in=150,
            total_tokens_out=200,
            duration=1500,
        ),
    }
)

# Parts of messages, in the order in which they are explained.
PARTS: tuple[type[Record], ...] = (
    ChatMessage,
    WireToolDefinition,
    WireToolChoice,
    WireTokenUsage,
    ModelConfig,
    ConstructedContext,
    ContextSource,
    GraphContextSpec,
    Attachment,
    ResponseBlock,
    ResponseAction,
    TrajectoryStep,
    AgentIdentity,
)
MOMENTS = frozenset({"timestamp", "start_time", "end_time", "created", "updated"})

# Every code, with what it says of the message.
CODES: Mapping[str, str] = MappingProxyType(
    {
        subjects.WIRE_ID_INVALID: "an id cannot be a token of a subject, or a token spells none",
        subjects.WIRE_SUBJECT_INVALID: "the subject is none of the wire",
        payloads.WIRE_TOO_LARGE: f"it has more than {MESSAGE_BYTES_MAX:,} bytes",
        payloads.WIRE_MALFORMED: "it is no JSON object",
        payloads.WIRE_KEY_REPEATED: "a key stands twice in one object",
        payloads.WIRE_SHAPE_WRONG: "a field is of another type",
        payloads.WIRE_RULE_BROKEN: "a rule of its kind is broken",
        payloads.WIRE_DOMAIN_UNKNOWN: "its type is of another domain",
        payloads.WIRE_CATEGORY_UNKNOWN: "its type names no category",
        payloads.WIRE_VERSION_UNKNOWN: "its type is of another version",
        payloads.WIRE_SUBJECT_MISMATCH: "type, subject and message disagree",
        inbound.WIRE_METADATA_RESERVED: f"a task fills `metadata.{ROUTE_KEY}`",
        inbound.WIRE_LOOP_UNKNOWN: "a task continues a loop that is not known",
        inbound.WIRE_PACKET_UNCLEAR: "an answer names no packet, and not exactly one waits",
        inbound.WIRE_SENDER_UNCLEAR: "a signal is of another user than its sender, or of none",
        clerk.WIRE_ID_TAKEN: "its sender has used the id before, for something else",
        clerk.WIRE_MODEL_UNKNOWN: "a task names a model that the gateway does not have",
        told_mark.WIRE_NOT_TAKEN: "it is told by loops, and taken from no client",
        gateway.WIRE_UNDELIVERABLE: "it failed five times for no reason of its own",
        channels.CHANNEL_NOT_PERMITTED: "the sender lacks a permission",
        channels.CHANNEL_LOOP_UNKNOWN: "there is no such loop for the sender",
        channels.CHANNEL_LOOP_UNCLEAR: "words came where a yes or a no is asked",
        channels.CHANNEL_COMMAND_UNKNOWN: "a command is none",
        webhook_channel.CHANNEL_UNSIGNED: "a request of a webhook is not signed with its key, or too old",
        webhook_channel.CHANNEL_FOREIGN: "a webhook speaks for another channel",
        key_room.KEYS_NOT_ROOT: "only the key of the deployment admits keys, and revokes those of others",
        key_room.KEYS_UNKNOWN: "it is no key, or was never admitted",
        key_room.KEYS_REVOKED: "the key was revoked, which is for ever",
        key_room.KEYS_STALE: "it has been unknown for too long which keys were revoked",
        envelopes.ENVELOPE_TOO_LARGE: "message or seal are too large",
        envelopes.ENVELOPE_MALFORMED: "the header is no seal, or its figures make no sense",
        envelopes.ENVELOPE_READDRESSED: "it was sealed for another subject, tenant or deployment",
        envelopes.ENVELOPE_FORGED: "the message is another, or the signature is not the sender's",
        envelopes.ENVELOPE_EARLY: f"it was sent more than {SKEW_MS_MAX:,} ms ahead of this clock",
        envelopes.ENVELOPE_EXPIRED: "its time is over",
        envelopes.ENVELOPE_REVOKED: "the key of its sender was revoked",
        envelopes.ENVELOPE_SENDER_UNKNOWN: "no statement names its sender",
        envelopes.ENVELOPE_REPLAYED: "it was opened before",
        envelopes.ENVELOPE_OUT_OF_ORDER: "a later one of its lane was opened before",
        envelopes.ENVELOPE_CROWDED: "too many messages of its sender are remembered",
        credentials.CAPABILITY_INVALID: "a statement is not signed by the one above it, or says nothing that can be judged",
        credentials.CAPABILITY_EXPIRED: "a statement does not hold yet, or no longer",
        credentials.CAPABILITY_WIDENED: "a statement allows more than the one above it",
        credentials.CAPABILITY_LACKING: "the sender may not send there, or not for this tenant",
        credentials.CAPABILITY_REVOKED: "a statement, or a key in its chain, was revoked",
    }
)


def wire() -> Iterator[str]:
    """The whole document."""
    yield "# The wire"
    yield paragraph(
        "How programs in any language talk to remit over NATS: subjects, messages and buckets as the agentic components of SemStreams have them. A message is "
        "a JSON object. Fields that are empty are left out where the tables say so; absent, null and empty are the same when a "
        "message is read; unknown fields are passed over; a key that stands twice is refused. Moments are texts of RFC 3339 in "
        f"UTC; the zero moment of other languages reads as none. A message has at most {MESSAGE_BYTES_MAX:,} bytes. Every rule "
        "holds for what is read and for what is written."
    )
    yield from _subjects()
    yield from _kinds()
    yield from _translation()
    yield from _channels()
    yield from _seals()
    yield "## Codes"
    yield table(("Code", "Says"), ((code(name), said) for name, said in CODES.items()))


def _subjects() -> Iterator[str]:
    yield "## Subjects, stream, buckets"
    yield paragraph(
        f"What begins with `agent.` or `tool.` travels on the stream {code(STREAM)}; what begins with `user.` belongs to the "
        f"channels, which bring it. The first {len(SEVEN)} families are SemStreams' own; the others carry "
        "messages that it names and gives no subject. In an id, letters, digits, `-` and `_` stand for themselves and every other "
        "byte of its UTF-8 as `=2E`; no other spelling is taken."
    )
    yield table(
        ("Subject", "Its tokens are", "Carries"),
        (
            (
                code(subject_filter(family)),
                ", ".join(map(code, ADDRESSED_BY[family])),
                ", ".join(map(code, CARRIES[family])),
            )
            for family in SubjectFamily
        ),
    )
    yield paragraph(
        f"The bucket {code(LOOPS_BUCKET)} holds a `LoopEntity` and {code(TRAJECTORIES_BUCKET)} a `Trajectory` for each loop, under "
        "the id of the loop, escaped in the same way. Both are made from the journal and never read back. A trajectory beyond the "
        "limit of a message has no steps there; `steps_digest` and `steps_size` name the blob that holds them."
    )
    yield paragraph(
        f"What a message is stands in the header {code(TYPE_HEADER)}: {code(type_of(Category.TASK))}, which is domain "
        f"{code(DOMAIN)}, category and version {code(SCHEMA_VERSION)}. A message without the header is what its subject carries, a "
        "completion what its `outcome` says. The envelope of SemStreams' own programs, "
        '`{"type": {"domain", "category", "version"}, "payload": {...}}`, is read as well.'
    )


def _kinds() -> Iterator[str]:
    yield "## Messages"
    for category in Category:
        yield from _kind(category.value, KINDS[category], f"Category {code(category.value)}.")
    yield "## In the buckets"
    yield from _kind("loop_entity", LoopEntity, "")
    yield from _kind("trajectory", Trajectory, "")
    yield "## Parts of messages"
    for part in PARTS:
        yield f"### {_name(part)}"
        yield paragraph(_said(part))
        yield _fields(part)
        yield from _rules(part)
    yield paragraph(
        f"Of a request, a temperature that is absent is {TEMPERATURE_DEFAULT} and absent or zero `max_tokens` are "
        f"{MAX_TOKENS_DEFAULT}; a temperature of 0 that is written stays 0."
    )


def _kind(name: str, kind: type[Record], about: str) -> Iterator[str]:
    yield f"### {_name(kind)}"
    yield paragraph(f"{_said(kind)} {about}".strip())
    yield _fields(kind)
    yield from _rules(kind)
    example = EXAMPLES[name]
    if kind in payloads.CATEGORY_OF:
        yield paragraph(f"An example, sent to {code(posted(example).subject)}:")
    yield fenced("json", msgspec.json.format(msgspec.json.encode(example), indent=2).decode())


def _name(kind: type[msgspec.Struct]) -> str:
    """A record as SemStreams calls it."""
    return "UserSignal" if kind is WireSignal else kind.__name__.removeprefix("Wire")


def _said(kind: type[Record]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _fields(kind: type[Record]) -> str:
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    always = (
        set(msgspec.json.decode(msgspec.json.encode(kind())))
        if kind not in (Seal, Capability)
        else {f.name for f in info.fields}
    )
    # A thought is read under this name, and written under the other.
    shown = [field for field in info.fields if (kind, field.name) != (ChatMessage, "reasoning")]
    rows = [
        (code(one.name), _type(one.name, one.type), "always" if one.name in always else "unless empty") for one in shown
    ]
    return table(("Field", "Holds", "Is written"), rows)


def _type(name: str, kind: Any) -> str:
    match kind:
        case msgspec.inspect.UnionType():
            return next(_type(name, one) for one in kind.types if not isinstance(one, msgspec.inspect.NoneType))
        case msgspec.inspect.StructType():
            return _name(kind.cls)
        case msgspec.inspect.VarTupleType():
            return f"list of {_type('', kind.item_type)}"
        case msgspec.inspect.DictType():
            held = kind.value_type
            return "object" if isinstance(held, msgspec.inspect.AnyType) else f"object of {_type('', held)}"
        case msgspec.inspect.StrType() if name in MOMENTS or name.endswith("_at"):
            return "moment"
    words = {
        "StrType": "text",
        "IntType": "whole number",
        "FloatType": "number",
        "BoolType": "true or false",
        "BytesType": "bytes",
    }
    return words.get(type(kind).__name__, "any JSON")


def _rules(kind: type[Record]) -> Iterator[str]:
    """What an empty record lacks, in the words of its own rules."""
    if kind in RULES and (problems := list(problems_of(kind()))):
        yield paragraph(f"An empty one is refused: {'; '.join(problems)}.")


def _translation() -> Iterator[str]:
    yield "## What a task does"
    yield paragraph(
        "A task starts a run; its `loop_id` on the wire is the id of the run. A task that names a `loop_id`, or a message whose "
        "`reply_to` does, starts the next run of the same session. `tools` chooses among the tools that are registered, by name; "
        "what a call may do is never taken from a message. `parent_loop_id` names a loop of the same user that is there: the task is one deeper than that, or deeper where it says so, may go no deeper than that may, and is refused where `max_depth` is reached. `max_depth` only narrows the budget. Ids are those of their sender: the same task of the same user starts one loop however often it comes, what another user sends under the same id is another task, and another task of the same user under it is refused with `WIRE_ID_TAKEN`. Models are asked with the temperature and `max_tokens` that a request of this wire means where it says none. `context` and attachments are shown "
        "to the model as evidence and never count as words of the user. `metadata` reaches every tool call, as "
        f"`docs/tools.md` says; what the wire itself knows travels there under {code(ROUTE_KEY)}, which no sender may fill."
    )
    yield paragraph(
        "An answer to a question (`approve`, `reject`) names its packet in `payload.packet_id`; without it the only packet that "
        "waits is meant. A payload that is a text is the reason, or the words of `feedback`. What ended is published under "
        "`agent.complete`: `loop_completed`, `loop_failed` or `loop_cancelled`, by its outcome. Compressing a context is told as "
        "`compaction_starting` and `compaction_complete`; when an exchange of a session is over, `gc_complete` tells how much of its "
        "tools' results is not carried on."
    )
    yield paragraph(
        "Every call is told as it happens: what a model is asked under `agent.request`, what it answers under `agent.response` (with "
        "`status: error` and its text where the call failed), what a tool is called with under `tool.execute`, what came of it under "
        f"`tool.result`. A request and its response have one id, `RUN:COMMAND`. A call has one wherever it is spoken of, in the answer that "
        "proposes it, in later requests, in `tool.execute` and in its result: `RUN:COMMAND.NUMBER`, its place among the calls of that "
        "answer, or `RUN:COMMAND` where no model proposed it; what the provider called it is not told. A request has every message that "
        "the model is shown, evidence and what the node of a graph asks among them, and the tools that it is offered. It has not the "
        "shape of the answer, and not what an engine adds by itself, such as how to write a call for a model that has no tools. A text of "
        "more than 128 KiB is cut and names its digest. A `temperature` or `max_tokens` that is absent there was said to no model. A "
        "result without `error` is a call that happened; `metadata.agentic.unverified` says that nothing has proved it. Requests, calls "
        f"and results are kept for {CALL_KEPT_S // 3_600} hour, the others for {KEPT_S // 3_600} hours. Of a conversation that is longer "
        "than a message, the newest messages are in the request. What a fork copied from another run was told as that run's."
    )
    yield paragraph(
        f"Loops alone tell: {', '.join(code(subject_filter(one)) for one in TOLD)}. Models and tools are asked, and users answered, by "
        "a deployment and by nobody else, so a request, a call, a reply, or any other message of a client under these subjects is refused "
        f"with {code(told_mark.WIRE_NOT_TAKEN)}, kept as a dead letter and removed. What a gateway tells it has signed, in the header "
        f"{code(told_mark.TOLD_HEADER)}, over subject, type and bytes, with a key that may drive runs: gateways and channels of the "
        "deployment know it by that, and a channel delivers nothing else. A client that hears these subjects, or reads the buckets, "
        "hears and reads what anybody writes there whom the servers let: it looks at that header, or its account sees to it. A message "
        "under a subject of too few or too many ids is refused with `WIRE_SUBJECT_INVALID`. Nothing that is sent under a subject of "
        "this page vanishes without an answer or a dead letter: what is not in order is answered, too, where its channel can be read."
    )


def _channels() -> Iterator[str]:
    yield "## Channels"
    yield paragraph(
        "A message of a user becomes a task; a reply to a loop that has ended continues it, to one that asks in words it is the "
        "answer, and to one that goes on it is feedback. What begins with a slash is a command and never reaches a model. Replies go "
        "to the channel, the user and the thread that the task came from. Permissions: "
        f"{', '.join(map(code, Permission))}. Each names users, groups or `*`."
    )
    yield table(
        ("Command", "Does", "Takes the permission"),
        (
            (code(f"{COMMAND_MARK}{name} {row.takes}".strip()), row.does, code(row.permission or ""))
            for name, row in COMMANDS.items()
        ),
    )


def _seals() -> Iterator[str]:
    yield "## Sealed messages"
    yield paragraph(
        f"Between workers every message has the header {code(SEAL_HEADER)}: a JSON object that its sender signed with the Ed25519 key "
        "of its `did:key`, over the line `remit envelope 1` and the canonical JSON of the other fields. The message itself stays as it "
        f"is. A seal holds for at most {VALID_MS_MAX // 3_600_000} hours and is opened once by a receiver, on a lane in order: what "
        "one start of a sender (`epoch`) sends under one subject, numbered from 1. Queues hand messages to many receivers, so there "
        "each number is opened once, in any order. What the broker delivers again is told apart from what a sender sends again by "
        "the broker's own mark."
    )
    yield _fields(Seal)
    yield paragraph(
        "What a sender may send is said by statements, each signed by the subject of the one above it, the first by the key of the "
        "deployment. A statement only narrows: subjects, tenant and time lie within the one above. A key or a statement that was "
        "revoked is believed nothing any more, whenever it says that it spoke."
    )
    yield _fields(Capability)
