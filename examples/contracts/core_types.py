"""The shared words: messages, tool calls and results, a schema, token usage."""

from remit import (
    Role,
    TokenUsage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    assistant_message,
    system_message,
    tool_message,
    user_message,
)

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where"}},
    "required": ["city"],
}


def main() -> None:
    """One round of a conversation, message by message."""
    call = ToolCall("call-1", "weather", {"city": "Paris"})
    definition = ToolDefinition("weather", "How the weather is in a city.", SCHEMA)
    result = ToolResult(call.id, definition.name, "18 degrees, sunny")
    conversation = [
        system_message("You know the weather."),
        user_message("How is the weather in Paris?"),
        assistant_message("", (call,)),
        tool_message(result.call_id, result.name, result.content),
        assistant_message("It is sunny in Paris, at 18 degrees."),
    ]
    for message in conversation:
        said = message.content or f"calls {', '.join(one.name for one in message.tool_calls)}"
        print(f"{message.role.value:>9}: {said}")
    assert conversation[3].role is Role.TOOL
    assert conversation[3].tool_call_id == call.id

    usage = TokenUsage(
        prompt_tokens=120,
        reasoning_tokens=10,
        output_tokens=30,
        context_tokens=160,
        context_window=8_192,
        duration_ms=500,
    )
    print(
        f"{usage.total_tokens} tokens, {usage.completion_tokens} of them generated, {usage.tokens_per_second:.0f} a second"
    )


if __name__ == "__main__":
    main()
