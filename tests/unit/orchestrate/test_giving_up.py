"""A caller that stops waiting for a run, or a driver that breaks, leaves nothing half-done."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import Ending, RemitError
from remit.core.journal.storage import StoreUnusable
from remit.core.run.contract import CallStatus
from remit.core.run.signals import Signal
from tests.unit.orchestrate.house import (
    STORES,
    approval,
    calls,
    in_memory,
    keep,
    request,
    scripted,
    signal,
    store_of,
    systems,
)
from tests.unit.orchestrate.stage import play

SLOW = {"text": "at last", "delay_ms": 20_000}
# More moments than a signal has steps; those beyond its end find it done.
MOMENTS = range(12)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_approval_that_was_written_is_acted_on_whenever_its_sender_gives_up(
    kind: str, moment: int, tmp_path: Path
) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            kit = scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep])
            asked = await system.run(request(), kit)
            assert asked.waiting_for is not None
            sending = asyncio.create_task(system.signal(approval(asked.waiting_for.packet_ids[0])))
            for _ in range(moment):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await system.settle()
            response = await system.result(asked.run_id)
            if response.terminal_code is None:
                # It was given up before anything was written.
                assert response.waiting_for is not None
            else:
                assert response.terminal_code is Ending.SUCCESS
                assert response.tool_calls_made[0].status is CallStatus.COMMITTED

    play(story())


def test_a_run_that_was_begun_goes_on_although_its_sender_gives_up() -> None:
    async def story() -> None:
        async with in_memory() as system:
            sending = asyncio.create_task(system.submit(request(), scripted({"text": "hello"})))
            await asyncio.sleep(0)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await system.settle()
            entries = await system.store.catalogue.entries()
            assert [entry.ending for entry in entries] in ([], [Ending.SUCCESS])

    play(story())


def test_a_caller_that_stops_waiting_for_everything_to_settle_stops_nothing() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted(SLOW))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(system.settle(), 0.01)
            assert run_id in system._hub.drivers
            await system.signal(signal(Signal.CANCEL, run_id))
            assert (await system.result(run_id)).terminal_code is Ending.USER_CANCEL

    play(story())


def test_a_driver_that_is_cancelled_before_its_first_step_lets_its_run_go() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted(SLOW))
            driver = system._hub.drivers[run_id]
            assert driver.task is not None
            driver.task.cancel()
            await asyncio.gather(driver.task, return_exceptions=True)
            assert run_id not in system._hub.drivers
            token = await system.store.leases.take(run_id)
            assert token is not None
            await system.store.leases.release(run_id, token)

    play(story())


def test_a_caller_of_a_run_whose_driver_broke_is_told_why_until_it_is_resumed(tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of("embedded", tmp_path)
        append, has_room = store.journal.append, False

        async def full(run_id: str, data: bytes, after: int, *more: Any, **named: Any) -> int:
            if after >= 0 and not has_room:
                raise StoreUnusable("STORE_FULL", "no room")
            return await append(run_id, data, after, *more, **named)

        store.journal.append = full  # type: ignore[method-assign]
        async with systems(store) as (system,):
            kit = scripted({"text": "hello"})
            run_id = await system.submit(request(), kit)
            await system.settle()
            with pytest.raises(RemitError) as caught:
                await system.result(run_id)
            assert caught.value.code == "STORE_FULL"
            has_room = True
            assert (await system.resume(run_id, kit=kit)).terminal_code is Ending.SUCCESS

    play(story())


@pytest.mark.slow
def test_watching_a_run_that_was_paused_and_left_ends() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted({"text": "hello", "delay_ms": 50}))
            await system.signal(signal(Signal.PAUSE, run_id))
            await system.settle()
            assert len([turn async for turn in system.watch(run_id)]) > 1

    play(story())
