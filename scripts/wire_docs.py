"""docs/wire.md: the messages of the seed's wire, made from their records, rules and one example of each.

Rule 1: fields, rules, subjects and categories are read from the code; an example is a record that passes its own rules.
Rule 2: the examples are stored in tests/golden/wire, byte for byte as they travel, and tests read them back.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from remit.core.record import Record
from remit.wire.wire_records import (
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
    WireTokenUsage,
    WireToolCall,
    WireToolChoice,
    WireToolDefinition,
    WireToolResult,
)

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
