"""The floor: the least that any orchestrator must do, with nothing judged, recorded or promised."""

import json
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

common: Any = import_module("common")
Run = Callable[[], Awaitable[Any]]


async def lookup(q: str, n: int) -> str:
    """Look an item up."""
    found: str = common.do_lookup(q, n)
    return found


TOOLS = {"lookup": lookup}


def loop(k: int) -> Run:
    """A bare asyncio loop of so many calls."""

    async def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        turn = (len(messages) - 1) // 2
        if turn >= k:
            return {"role": "assistant", "content": common.FINAL}
        call = {"id": f"call_{turn}", "name": "lookup", "arguments": common.args_json(turn)}
        return {"role": "assistant", "tool_calls": [call]}

    async def run() -> Any:
        messages: list[dict[str, Any]] = [{"role": "user", "content": common.PROMPT}]
        while True:
            reply = await model(messages)
            messages.append(reply)
            if "tool_calls" not in reply:
                return reply["content"]
            for call in reply["tool_calls"]:
                content = await TOOLS[call["name"]](**json.loads(call["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})

    return run


def structured() -> Run:
    """A bad answer and a good one, each validated once."""
    plan = common.schema()

    async def run() -> Any:
        for text in (common.BAD_JSON, common.GOOD_JSON):
            try:
                return plan.model_validate_json(text)
            except ValueError:
                continue
        raise AssertionError("the good answer fits")

    return run
