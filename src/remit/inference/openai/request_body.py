"""What an OpenAI-compatible server is sent: a ModelRequest in the words of chat completions.

Rule 1: options reach the server, and what the request itself says is laid over them: none can change what was asked
        for, nor what was reserved for it.
Rule 2: what a request leaves to the engine is left to the server: it is not sent.
Rule 3: a tool is sent as its name, description and parameters; what it may do stays here.
Rule 4: a grammar and a wish not to think are sent in the dialect of the server.
Rule 5: what a model thought is not sent back: some servers refuse it, and none needs it.
"""

from collections.abc import Callable

from remit.core.journal.canonical import canonical_json
from remit.core.limits.tools import ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import JsonObject
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import Message, Role
from remit.inference.openai.dialects import ANY, Dialect, grammar_fields, hush
from remit.inference.openai.request_schema import open_format

# What the vendor's newer models call the limit, and what every other server knows.
LIMIT_OF_VENDOR = "max_completion_tokens"
LIMIT = "max_tokens"

# Options that would make an answer longer than was reserved, or make several of it.
_OTHER_LIMITS = frozenset({LIMIT, LIMIT_OF_VENDOR, "n_predict"})
_MULTIPLES = frozenset({"n", "best_of"})


def body_of(
    model: str,
    request: ModelRequest,
    *,
    limit: str,
    format_of: Callable[[JsonObject], JsonObject] = open_format,
    dialect: Dialect = ANY,
) -> JsonObject:
    """The body of a call. `limit` is what the server calls `max_tokens`, unless an option calls it by its other name.

    `format_of` is what the server is told of a schema.
    """
    withheld = _MULTIPLES | _OTHER_LIMITS if request.max_tokens > 0 else _MULTIPLES
    body: JsonObject = {name: value for name, value in request.options.items() if name not in withheld}
    body["model"] = model
    body["messages"] = [sent_message(message) for message in request.messages]
    body["stream"], body["stream_options"] = True, {"include_usage": True}
    if request.tools:
        body["tools"] = [sent_tool(tool) for tool in request.tools]
        if request.tool_choice.mode is not ToolChoiceMode.AUTO:
            body["tool_choice"] = _sent_choice(request.tool_choice)
    # A grammar is narrower than a schema, and servers that know grammars take one of both alone.
    if grammar := grammar_fields(request.grammar, dialect):
        body |= grammar
        hush(body, dialect.thinking_by_grammar)
    elif request.schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": format_of(request.schema)}
        hush(body, dialect.thinking)
    elif request.grammar:
        hush(body, dialect.thinking)
    if request.max_tokens > 0:
        body[LIMIT_OF_VENDOR if LIMIT_OF_VENDOR in request.options else limit] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p > 0:
        body["top_p"] = request.top_p
    return body


def sent_message(message: Message) -> JsonObject:
    """One message of the conversation."""
    assert isinstance(message.content, str), "an engine never sees a digest"
    sent: JsonObject = {"role": message.role.value, "content": message.content}
    if message.role is Role.TOOL:
        sent["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        # Beside calls, an empty text is none at all; some servers refuse the empty one.
        sent["content"] = message.content or None
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": canonical_json(call.arguments).decode()},
            }
            for call in message.tool_calls
        ]
    return sent


def sent_tool(tool: ToolDefinition) -> JsonObject:
    """A tool as it is offered."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _sent_choice(choice: ToolChoice) -> str | JsonObject:
    if choice.mode is ToolChoiceMode.FUNCTION:
        return {"type": "function", "function": {"name": choice.function_name}}
    return choice.mode.value
