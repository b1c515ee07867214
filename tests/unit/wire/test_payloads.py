"""Messages are read strictly, kept to the rules of the wire in both directions, and refused with a code."""

import json
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.record import Record, replace
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
from remit.wire.message_rules import ContextEventType, ResponseStatus, ResponseType, TrajectoryStepType
from remit.wire.payloads import (
    CATEGORY_OF,
    KINDS,
    MESSAGE_BYTES_MAX,
    TYPE_HEADER,
    WIRE_CATEGORY_UNKNOWN,
    WIRE_DOMAIN_UNKNOWN,
    WIRE_KEY_REPEATED,
    WIRE_MALFORMED,
    WIRE_RULE_BROKEN,
    WIRE_SHAPE_WRONG,
    WIRE_SUBJECT_MISMATCH,
    WIRE_TOO_LARGE,
    WIRE_VERSION_UNKNOWN,
    category_named,
    checked_record,
    delivered,
    posted,
    read,
    trajectory_entry,
    type_of,
    written,
)
from remit.wire.subjects import Category, SubjectFamily, parse_subject
from scripts.wire_docs import EXAMPLES

REACHES = [Category, ContextEventType, ResponseStatus, ResponseType, TrajectoryStepType]
TASK: dict[str, Any] = {"task_id": "t", "role": "general", "model": "m", "prompt": "go"}
AT = "2026-03-13T10:11:12Z"


def refusal(subject: str, value: Any, headers: dict[str, str] | None = None) -> RequestRejected:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(RequestRejected) as refused:
        delivered(subject, data, headers)
    return refused.value


@pytest.mark.req("3.13")
@pytest.mark.parametrize("category", Category)
def test_a_message_of_every_category_is_delivered_as_it_was_posted(category: Category) -> None:
    message = EXAMPLES[category.value]
    post = posted(message)
    assert post.headers == {TYPE_HEADER: f"agentic.{category.value}.v1"}
    assert delivered(post.subject, post.data, post.headers) == message
    assert CATEGORY_OF[KINDS[category]] is category


def in_envelope(message: Record) -> bytes:
    """A message as SemStreams' own programs send it, to peers that read no headers."""
    kind = {"domain": "agentic", "category": CATEGORY_OF[type(message)].value, "version": "v1"}
    meta = {"created_at": 1, "received_at": 1, "source": "tests"}
    return json.dumps({"id": "m", "type": kind, "payload": json.loads(written(message)), "meta": meta}).encode()


@pytest.mark.req("3.13")
@pytest.mark.parametrize("category", Category)
def test_a_message_is_delivered_from_the_envelope_of_other_programs(category: Category) -> None:
    message = EXAMPLES[category.value]
    data = in_envelope(message)
    assert json.loads(data)["type"] == {"domain": "agentic", "category": category.value, "version": "v1"}
    assert delivered(posted(message).subject, data) == message


def test_a_message_without_a_type_is_what_its_subject_carries() -> None:
    assert delivered("agent.task.t", json.dumps(TASK).encode()) == TaskMessage(**TASK)
    for name in ("loop_completed", "loop_failed", "loop_cancelled"):
        message = EXAMPLES[name]
        assert delivered("agent.complete.loop_123", written(message)) == message


def test_a_null_counts_as_absent_and_an_unknown_field_is_passed_over() -> None:
    value = {**TASK, "loop_id": None, "priority": "high"}
    assert delivered("agent.task.t", json.dumps(value).encode()) == TaskMessage(**TASK)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ({"domain": "other", "category": "task", "version": "v1"}, WIRE_DOMAIN_UNKNOWN),
        ({"domain": "agentic", "category": "task", "version": "v2"}, WIRE_VERSION_UNKNOWN),
        ({"domain": "agentic", "category": "task"}, WIRE_VERSION_UNKNOWN),
        ({"domain": "agentic", "category": "dance", "version": "v1"}, WIRE_CATEGORY_UNKNOWN),
        ({"domain": "agentic", "category": ["task"], "version": "v1"}, WIRE_CATEGORY_UNKNOWN),
        ({"domain": "agentic", "category": "request", "version": "v1"}, WIRE_SUBJECT_MISMATCH),
    ],
)
def test_an_envelope_of_another_type_is_refused(kind: dict[str, Any], code: str) -> None:
    assert refusal("agent.task.t", {"type": kind, "payload": TASK}).code == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("other.task.v1", WIRE_DOMAIN_UNKNOWN),
        ("agentic.task.v2", WIRE_VERSION_UNKNOWN),
        ("agentic.task.v1.more", WIRE_VERSION_UNKNOWN),
        ("agentic", WIRE_VERSION_UNKNOWN),
        ("agentic.dance.v1", WIRE_CATEGORY_UNKNOWN),
        ("agentic.response.v1", WIRE_SUBJECT_MISMATCH),
    ],
)
def test_a_header_of_another_type_is_refused(text: str, code: str) -> None:
    assert refusal("agent.task.t", TASK, {TYPE_HEADER: text}).code == code
    assert category_named(type_of(Category.TASK)) is Category.TASK


def test_a_header_and_an_envelope_that_disagree_are_refused() -> None:
    data = in_envelope(TaskMessage(**TASK))
    assert refusal("agent.task.t", data, {TYPE_HEADER: "agentic.signal.v1"}).code == WIRE_SUBJECT_MISMATCH
    assert delivered("agent.task.t", data, {TYPE_HEADER: "agentic.task.v1"}) == TaskMessage(**TASK)


def test_an_envelope_without_a_payload_is_refused() -> None:
    kind = {"domain": "agentic", "category": "task", "version": "v1"}
    assert refusal("agent.task.t", {"type": kind, "payload": [TASK]}).code == WIRE_SHAPE_WRONG


def test_a_message_for_another_address_is_refused() -> None:
    assert refusal("agent.task.another", TASK).code == WIRE_SUBJECT_MISMATCH
    assert parse_subject(posted(TaskMessage(**{**TASK, "task_id": "a.b"})).subject).family is SubjectFamily.TASK


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", WIRE_MALFORMED),
        (b"not json", WIRE_MALFORMED),
        (b"[1]", WIRE_MALFORMED),
        (b'{"task_id": "\xff"}', WIRE_MALFORMED),
        (b'{"a":' * 100_000, WIRE_MALFORMED),
        (b'{"task_id": "t", "task_id": "u"}', WIRE_KEY_REPEATED),
        (b'{"task_id": "t", "metadata": {"a": 1, "\\u0061": 2}}', WIRE_KEY_REPEATED),
        (b'{"task_id": 7}', WIRE_SHAPE_WRONG),
        (b'{"task_id": "t", "depth": -1}', WIRE_SHAPE_WRONG),
        (b'{"task_id": "t", "depth": 1e300}', WIRE_SHAPE_WRONG),
        (b'{"task_id": "t", "metadata": "x"}', WIRE_SHAPE_WRONG),
        (b'{"task_id": "t", "tools": [7]}', WIRE_SHAPE_WRONG),
        (b'{"x": "' + b"x" * MESSAGE_BYTES_MAX + b'"}', WIRE_TOO_LARGE),
    ],
)
def test_hostile_bytes_are_refused_with_a_code(data: bytes, code: str) -> None:
    assert refusal("agent.task.t", data).code == code


MESSAGE = ChatMessage(role="user", content="hi")
REQUEST = AgentRequest(request_id="r", role="general", messages=(MESSAGE,))
ENTITY = LoopEntity(id="l", state="exploring", max_iterations=20)
USER = UserMessage(message_id="m", channel_type="cli", channel_id="c", user_id="u", content="hi", timestamp=AT)
RESPONSE = UserResponse(
    response_id="r", channel_type="cli", channel_id="c", user_id="u", type="text", content="hi", timestamp=AT
)


@pytest.mark.req("3.11")
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (replace(REQUEST, request_id=""), "request_id is empty"),
        (replace(REQUEST, messages=()), "messages is empty"),
        (replace(REQUEST, role="boss"), "role='boss' is none of architect, editor, general"),
        (replace(REQUEST, role=""), "role=''"),
        (AgentResponse(request_id="r", status="done"), "status='done' is none of complete, tool_call, error"),
        (ChatMessage(role="robot", content="hi"), "role='robot' is none of system, user, assistant, tool"),
        (ChatMessage(role="user"), "content, reasoning_content and tool_calls are empty"),
        (WireToolDefinition(parameters={"type": "object"}), "name is empty"),
        (WireToolDefinition(name="a"), "parameters is empty"),
        (WireToolCall(name="a"), "id is empty"),
        (WireToolCall(id="a"), "name is empty"),
        (WireToolResult(name="a"), "call_id is empty"),
        (TrajectoryStep(step_type="nap", timestamp=AT), "step_type='nap' is none of model_call, tool_call"),
        (TrajectoryStep(step_type="tool_call"), "timestamp is empty"),
        (replace(ENTITY, id=""), "id is empty"),
        (replace(ENTITY, state="lost"), "state='lost' is none of exploring"),
        (replace(ENTITY, max_iterations=0), "max_iterations=0 is not positive"),
    ],
)
def test_each_of_the_eight_rules_refuses_what_breaks_it(broken: Record, said: str) -> None:
    with pytest.raises(RequestRejected, match=said) as refused:
        written(broken)
    assert refused.value.code == WIRE_RULE_BROKEN


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (replace(REQUEST, messages=(ChatMessage(role="user"),)), r"messages\[0\]: content"),
        (replace(REQUEST, tool_choice=WireToolChoice(mode="maybe")), "tool_choice: mode='maybe'"),
        (replace(REQUEST, tool_choice=WireToolChoice(mode="function")), "mode function names one"),
        (replace(REQUEST, tool_choice=WireToolChoice(mode="auto", function_name="a")), "mode function names one"),
        (replace(REQUEST, request_id="x" * 300), "has 300 characters"),
        (replace(REQUEST, request_id="a\nb"), "printable"),
        (ChatMessage(role="tool", content="x"), "tool_call_id is empty"),
        (AgentResponse(request_id="r", status="error"), "status=error without an error"),
        (AgentResponse(request_id="r", status="tool_call"), "status=tool_call without tool_calls"),
        (TaskMessage(prompt="go"), "task_id is empty"),
        (TaskMessage(task_id="t"), "prompt is empty"),
        (TaskMessage(**TASK, depth=3, max_depth=2), "depth=3 exceeds max_depth=2"),
        (TaskMessage(**TASK, context=ConstructedContext()), "context: content is empty"),
        (ConstructedContext(content="x", sources=(ContextSource(type="rumour", id="a"),)), "type='rumour'"),
        (replace(USER, content=""), "no attachments"),
        (replace(USER, timestamp="now"), "timestamp='now' is no moment"),
        (replace(USER, attachments=(Attachment(type="song", name="a"),)), "type='song'"),
        (WireSignal(type="stop", loop_id="l", user_id="u"), "type='stop' is none of cancel, pause"),
        (WireSignal(type="cancel", loop_id="l"), "user_id is empty"),
        (SignalMessage(type="cancel"), "loop_id is empty"),
        (replace(RESPONSE, type="song"), "type='song' is none of text, status, result, error, prompt, stream"),
        (replace(RESPONSE, blocks=(ResponseBlock(type="song"),)), r"blocks\[0\]: type='song'"),
        (ResponseAction(id="a", type="lever", label="l", signal="approve"), "type='lever'"),
        (ResponseAction(id="a", type="button", label="l", signal="dance"), "signal='dance'"),
        (ResponseAction(id="a", type="button", label="l", signal="retry", style="loud"), "style='loud'"),
        (LoopCreatedEvent(loop_id="l", task_id="t"), "created_at is empty"),
        (LoopCompletedEvent(loop_id="l", task_id="t", completed_at=AT, outcome="failed"), "outcome='failed'"),
        (LoopFailedEvent(loop_id="l", task_id="t", failed_at=AT, outcome="failed"), "reason is empty"),
        (LoopCancelledEvent(loop_id="l", task_id="t", cancelled_at=AT, outcome="success"), "outcome='success'"),
        (ContextEvent(type="melted", loop_id="l"), "type='melted' is none of compaction_starting"),
        (ContextEvent(type="gc_complete", loop_id="l", utilization=-0.5), "utilization=-0.5"),
        (replace(ENTITY, outcome="won"), "outcome='won' is none of success, failed, cancelled"),
        (replace(ENTITY, completed_at="soon"), "completed_at='soon'"),
        (replace(ENTITY, pending_tool_results={"a": WireToolResult()}), r"pending_tool_results\[0\]: call_id"),
        (replace(ENTITY, identity=AgentIdentity(did="did:key:z6Mk")), "identity: display_name is empty"),
        (Trajectory(loop_id="l"), "start_time is empty"),
        (Trajectory(loop_id="l", start_time=AT, steps=(TrajectoryStep(step_type="tool_call"),)), r"steps\[0\]"),
    ],
)
def test_a_message_that_a_loop_could_not_work_with_is_refused(broken: Record, said: str) -> None:
    with pytest.raises(RequestRejected, match=said) as refused:
        written(broken)
    assert refused.value.code == WIRE_RULE_BROKEN


@pytest.mark.parametrize("signal", ["cancel", "pause", "resume", "approve", "reject", "feedback", "retry"])
def test_each_of_the_seven_signals_passes(signal: str) -> None:
    assert checked_record(WireSignal(type=signal, loop_id="l", user_id="u")).type == signal


def test_what_json_cannot_have_is_refused_before_it_is_written() -> None:
    for metadata in ({"a": object()}, {"a": "\ud800"}):
        with pytest.raises(RequestRejected) as refused:
            written(TaskMessage(**TASK, metadata=metadata))
        assert refused.value.code == WIRE_SHAPE_WRONG
    with pytest.raises(RequestRejected) as refused:
        written(replace(ENTITY, depth=-1))
    assert refused.value.code == WIRE_SHAPE_WRONG


def test_a_trajectory_past_the_limit_leaves_its_steps_to_a_blob_and_says_where() -> None:
    step = TrajectoryStep(timestamp=AT, step_type="tool_call", tool_result="x" * 600_000)
    short = Trajectory(loop_id="l", start_time=AT, steps=(step,), total_tokens_in=7)
    assert trajectory_entry(short) == (written(short), b"")
    data, steps = trajectory_entry(replace(short, steps=(step, step)))
    kept = read(data, Trajectory)
    assert (kept.steps, kept.steps_size, kept.total_tokens_in) == ((), len(steps), 7)
    assert len(data) < 1_000
    assert len(json.loads(steps)) == 2
