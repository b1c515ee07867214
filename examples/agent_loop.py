"""An agent that answers for a support desk: it looks an order up, asks before it pays, and remembers what was said.

The model is scripted, so this runs anywhere and always says the same. With a real one, give another engine.

    python examples/agent_loop.py
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from remit import AgentLoop, Budget, ScriptedEngine, tool

ORDERS: dict[str, dict[str, str | int]] = {"42": {"item": "tea set", "status": "delivered", "paid_cents": 12900}}

REFUNDS: dict[str, tuple[str, int]] = {}

SCRIPT: list[dict[str, Any]] = [
    {"tool_calls": [{"name": "lookup", "arguments": {"order_id": "42"}}]},
    {"text": "Order 42, a tea set, was delivered.", "chunks": ["Order 42, ", "a tea set, ", "was delivered."]},
    {"tool_calls": [{"name": "refund", "arguments": {"order_id": "42", "cents": 12900}}]},
    {"text": "You get 129.00 back."},
]


@tool(effect="read", network=False)
def lookup(order_id: str) -> dict[str, str | int]:
    """Look an order up."""
    return ORDERS[order_id]


def is_booked(arguments: dict[str, Any], result: str) -> bool:
    """Whether the books hold what the call was to do; only what a check like this one confirms is committed."""
    return (arguments["order_id"], arguments["cents"]) in REFUNDS.values()


@tool(effect="external", idempotent=True, verify=is_booked)
def refund(order_id: str, cents: int, idempotency_key: str) -> str:
    """Pay money back."""
    REFUNDS[idempotency_key] = (order_id, cents)
    return f"paid back {cents} cents for order {order_id}"


async def main(home: Path) -> None:
    """Two exchanges: one that only reads, and one that a person has to allow."""
    agent = AgentLoop(
        ScriptedEngine(SCRIPT),
        tools=[lookup, refund],
        system_prompt="You answer for the support desk.",
        boundary="customer_support",
        budget=Budget(tool_calls=5),
        on_tool_result=lambda name, output: print(f"  [{name}] {output}"),
        home=home,
    )
    async with agent:
        answer = await agent.chat("Where is order 42?")
        print(answer.content)

        asked = await agent.chat("It arrived broken. I want my money back.")
        assert asked.waiting_for is not None, "no payment is made without a permission"
        answer = await agent.approve(asked.waiting_for.packet_ids[0], by="ada")
        print(answer.content)

        for message in agent.messages:
            print(f"{message.role.value:>10}: {message.content}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
