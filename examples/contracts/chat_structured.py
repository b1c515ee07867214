"""An answer of a given shape within a conversation: broken JSON is repaired, a word is matched to its enum, and it is checked."""

import asyncio

from remit import AgentLoop, ScriptedEngine

SCHEMA = {
    "type": "object",
    "properties": {
        "sentiment": {"type": "string", "enum": ["positive", "negative", "neutral"]},
        "confidence": {"type": "number"},
    },
    "required": ["sentiment", "confidence"],
}


async def main() -> None:
    """What the model said, and what was accepted."""
    broken = 'Here you are:\n```json\n{"sentiment": "Positive", "confidence": 0.95,}\n```'
    async with AgentLoop(ScriptedEngine([{"text": broken}])) as agent:
        result = await agent.chat_structured("Analyze: great product!", SCHEMA)
    print(f"content: {result.content}")
    print(f"value: {result.value}")
    assert result.raw_content == broken
    assert result.validation is not None
    print(f"repairs: {result.validation.repair_attempts}, checks passed: {result.validation.checks_passed}")


if __name__ == "__main__":
    asyncio.run(main())
