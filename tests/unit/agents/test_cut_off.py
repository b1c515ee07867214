"""A run that ends while a change is under way says so, and an operator finds it in a queue: from the user's side."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest

from remit import AgentLoop, Budget, InferHandler, PlanExecutor, Step, System, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.record import JsonObject
from remit.core.run.approval import What
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.run.signals import Signal, UserSignal
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.people.queue_items import QueueItem
from remit.tool.declare.decorator import Tool
from remit.tool.delegate import delegate

LEASE = {
    "input_tokens": 50_000,
    "output_tokens": 10_000,
    "tool_calls": 6,
    "steps": 20,
    "human_reviews": 8,
    "external_api_calls": 2,
}
PAYS: JsonObject = {"tool_calls": [{"name": "pay", "arguments": {"n": 1}}]}
Told = tuple[SystemResponse, list[QueueItem]]


class Desk:
    """A payment that begins and does not come back before the run is over."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    def pay_on_the_loop(self) -> Tool:
        @tool(effect="external", network=True)
        async def pay(n: int) -> Literal["paid"]:
            """Pay."""
            self.begun.set()
            await asyncio.Event().wait()
            return "paid"

        return pay

    def pay_in_a_thread(self) -> Tool:
        loop, over = asyncio.get_running_loop(), threading.Event()

        @tool(effect="external", network=True)
        def pay(n: int) -> Literal["paid"]:
            """Pay."""
            loop.call_soon_threadsafe(self.begun.set)
            over.wait(1.5)
            return "paid"

        return pay


async def _approved(agent: AgentLoop, desk: Desk, *, is_cancelled: bool) -> SystemResponse:
    asked = (await agent.chat("Pay.")).waiting_for
    assert asked is not None
    going = asyncio.create_task(agent.approve(asked.packet_ids[0], by="ada"))
    if is_cancelled:
        await desk.begun.wait()
        await agent.cancel(by="ada")
    return await going


async def _held(system: System) -> list[QueueItem]:
    return [item for item in await system.queues.items() if item.what is What.ENDING]


async def _timed_out(make: Callable[[Desk], Tool]) -> Told:
    system, desk = system_in_memory(), Desk()
    engine, budget = ScriptedEngine([PAYS, {"text": "Paid."}]), Budget(wall_clock_ms=300)
    async with AgentLoop(engine, tools=[make(desk)], budget=budget, system=system) as agent:
        return await _approved(agent, desk, is_cancelled=False), await _held(system)


async def _cancelled(make: Callable[[Desk], Tool]) -> Told:
    system, desk = system_in_memory(), Desk()
    async with AgentLoop(ScriptedEngine([PAYS, {"text": "Paid."}]), tools=[make(desk)], system=system) as agent:
        return await _approved(agent, desk, is_cancelled=True), await _held(system)


WAYS = {"timeout": (_timed_out, Ending.TIMEOUT), "cancel": (_cancelled, Ending.USER_CANCEL)}


@pytest.mark.req("4.36")
@pytest.mark.parametrize("make", [Desk.pay_on_the_loop, Desk.pay_in_a_thread], ids=["loop", "thread"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow
def test_an_ending_over_a_payment_under_way_names_it_and_stands_in_the_queue_of_reviews(
    way: str, make: Callable[[Desk], Tool]
) -> None:
    play, ending = WAYS[way]
    response, held = asyncio.run(play(make))
    assert response.terminal_code is ending
    (made,) = response.tool_calls_made
    assert (made.status, made.error) == (CallStatus.OUTCOME_UNKNOWN, "the run ended while the call was under way")
    (warning,) = response.warnings
    assert warning.startswith("it is unknown what became of pay#")
    (item,) = held
    assert (item.run_id, item.queue, item.id) == (response.run_id, "review", response.run_id)
    assert item.summary.startswith(f"ended as {ending}, and it is unknown what became of pay#")


def test_who_takes_note_of_the_doubt_takes_it_out_of_its_queue() -> None:
    async def play() -> list[QueueItem]:
        system, desk = system_in_memory(), Desk()
        engine = ScriptedEngine([PAYS, {"text": "Paid."}])
        async with AgentLoop(engine, tools=[desk.pay_on_the_loop()], system=system) as agent:
            response = await _approved(agent, desk, is_cancelled=True)
        await system.queues.acknowledge(response.run_id, by="grace")
        return await _held(system)

    assert asyncio.run(play()) == []


def test_an_ending_with_nothing_under_way_stands_in_no_queue() -> None:
    async def play() -> Told:
        system = system_in_memory()
        async with AgentLoop(ScriptedEngine([PAYS]), tools=[Desk().pay_on_the_loop()], system=system) as agent:
            asked = await agent.chat("Pay.")
            await agent.cancel(by="ada")
            return await system.result(asked.run_id), await _held(system)

    response, held = asyncio.run(play())
    assert (response.terminal_code, response.warnings, held) == (Ending.USER_CANCEL, (), [])


async def _delegated(system: System, desk: Desk) -> SystemResponse:
    hand = delegate("helper", description="help", lease=LEASE)
    asks: JsonObject = {"when": "^Pay[.]", "tool_calls": [{"name": "helper", "arguments": {"task": "kid"}}]}
    engine = ScriptedEngine([asks, {"when": "kid", **PAYS}, {"text": "Paid."}])
    async with AgentLoop(engine, tools=[hand, desk.pay_on_the_loop()], system=system) as agent:
        response = await _approved(agent, desk, is_cancelled=True)
        await system.settle()
        return await system.result(response.run_id)


async def _in_a_plan(system: System, desk: Desk) -> SystemResponse:
    handler = InferHandler(ScriptedEngine([PAYS, {"text": "Paid."}]), tools=[desk.pay_on_the_loop()])
    plan = PlanExecutor({"infer": handler}, system=system)
    asked = (await plan.execute([Step("s", "infer", "Pay.")])).response
    assert asked.waiting_for is not None
    going = asyncio.create_task(plan.approve(asked.waiting_for.packet_ids[0], by="ada"))
    await desk.begun.wait()
    await system.signal(UserSignal("s", Signal.CANCEL, asked.run_id, "ada"))
    await going
    await system.settle()
    return await system.result(asked.run_id)


@pytest.mark.parametrize("played", [_delegated, _in_a_plan], ids=["delegate", "plan"])
def test_what_a_child_had_under_way_is_named_by_its_parent_and_stands_in_a_queue(
    played: Callable[[System, Desk], Awaitable[SystemResponse]],
) -> None:
    async def play() -> Told:
        system = system_in_memory()
        response = await played(system, Desk())
        return response, await _held(system)

    response, held = asyncio.run(play())
    assert response.terminal_code is Ending.USER_CANCEL
    (warning,) = response.warnings
    assert warning.startswith("it is unknown what became of pay (in child ")
    (item,) = held
    assert (item.queue, item.run_id != response.run_id) == ("review", True)
