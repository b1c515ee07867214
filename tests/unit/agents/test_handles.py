"""Runs in hand: a handle of any pattern can be asked and told whatever one of a system can, and a program may simply end."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest

from remit import (
    AgentLoop,
    EventKind,
    InferHandler,
    ModelResult,
    PlanExecutor,
    RedundantLoop,
    RemitError,
    Run,
    RunEvent,
    ScriptedEngine,
    SpecializedLoop,
    Step,
    Subject,
    System,
    system_in_memory,
)
from remit import open as system_of
from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import Ending
from tests import warm
from tests.unit.orchestrate.house import helper
from tests.unit.orchestrate.stage import play

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
Pattern: TypeAlias = AgentLoop | SpecializedLoop | RedundantLoop | PlanExecutor


def engine(delay_ms: int) -> ScriptedEngine:
    return ScriptedEngine([{"text": '{"a":1}', "chunks": ['{"a"', ":1}"], "delay_ms": delay_ms}])


def at(place: Path | System) -> dict[str, Any]:
    return {"system": place} if isinstance(place, System) else {"home": place}


MAKERS: dict[str, Callable[[ScriptedEngine, Path | System], Pattern]] = {
    "agent": lambda model, place: AgentLoop(model, **at(place)),
    "specialized": lambda model, place: SpecializedLoop(model, schema=SCHEMA, **at(place)),
    "redundant": lambda model, place: RedundantLoop(model, schema=SCHEMA, **at(place)),
    "plan": lambda model, place: PlanExecutor({"infer": InferHandler(model)}, **at(place)),
}
EVERY = pytest.mark.parametrize("name", MAKERS)
STEPS = [Step("first", "infer", "q"), Step("second", "infer", "q")]


async def started(loop: Pattern, *, chunks: bool = False) -> Run[Any]:
    return await (
        loop.start(STEPS, chunks=chunks) if isinstance(loop, PlanExecutor) else loop.start("q", chunks=chunks)
    )


async def refused(asked: Awaitable[Any]) -> str:
    with pytest.raises(RemitError) as error:
        await asked
    return error.value.code


@EVERY
def test_a_handle_answers_as_ever_after_its_run_has_ended(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        run = await started(MAKERS[name](engine(0), tmp_path))
        assert (await run).terminal_code is Ending.SUCCESS
        turns = [event.seq async for event in run]
        assert turns == list(range(len(turns)))
        assert [event.seq async for event in run.events(since=0)] == turns[1:]
        assert await refused(run.cancel(by="ada")) == "RUN_ENDED"
        assert await refused(run.approve(by="ada")) == "PACKET_UNKNOWN"
        assert (await run).terminal_code is Ending.SUCCESS

    play(story())


@EVERY
@pytest.mark.slow
def test_a_run_that_was_paused_goes_on_through_its_handle(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        run = await started(MAKERS[name](engine(60), tmp_path))
        await run.pause(by="ada")
        assert (await run).terminal_code is None
        await run.resume(by="ada")
        assert (await run).terminal_code is Ending.SUCCESS

    play(story())


@EVERY
def test_every_pattern_is_entered_left_and_cancelled_alike(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with MAKERS[name](engine(20_000), tmp_path) as loop:
            assert await refused(loop.cancel()) == "NOTHING_OPEN"
            run = await started(loop)
            await loop.cancel(by="ada", reason="enough")
            assert (await run).terminal_code is Ending.USER_CANCEL
            assert await refused(loop.cancel()) == "NOTHING_OPEN"
            assert await refused(loop.approve("", by="ada")) == "PACKET_UNKNOWN"
        assert await refused(run.pause()) == "SYSTEM_CLOSED"
        # It is opened again by the next caller that needs it.
        later = await started(loop)
        await later.cancel()
        await loop.close()

    play(story())


async def followed(run: Run[Any]) -> list[RunEvent]:
    return [event async for event in run]


async def awaited(run: Run[Any]) -> object:
    return await run


@EVERY
def test_a_caller_that_waits_for_a_handle_is_told_when_its_pattern_is_closed(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with MAKERS[name](engine(20_000), tmp_path) as loop:
            run = await started(loop)
            waiting = [asyncio.create_task(one) for one in (awaited(run), run.result(), followed(run))]
            await anext(aiter(run))
        for waiter in waiting:
            assert await refused(waiter) == "SYSTEM_CLOSED"
        # Afterwards there is nothing to wait for either, and the run is there to be gone on with.
        assert await refused(awaited(run)) == "SYSTEM_CLOSED"
        async with system_of(tmp_path) as system:
            assert (await system.find(run.id)).id == run.id

    play(story())


PARTS = {"agent": [""], "specialized": [""], "redundant": ["1", "2", "3"], "plan": ["first", "second"]}


@EVERY
def test_what_replicas_and_steps_say_is_heard_through_the_handle(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        loop = MAKERS[name](engine(0), tmp_path)
        run = await started(loop, chunks=True)
        events = [event async for event in run]
        said = [event for event in events if event.kind is EventKind.SAID]
        texts = {part: "".join(event.text for event in said if event.part == part) for part in PARTS[name]}
        assert texts == dict.fromkeys(PARTS[name], '{"a":1}')
        assert len(said) == 2 * len(PARTS[name])
        turns = [event.seq for event in events if event.kind is EventKind.TURN]
        assert turns == list(range(len(turns)))
        # Behind the turn that ordered it, and before the one that knows the answer.
        assert all(0 < place < len(events) - 1 for place, event in enumerate(events) if event in said)
        assert all((event.run_id == run.id) is (event.part == "") for event in said)
        await loop.close()

    play(story())


def test_what_a_delegate_says_is_no_part_of_a_chat_and_is_named_where_children_are_followed() -> None:
    async def story() -> None:
        system = system_in_memory()
        model = ScriptedEngine(
            [
                {"when": '"task"', "text": "murmur"},
                {"tool_calls": [{"name": "helper", "arguments": {"task": "think"}}]},
                {"text": "aloud"},
            ]
        )
        async with system.subscribe(Subject(children=True), chunks=True) as everything:
            run = await AgentLoop(model, tools=[helper], system=system).start("q", chunks=True)
            assert [event.text async for event in run if event.kind is EventKind.SAID] == ["aloud"]
            heard: list[RunEvent] = []
            while "aloud" not in [event.text for event in heard]:
                heard.append(await anext(everything))
            assert [event.text for event in heard if event.text] == ["murmur", "aloud"]

    play(story())


@pytest.mark.parametrize(
    ("subject", "since"),
    [(Subject("nobody"), since) for since in (None, -1, 0)]
    + [(Subject("nobody", children=True), since) for since in (None, -1)],
)
def test_a_run_that_nobody_started_is_not_waited_for(subject: Subject, since: int | None) -> None:
    async def story() -> None:
        system = system_in_memory()
        assert await refused(anext(system.subscribe(subject, since=since))) == "RUN_NOT_FOUND"
        with pytest.raises(RemitError):
            await system.subscribe(subject, since=since).__aenter__()

    play(story())


LEFT = """
import asyncio, sys, warnings

warnings.simplefilter("error")
from remit import AgentLoop, InferHandler, PlanExecutor, RedundantLoop, ScriptedEngine, SpecializedLoop, Step

engine = ScriptedEngine([{"text": '{"a":1}', "delay_ms": 20_000}])
schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
patterns = {
    "agent": lambda: (AgentLoop(engine), "chat", "q"),
    "specialized": lambda: (SpecializedLoop(engine, schema=schema), "call", "q"),
    "redundant": lambda: (RedundantLoop(engine, schema=schema), "call", "q"),
    "plan": lambda: (PlanExecutor({"infer": InferHandler(engine)}), "execute", [Step("a", "infer", "q")]),
}


async def main():
    global held
    loop, method, asked = patterns[sys.argv[1]]()
    if sys.argv[2] == "called":
        held = asyncio.create_task(getattr(loop, method)(asked))
        await asyncio.sleep(0.5)
    else:
        run = await loop.start(asked)
        del loop
        held = asyncio.create_task(run.result())
        await asyncio.sleep(0.05)


asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["started", "called"])
@EVERY
def test_a_program_may_end_while_a_task_waits_for_a_run(name: str, how: str, tmp_path: Path) -> None:
    home = {"REMIT_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [sys.executable, "-c", LEFT, name, how]
    done = warm.run(command, env={**os.environ, **home}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# More ticks of the loop than a call takes until all its models are asked.
TICKS_MAX = 40


async def called(loop: Pattern) -> object:
    if isinstance(loop, PlanExecutor):
        return await loop.execute(STEPS)
    return await (loop.chat("q") if isinstance(loop, AgentLoop) else loop.call("q"))


async def started_and_awaited(loop: Pattern) -> object:
    return await (await started(loop)).result()


async def left_after(ticks: int, loop: Pattern, ask: Callable[[Pattern], Awaitable[object]]) -> set[asyncio.Task[Any]]:
    """Leave a program while something is under way, as `asyncio.run` does; gives what would keep it from ending."""
    asking = asyncio.ensure_future(ask(loop))
    for _ in range(ticks):
        await asyncio.sleep(0)
    assert not asking.done()
    told = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    Random(ticks).shuffle(told)  # A set has no order of its own.
    for task in told:
        task.cancel()
    return (await asyncio.wait(told, timeout=5))[1]


@pytest.mark.parametrize("ask", [called, started_and_awaited])
@EVERY
def test_a_program_may_end_at_any_moment_of_a_call(
    name: str, ask: Callable[[Pattern], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, infer, asked = MemoryJournal.append, ScriptedEngine.infer, set[int]()

    async def written_later(*given: Any) -> int:
        # As a disk does, the store lets its caller wait; and here for a known number of ticks.
        for _ in range(2):
            synced = asyncio.Event()
            asyncio.get_running_loop().call_soon(synced.set)
            await synced.wait()
        return await write(*given)

    async def noted(model: ScriptedEngine, *given: Any) -> ModelResult:
        asked.add(ticks)
        return await infer(model, *given)

    monkeypatch.setattr(MemoryJournal, "append", written_later)
    monkeypatch.setattr(ScriptedEngine, "infer", noted)
    for ticks in range(TICKS_MAX):
        left = asyncio.run(left_after(ticks, MAKERS[name](engine(20_000), system_in_memory()), ask))
        assert left == set(), f"after {ticks} ticks"
    assert {0, TICKS_MAX - 1} & asked == {TICKS_MAX - 1}, "each moment was tried until a model was asked"
