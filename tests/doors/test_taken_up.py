"""A pattern that was made anew answers what a call of an earlier process asks, and takes such a call up as a handle."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import PlanExecutor, RedundantLoop, RequestRejected, ScriptedEngine, SpecializedLoop, Step, ToolHandler, tool

SHAPE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
DONE: list[str] = []


@tool(effect="write", idempotent=True, verify=lambda given, result: True)
def put(what: str) -> str:
    """Put."""
    DONE.append(what)
    return f"put {what}"


def plan(home: Path) -> Any:
    return PlanExecutor({"tool": ToolHandler([put])}, home=home)


def vote(home: Path) -> Any:
    # A call of a high stake asks a person before it is let stand.
    return RedundantLoop(
        ScriptedEngine([{"text": '{"n": 3}'}]), schema=SHAPE, home=home, goal={"task_class": "high_stakes"}
    )


def shape(home: Path) -> Any:
    calls = {"tool_calls": [{"name": "put", "arguments": {"what": "x"}}]}
    return SpecializedLoop(
        ScriptedEngine([calls, {"text": "ok"}, {"text": '{"n": 3}'}]), schema=SHAPE, tools=[put], home=home
    )


PATTERNS: dict[str, tuple[Callable[[Path], Any], tuple[Any, ...]]] = {
    "plan": (plan, ([Step("a", "tool", {"what": "x"}, tool="put"), Step("b", "tool", {"what": "y"}, tool="put")],)),
    "shape": (shape, ("a number",)),
}


async def begun(kind: str, home: Path) -> tuple[str, str]:
    """A call that asks, of a process that is gone."""
    make, asked = PATTERNS[kind]
    async with make(home) as loop:
        run = await loop.start(*asked)
        response = await run
        (packet,) = response.waiting_for.packet_ids
        return run.id, packet


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_pattern_made_anew_answers_the_packet_of_an_earlier_process(kind: str, verb: str, tmp_path: Path) -> None:
    async def scene() -> None:
        DONE.clear()
        _, packet = await begun(kind, tmp_path)
        async with PATTERNS[kind][0](tmp_path) as loop:
            await getattr(loop, verb)(packet, by="ann")
            assert (["x"] if verb == "approve" else []) == DONE
            with pytest.raises(RequestRejected) as refused:
                await loop.approve(packet, by="ann")
            assert refused.value.code == "QUESTION_SETTLED"

    asyncio.run(scene())


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_call_of_an_earlier_process_is_taken_up_as_a_handle(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        run_id, packet = await begun(kind, tmp_path)
        async with PATTERNS[kind][0](tmp_path) as loop:
            with pytest.raises(RequestRejected) as refused:
                await loop.cancel(by="ann")
            assert refused.value.code == "NOTHING_OPEN"
            assert "resume(run_id)" in refused.value.message
            handle = await loop.take_up(run_id)
            assert (await handle).waiting_for.packet_ids == (packet,)
            await loop.cancel(by="ann")
            assert (await handle).terminal_code == "USER_CANCEL"

    asyncio.run(scene())


def test_a_packet_of_another_pattern_is_none_of_this_one(tmp_path: Path) -> None:
    async def scene() -> None:
        _, packet = await begun("plan", tmp_path)
        async with vote(tmp_path) as loop:
            with pytest.raises(RequestRejected) as refused:
                await loop.approve(packet, by="ann")
            assert refused.value.code == "PACKET_UNKNOWN"
        async with remit.open(tmp_path) as system:
            assert len(await system.archive.approvals()) == 1

    asyncio.run(scene())
