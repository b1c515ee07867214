"""A conversation: its state grows from call to call, tools are called within, and everything can be looked at afterwards."""

import asyncio
from typing import Any

from remit import AgentLoop, InMemoryEventLog, ScriptedEngine, tool

FORECAST = {"Paris": "sunny", "London": "rain"}


@tool(effect="read")
def search(query: str) -> str:
    """Look up the weather of a city."""
    return FORECAST.get(query, "unknown")


@tool(effect="read")
def calc(left: float, right: float) -> float:
    """Add two numbers."""
    return left + right


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
        on_tool_result=lambda name, output: print(f"  [{name}] {output}"),
        observer=observer,
    ) as agent:
        first = await agent.chat("What is the weather in Paris?")
        print(first.content)
        second = await agent.chat("How about London?")
        print(second.content)
        print([message.role.value for message in agent.messages])
    print(f"tool calls: {[(call.name, call.result) for call in second.tool_calls_made]}")
    assert observer.events()


if __name__ == "__main__":
    asyncio.run(main())
