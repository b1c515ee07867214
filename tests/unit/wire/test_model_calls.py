"""Model calls and tool calls cross the wire in the shapes of the wire and come back as they were."""

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.tools import Effect, ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition, ToolResult
from remit.core.run.inference import FinishReason, ModelRequest, ModelResult
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import assistant_message, system_message, tool_message, user_message
from remit.core.run.usage import TokenUsage
from remit.wire.model_calls import (
    agent_request,
    agent_response,
    command_of,
    failed_response,
    model_request,
    model_result,
    request_id_of,
    tool_call,
    tool_result,
)
from remit.wire.payloads import delivered, posted
from remit.wire.projections import by_digest
from remit.wire.subjects import WIRE_ID_INVALID
from remit.wire.wire_records import AgentRequest, AgentResponse, ChatMessage, WireToolDefinition, WireToolResult

READ = ToolDefinition("read_file", "Reads a file.", {"type": "object"}, effect=Effect.READ)
TALK = (
    system_message("Be brief."),
    user_message("Read it."),
    assistant_message("", (ToolCall("c1", "read_file", {"path": "a"}),), "I must look."),
    tool_message("c1", "read_file", "hello"),
)


@pytest.mark.req("3.2")
def test_a_model_is_asked_over_the_wire_what_it_is_asked_in_process() -> None:
    choice = ToolChoice(ToolChoiceMode.FUNCTION, "read_file")
    asked = ModelRequest(TALK, (READ,), max_tokens=100, temperature=0.0, tool_choice=choice)
    sent = agent_request(asked, run_id="r.1", command_id="2.0", role=AgentRole.GENERAL, model="gpt-4", text=by_digest)
    post = posted(sent)
    assert post.subject == "agent.request.r=2E1=3A2=2E0"
    came = delivered(post.subject, post.data, post.headers)
    assert isinstance(came, AgentRequest)
    assert model_request(came, {"read_file": READ}) == asked


@pytest.mark.req("3.4")
def test_what_a_request_of_the_wire_leaves_out_has_the_defaults_of_the_wire() -> None:
    bare = AgentRequest(request_id="r", role="general", messages=(ChatMessage(role="user", content="hi"),))
    asked = model_request(bare, {})
    assert (asked.temperature, asked.max_tokens) == (0.2, 4096)


def test_a_tool_that_is_only_described_counts_as_the_worst() -> None:
    described = WireToolDefinition(name="read_file", description="Harmless!", parameters={"type": "object"})
    messages = (ChatMessage(role="user", content="hi"),)
    request = AgentRequest(request_id="r", role="general", messages=messages, tools=(described,))
    assert model_request(request, {}).tools[0].effect is Effect.EXTERNAL
    assert model_request(request, {"read_file": READ}).tools[0] is READ


@pytest.mark.req("3.2")
@pytest.mark.parametrize(
    ("result", "status"),
    [
        (ModelResult("It says hello.", "Easy.", usage=TokenUsage(prompt_tokens=150, output_tokens=200)), "complete"),
        (
            ModelResult(tool_calls=(ToolCall("c1", "read_file", {"path": "a"}),), finish_reason=FinishReason.TOOL),
            "tool_call",
        ),
    ],
)
def test_what_a_model_answers_comes_back_with_its_status(result: ModelResult, status: str) -> None:
    response = agent_response("r:2.0", result)
    assert response.status == status
    post = posted(response)
    came = delivered(post.subject, post.data, post.headers)
    assert isinstance(came, AgentResponse)
    assert model_result(came) == result


@pytest.mark.req("3.2")
def test_a_model_call_that_failed_comes_back_as_an_error_with_its_code() -> None:
    response = failed_response("r:2.0", ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "not loaded")
    assert (response.status, response.error) == ("error", "INFERENCE_MODEL_UNAVAILABLE: not loaded")
    with pytest.raises(RequestRejected, match="not loaded") as refused:
        model_result(response)
    assert refused.value.code == ErrorCode.INFERENCE_MODEL_UNAVAILABLE
    with pytest.raises(RequestRejected, match="it broke: twice") as refused:
        model_result(AgentResponse(request_id="r", status="error", error="it broke: twice"))
    assert refused.value.code == ErrorCode.INFERENCE_ENGINE_ERROR


def test_a_model_that_said_nothing_is_a_failure_on_the_wire() -> None:
    response = agent_response("r:2.0", ModelResult())
    assert response.error.startswith("INFERENCE_MALFORMED_RESPONSE")


def test_a_response_without_a_message_says_nothing() -> None:
    assert model_result(AgentResponse(request_id="r", status="complete")) == ModelResult()


def test_a_call_without_an_id_is_given_one() -> None:
    response = agent_response("r:2.0", ModelResult(tool_calls=(ToolCall("", "read_file"),)))
    assert response.message is not None
    assert response.message.tool_calls[0].id == "call_1"


@pytest.mark.req("3.20")
def test_a_tool_call_carries_the_metadata_of_its_task_and_its_result_comes_back() -> None:
    call = tool_call("read_file", {"path": "a"}, run_id="r", command_id="3.1", metadata={"project": "x"}, trace_id="t")
    assert posted(call).subject == "tool.execute.read_file"
    assert (call.metadata, call.loop_id, call.trace_id) == ({"project": "x"}, "r", "t")
    assert command_of(call.id) == ("r", "3.1")
    result = WireToolResult(call_id=call.id, content="hello", stop_loop=True)
    assert posted(result).subject == "tool.result.r=3A3=2E1"
    assert tool_result(result, tool="read_file", call_id="c1") == ToolResult("c1", "read_file", "hello", stop_loop=True)


@pytest.mark.parametrize("name", ["", "r", "r:", ":2.0"])
def test_an_id_of_no_command_is_refused(name: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        command_of(name)
    assert refused.value.code == WIRE_ID_INVALID


def test_a_run_whose_id_has_the_mark_in_it_is_still_found() -> None:
    assert command_of(request_id_of("a:b", "2.0")) == ("a:b", "2.0")
