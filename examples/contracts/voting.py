"""Strategies that choose among candidates: the most frequent one, unanimity, and one that you write."""

import asyncio
from collections.abc import Sequence

from remit import MajorityVoting, NoConsensus, RedundantLoop, ScriptedEngine, UnanimityVoting, VotingStrategy


def similarity(one: str, other: str) -> float:
    """How many letters two texts share, from 0 to 1."""
    letters = set(one) | set(other)
    return len(set(one) & set(other)) / len(letters) if letters else 1.0


class SimilarityVoting:
    """The candidate that is most like all others."""

    def vote(self, candidates: Sequence[str]) -> tuple[str, float]:
        """The winner, and how alike the others are to it."""

        def alike(place: int) -> float:
            others = [other for at, other in enumerate(candidates) if at != place]
            return sum(similarity(candidates[place], other) for other in others) / max(len(others), 1)

        best = max(range(len(candidates)), key=alike)
        return candidates[best], alike(best)


async def main() -> None:
    """The same candidates, counted three times."""
    winner, confidence = MajorityVoting().vote(["positive", "positive", "negative"])
    print(f"majority: {winner} {confidence:.3f}")
    winner, confidence = MajorityVoting().vote(["a", "b", "a", "b", "c"])
    print(f"tie: {winner} {confidence}")
    print(f"unanimity: {UnanimityVoting().vote(['positive', 'positive'])}")
    try:
        UnanimityVoting().vote(["positive", "negative"])
    except NoConsensus as none:
        print(f"no unanimity: {none}")
    strategy: VotingStrategy = SimilarityVoting()
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    engine = ScriptedEngine([{"text": '{"word":"tea"}'}])
    async with RedundantLoop(engine, schema=schema, n=3, voting=strategy) as loop:
        result = await loop.call("What is there to drink?")
    print(f"own: {result.content} {result.confidence:.0%}")


if __name__ == "__main__":
    asyncio.run(main())
