"""One structured answer for each call: with a grammar that holds the decoder, and with tools, in two phases."""

import asyncio
from dataclasses import dataclass
from typing import Any

from remit import ScriptedEngine, SpecializedLoop, tool

SENTIMENT = {
    "type": "object",
    "properties": {"sentiment": {"enum": ["positive", "negative", "neutral"]}},
    "required": ["sentiment"],
}
GRAMMAR = r"""
root ::= "{" ws "\"sentiment\"" ws ":" ws val ws "}"
ws ::= [ \t\n]*
val ::= "\"positive\"" | "\"negative\"" | "\"neutral\""
"""


@dataclass
class Summary:
    """What a research comes to."""

    summary: str
    sources: list[str]


@tool(effect="read")
def web_search(query: str) -> str:
    """Search the web."""
    return f"qubits.example says: {query} moves on"


@tool(effect="read")
def calculator(left: float, right: float) -> float:
    """Multiply two numbers."""
    return left * right


RESEARCH: list[dict[str, Any]] = [
    {"when": "structured output", "text": '{"summary":"It moves on.","sources":["qubits.example"]}'},
    {"when": "84", "text": "I have found something."},
    {"when": "qubits.example", "tool_calls": [{"name": "calculator", "arguments": {"left": 2, "right": 42}}]},
    {"tool_calls": [{"name": "web_search", "arguments": {"query": "quantum computing"}}]},
]


async def main() -> None:
    """A single shot, then a call that uses tools before it produces its output."""
    async with SpecializedLoop(
        ScriptedEngine([{"text": '{"sentiment":"positive"}'}]),
        system_prompt="Analyze sentiment. Return structured JSON.",
        schema=SENTIMENT,
        grammar=GRAMMAR,
    ) as loop:
        print((await loop.call("I love this product!")).content)

    async with SpecializedLoop(
        ScriptedEngine(RESEARCH),
        tools=[web_search, calculator],
        system_prompt="Research the topic, then produce a structured summary.",
        schema=Summary,
    ) as research:
        result = await research.call("Latest advances in quantum computing")
    print(f"phase 1: {[call.name for call in result.tool_calls_made]}")
    print(f"phase 2: {result.value.summary} {result.value.sources}")


if __name__ == "__main__":
    asyncio.run(main())
