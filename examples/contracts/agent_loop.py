"""A conversation: its state grows from call to call, tools are called within, and everything can be looked at afterwards."""

import asyncio
import sys
from typing import Any, TextIO

from remit import AgentLoop, InMemoryEventLog, Restarted, ScriptedEngine, StreamChunk, tool

FORECAST = {"Paris": "sunny", "London": "rain"}


@tool(effect="read")
def search(query: str) -> str:
    """Look up the weather of a city."""
    return FORECAST.get(query, "unknown")


@tool(effect="read")
def calc(left: float, right: float) -> float:
    """Add two numbers."""
    return left + right


class TerminalRenderer:
    """Writes an answer as it comes; one that begins anew stands on a line of its own."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __call__(self, chunk: StreamChunk | Restarted) -> None:
        """Take one piece."""
        self._out.write(chunk.text if isinstance(chunk, StreamChunk) else "\n")


REPLIES: list[dict[str, Any]] = [
    {"when": "Paris?", "tool_calls": [{"name": "search", "arguments": {"query": "Paris"}}]},
    {"when": "sunny", "text": "Paris is sunny."},
    {"when": "London?", "tool_calls": [{"name": "search", "arguments": {"query": "London"}}]},
    {"when": "rain", "text": "London has rain."},
]


async def main() -> None:
    """Two turns; the second is understood because of the first."""
    observer = InMemoryEventLog()
    async with AgentLoop(
        ScriptedEngine(REPLIES),
        tools=[search, calc],
        system_prompt="You are a helpful assistant with access to tools.",
        max_tokens=2048,
        stream=TerminalRenderer(sys.stdout),
        on_tool_result=lambda name, output: print(f"  [{name}] {output}"),
        observer=observer,
    ) as agent:
        first = await agent.chat("What is the weather in Paris?")
        print()
        second = await agent.chat("How about London?")
        print()
        print([message.role.value for message in agent.messages])
    print(f"tool calls: {[(call.name, call.result) for call in second.tool_calls_made]}")
    assert (first.content, second.content) == ("Paris is sunny.", "London has rain.")
    assert observer.events()


if __name__ == "__main__":
    asyncio.run(main())
