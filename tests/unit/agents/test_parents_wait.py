"""A run whose child asks a person waits for what the child asks now, wherever it is shown."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest

from remit import AgentLoop, InferHandler, PlanExecutor, Step, System, tool
from remit.assemble import system_in_memory
from remit.core.contract import SystemResponse
from remit.core.failure import ENDINGS, Ending
from remit.core.lifecycle import LoopState
from remit.core.record import JsonObject
from remit.inference.scripted import ScriptedEngine
from remit.tool.delegating import delegate

LEASE = {
    "input_tokens": 50_000,
    "output_tokens": 10_000,
    "tool_calls": 6,
    "steps": 20,
    "human_reviews": 8,
    "external_api_calls": 2,
}


@tool(effect="external", network=True)
def wire(q: str) -> Literal["ok"]:
    """Wire money."""
    raise ConnectionError("reset")


@tool(effect="none", asks_under="MISSING_INFO")
def ask(question: str) -> str:
    """Ask the user."""
    return ""


def calls(*wanted: tuple[str, JsonObject]) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in wanted]}


ASKS, WIRES = ("ask", {"question": "which?"}), ("wire", {"q": "1"})
WORK = [calls(ASKS), calls(WIRES), {"text": "Wired."}]
Approve = Callable[[str], Awaitable[SystemResponse]]


async def _seen(system: System, response: SystemResponse, approve: Approve) -> list[Ending]:
    """What a run waits for, one yes after the other; each time it is shown as the run that asks is."""
    seen: list[Ending] = []
    while (waits := response.waiting_for) is not None:
        asking = waits.packet_ids[0].partition("/")[0]
        assert await system.lineages.family(asking) == response.run_id != asking
        asked = await system.result(asking)
        assert asked.waiting_for == waits
        assert waits.expires_at_ms > 0
        told = await system.archive.told(response.run_id)
        every = {entry.run_id: entry for entry in await system.archive.runs(with_children=True)}
        shown = (told.entry.waiting_for, told.explanation.standing.code, every[response.run_id].waiting_for)
        assert shown == (waits.ending,) * 3
        loop = ENDINGS[waits.ending].waits_as or LoopState.AWAITING_APPROVAL
        assert (told.loop[-1], await system.archive.loop_of(told.entry)) == (loop, ("general", loop.value))
        seen.append(waits.ending)
        response = await approve(waits.packet_ids[0])
    assert LoopState.PAUSED in (await system.archive.told(response.run_id)).loop
    return seen


async def _in_a_plan(system: System) -> list[Ending]:
    plan = PlanExecutor({"infer": InferHandler(ScriptedEngine(WORK), tools=[wire, ask])}, system=system)

    async def approve(packet: str) -> SystemResponse:
        return (await plan.approve(packet, by="ada")).response

    return await _seen(system, (await plan.execute([Step("s", "infer", "go")])).response, approve)


def _engine(*first: JsonObject) -> ScriptedEngine:
    """What a model says to the words of a person, and to a task that was handed over, until it comes back."""
    return ScriptedEngine(
        [
            *first,
            {"when": "wire it", **calls(ASKS)},
            {"when": "^$", **calls(WIRES)},
            {"when": "happened", "text": "Wired."},
            {"when": "Wired|not answer", "text": "Wired."},
            {"when": "", "text": "Done."},
        ]
    )


async def _delegated(system: System, *hands: str) -> list[Ending]:
    """Each hand gives the task to the next, with half of what it may spend."""
    said, tasks = ("^go", *hands[1:]), (*hands[1:], "wire it")
    told = zip(said, hands, tasks, strict=True)
    handed: list[JsonObject] = [{"when": word, **calls((hand, {"task": task}))} for word, hand, task in told]
    leases = [{name: amount >> place for name, amount in LEASE.items()} for place in range(len(hands))]
    for lease in leases[:-1]:
        lease["child_runs"] = 1
    hand = [delegate(name, description="hand it on", lease=lease) for name, lease in zip(hands, leases, strict=True)]
    engine, tools = _engine(*handed), [*hand, wire, ask]
    async with AgentLoop(engine, tools=tools, system=system) as agent:

        async def approve(packet: str) -> SystemResponse:
            return await agent.approve(packet, by="ada")

        return await _seen(system, await agent.chat("go"), approve)


@pytest.mark.req("4.36")
@pytest.mark.parametrize("played", [_in_a_plan, lambda system: _delegated(system, "first")], ids=["plan", "delegate"])
def test_a_parent_waits_for_what_its_child_asks_now(played: Callable[[System], Awaitable[list[Ending]]]) -> None:
    async def play() -> list[Ending]:
        return await played(system_in_memory())

    assert asyncio.run(play()) == [Ending.MISSING_INFO, Ending.CONFIRM_REQUIRED, Ending.REVIEW_REQUIRED]


def test_a_run_that_asks_itself_waits_for_that_first_and_for_its_child_then() -> None:
    async def play() -> None:
        system, both = system_in_memory(), calls(("hand_over", {"task": "wire it"}), WIRES)
        engine = _engine({"when": "^go", **both})
        tools = [delegate("hand_over", description="hand it over", lease=LEASE), wire, ask]
        async with AgentLoop(engine, tools=tools, system=system) as agent:
            first = (await agent.chat("go")).waiting_for
            assert first is not None
            assert (first.ending, len(first.packet_ids)) == (Ending.CONFIRM_REQUIRED, 2)
            response = await agent.reject(first.packet_ids[0], by="ada")
            assert response.waiting_for is not None
            assert (response.waiting_for.ending, response.waiting_for.packet_ids) == (
                Ending.MISSING_INFO,
                first.packet_ids[1:],
            )
            listed = await system.archive.runs()
            assert [entry.waiting_for for entry in listed] == [Ending.MISSING_INFO]

    asyncio.run(play())


def test_what_a_grandchild_asks_is_waited_for_by_all_above_it() -> None:
    async def play() -> list[Ending]:
        return await _delegated(system_in_memory(), "first", "second")

    assert asyncio.run(play()) == [Ending.MISSING_INFO, Ending.CONFIRM_REQUIRED, Ending.REVIEW_REQUIRED]
