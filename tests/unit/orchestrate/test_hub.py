"""The hub: one driver per run, kits that are kept as long as they are needed, and no caller told too late."""

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, ErrorCode, RemitError
from remit.core.journal.arrivals import FeedbackGiven, PauseRequested
from remit.core.journal.codec import encode_signal
from remit.core.journal.turn import Turn
from remit.core.limits.tools import ToolResult
from remit.core.run.contract import CallStatus
from remit.core.run.signals import Signal
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.executors.reports import PersonSaid, ToolBroke, ToolSaid
from remit.orchestrate.loop import late_delivery
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import (
    Said,
    approval,
    calls,
    in_memory,
    keep,
    request,
    scripted,
    signal,
    store_of,
    systems,
    until,
)
from tests.unit.orchestrate.stage import play

SLOW = {"text": "at last", "delay_ms": 20_000}


def test_a_run_keeps_its_kit_when_a_person_answers_a_question_it_does_not_ask() -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep])
            waiting = (await system.run(request(), kit)).waiting_for
            assert waiting is not None
            run_id = waiting.packet_ids[0].partition("/")[0]
            with pytest.raises(RemitError, match="PACKET_UNKNOWN"):
                await system.signal(signal(Signal.APPROVE, run_id, packet_id="9.9"))
            await system.signal(approval(waiting.packet_ids[0]))
            assert (await system.result(run_id)).content == "kept"

    play(story())


def test_a_run_at_rest_is_held_by_nobody() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            response = await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))
            token = await store.leases.take(response.run_id)
            assert token is not None
            await store.leases.release(response.run_id, token)

    play(story())


def test_a_manifest_that_cannot_start_leaves_nothing_held_and_nothing_kept() -> None:
    async def story() -> None:
        async with in_memory() as system:
            await system.run(request(), scripted({"text": "hello"}))
            (entry,) = await system.store.catalogue.entries()
            manifest = (await system.state_of(entry.run_id)).manifest
            assert manifest is not None
            with pytest.raises(RemitError):
                await system._hub.begin(manifest, scripted({"text": "again"}))
            assert await system.store.leases.take(entry.run_id) is not None
            with pytest.raises(KeyError):
                system._hub.kit_of(entry.run_id)

    play(story())


def test_a_listener_that_breaks_is_logged_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def break_off(state: RunState, turn: Turn) -> None:
        raise ValueError("no ears")

    async def story() -> None:
        quiet = scripted({"text": "hello"})
        async with in_memory() as system:
            response = await system.run(request(), quiet, listener=Listener(break_off))
        assert response.content == "hello"

    with caplog.at_level(logging.ERROR, "remit.orchestrate.bus.bus"):
        play(story())
    assert "broke over turn 0" in caplog.text


def test_something_said_while_a_driver_is_about_to_leave_is_still_heard() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted({"text": "hello", "delay_ms": 20}))
            said = [system._hub.hear(run_id, PersonSaid("ada", f"word {n}")) for n in range(5)]
            await asyncio.gather(*said)
            assert (await system.result(run_id)).terminal_code is Ending.SUCCESS

    play(story())


def test_a_driver_waits_for_a_person_who_is_still_saying_something() -> None:
    async def story() -> None:
        store = MemoryStore()
        append, speakers = store.journal.append, list[asyncio.Task[object]]()

        async def slow_append(run_id: str, data: bytes, after: int, *more: Any, **named: Any) -> int:
            # While the turn is written with which the run would come to rest, a person begins to speak.
            if after == 0 and not speakers:
                speakers.append(asyncio.create_task(system._hub.hear(run_id, PersonSaid("ada", "hurry"))))
                await asyncio.sleep(0)
            elif speakers:
                for _ in range(20):
                    await asyncio.sleep(0)
            return await append(run_id, data, after, *more, **named)

        store.journal.append = slow_append  # type: ignore[method-assign]
        async with systems(store) as (system,):
            response = await system.run(request(), scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep]))
            assert response.waiting_for is not None
            await speakers[0]
            assert [type(turn.arrival) async for turn in system.watch(response.run_id)][-1] is FeedbackGiven

    play(story())


def test_a_signal_heard_from_the_inbox_first_is_acted_upon_before_the_next_is_refused() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            kit = scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep])
            response = await system.run(request(), kit)
            assert response.waiting_for is not None
            (packet_id,) = response.waiting_for.packet_ids
            await store.inbox.put(response.run_id, encode_signal(approval(packet_id)))
            with pytest.raises(RemitError):
                await system.signal(approval(packet_id, Signal.REJECT))
            assert (await system.result(response.run_id)).content == "kept"

    play(story())


def test_a_pause_that_comes_with_the_answer_keeps_the_run_open_until_it_is_resumed() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted({"text": "hello", "delay_ms": 30}))
            await system._hub.hear(run_id, PauseRequested("ada"))
            paused = await system.result(run_id)
            assert (paused.terminal_code, paused.waiting_for) == (None, None)
            await system.signal(signal(Signal.RESUME, run_id))
            assert (await system.result(run_id)).content == "hello"

    play(story())


def test_a_run_is_taken_up_once_however_often_it_is_asked_for() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted(SLOW))
            first, second = await system._hub.take_up(run_id), await system._hub.take_up(run_id)
            assert first is second
            await system.signal(signal(Signal.CANCEL, run_id))

    play(story())


def test_a_late_outcome_of_a_call_nobody_waits_for_is_noted_or_at_least_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(request(), scripted({"text": "hello"}))
            system._hub.late_delivery.late(response.run_id, ToolSaid("1.1", ToolResult("call", "keep", "kept")))
            system._hub.late_delivery.late(
                response.run_id, ToolBroke("1.1", ErrorCode.TOOL_EXECUTION_FAILED, "it broke")
            )
            await system.settle()
            assert (await system.result(response.run_id)) == response

    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.late_delivery"):
        play(story())
    assert caplog.text.count("did not hear a late outcome") == 2


def test_a_late_outcome_waits_for_a_run_that_another_process_drives_but_not_for_ever(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_delivery, "LATE_WAIT_MS_MAX", 20)
    monkeypatch.setattr(late_delivery, "LATE_POLL_MS", 10)

    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            response = await system.run(request(), scripted({"text": "hello"}))
            assert await store.leases.take(response.run_id) is not None
            system._hub.late_delivery.late(response.run_id, ToolSaid("1.1", ToolResult("call", "keep", "kept")))
            await system.settle()

    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.late_delivery"):
        play(story())
    assert "another process drives it" in caplog.text


def test_whatever_comes_after_the_house_was_closed_is_left_alone() -> None:
    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(request(), scripted({"text": "hello"}))
            await system.close()
            system._hub.late_delivery.late(response.run_id, ToolSaid("1.1", ToolResult("call", "keep", "kept")))
            assert system._hub.late_delivery.under_way() == []
            with pytest.raises(RemitError, match="SYSTEM_CLOSED"):
                await system.settle()

    play(story())


def test_a_parent_that_cannot_be_taken_up_when_its_child_ended_is_logged_and_stays_open(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def story() -> None:
        store = store_of("embedded", tmp_path)
        async with systems(store) as (system,):
            waiting = await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))
            # It has no child under this name, so there is nothing to find out; and one that is held is left alone.
            await system._hub.late_delivery.child_ended(waiting.run_id, "9.9")
            await system._hub.late_delivery.child_ended("nobody", "1.1")
            assert (await system.result(waiting.run_id)).waiting_for is not None

    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.late_delivery"):
        play(story())
    assert "was not taken up" not in caplog.text


def test_a_run_that_waits_because_of_a_call_in_doubt_goes_on_when_its_outcome_comes_late() -> None:
    go_on = threading.Event()

    @tool(effect="write", timeout_ms=50)
    def dawdle(text: str) -> Said:
        """Keep a text, slowly."""
        go_on.wait(20)
        return f"kept {text}"

    async def story() -> None:
        async with in_memory() as system:
            kit = scripted(calls("dawdle", text="x"), {"text": "kept"}, tools=[dawdle])
            waiting = (await system.run(request(), kit)).waiting_for
            assert waiting is not None
            run_id = waiting.packet_ids[0].partition("/")[0]
            await system.signal(approval(waiting.packet_ids[0]))
            doubting = await system.result(run_id)
            assert doubting.waiting_for is not None
            assert doubting.tool_calls_made[0].status is CallStatus.OUTCOME_UNKNOWN
            go_on.set()

            async def has_ended() -> bool:
                return (await system.result(run_id)).terminal_code is not None

            await until(has_ended)
            response = await system.result(run_id)
            assert (response.content, response.tool_calls_made[0].status) == ("kept", CallStatus.COMMITTED)

    play(story())
