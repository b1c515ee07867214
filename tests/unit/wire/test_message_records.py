"""The records have the fields of the wire: their names, their order, and which of them are left out when empty."""

import msgspec
import pytest

from remit.core.record import Record
from remit.wire import message_records
from remit.wire.message_records import (
    AgentRequest,
    ChatMessage,
    ConstructedContext,
    LoopEntity,
    ModelConfig,
    WireTokenUsage,
)
from remit.wire.message_texts import TEXT_BYTES_MAX, fitting, moment, moment_ms
from scripts.wire_docs import EXAMPLES

# The fields as SemStreams lists them; a question mark stands for one that is left out when it is empty.
LISTED = {
    "AgentRequest": "request_id loop_id role messages model max_tokens? temperature? tools? tool_choice?",
    "AgentResponse": "request_id status message? error? token_usage?",
    "Attachment": "type name url? content? mime_type? size?",
    "ChatMessage": "role content? name? reasoning_content? tool_calls? tool_call_id?",
    "ConstructedContext": "content token_count entities? sources? constructed_at?",
    "ContextEvent": "type loop_id iteration utilization? tokens_saved? summary?",
    "ContextSource": "type id",
    "GraphContextSpec": "entities? relationships? depth? max_tokens?",
    "LoopCancelledEvent": "loop_id task_id outcome cancelled_by workflow_slug? workflow_step? cancelled_at",
    "LoopCompletedEvent": (
        "loop_id task_id outcome role result model iterations tokens_in tokens_out parent_loop? workflow_slug? "
        "workflow_step? completed_at channel_type? channel_id? user_id?"
    ),
    "LoopCreatedEvent": (
        "loop_id task_id role model workflow_slug? workflow_step? context_request_id? max_iterations created_at"
    ),
    "LoopEntity": (
        "id task_id state role model iterations max_iterations pending_tool_results? started_at? timeout_at? "
        "parent_loop_id? depth? max_depth? pause_requested? pause_requested_by? state_before_pause? cancelled_by? "
        "cancelled_at? user_id? channel_type? channel_id? workflow_slug? workflow_step? outcome? result? error? "
        "completed_at? identity?"
    ),
    "LoopFailedEvent": (
        "loop_id task_id outcome reason error role model iterations tokens_in tokens_out workflow_slug? "
        "workflow_step? failed_at channel_type? channel_id? user_id?"
    ),
    "ModelConfig": "temperature? max_tokens?",
    "ResponseAction": "id type label signal style",
    "ResponseBlock": "type content lang?",
    "TaskMessage": (
        "loop_id? task_id role model prompt workflow_slug? workflow_step? channel_type? channel_id? user_id? "
        "parent_loop_id? depth? max_depth? context? context_request_id? tools? tool_choice? metadata?"
    ),
    "WireTokenUsage": "prompt_tokens completion_tokens",
    "WireToolCall": "id name arguments? metadata? loop_id? trace_id?",
    "WireToolChoice": "mode function_name?",
    "WireToolDefinition": "name description parameters",
    "WireToolResult": "call_id name? content? error? metadata? loop_id? trace_id? stop_loop?",
    "Trajectory": "loop_id start_time end_time? steps outcome? total_tokens_in total_tokens_out duration",
    "TrajectoryStep": (
        "timestamp step_type request_id? prompt? response? tokens_in? tokens_out? tool_name? tool_arguments? "
        "tool_result? duration messages? tool_calls? model?"
    ),
    "UserMessage": (
        "message_id channel_type channel_id user_id content attachments? reply_to? thread_id? metadata? "
        "context_request_id? timestamp"
    ),
    "UserResponse": (
        "response_id channel_type channel_id user_id in_reply_to? thread_id? type content blocks? actions? timestamp"
    ),
    "WireSignal": "signal_id type loop_id user_id channel_type channel_id payload? timestamp",
}
# Fields that are read and never written, or are of ours and stand behind its own.
OURS = {"ChatMessage": {"reasoning"}, "Trajectory": {"steps_digest", "steps_size"}}


def kind_named(name: str) -> type[Record]:
    kind: type[Record] = getattr(message_records, name)
    return kind


@pytest.mark.req("3.2", "3.6", "3.20", "3.28")
@pytest.mark.parametrize("name", LISTED)
def test_a_record_has_the_fields_of_the_wire_in_their_order(name: str) -> None:
    fields = [field for field in kind_named(name).__struct_fields__ if field not in OURS.get(name, ())]
    assert fields == LISTED[name].replace("?", "").split()


@pytest.mark.req("3.2", "3.6")
@pytest.mark.parametrize("name", LISTED)
def test_a_field_is_written_when_it_is_empty_unless_the_wire_leaves_it_out(name: str) -> None:
    empty = msgspec.json.decode(msgspec.json.encode(kind_named(name)()))
    assert list(empty) == [field for field in LISTED[name].split() if not field.endswith("?")]


@pytest.mark.req("3.6", "3.25")
def test_every_field_of_a_loop_is_written_when_it_holds_something() -> None:
    written = msgspec.json.decode(msgspec.json.encode(EXAMPLES["loop_entity"]))
    assert list(written) == LISTED["LoopEntity"].replace("?", "").split()


@pytest.mark.req("3.4")
def test_a_model_is_asked_with_the_defaults_of_the_wire_where_a_field_is_absent() -> None:
    assert ModelConfig().with_defaults() == ModelConfig(temperature=0.2, max_tokens=4096)
    assert ModelConfig(temperature=0.7, max_tokens=2048).with_defaults() == ModelConfig(
        temperature=0.7, max_tokens=2048
    )
    assert AgentRequest().config == ModelConfig(temperature=0.2, max_tokens=4096)


@pytest.mark.req("3.4")
def test_a_temperature_of_zero_that_is_written_stays_greedy() -> None:
    request = msgspec.json.decode(b'{"temperature": 0, "max_tokens": 7}', type=AgentRequest)
    assert request.config == ModelConfig(temperature=0.0, max_tokens=7)
    assert b'"temperature":0.0' in msgspec.json.encode(request)


@pytest.mark.req("3.3")
@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ('{"role": "assistant", "reasoning": "a"}', "a"),
        ('{"role": "assistant", "reasoning": "a", "reasoning_content": "b"}', "b"),
        ('{"role": "assistant", "reasoning_content": "b"}', "b"),
        ('{"role": "assistant", "reasoning": "a", "reasoning_content": ""}', "a"),
    ],
)
def test_a_thought_is_taken_under_both_names_and_written_under_one(text: str, thought: str) -> None:
    message = msgspec.json.decode(text, type=ChatMessage)
    assert message.reasoning_content == thought
    assert msgspec.json.decode(msgspec.json.encode(message)) == {"role": "assistant", "reasoning_content": thought}


def test_the_zero_moment_of_other_languages_reads_as_none() -> None:
    zero = "0001-01-01T00:00:00Z"
    entity = msgspec.convert({"started_at": zero, "cancelled_at": zero}, LoopEntity)
    assert (entity.started_at, entity.cancelled_at) == ("", "")
    assert ConstructedContext(constructed_at=zero).constructed_at == ""
    assert moment_ms(zero) == 0


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, ""),
        (1_773_396_672_000, "2026-03-13T10:11:12Z"),
        (1_773_396_672_500, "2026-03-13T10:11:12.5Z"),
        (1_773_396_672_005, "2026-03-13T10:11:12.005Z"),
    ],
)
def test_a_moment_is_written_as_the_wire_writes_it_and_read_back(at_ms: int, text: str) -> None:
    assert moment(at_ms) == text
    assert moment_ms(text) == at_ms


@pytest.mark.parametrize("text", ["2026-03-13T10:11:12.123456789Z", "2026-03-13T12:11:12.123+02:00"])
def test_a_moment_of_a_peer_may_have_nanoseconds_or_another_zone(text: str) -> None:
    assert moment_ms(text) == 1_773_396_672_123


@pytest.mark.parametrize("text", ["yesterday", "2026-03-13", "2026-03-13T10:11:12"])
def test_a_text_that_is_no_moment_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        moment_ms(text)


@pytest.mark.parametrize("sign", ["x", "\u20ac", "\x00"])
def test_a_text_that_is_too_long_for_a_message_is_cut_and_names_its_digest(sign: str) -> None:
    short, long = sign * 10, sign * TEXT_BYTES_MAX
    assert fitting(short) == short
    cut = fitting(long + "y")
    assert cut.startswith(sign * 10)
    assert f"[{len((long + 'y').encode())} bytes in all, sha256:" in cut
    assert len(msgspec.json.encode(cut)) < 1_000_000


def test_the_tokens_of_a_request_add_up() -> None:
    assert WireTokenUsage(prompt_tokens=500, completion_tokens=250).total == 750
