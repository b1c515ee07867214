"""Pydantic AI as a contender: an Agent with a scripted model."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

common: Any = import_module("common")
Agent: Any = import_module("pydantic_ai").Agent
messages_of: Any = import_module("pydantic_ai.messages")
FunctionModel: Any = import_module("pydantic_ai.models.function").FunctionModel
UsageLimits: Any = import_module("pydantic_ai.usage").UsageLimits
Run = Callable[[], Awaitable[Any]]


async def lookup(q: str, n: int) -> str:
    """Look an item up."""
    found: str = common.do_lookup(q, n)
    return found


def loop(k: int) -> Run:
    """One run of so many calls in memory."""

    async def model(messages: list[Any], _: Any) -> Any:
        turn = (len(messages) - 1) // 2
        if turn >= k:
            return messages_of.ModelResponse(parts=[messages_of.TextPart(common.FINAL)])
        call = messages_of.ToolCallPart("lookup", common.args_json(turn), f"call_{turn}")
        return messages_of.ModelResponse(parts=[call])

    agent, limits = Agent(FunctionModel(model), tools=[lookup]), UsageLimits(request_limit=None)

    async def run() -> Any:
        return (await agent.run(common.PROMPT, usage_limits=limits)).output

    return run


def structured() -> Run:
    """A bad answer, one repair, a value that fits."""

    async def model(messages: list[Any], info: Any) -> Any:
        text = common.BAD_JSON if len(messages) == 1 else common.GOOD_JSON
        return messages_of.ModelResponse(parts=[messages_of.ToolCallPart(info.output_tools[0].name, text)])

    agent = Agent(FunctionModel(model), output_type=common.schema())

    async def run() -> Any:
        return (await agent.run(common.PROMPT)).output

    return run
