"""Model calls and tool calls on the wire, in both directions.

Rule 1: ids of the wire are unique: a request and a call are named by their run and their command, since the ids that
        providers give to calls repeat.
Rule 2: the request of the wire has no field for a schema, a grammar, options or top_p. A worker that is asked in its shape is not
        held to them while it decodes; what it answers is checked by the loop as every answer is.
Rule 3: a tool that a request describes is described to the model, and nothing more: what it may do is what was registered.
"""

from collections.abc import Callable, Mapping

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.tools import ToolCall, ToolDefinition, ToolResult
from remit.core.record import JsonObject, Text
from remit.core.run.inference import FinishReason, ModelRequest, ModelResult
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import Message, Role
from remit.core.run.usage import TokenUsage
from remit.wire.inbound import choice_of
from remit.wire.payloads import checked
from remit.wire.subjects import WIRE_ID_INVALID
from remit.wire.wire_records import (
    AgentRequest,
    AgentResponse,
    ChatMessage,
    WireTokenUsage,
    WireToolCall,
    WireToolChoice,
    WireToolDefinition,
    WireToolResult,
)
from remit.wire.wire_rules import ResponseStatus

# Between a run and its command in an id of the wire. No id of a command has it.
_MARK = ":"
NO_USAGE = TokenUsage()


def request_id_of(run_id: str, command_id: str) -> str:
    """The name of a command on the wire."""
    return f"{run_id}{_MARK}{command_id}"


def command_of(name: str) -> tuple[str, str]:
    """The run and the command that an id of the wire names; raises RequestRejected for an id of something else."""
    run_id, _, command_id = name.rpartition(_MARK)
    if not run_id or not command_id:
        message = f"id {name[:80]!r} names no command of a run; answer with the id that was sent, RUN{_MARK}COMMAND"
        raise RequestRejected(WIRE_ID_INVALID, message)
    return run_id, command_id


def agent_request(
    request: ModelRequest, *, run_id: str, command_id: str, role: AgentRole, model: str, text: Callable[[Text], str]
) -> AgentRequest:
    """What a loop asks of a model, as the wire has it."""
    choice = request.tool_choice
    return checked(
        AgentRequest(
            request_id=request_id_of(run_id, command_id),
            loop_id=run_id,
            role=role.value,
            messages=tuple([chat_message(message, text) for message in request.messages]),
            model=model,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            tools=tuple([described(tool) for tool in request.tools]),
            tool_choice=WireToolChoice(mode=choice.mode.value, function_name=choice.function_name),
        )
    )


def model_request(request: AgentRequest, registered: Mapping[str, ToolDefinition]) -> ModelRequest:
    """What an engine is asked for a request of the wire; fields that it leaves out have the wire's defaults."""
    checked(request)
    config = request.config
    tools = [registered.get(tool.name) or _unregistered(tool) for tool in request.tools]
    return ModelRequest(
        messages=tuple([message_of(message) for message in request.messages]),
        tools=tuple(tools),
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        tool_choice=choice_of(request.tool_choice),
    )


def agent_response(request_id: str, result: ModelResult) -> AgentResponse:
    """What a model answered, as the wire has it."""
    calls = tuple([_wire_call(call, number) for number, call in enumerate(result.tool_calls, 1)])
    said = ChatMessage(
        role=Role.ASSISTANT.value, content=result.content, reasoning_content=result.reasoning, tool_calls=calls
    )
    if not (result.content or result.reasoning or calls):
        return failed_response(
            request_id, ErrorCode.INFERENCE_MALFORMED_RESPONSE, "the model said nothing", result.usage
        )
    status = ResponseStatus.TOOL_CALL if calls else ResponseStatus.COMPLETE
    return checked(
        AgentResponse(request_id=request_id, status=status.value, message=said, token_usage=_tokens(result.usage))
    )


def failed_response(request_id: str, code: str, message: str, usage: TokenUsage = NO_USAGE) -> AgentResponse:
    """That a model call failed, and why."""
    status = ResponseStatus.ERROR.value
    return checked(
        AgentResponse(request_id=request_id, status=status, error=f"{code}: {message}", token_usage=_tokens(usage))
    )


def model_result(response: AgentResponse) -> ModelResult:
    """What a response of the wire says, as an engine would; raises RequestRejected with its code where the call failed."""
    checked(response)
    if response.status == ResponseStatus.ERROR:
        code, _, message = response.error.partition(": ")
        is_code = code in set(ErrorCode)
        raise RequestRejected(
            code if is_code else ErrorCode.INFERENCE_ENGINE_ERROR, message if is_code else response.error
        )
    said = response.message or ChatMessage(role=Role.ASSISTANT.value)
    used = response.token_usage or WireTokenUsage()
    calls = tuple([ToolCall(call.id, call.name, call.arguments, call.metadata) for call in said.tool_calls])
    return ModelResult(
        content=said.content,
        reasoning=said.reasoning_content,
        tool_calls=calls,
        usage=TokenUsage(prompt_tokens=used.prompt_tokens, output_tokens=used.completion_tokens),
        finish_reason=FinishReason.TOOL if calls else FinishReason.STOP,
    )


def tool_call(
    name: str, arguments: JsonObject, *, run_id: str, command_id: str, metadata: JsonObject, trace_id: str = ""
) -> WireToolCall:
    """A call of a tool as the wire has it, with the metadata of the task."""
    call = WireToolCall(
        id=request_id_of(run_id, command_id),
        name=name,
        arguments=arguments,
        metadata=metadata,
        loop_id=run_id,
        trace_id=trace_id,
    )
    return checked(call)


def tool_result(result: WireToolResult, *, tool: str, call_id: str) -> ToolResult:
    """What a tool on the wire returned, as the house has it; `call_id` is the one that the model gave."""
    checked(result)
    return ToolResult(call_id, tool, result.content, result.error, result.metadata, result.stop_loop)


def chat_message(message: Message, text: Callable[[Text], str]) -> ChatMessage:
    """A message of a conversation as the wire has it."""
    return ChatMessage(
        role=message.role.value,
        content=text(message.content),
        name=message.name,
        reasoning_content=text(message.reasoning),
        tool_calls=tuple([_wire_call(call, number) for number, call in enumerate(message.tool_calls, 1)]),
        tool_call_id=message.tool_call_id,
    )


def message_of(message: ChatMessage) -> Message:
    """A message of the wire as the house has it."""
    return Message(
        Role(message.role),
        message.content,
        message.reasoning_content,
        tuple([ToolCall(call.id, call.name, call.arguments, call.metadata) for call in message.tool_calls]),
        message.tool_call_id,
        message.name,
    )


def described(tool: ToolDefinition) -> WireToolDefinition:
    """A tool as a model is told of it."""
    return WireToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters)


def _unregistered(tool: WireToolDefinition) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, tool.parameters)


def _wire_call(call: ToolCall, number: int) -> WireToolCall:
    # A provider may leave the id out, and the wire may not.
    return WireToolCall(
        id=call.id or f"call_{number}", name=call.name, arguments=call.arguments, metadata=call.metadata
    )


def _tokens(usage: TokenUsage) -> WireTokenUsage:
    return WireTokenUsage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)
