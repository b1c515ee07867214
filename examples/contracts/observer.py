"""An event log of your own: it has `record`, and is told of every inference, tool, context and change of state."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from remit import AgentLoop, Event, InMemoryEventLog, ScriptedEngine, tool


@tool(effect="read")
def calc(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@dataclass
class Counting:
    """Counts what happens, by action."""

    counts: dict[str, int] = field(default_factory=dict)

    def record(self, event: Event) -> None:
        """Take one event."""
        self.counts[event.action.value] = self.counts.get(event.action.value, 0) + 1


REPLIES: list[dict[str, Any]] = [
    {"tool_calls": [{"name": "calc", "arguments": {"left": 40, "right": 2}}]},
    {"text": "It is 42."},
]


async def main() -> None:
    """The same run told to a log of your own, and to the one that keeps events."""
    counting, kept = Counting(), InMemoryEventLog()
    for observer in (counting, kept):
        async with AgentLoop(ScriptedEngine(REPLIES), tools=[calc], observer=observer) as agent:
            await agent.chat("What is 40 + 2?")
    print(f"counted: {dict(sorted(counting.counts.items()))}")
    assert sum(counting.counts.values()) == len(kept.events())
    assert len({event.run_id for event in kept.events()}) == 1


if __name__ == "__main__":
    asyncio.run(main())
