"""A run in hand: waited for, followed, answered and told, from the system and from all four patterns."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import (
    AgentLoop,
    Ending,
    EventKind,
    PlanExecutor,
    RedundantLoop,
    RequestRejected,
    Run,
    ScriptedEngine,
    SpecializedLoop,
    Step,
    System,
    kit_of,
)
from remit.tool.declare.decorator import Tool
from tests.unit.orchestrate.house import calls, in_memory, keep, scripted
from tests.unit.orchestrate.stage import play

SHAPE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LATE = {"text": "late", "delay_ms": 20_000}


def test_a_run_is_awaited_again_and_again() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run = await system.start("hello", scripted({"text": "hi", "delay_ms": 10}))
            assert [(await run).content, (await run).content, (await run.result()).content] == ["hi"] * 3
            assert (await (await system.find(run.id))).run_id == run.id

    play(story())


def test_what_happens_in_a_run_is_told_until_it_rests() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run = await system.start("hello", scripted({"text": "hi", "chunks": ["h", "i"]}), chunks=True)
            told = [event async for event in run]
            kinds = [(event.kind, event.text) for event in told]
            said = [(EventKind.SAID, "h"), (EventKind.SAID, "i")]
            assert kinds == [(EventKind.TURN, ""), *said, (EventKind.TURN, "")]
            assert [event.seq async for event in run] == [0, 1]
            assert [event.seq async for event in run.events(since=told[0].cursor)] == [1]
            assert [event async for event in run.events(since=None)] == []

    play(story())


def test_a_follower_that_stops_leaves_nothing_behind() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run = await system.start("hello", scripted(LATE))
            events = run.events()
            async for _ in events:
                break
            await events.aclose()
            assert not list(system._bus._ears)
            await events.__class__(system, run.id, -1, chunks=False).aclose()
            await run.cancel()
            assert (await run).terminal_code is Ending.USER_CANCEL

    play(story())


def test_a_question_is_answered_without_naming_it_where_it_is_the_only_one() -> None:
    async def story() -> None:
        async with in_memory() as system:
            for answer, expected in (("approve", Ending.SUCCESS), ("reject", Ending.PERMISSION_DENIED)):
                run = await system.start("keep", scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep]))
                assert (await run).waiting_for is not None
                assert (await getattr(run, answer)(by="ada")).terminal_code is expected
                with pytest.raises(RequestRejected, match="QUESTION_SETTLED"):
                    await run.approve(by="ada")

    play(story())


def test_of_several_questions_the_one_that_is_meant_is_named() -> None:
    async def story() -> None:
        async with in_memory() as system:
            both = {"tool_calls": [{"name": "keep", "arguments": {"text": text}} for text in ("x", "y")]}
            run = await system.start("keep", scripted(both, {"text": "kept"}, tools=[keep]))
            waiting = (await run).waiting_for
            assert waiting is not None
            with pytest.raises(RequestRejected, match=r"asks 2 packets: .*; name the one you mean"):
                await run.approve(by="ada")
            await run.approve(waiting.packet_ids[0], by="ada", arguments={"text": "z"})
            response = await run.reject(waiting.packet_ids[1], by="ada", reason="no")
            assert response.tool_calls_made[0].result == "kept z"

    play(story())


def test_a_run_is_paused_told_something_and_resumed() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run = await system.start("hello", scripted({"text": "hi", "delay_ms": 50}))
            await run.pause(by="ada")
            await run.feedback("hurry", by="ada")
            await run.resume()
            assert (await run).content == "hi"

    play(story())


def test_a_run_of_nobody_is_not_found() -> None:
    async def story() -> None:
        async with in_memory() as system:
            with pytest.raises(RequestRejected):
                await system.find("nobody")

    play(story())


async def every_pattern(system: System | None, home: Path | None, tools: list[Tool], *replies: Any) -> list[Run[Any]]:
    """One run of each of the patterns."""
    given: dict[str, Any] = {"system": system} if system is not None else {"home": home}
    engine, asks = ScriptedEngine(replies), {"type": "object", "properties": {}}
    plan = PlanExecutor({"work": SpecializedLoop(engine, schema=asks, tools=tools, **given)}, **given)
    return [
        await AgentLoop(engine, tools=tools, **given).start("go"),
        await SpecializedLoop(engine, schema=asks, tools=tools, **given).start("go"),
        await RedundantLoop(engine, schema=asks, n=3, **given).start("go"),
        await plan.start([Step("work", "work", input="go")]),
    ]


@pytest.mark.parametrize("is_given", [True, False])
def test_all_four_patterns_hand_over_runs_that_can_be_cancelled(is_given: bool, tmp_path: Path) -> None:
    async def story() -> None:
        async with in_memory() as system:
            runs = await every_pattern(system if is_given else None, tmp_path / "store", [], LATE, LATE, LATE)
            for run in runs:
                await run.cancel(by="ada", reason="enough")
                assert (await run).terminal_code is Ending.USER_CANCEL
                # What was opened for it is closed by now, and what it came to is still at hand.
                assert (await run).run_id == run.id

    play(story())


def test_all_four_patterns_hand_over_runs_that_can_be_followed_and_give_their_own_results() -> None:
    async def story() -> None:
        async with in_memory() as system:
            shaped = {"text": "{}", "delay_ms": 5}
            runs = await every_pattern(system, None, [], shaped, shaped, shaped)
            for run in runs:
                assert 0 in [event.seq async for event in run]
            kinds = [type(await run.result()).__name__ for run in runs]
            assert kinds == ["SystemResponse", "StructuredResponse", "RedundantResult", "PlanResult"]

    play(story())


def test_what_a_pattern_asks_is_approved_through_its_run() -> None:
    async def story() -> None:
        async with in_memory() as system:
            replies = calls("keep", text="x"), {"text": "{}"}
            for run in [
                await AgentLoop(ScriptedEngine(replies), tools=[keep], system=system).start("keep"),
                await SpecializedLoop(
                    ScriptedEngine(replies), schema=SHAPE | {"required": []}, tools=[keep], system=system
                ).start("keep"),
            ]:
                assert (await run).waiting_for is not None
                assert (await run.approve(by="ada")).terminal_code is Ending.SUCCESS

    play(story())


def test_a_conversation_goes_on_behind_an_exchange_that_was_started() -> None:
    async def story() -> None:
        async with in_memory() as system:
            agent = AgentLoop(ScriptedEngine([{"text": "one"}]), system=system)
            await (await agent.start("first"))
            assert [message.content for message in agent.messages] == ["first", "one"]

    play(story())


@pytest.mark.parametrize("where", [{"memory": True}, {"home": "store"}, {}])
def test_a_system_is_opened_in_memory_in_a_folder_or_where_the_environment_says(
    where: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "home"))

    async def story() -> None:
        door = remit.open(**where)
        await door.__aexit__()
        async with door as system:
            assert (await (await system.start("hi", kit_of(ScriptedEngine([{"text": "hello"}]))))).content == "hello"

    asyncio.run(story())
    made = [path.name for path in tmp_path.iterdir()]
    assert made == {"memory": [], "home": ["store"]}.get(next(iter(where), ""), ["home"])


def test_who_follows_a_run_whose_driver_is_gone_is_warned_that_no_process_drives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.orchestrate.run_handle.QUIET_MS", 10)

    async def story() -> None:
        async with remit.open(tmp_path) as system:
            left = await system.start("hello", scripted(LATE))
            paused = await system.start("hello", scripted(LATE))
            await paused.pause(by="ada")
        async with remit.open(tmp_path) as system:
            response = await (await system.find(left.id))
            assert response.terminal_code is None
            warning = f"it is driven by no process any more; `resume` goes on with it: remit resume {left.id}"
            assert response.warnings[-1:] == (warning,)
            assert not any("no process" in one for one in (await (await system.find(paused.id))).warnings)

    play(story())
