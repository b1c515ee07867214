"""Patterns compose: a loop does a step of a plan, wrapped in a function of your own or as it is."""

import asyncio
from typing import Any

from remit import AgentLoop, PlanExecutor, RedundantLoop, ScriptedEngine, Step, tool

STEP_RESEARCH, STEP_CLASSIFY = "research", "classify"
SCHEMA = {"type": "object", "properties": {"trend": {"enum": ["up", "down"]}}, "required": ["trend"]}


@tool(effect="read")
def market(quarter: str) -> str:
    """Look up how the market did in a quarter."""
    return f"{quarter}: orders grew by a tenth"


RESEARCH: list[dict[str, Any]] = [
    {"when": "orders grew by a tenth", "text": "Orders grew."},
    {"when": "Orders grew.", "text": '{"trend":"up"}'},
    {"tool_calls": [{"name": "market", "arguments": {"quarter": "Q4"}}]},
]


async def agent_handler(step: Step) -> Step:
    """A conversation of its own for the step; a failure of the agent fails the step."""
    async with AgentLoop(
        ScriptedEngine(RESEARCH), tools=[market], system_prompt="You are a research assistant."
    ) as agent:
        result = (await agent.chat(step.input)).raise_for_error()
    return step.with_output(result.content)


async def reliable_classifier(step: Step) -> Step:
    """A vote of three for the step; a vote without a winner fails the step."""
    if not isinstance(step.input, str):
        raise TypeError(f"classify: expected text, got {type(step.input).__name__}")
    async with RedundantLoop(ScriptedEngine(RESEARCH), schema=SCHEMA, n=3) as loop:
        result = (await loop.call(step.input)).raise_for_error()
    return step.with_output(result.content)


async def main() -> None:
    """Research with tools, then classify reliably; first wrapped, then as they are."""
    plan = [Step("research", STEP_RESEARCH, "Analyze market trends for Q4"), Step("classify", STEP_CLASSIFY)]
    async with PlanExecutor({STEP_RESEARCH: agent_handler, STEP_CLASSIFY: reliable_classifier}) as executor:
        results = await executor.execute(plan)
    print(f"wrapped: {results.outputs}")

    engine = ScriptedEngine(RESEARCH)
    classifier = RedundantLoop(engine, schema=SCHEMA, n=3)
    agent = AgentLoop(engine, tools=[market], system_prompt="You are a research assistant.")
    async with PlanExecutor({STEP_RESEARCH: agent, STEP_CLASSIFY: classifier}) as executor:
        results = await executor.execute(plan)
    print(f"as they are: {results.outputs}")
    print(f"confidence: {results.response.confidence:.0%} by {results.response.confidence_source}")
    print(f"calls: {[call.name for call in results.response.tool_calls_made]}")


if __name__ == "__main__":
    asyncio.run(main())
