"""A run whose child asks a person waits for what the child asks now, wherever it is shown."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest

from remit import AgentLoop, InferHandler, PlanExecutor, Step, System, tool
from remit.assemble import system_in_memory
from remit.core.failure import ENDINGS, Ending
from remit.core.record import JsonObject
from remit.core.run.contract import SystemResponse
from remit.core.run.lifecycle import LoopState
from remit.core.run.signals import Signal, UserSignal
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.proof.findings import Fault
from remit.observe.views.sentence import sentence
from remit.tool.delegate import delegate

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
        assert (told.loop[-1], (await system.archive.glimpse(told.entry))[:2]) == (loop, ("general", loop.value))
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


def test_a_run_that_asks_itself_waits_for_the_gravest_of_what_it_and_its_child_ask() -> None:
    async def play() -> None:
        system, both = system_in_memory(), calls(("hand_over", {"task": "wire it"}), WIRES)
        engine = _engine({"when": "^go", **both})
        tools = [delegate("hand_over", description="hand it over", lease=LEASE), wire, ask]
        async with AgentLoop(engine, tools=tools, system=system) as agent:
            first = (await agent.chat("go")).waiting_for
            assert first is not None
            assert (first.ending, first.endings) == (
                Ending.CONFIRM_REQUIRED,
                (Ending.CONFIRM_REQUIRED, Ending.MISSING_INFO),
            )
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


async def _shown(system: System, run_id: str) -> set[str]:
    """Under which codes a run is said to wait, wherever that is said."""
    told = await system.archive.told(run_id)
    listed = {entry.run_id: entry.waiting_for for entry in await system.archive.runs(with_children=True)}
    stored = await system.store.catalogue.entry(run_id)
    assert stored is not None
    assert Fault.INDEX_DIFFERS not in [found.code for found in (await system.archive.verify(run_id)).findings]
    assert told.loop[-1] is ENDINGS[Ending(told.entry.waiting_for)].waits_as
    return {told.entry.waiting_for, told.explanation.standing.code, listed[run_id], stored.waiting_for}


@pytest.mark.parametrize("wanted", [(ASKS, WIRES), (WIRES, ASKS)], ids=["the question first", "the payment first"])
def test_of_several_questions_the_one_with_most_at_stake_is_told_whichever_was_asked_first(
    wanted: tuple[tuple[str, JsonObject], ...],
) -> None:
    async def play() -> None:
        system = system_in_memory()
        engine = ScriptedEngine([calls(*wanted), {"text": "Done."}])
        async with AgentLoop(engine, tools=[wire, ask], system=system) as agent:
            response = await agent.chat("begin")
            waits = response.waiting_for
            assert waits is not None
            assert waits.ending is Ending.CONFIRM_REQUIRED
            assert waits.endings == (Ending.CONFIRM_REQUIRED, Ending.MISSING_INFO)
            asked = {one.id: one.tool for one in await system.archive.approvals()}
            assert asked[waits.packet_ids[0]] == "wire", "the first packet is the one whose code is told"
            assert await _shown(system, response.run_id) == {Ending.CONFIRM_REQUIRED}
            then = await agent.reject(waits.packet_ids[0], by="ada", reason="no")
            assert then.waiting_for is not None
            assert then.waiting_for.ending is Ending.MISSING_INFO
            assert await _shown(system, response.run_id) == {Ending.MISSING_INFO}

    asyncio.run(play())


def test_a_parent_waits_for_the_gravest_of_what_its_children_ask() -> None:
    async def play() -> None:
        system = system_in_memory()
        lease = {name: amount // 2 for name, amount in LEASE.items()}
        helper = delegate("helper", description="help", lease=lease)
        both = calls(("helper", {"task": "one"}), ("helper", {"task": "two"}))
        script: list[JsonObject] = [{"when": "^go", **both}, {"when": "one", **calls(ASKS)}]
        script += [{"when": "two", **calls(WIRES)}, {"text": "Done."}]
        async with AgentLoop(ScriptedEngine(script), tools=[helper, wire, ask], system=system) as agent:
            response = await agent.chat("go")
            waits = response.waiting_for
            assert waits is not None
            assert (waits.ending, waits.endings[1:]) == (Ending.CONFIRM_REQUIRED, (Ending.MISSING_INFO,))
            assert await _shown(system, response.run_id) == {Ending.CONFIRM_REQUIRED}

    asyncio.run(play())


async def _paused_after(system: System, agent: AgentLoop, *, is_asked_more: bool) -> SystemResponse:
    """A run whose child was paused and then heard a no; beside it another child may still ask."""
    waits = (await agent.chat("go")).waiting_for
    assert waits is not None
    paying = waits.packet_ids[0]
    await system.signal(UserSignal("p", Signal.PAUSE, paying.partition("/")[0], "ada"))
    response = await agent.reject(paying, by="ada", reason="no")
    assert response.waiting_for is not None
    if is_asked_more:
        assert (response.waiting_for.ending, response.waiting_for.endings) == (
            Ending.MISSING_INFO,
            (Ending.MISSING_INFO,),
        )
        assert response.waiting_for.paused == (paying.partition("/")[0],)
        response = await agent.approve(response.waiting_for.packet_ids[0], by="ada")
    return response


@pytest.mark.req("4.36")
@pytest.mark.parametrize("is_asked_more", [False, True], ids=["alone", "beside a question"])
def test_a_parent_names_the_child_that_a_person_has_to_resume_and_claims_no_question(*, is_asked_more: bool) -> None:
    async def play() -> None:
        system = system_in_memory()
        lease = {name: amount // 2 for name, amount in LEASE.items()}
        wanted = [("helper", {"task": "two"}), *([("helper", {"task": "one"})] if is_asked_more else [])]
        script: list[JsonObject] = [{"when": "^go", **calls(*wanted)}, {"when": r"\bone\b", **calls(ASKS)}]
        script += [{"when": r"\btwo\b", **calls(WIRES)}, {"text": "Done."}]
        tools = [delegate("helper", description="help", lease=lease), wire, ask]
        async with AgentLoop(ScriptedEngine(script), tools=tools, system=system) as agent:
            response = await _paused_after(system, agent, is_asked_more=is_asked_more)
            waits = response.waiting_for
            assert waits is not None
            assert (waits.ending, waits.packet_ids, waits.endings) == (Ending.REVIEW_REQUIRED, (), ())
            (child,) = waits.paused
            told = await system.archive.told(response.run_id)
            listed = {entry.run_id: entry.waiting_for for entry in await system.archive.runs()}
            waiting = {entry.run_id: entry.waiting_for for entry in await system.archive.runs(waiting_only=True)}
            shown = {told.entry.waiting_for, listed[response.run_id], waiting[response.run_id]}
            assert (shown, told.explanation.standing.paused) == ({Ending.REVIEW_REQUIRED}, (child,))
            assert sentence(told.explanation).endswith(f"it waits at act for run {child}, which is paused by ada.")
            await system.signal(UserSignal("r", Signal.RESUME, child, "ada"))
            await system.settle()
            after = await system.result(response.run_id)
            assert after.waiting_for is None, "the parent goes on with its child"
            assert after.terminal_code is not None

    asyncio.run(play())


def test_a_run_above_a_paused_grandchild_names_it() -> None:
    async def play() -> None:
        system = system_in_memory()
        leases = [{**LEASE, "child_runs": 1}, {name: amount // 2 for name, amount in LEASE.items()}]
        hands = [delegate(name, description="help", lease=lease) for name, lease in zip("ab", leases, strict=True)]
        script: list[JsonObject] = [{"when": "^go", **calls(("a", {"task": "one"}))}]
        script += [
            {"when": r"\bone\b", **calls(("b", {"task": "two"}))},
            {"when": r"\btwo\b", **calls(WIRES)},
            {"text": "Done."},
        ]
        async with AgentLoop(ScriptedEngine(script), tools=[*hands, wire], system=system) as agent:
            response = await _paused_after(system, agent, is_asked_more=False)
            assert response.waiting_for is not None
            (grandchild,) = response.waiting_for.paused
            told = await system.archive.told(response.run_id)
            assert (told.explanation.standing.paused, told.entry.waiting_for) == ((grandchild,), Ending.REVIEW_REQUIRED)

    asyncio.run(play())
