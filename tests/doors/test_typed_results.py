"""What a caller gets of a structured answer: a value of the type that was given as its schema."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, cast

import msgspec
import pytest
from pydantic import BaseModel, field_validator

from remit import (
    AgentLoop,
    RedundantLoop,
    RequestRejected,
    RunFailed,
    ScriptedEngine,
    SpecializedLoop,
    SystemResponse,
    tool,
)

JSON = {"item": "lamp", "left": 3, "since": "2026-01-02"}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}


P = ParamSpec("P")


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Play a test in an event loop of its own."""

    @wraps(test)
    def played(*args: P.args, **kwargs: P.kwargs) -> None:
        async def play() -> None:
            await test(*args, **kwargs)

        asyncio.run(play())

    return played


class Stock(BaseModel):
    item: str
    left: int
    since: date


@dataclass
class PlainStock:
    item: str
    left: int
    since: date


class StockKeys(TypedDict):
    item: str
    left: int


def says(value: object = JSON, times: int = 1) -> ScriptedEngine:
    return ScriptedEngine([{"text": json.dumps(value)}] * times)


@in_loop
async def test_a_model_gives_an_instance_and_leaves_the_json_as_it_was(tmp_path: Path) -> None:
    response = await SpecializedLoop(says(), schema=Stock, home=tmp_path).call("How many?")
    assert response.value == Stock(item="lamp", left=3, since=date(2026, 1, 2))
    assert response.value is response.value
    assert response.structured_output == JSON
    assert isinstance(response, SystemResponse)
    assert msgspec.json.decode(msgspec.json.encode(response))["structured_output"] == JSON


@in_loop
async def test_a_dataclass_gives_an_instance_and_a_typed_dict_and_a_json_schema_the_json(tmp_path: Path) -> None:
    plain = await SpecializedLoop(says(), schema=PlainStock, home=tmp_path).call("How many?")
    assert plain.value == PlainStock("lamp", 3, date(2026, 1, 2))
    keys = await SpecializedLoop(says(), schema=StockKeys, home=tmp_path).call("How many?")
    assert keys.value["left"] == 3
    value = await SpecializedLoop(says(), schema=SCHEMA, home=tmp_path).call("How many?")
    assert value.value == JSON


@in_loop
async def test_every_class_that_takes_a_schema_gives_its_value(tmp_path: Path) -> None:
    async with AgentLoop(says(times=2), home=tmp_path) as agent:
        assert (await agent.chat_structured("How many?", schema=Stock)).value.left == 3
        assert (await agent.produce("How many?", Stock)).value.item == "lamp"
    voted = await RedundantLoop(says(times=3), schema=Stock, home=tmp_path).call("How many?")
    assert voted.value == voted.response.value == Stock(item="lamp", left=3, since=date(2026, 1, 2))


@in_loop
async def test_a_handle_gives_the_typed_result(tmp_path: Path) -> None:
    run = await SpecializedLoop(says(), schema=Stock, home=tmp_path).start("How many?")
    assert (await run.result()).value.since == date(2026, 1, 2)


@in_loop
async def test_a_run_that_failed_has_no_value_and_says_its_own_code(tmp_path: Path) -> None:
    broken = ScriptedEngine([{"error": "INFERENCE_CONTEXT_EXCEEDED"}] * 9)
    response = await SpecializedLoop(broken, schema=Stock, home=tmp_path).call("How many?")
    with pytest.raises(RunFailed) as failed:
        _ = response.value
    assert response.error is not None
    assert failed.value.code == response.error.code
    assert failed.value.details == {"run_id": response.run_id}


@in_loop
async def test_a_run_that_waits_has_no_value_yet_and_has_one_once_it_was_answered(tmp_path: Path) -> None:
    @tool(effect="external")
    def order(item: str) -> str:
        """Order more."""
        return f"ordered {item}"

    script: list[dict[str, Any]] = [
        {"tool_calls": [{"name": "order", "arguments": {"item": "lamp"}}]},
        {"text": "done"},
    ]
    loop = SpecializedLoop(
        ScriptedEngine([*script, {"text": json.dumps(JSON)}]), schema=Stock, tools=[order], home=tmp_path
    )
    asked = await loop.call("Order a lamp.")
    with pytest.raises(RunFailed, match="CONFIRM_REQUIRED"):
        _ = asked.value
    assert asked.waiting_for is not None
    done = await loop.approve(asked.waiting_for.packet_ids[0], by="ada")
    assert done.value.left == 3


@in_loop
async def test_an_answer_with_the_schema_gives_the_value_also_where_another_process_asked(tmp_path: Path) -> None:
    @tool(effect="external")
    def order(item: str) -> str:
        """Order more."""
        return f"ordered {item}"

    proposes: dict[str, Any] = {"tool_calls": [{"name": "order", "arguments": {"item": "lamp"}}]}
    first = ScriptedEngine([proposes])
    async with AgentLoop(first, tools=[order], session_id="s", home=tmp_path) as agent:
        asked = await agent.produce("Order a lamp.", Stock)
    assert asked.waiting_for is not None
    packet_id = asked.waiting_for.packet_ids[0]
    # A script goes on where the answers before it ended.
    script = [proposes, {"text": "done"}, {"text": json.dumps(JSON)}]
    async with AgentLoop(ScriptedEngine(script), tools=[order], session_id="s", home=tmp_path) as agent:
        with pytest.raises(RequestRejected, match="says nothing"):
            await agent.approve(packet_id, by="ada", schema=cast("type[Stock]", True))
        done = await agent.approve(packet_id, by="ada", schema=Stock)
    assert done.value == Stock(item="lamp", left=3, since=date(2026, 1, 2))


@in_loop
async def test_an_output_that_its_own_type_refuses_is_no_value(tmp_path: Path) -> None:
    class Even(BaseModel):
        left: int

        @field_validator("left")
        @classmethod
        def is_even(cls, left: int) -> int:
            if left % 2:
                raise ValueError("odd")
            return left

    response = await SpecializedLoop(says({"left": 3}, times=9), schema=Even, home=tmp_path).call("How many?")
    with pytest.raises(RunFailed, match="VALIDATION_RULE_FAILED"):
        _ = response.value
    assert response.structured_output == {"left": 3}


@in_loop
async def test_an_output_that_does_not_fit_is_given_as_json_and_is_no_value(tmp_path: Path) -> None:
    response = await SpecializedLoop(says({"left": "3"}, times=9), schema=Stock, home=tmp_path).call("How many?")
    with pytest.raises(RunFailed):
        _ = response.value
