"""Tokens that a server did not count: bounds by bytes, since every token takes at least one.

Rule 1: what was reported stands; a figure that is missing, or 0 where something was read or said, becomes its bound.
Rule 2: a bound is never 0. It is no larger than what a run reserves for the same call: the same bytes, the same overhead
        for each message and tool, and never more output than was allowed.
Rule 3: a schema and a grammar hold the decoder, and servers that count nothing do not show them to the model.
"""

from typing import NamedTuple

from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, replace, size_bytes
from remit.core.run.inference import ModelInfo, ModelRequest
from remit.core.run.messages import Message
from remit.core.run.usage import TokenUsage

# What a template puts around a message, a call, a tool or an answer; as much as a run reserves for it.
OVERHEAD_TOKENS = 16


class Generated(NamedTuple):
    """The bytes of an answer as they came: what was thought, what was said, and the calls that the server made of it."""

    thought_bytes: int
    said_bytes: int
    calls: int = 0


def counted(usage: TokenUsage, request: ModelRequest, info: ModelInfo, generated: Generated) -> TokenUsage:
    """The usage of an answer, with a bound in the place of every figure that nobody reported."""
    if usage.prompt_tokens and usage.completion_tokens:
        return usage
    prompt = usage.prompt_tokens or prompt_bound(request, info)
    thought, said = usage.reasoning_tokens, usage.output_tokens
    if not usage.completion_tokens:
        thought, said = _generated_bound(request.max_tokens, generated)
    return replace(
        usage,
        prompt_tokens=prompt,
        reasoning_tokens=thought,
        output_tokens=said,
        context_tokens=prompt + thought + said,
        context_window=info.context_window,
    )


def prompt_bound(request: ModelRequest, info: ModelInfo) -> int:
    """No prompt that shows this request to this model has more tokens."""
    messages = sum(_message_bytes(message) + OVERHEAD_TOKENS for message in request.messages)
    tools = sum(_tool_bytes(tool) + OVERHEAD_TOKENS for tool in request.tools)
    return messages + tools + info.template_tokens


def _generated_bound(tokens_max: int, generated: Generated) -> tuple[int, int]:
    """What was thought and what was said, together within the limit if there was one."""
    thought = generated.thought_bytes
    said = generated.said_bytes + (1 + generated.calls) * OVERHEAD_TOKENS
    if tokens_max <= 0:
        return thought, said
    thought = min(thought, tokens_max)
    # A server may make calls of a text that was longer than what it tells of them: then only the limit is sure.
    return thought, tokens_max - thought if generated.calls else min(said, tokens_max - thought)


def _message_bytes(message: Message) -> int:
    # What was thought is not shown again.
    size = size_bytes(message.content) + size_bytes(message.tool_call_id) + size_bytes(message.name)
    for call in message.tool_calls:
        size += size_bytes(call.id) + size_bytes(call.name) + _json_bytes(call.arguments) + OVERHEAD_TOKENS
    return size


def _tool_bytes(tool: ToolDefinition) -> int:
    return size_bytes(tool.name) + size_bytes(tool.description) + _json_bytes(tool.parameters)


def _json_bytes(value: JsonObject) -> int:
    try:
        return len(canonical_json(value))
    except NotCanonical:
        # Whoever sends it fails; a count need not.
        return len(repr(value).encode(errors="replace"))
