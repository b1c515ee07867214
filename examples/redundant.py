"""One question asked three times and put to a vote: what the winner is, how surely, and what happens without one.

The model is scripted to disagree with itself. With a real one, give another engine.

    python examples/redundant.py
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remit import FREE, ModelInfo, ModelRequest, ModelResult, RedundantLoop, StreamHandler


@dataclass
class Mood:
    """What is asked for."""

    sentiment: Literal["positive", "negative", "neutral"]


class Wavering:
    """A model that changes its mind every second time of three."""

    def __init__(self) -> None:
        self.asked = 0

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What it thinks this time."""
        self.asked += 1
        word = "negative" if self.asked % 3 == 2 else "positive"
        return ModelResult(f'{{"sentiment":"{word}"}}', model="wavering")

    def model_info(self) -> ModelInfo:
        """Who it is."""
        return ModelInfo("wavering", context_window=4096, price=FREE)


async def main(home: Path) -> None:
    """A vote by majority, and the same answers when all must agree."""
    loop = RedundantLoop(Wavering(), schema=Mood, system_prompt="Classify the sentiment.", n=3, home=home)
    result = await loop.call("The cups are lovely, the box was wet.")
    print(f"winner:     {result.content}")
    print(f"confidence: {result.confidence:.0%} by {result.response.confidence_source}")
    print(f"candidates: {', '.join(result.candidates)}")

    strict = RedundantLoop(Wavering(), schema=Mood, voting="unanimity", home=home)
    result = await strict.call("The cups are lovely, the box was wet.")
    assert result.response.error is not None, "they do not agree"
    print(f"unanimity:  {result.response.error.code}: {result.response.error.message}")

    early = Wavering()
    result = await RedundantLoop(early, schema=Mood, n=5, early_stop=True, home=home).call("Lovely cups!")
    print(f"early stop: {early.asked} of 5 asked, {result.content}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
