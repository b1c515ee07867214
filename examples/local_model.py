"""A real model on this machine, with two tools and no network: it is asked three things, and each answer shows its cost.

The model is small. A router picks the tool that the words ask for, and a grammar holds the model to a call of it; the
answer in words is the model's own, so read it with mercy.

    python examples/local_model.py
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Literal

from remit import AgentLoop, Budget, tool

Item = Literal["lamp", "kettle", "chair"]
STOCK = {"lamp": 3, "kettle": 0, "chair": 12}
PRICES_EUR = {"lamp": 59, "kettle": 24, "chair": 129}
QUESTIONS = ("How many lamps are in stock?", "What does a chair cost?", "Hello, who are you?")


@tool(effect="read", network=False)
def stock(item: Item) -> int:
    """How many pieces of an item are in stock."""
    return STOCK[item]


@tool(effect="read", network=False)
def price(item: Item) -> str:
    """What an item costs, in euros."""
    return f"{PRICES_EUR[item]} euros"


async def main(home: Path) -> None:
    """Ask, and show which tools were called and what it took."""
    agent = AgentLoop(
        "local",
        tools=[stock, price],
        max_tokens=48,
        budget=Budget(tool_calls=3, output_tokens=400),
        on_tool_result=lambda name, output: print(f"  [{name}] {output}"),
        home=home,
    )
    async with agent:
        for question in QUESTIONS:
            print(f"> {question}")
            response = await agent.chat(question)
            print(f"{response.content or response.terminal_code}")
            used = response.token_usage
            print(f"  ({used.prompt_tokens} tokens read, {used.output_tokens} written)")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
