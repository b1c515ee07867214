"""Calls of a model that knows no tools: the words that tell it how to call, and what its text then says.

Rule 1: the hint is short (CALL_HINT_BYTES_MAX in core/run/inference.py). A small model reads a few thousand tokens, and
        follows an example better than a rule.
Rule 2: what was read is validated against the tool's own schema before it counts.
Rule 3: results are told behind the words that asked for them, and the calls are left out: a small model that sees a call
        in the conversation writes another one instead of an answer.
Rule 4: an id is minted from the number of messages before the answer, so the same conversation always names its calls alike.
"""

from collections.abc import Iterable, Sequence

from remit.constraint.grammar.shapes import ARGUMENTS, TOOL
from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.codec import read_json
from remit.core.limits.tools import ToolCall, ToolDefinition
from remit.core.record import JsonObject, Record
from remit.core.run.messages import Message, Role, assistant_message, user_message
from remit.core.schema.json_schema import compile_schema

# What is shown of a description: its first sentences say what a tool is for.
DESCRIPTION_CHARS_SHOWN = 300
# Calls of tools that are not there, so that no model calls these: they show that words are copied as they stand. With two
# of them a model of 135 million parameters filled more calls right than with none, with one, or with three.
EXAMPLES: tuple[Message, ...] = (
    user_message("Where is parcel 731?"),
    assistant_message('{"tool":"find_parcel","arguments":{"number":"731"}}'),
    user_message("Solve (8 - 2) * 3"),
    assistant_message('{"tool":"solve","arguments":{"problem":"(8 - 2) * 3"}}'),
)


class CallRead(Record):
    """What the text of a model came to: a call, words, or the reason why it is neither."""

    call: ToolCall | None = None
    words: str = ""
    code: ErrorCode | None = None
    problem: str = ""


def call_hint(tools: Sequence[ToolDefinition]) -> str:
    """What a model is told that must call one of these tools."""
    return _hint(tools, "Reply with one JSON object that calls the tool.")


def call_or_words_hint(tools: Sequence[ToolDefinition]) -> str:
    """What a model is told that may call one of these tools or answer in words."""
    return _hint(tools, "If a tool helps, reply with one JSON object that calls it; otherwise answer in words.")


def with_results_told(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The conversation without calls, each result behind the words that asked for it."""
    shown: list[Message] = []
    for message in messages:
        if message.role is Role.TOOL:
            told = f"The result of {message.name} is: {message.content}"
            asked = next((at for at in range(len(shown) - 1, -1, -1) if shown[at].role is Role.USER), None)
            if asked is None:
                shown.append(user_message(told))
            else:
                shown[asked] = user_message(f"{shown[asked].content}\n\n{told}")
        elif not message.tool_calls:
            shown.append(message)
        elif message.content:
            shown.append(assistant_message(message.content))
    return tuple(shown)


def with_answer_demanded(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The conversation, with a last line that asks for an answer from the results."""
    *before, last = messages
    if last.role is not Role.USER:
        return messages
    return (*before, user_message(f"{last.content}\nAnswer in words, using this result."))


def read_call(text: str, tools: Sequence[ToolDefinition], *, messages_before: int) -> CallRead:
    """The call in a text that was held to the grammar of these tools. Whatever does not fit has a code."""
    said = text.strip()
    if not said.startswith("{"):
        return CallRead(words=text)
    try:
        value = read_json(said)
    except (ValueError, RecursionError) as error:
        return _unfit(ErrorCode.CONSTRAINT_JSON_INVALID, f"its call is no JSON: {error}")
    if not isinstance(value, dict) or set(value) != {TOOL, ARGUMENTS} or not isinstance(value[ARGUMENTS], dict):
        return _unfit(ErrorCode.CONSTRAINT_SCHEMA_INVALID, f"a call has {TOOL!r} and {ARGUMENTS!r}, and nothing else")
    tool = next((tool for tool in tools if tool.name == value[TOOL]), None)
    if tool is None:
        offered = ", ".join(tool.name for tool in tools)
        return _unfit(ErrorCode.CONSTRAINT_SCHEMA_INVALID, f"it calls {clipped(value[TOOL])}; it was offered {offered}")
    return _validated(tool, value[ARGUMENTS], f"call-{messages_before + 1}")


def _validated(tool: ToolDefinition, arguments: JsonObject, call_id: str) -> CallRead:
    try:
        violations = compile_schema(tool.parameters).violations(arguments)
    except RequestRejected as error:
        return _unfit(ErrorCode.CONSTRAINT_SCHEMA_INVALID, f"the parameters of {tool.name!r}: {error.message}")
    if violations:
        first = violations[0]
        message = f"its call of {tool.name!r} does not fit: {first.path or '/'}: {first.message}"
        return _unfit(ErrorCode.CONSTRAINT_SCHEMA_INVALID, message)
    return CallRead(ToolCall(call_id, tool.name, arguments))


def _unfit(code: ErrorCode, problem: str) -> CallRead:
    return CallRead(code=code, problem=problem)


def _hint(tools: Sequence[ToolDefinition], demand: str) -> str:
    intro = "You can use this tool:" if len(tools) == 1 else "You can use these tools:"
    copying = "Copy the user's own words and numbers into the arguments."
    return "\n".join([intro, *map(_described, tools), f"{demand} {copying}"])


def _described(tool: ToolDefinition) -> str:
    lines = [f"- {tool.name}: {tool.description[:DESCRIPTION_CHARS_SHOWN]}"]
    for name, schema in tool.parameters.get("properties", {}).items():
        told = schema.get("description", "") if isinstance(schema, dict) else ""
        lines.append(f"  {name}: {str(told)[:DESCRIPTION_CHARS_SHOWN]}".rstrip(" :"))
    return "\n".join(lines)
