"""Whole runs whose budget is spent: what their engines are shown and asked when the boundary names another way than to stop."""

import asyncio
from hashlib import sha256
from typing import Literal

import pytest

from remit.core.failure import Ending
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import Budget
from remit.core.record import JsonObject, replace
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Role
from remit.core.run.signals import Signal
from remit.inference.engine import StreamHandler
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import Listening, approval, calls, in_memory, request

PAGE = "page " * 200


class Named:
    """A scripted model under a name and a price of its own, that keeps what it was asked."""

    def __init__(self, name: str, price: Price, *replies: JsonObject) -> None:
        self._heard = Listening(*replies)
        self._info = replace(self._heard.model_info(), name=name, price=price)

    @property
    def asked(self) -> list[ModelRequest]:
        """What it was asked so far."""
        return self._heard.asked

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What the script says, in its own name."""
        return replace(await self._heard.infer(request, on_chunk), model=self._info.name)

    def model_info(self) -> ModelInfo:
        """The model that is played."""
        return self._info


@tool(effect="read")
def read(page: int) -> str:
    """Read a page."""
    return f"{page} {PAGE}"


def kit_of(*engines: Named | Listening, tools: tuple[Tool, ...] = (read,)) -> Kit:
    return Kit({engine.model_info().name: engine for engine in engines}, Registry(tools), cheaper=len(engines) - 1)


def terms(*policies: tuple[str, Exhaustion], budget: Budget, wrap_up_tokens: int = 64) -> Terms:
    return Terms(boundary=Boundary("test", exhaustion=policies, budget=budget, wrap_up_tokens=wrap_up_tokens))


def reading(pages: int) -> list[JsonObject]:
    return [*(calls("read", page=page) for page in range(pages)), {"text": "read"}]


def results(asked: ModelRequest) -> list[str]:
    return [str(message.content) for message in asked.messages if message.role is Role.TOOL]


def test_an_engine_is_shown_earlier_results_by_their_digest_once_its_context_fills() -> None:
    async def play() -> None:
        engine = Listening(*reading(8))
        async with in_memory() as system:
            budget = Budget(context_tokens=6000)
            response = await system.run(
                request(), kit_of(engine), terms(("context_tokens", Exhaustion.COMPRESS), budget=budget)
            )
        assert response.terminal_code is Ending.SUCCESS
        shown = results(engine.asked[-1])
        first = sha256(f"0 {PAGE}".encode()).hexdigest()
        assert shown[0] == f"(an earlier result of {len(PAGE) + 2} bytes, kept as sha256:{first})"
        assert shown[-2:] == [f"{page} {PAGE}" for page in (6, 7)]
        called = [call.id for message in engine.asked[-1].messages for call in message.tool_calls]
        told = [message.tool_call_id for message in engine.asked[-1].messages if message.role is Role.TOOL]
        assert called == told

    asyncio.run(play())


def test_without_a_way_out_the_same_run_stops() -> None:
    async def play() -> None:
        async with in_memory() as system:
            response = await system.run(
                request(), kit_of(Listening(*reading(8))), terms(budget=Budget(context_tokens=6000))
            )
        assert response.terminal_code is Ending.BUDGET_EXHAUSTED

    asyncio.run(play())


def test_the_cheaper_engine_is_asked_once_the_first_is_too_dear() -> None:
    async def play() -> None:
        first = Named("dear", Price(10_000_000, 10_000_000), *reading(3))
        second = Named("cheap", Price(10_000, 10_000), *reading(3))
        policy = ("inference_cost_microusd", Exhaustion.DOWNGRADE)
        async with in_memory() as system:
            budget = Budget(inference_cost_microusd=30_000)
            response = await system.run(request(), kit_of(first, second), terms(policy, budget=budget))
        assert response.terminal_code is Ending.SUCCESS
        assert len(first.asked) >= 1
        assert len(first.asked) + len(second.asked) == 4
        assert len(second.asked) >= 1

    asyncio.run(play())


def test_last_words_are_asked_for_without_tools_and_are_the_answer() -> None:
    async def play() -> None:
        engine = Listening(calls("read", page=1), calls("read", page=2), {"text": "the best I can say"})
        policy = ("tool_calls", Exhaustion.WRAP_UP)
        async with in_memory() as system:
            response = await system.run(request(), kit_of(engine), terms(policy, budget=Budget(tool_calls=1)))
        assert response.terminal_code is Ending.BUDGET_EXHAUSTED
        assert response.content == "the best I can say"
        assert [len(asked.tools) for asked in engine.asked] == [1, 1, 0]
        assert "no tool can be called any more" in str(engine.asked[-1].messages[-1].content)

    asyncio.run(play())


def test_a_person_releases_what_the_question_says_and_the_run_goes_on() -> None:
    async def play() -> None:
        engine = Listening(*reading(3))
        kit = kit_of(engine)
        policy = ("context_tokens", Exhaustion.ASK)
        async with in_memory() as system:
            waiting = await system.run(request(), kit, terms(policy, budget=Budget(context_tokens=3000)))
            while waiting.waiting_for is not None:
                assert waiting.waiting_for.ending is Ending.CONFIRM_REQUIRED
                await system.signal(approval(waiting.waiting_for.packet_ids[0], Signal.APPROVE), kit=kit)
                await system.settle()
                waiting = await system.result(waiting.run_id)
        assert waiting.terminal_code is Ending.SUCCESS
        assert len(results(engine.asked[-1])) == 3

    asyncio.run(play())


@tool(effect="write")
def put(text: str) -> Literal["kept"]:
    """Keep something."""
    return "kept"


@tool(effect="read", network=True)
def fetch(text: str) -> str:
    """Ask a service."""
    return text


@pytest.mark.req("4.29")
@pytest.mark.parametrize(
    ("name", "spent", "called"),
    [
        ("tool_calls", Budget(tool_calls=1), "fetch"),
        ("external_api_calls", Budget(external_api_calls=1), "fetch"),
        ("side_effects", Budget(side_effects=1), "put"),
    ],
)
def test_a_no_to_the_call_that_a_spent_budget_holds_ends_the_run(name: str, spent: Budget, called: str) -> None:
    async def play() -> None:
        engine = Listening(calls(called, text="1"), calls(called, text="2"), {"text": "done"})
        kit = kit_of(engine, tools=(put, fetch))
        async with in_memory() as system:
            waiting = (await system.run(request(), kit, terms((name, Exhaustion.ASK), budget=spent))).waiting_for
            assert waiting is not None
            if called == "put":
                # A change needs a person by itself; the second one needs more than that.
                await system.signal(approval(waiting.packet_ids[0]), kit=kit)
                await system.settle()
                waiting = (await system.result(waiting.packet_ids[0].split("/")[0])).waiting_for
                assert waiting is not None
            await system.signal(approval(waiting.packet_ids[0], Signal.REJECT), kit=kit)
            await system.settle()
            ended = await system.result(waiting.packet_ids[0].split("/")[0])
        assert ended.terminal_code is Ending.BUDGET_EXHAUSTED
        assert ended.error is not None
        assert ended.error.message == f"{name} is spent and ada released nothing"
        assert len(engine.asked) == 2

    asyncio.run(play())


def test_a_no_to_a_call_that_a_cap_of_zero_forbids_is_a_no_to_that_call_alone() -> None:
    async def play() -> None:
        engine = Listening(calls("put", text="1"), {"text": "then not"})
        kit = kit_of(engine, tools=(put,))
        async with in_memory() as system:
            waiting = (await system.run(request(), kit, terms(budget=Budget(side_effects=0)))).waiting_for
            assert waiting is not None
            await system.signal(approval(waiting.packet_ids[0], Signal.REJECT), kit=kit)
            await system.settle()
            ended = await system.result(waiting.packet_ids[0].split("/")[0])
        assert (ended.terminal_code, len(engine.asked)) == (Ending.PERMISSION_DENIED, 2)

    asyncio.run(play())
