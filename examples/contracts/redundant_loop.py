"""The same question three times, and a vote: the winner, how surely, every candidate, and what all of them used."""

import asyncio

from remit import MajorityVoting, RedundantLoop, ScriptedEngine

SCHEMA = {
    "type": "object",
    "properties": {"sentiment": {"type": "string", "enum": ["positive", "negative", "neutral"]}},
    "required": ["sentiment"],
}


async def main() -> None:
    """One call, and what it came to."""
    engine = ScriptedEngine([{"text": '{"sentiment":"positive"}', "usage": {"prompt_tokens": 20, "output_tokens": 6}}])
    async with RedundantLoop(
        engine,
        system_prompt="Classify sentiment as positive, negative, or neutral.",
        schema=SCHEMA,
        n=3,
        voting=MajorityVoting(),
    ) as loop:
        result = await loop.call("I love this product!")
    print(f"Winner: {result.content}")
    print(f"Confidence: {result.confidence:.0%}")
    print(f"Candidates: {list(result.raw_candidates)}")
    print(f"Total tokens: {result.usage.output_tokens}")
    assert result.response.confidence_source == "voting"


if __name__ == "__main__":
    asyncio.run(main())
