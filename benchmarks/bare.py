"""The bare loop: what a tool loop costs when nothing is decided, recorded or checked.

It does the same work as the stage (a growing list of messages, an async model, an async tool found by name) and is
the floor of every framework: no code that calls a model and a tool in turn can cost less.
"""

from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Tool = Callable[..., Awaitable[str]]


async def play_bare(loops: int) -> list[Message]:
    """One whole run: its messages."""
    left = loops

    async def model(messages: list[Message]) -> Message:
        nonlocal left
        if left == 0:
            return {"role": "assistant", "content": "done"}
        left -= 1
        call = {"id": f"call-{left}", "name": "look", "arguments": {"n": left}}
        return {"role": "assistant", "tool_calls": [call]}

    async def look(n: int) -> str:
        return "42"

    tools: dict[str, Tool] = {"look": look}
    messages: list[Message] = [{"role": "user", "content": "Look some numbers up."}]
    while True:
        answer = await model(messages)
        messages.append(answer)
        calls = answer.get("tool_calls")
        if not calls:
            return messages
        for call in calls:
            content = await tools[call["name"]](**call["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
