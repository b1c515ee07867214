import msgspec
import pytest

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

ROOT = CorrelationContext("req_1", "session_1", "trace_1", "span_1")

EVENTS: dict[str, CorrelatedEvent] = {
    "inference_start": InferenceStartEvent(ROOT, 2, 1, False, False, None),
    "inference_end": InferenceEndEvent(ROOT, 12, 30, 5, FinishReason.TOOL, 0),
    "tool_start": ToolStartEvent(ROOT, "read_file", "call_1", "ab12"),
    "tool_end": ToolEndEvent(ROOT, "read_file", "call_1", 4, True, ""),
    "lifecycle_transition": LifecycleTransitionEvent(ROOT, LifecycleState.INIT, LifecycleState.PREPARE, 1, "accepted"),
}
FIELDS = {
    "inference_start": "message_count tool_defs_count schema_present grammar_present temperature",
    "inference_end": "duration_ms tokens_in tokens_out finish_reason tool_call_count",
    "tool_start": "tool_name tool_call_id args_hash",
    "tool_end": "tool_name tool_call_id duration_ms success error_code",
    "lifecycle_transition": "from_state to_state attempt reason",
}


@pytest.mark.req("0.28")
def test_a_context_has_six_identifiers() -> None:
    assert CorrelationContext.__struct_fields__ == (
        "request_id",
        "session_id",
        "trace_id",
        "span_id",
        "parent_span_id",
        "caused_by",
    )


@pytest.mark.req("0.28")
def test_a_tool_execution_is_caused_by_the_call_and_hangs_below_its_span() -> None:
    below = below_tool_call(ROOT, span_id="span_2", tool_call_id="call_1")
    assert below == CorrelationContext("req_1", "session_1", "trace_1", "span_2", "span_1", "call_1")


@pytest.mark.req("0.28")
def test_a_step_is_caused_by_its_name() -> None:
    below = below_step(ROOT, span_id="span_2", step_name="extract")
    assert (below.parent_span_id, below.caused_by) == ("span_1", "extract")


@pytest.mark.parametrize("kind", EVENTS)
def test_every_event_writes_its_kind_its_correlation_and_all_its_fields(kind: str) -> None:
    written = msgspec.json.decode(msgspec.json.encode(EVENTS[kind]))
    assert set(written) == {"type", "correlation", *FIELDS[kind].split()}
    assert written["type"] == kind
    assert written["correlation"]["request_id"] == "req_1"


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_is_told_by_its_kind_when_read_back(kind: str) -> None:
    read: CorrelatedEvent = msgspec.json.decode(msgspec.json.encode(EVENTS[kind]), type=CorrelatedEvent)
    assert read == EVENTS[kind]
