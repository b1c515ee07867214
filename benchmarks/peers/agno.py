"""Agno as a contender: an Agent with a scripted model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

common: Any = import_module("common")
Agent: Any = import_module("agno.agent").Agent
ModelBase: Any = import_module("agno.models.base").Model
ModelResponse: Any = import_module("agno.models.response").ModelResponse
Run = Callable[[], Awaitable[Any]]


@dataclass
class Scripted(ModelBase):  # type: ignore[misc]  # the package is not installed where types are checked
    """Calls the tool so often and then answers."""

    id: str = "scripted"
    k: int = 1

    def invoke(self, *_: Any, **__: Any) -> Any:
        """Nothing here is synchronous."""
        raise NotImplementedError

    invoke_stream = ainvoke_stream = invoke

    async def ainvoke(self, messages: list[Any], *_: Any, **__: Any) -> Any:
        """The next call, or the answer."""
        turn = (len(messages) - 1) // 2
        if turn >= self.k:
            return ModelResponse(role="assistant", content=common.FINAL)
        function = {"name": "lookup", "arguments": common.args_json(turn)}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        return ModelResponse(role="assistant", tool_calls=[call])

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


async def lookup(q: str, n: int) -> str:
    """Look an item up."""
    found: str = common.do_lookup(q, n)
    return found


def loop(k: int) -> Run:
    """One run of so many calls in memory."""
    agent = Agent(model=Scripted(k=k), tools=[lookup], telemetry=False)

    async def run() -> Any:
        return (await agent.arun(common.PROMPT)).content

    return run
