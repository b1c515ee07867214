"""Words as they come: `async for` on every pattern, and the result of the same run."""

import asyncio
from pathlib import Path
from typing import Any

from remit import (
    AgentLoop,
    EventKind,
    ExecutionPlan,
    InferHandler,
    PlanExecutor,
    RedundantLoop,
    ScriptedEngine,
    SpecializedLoop,
    Step,
    tool,
)

SCHEMA: dict[str, Any] = {"type": "object"}
HELLO = {"text": "Hello there.", "chunks": ["Hello ", "there."]}
SHAPED = {"text": '{"a":1}', "chunks": ['{"a"', ":1}"]}


def test_an_agent_streams_its_words_and_the_stream_gives_the_response(tmp_path: Path) -> None:
    async def story() -> None:
        async with AgentLoop(ScriptedEngine([HELLO]), home=tmp_path) as agent:
            stream = agent.stream("Hello!")
            assert [piece.text async for piece in stream] == ["Hello ", "there."]
            assert (await stream).content == "Hello there."
            assert (await stream).run_id == (await stream.run()).id
            assert agent.messages[-1].content == "Hello there."

    asyncio.run(story())


def test_a_stream_that_nobody_listens_to_gives_the_response_all_the_same(tmp_path: Path) -> None:
    async def story() -> None:
        async with AgentLoop(ScriptedEngine([HELLO]), home=tmp_path) as agent:
            assert (await agent.stream("Hello!")).content == "Hello there."

    asyncio.run(story())


def test_every_pattern_streams(tmp_path: Path) -> None:
    async def story() -> None:
        async with SpecializedLoop(ScriptedEngine([SHAPED]), schema=SCHEMA, home=tmp_path) as loop:
            stream = loop.stream("A value.")
            assert "".join([piece.text async for piece in stream]) == '{"a":1}'
            assert (await stream).value == {"a": 1}
        async with RedundantLoop(ScriptedEngine([SHAPED] * 3), schema=SCHEMA, home=tmp_path) as votes:
            vote = votes.stream("A value.")
            said: dict[str, str] = {}
            async for piece in vote:
                said[piece.part] = said.get(piece.part, "") + piece.text
            assert list(said.values()) == ['{"a":1}'] * 3
            assert (await vote).value == {"a": 1}
        async with PlanExecutor({"infer": InferHandler(ScriptedEngine([HELLO]))}, home=tmp_path) as plans:
            plan = plans.stream(ExecutionPlan((Step("greet", "infer", "Hello!"),)))
            assert {(piece.part, piece.text) async for piece in plan} == {("greet", "Hello "), ("greet", "there.")}
            assert (await plan).output == "Hello there."

    asyncio.run(story())


def test_a_stream_ends_where_a_person_is_asked_and_its_run_is_answered(tmp_path: Path) -> None:
    @tool(effect="external")
    def order(item: str) -> str:
        """Order more."""
        return f"ordered {item}"

    async def story() -> None:
        replies: list[dict[str, Any]] = [
            {"tool_calls": [{"name": "order", "arguments": {"item": "lamp"}}]},
            {"text": "Ordered."},
        ]
        async with AgentLoop(ScriptedEngine(replies), tools=[order], home=tmp_path) as agent:
            stream = agent.stream("Order a lamp.")
            assert [piece async for piece in stream if piece.kind is EventKind.SAID] == []
            assert (await stream).waiting_for is not None
            assert (await (await stream.run()).approve(by="ada")).content == "Ordered."
            assert (await stream).content == "Ordered."

    asyncio.run(story())


def test_to_stop_listening_stops_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with AgentLoop(ScriptedEngine([HELLO]), home=tmp_path) as agent:
            stream = agent.stream("Hello!")
            async for piece in stream:
                assert piece.text == "Hello "
                break
            assert (await stream).content == "Hello there."

    asyncio.run(story())
