"""What loops ask of models and tools, and what came of it, as messages: read off the turns that say so.

Rule 1: a request and its response have the id of the model call; a call and its result that of its proposal (told_talk.py).
Rule 2: a message has a megabyte. A long text is cut and names its digest; of a long conversation the oldest messages are left
        out, and one in their place says how many.
Rule 3: the request of the wire has no field for a schema, a grammar, options or `top_p`, so it does not tell them.
Rule 4: what is in doubt is told when it is settled, and a proposal that was refused is no call. A call that happened and that
        nothing proves is no error: its metadata says that it is unverified.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import ModelAnswered, ModelFailed
from remit.core.journal.codec import arguments_in
from remit.core.journal.commands import CallModel, CallTool
from remit.core.journal.rulings import UNVERIFIED, CallSettled
from remit.core.journal.turn import Turn
from remit.core.limits.tools import ToolCall, ToolDefinition
from remit.core.record import Record, Text
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import Message, Role
from remit.core.run.usage import TokenUsage
from remit.kernel.state import RunState, pinned
from remit.kernel.traces import CallTrace
from remit.observe.views.execution import offered_tools
from remit.wire.inbound import ROUTE_KEY, call_metadata
from remit.wire.message_records import (
    AgentRequest,
    AgentResponse,
    ChatMessage,
    WireTokenUsage,
    WireToolCall,
    WireToolChoice,
    WireToolDefinition,
    WireToolResult,
)
from remit.wire.message_rules import ResponseStatus
from remit.wire.message_texts import fitting
from remit.wire.payloads import checked_record
from remit.wire.told_talk import call_id_of, proposal_ids, request_id_of, talk_of

# Gives a text in full.
TextOf: TypeAlias = Callable[[Text], str]
# What a command asks of a model, as far as the wire tells it: its messages, its tools and how it is to answer.
RequestOf: TypeAlias = Callable[[RunState, CallModel], ModelRequest]

# What messages, descriptions of tools, and arguments may take of a message that has 1,000,000 bytes.
TALK_BYTES_MAX, TOOLS_BYTES_MAX, ARGUMENTS_BYTES_MAX = 600_000, 200_000, 400_000


def by_digest(text: Text) -> str:
    """A text as it stands in a turn: itself, or the digest under which it is kept."""
    return text if isinstance(text, str) else f"sha256:{text.digest.hex()} ({text.size_bytes} bytes)"


def plainly_asked(state: RunState, command: CallModel) -> ModelRequest:
    """What a model is asked where no node of a graph asks for more."""
    request = pinned(state).request
    return ModelRequest(
        talk_of(state, command.messages_count),
        tuple([state.derived.tools[name] for name in offered_tools(state)]),
        max_tokens=command.max_tokens,
        temperature=request.hints.temperature,
        tool_choice=request.tool_choice,
    )


def requests_of_turn(turn: Turn, state: RunState, text: TextOf, asked: RequestOf = plainly_asked) -> Iterator[Record]:
    """What a turn asks of models and tools; the state is that after it."""
    for command in turn.decisions:
        if isinstance(command, CallModel):
            yield from _asked(command, state, text, asked)
        elif isinstance(command, CallTool):
            yield _called(command, state)


def outcomes_of(turn: Turn, state: RunState, text: TextOf) -> Iterator[Record]:
    """What a turn says that models answered and tools returned; the state is that after it."""
    arrival, run_id = turn.arrival, state.run_id
    if isinstance(arrival, ModelAnswered):
        yield model_answered(arrival, run_id, text)
    elif isinstance(arrival, ModelFailed):
        request_id = request_id_of(run_id, arrival.command_id)
        said = fitting(arrival.message) or "the model gave no reason"
        yield _failed(request_id, arrival.code.value, said, arrival.usage)
    for ruling in turn.decisions:
        if isinstance(ruling, CallSettled) and (trace := state.calls.made.get(ruling.command_id)) is not None:
            call_id = call_id_of(state, ruling.command_id, trace.call_id, trace.tool, trace.arguments_hash)
            yield call_result(run_id, trace, call_id, text, pinned(state).request.trace_id)


def model_answered(answer: ModelAnswered, run_id: str, text: TextOf = by_digest) -> AgentResponse:
    """What a model answered, as a message."""
    said = _of_answer(run_id, answer, lambda held: fitting(text(held)))
    request_id, used = request_id_of(run_id, answer.command_id), answer.usage
    if not (said.content or said.reasoning_content or said.tool_calls):
        code = ErrorCode.INFERENCE_MALFORMED_RESPONSE
        return _failed(request_id, code, "the model said nothing", used)
    status = ResponseStatus.TOOL_CALL if said.tool_calls else ResponseStatus.COMPLETE
    return AgentResponse(request_id=request_id, status=status.value, message=said, token_usage=_tokens(used))


def _failed(request_id: str, code: str, message: str, usage: TokenUsage) -> AgentResponse:
    """The response that tells that a model call failed, and why."""
    status = ResponseStatus.ERROR.value
    return checked_record(
        AgentResponse(request_id=request_id, status=status, error=f"{code}: {message}", token_usage=_tokens(usage))
    )


def _asked(command: CallModel, state: RunState, text: TextOf, asked: RequestOf) -> Iterator[AgentRequest]:
    request = asked(state, command)
    messages, choice = _within(chat_of(request.messages, lambda held: fitting(text(held)))), request.tool_choice
    if not messages:
        return  # Everything that it is shown says nothing, which is no message there.
    tools = tuple([_described(tool) for tool in request.tools])
    yield AgentRequest(
        request_id=request_id_of(state.run_id, command.id),
        loop_id=state.run_id,
        role=pinned(state).role.value,
        messages=messages,
        model=command.model,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        tools=tools if _size(tools) <= TOOLS_BYTES_MAX else (),
        tool_choice=WireToolChoice(mode=choice.mode.value, function_name=choice.function_name),
    )


def _within(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """As many of the newest messages as there is room for, behind one that says how many there were before them."""
    kept, left_bytes = list[ChatMessage](), TALK_BYTES_MAX
    for message in reversed(messages):
        left_bytes -= _size(message)
        if left_bytes < 0:
            left_out = len(messages) - len(kept)
            kept.append(ChatMessage(role=Role.SYSTEM.value, content=f"[{left_out} earlier messages are left out here]"))
            break
        kept.append(message)
    return tuple(reversed(kept))


def _called(command: CallTool, state: RunState) -> WireToolCall:
    request, arguments = pinned(state).request, arguments_in(command.arguments)
    metadata = call_metadata(request)
    size_bytes = _size(arguments)
    return WireToolCall(
        id=call_id_of(state, command.id, command.call_id, command.tool, command.arguments_hash),
        name=command.tool,
        arguments=arguments if size_bytes <= ARGUMENTS_BYTES_MAX else {"size_bytes": size_bytes},
        metadata=metadata if _size(metadata) <= ARGUMENTS_BYTES_MAX else {},
        loop_id=state.run_id,
        trace_id=request.trace_id,
    )


def call_result(run_id: str, trace: CallTrace, call_id: str, text: TextOf, trace_id: str = "") -> WireToolResult:
    """What a call came to."""
    is_unverified = trace.code == UNVERIFIED
    error = "" if is_unverified else ": ".join(part for part in (trace.code, trace.reason) if part)
    return WireToolResult(
        call_id=call_id,
        name=trace.tool,
        content=fitting(text(trace.content)),
        error=fitting(error),
        metadata={ROUTE_KEY: {"unverified": True}} if is_unverified else {},
        loop_id=run_id,
        trace_id=trace_id,
    )


def chat_of(shown: Sequence[Message], text: TextOf) -> tuple[ChatMessage, ...]:
    """Messages as the wire has them. What says nothing at all, such as an empty result, is no message there."""
    said = [_chat_message(entry, text) for entry in shown]
    return tuple([message for message in said if message.content or message.reasoning_content or message.tool_calls])


def _chat_message(message: Message, text: Callable[[Text], str]) -> ChatMessage:
    """A message of a conversation as the wire has it."""
    return ChatMessage(
        role=message.role.value,
        content=text(message.content),
        name=message.name,
        reasoning_content=text(message.reasoning),
        tool_calls=tuple([_wire_call(call, number) for number, call in enumerate(message.tool_calls, 1)]),
        tool_call_id=message.tool_call_id,
    )


def _of_answer(run_id: str, answer: ModelAnswered, text: TextOf) -> ChatMessage:
    return ChatMessage(
        role=Role.ASSISTANT.value,
        content=text(answer.text),
        reasoning_content=text(answer.reasoning),
        tool_calls=proposed_by(run_id, answer),
    )


def proposed_by(run_id: str, answer: ModelAnswered) -> tuple[WireToolCall, ...]:
    """The calls that an answer proposes."""
    names = proposal_ids(run_id, answer)
    named = [(key, call) for key, call in zip(names, answer.calls, strict=True) if call.tool]
    return tuple([WireToolCall(id=key, name=call.tool, arguments=arguments_in(call.arguments)) for key, call in named])


def _described(tool: ToolDefinition) -> WireToolDefinition:
    """A tool as a model is told of it."""
    return WireToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters)


def _wire_call(call: ToolCall, number: int) -> WireToolCall:
    # A provider may leave the id out, and the wire may not.
    return WireToolCall(
        id=call.id or f"call_{number}", name=call.name, arguments=call.arguments, metadata=call.metadata
    )


def _tokens(usage: TokenUsage) -> WireTokenUsage:
    return WireTokenUsage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))
