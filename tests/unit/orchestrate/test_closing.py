"""Closing a system ends, although code on the loop swallows its cancellation; and nothing of it is written afterwards."""

import asyncio
import threading
from collections.abc import AsyncIterable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

import pytest

from remit import tool
from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RemitError
from remit.core.journal.storage import StoreUnusable
from remit.core.record import JsonObject
from remit.core.run.run_events import SYSTEM_CLOSED, Subject
from remit.orchestrate.loop import hub, in_process
from tests.unit.orchestrate.house import STORES, request, scripted, store_of
from tests.unit.orchestrate.stage import play


def test_a_system_that_is_closed_leaves_no_task_behind_for_a_tool_that_was_abandoned() -> None:
    may_end = threading.Event()

    @tool(effect="read", network=False, timeout_ms=20)
    def stubborn() -> str:
        """Do not listen."""
        may_end.wait(20)
        return "done"

    async def story() -> None:
        system = system_on(MemoryStore())
        wanted: list[JsonObject] = [{"name": "stubborn", "arguments": {}}]
        run_id = (
            await system.run(request(), scripted({"tool_calls": wanted}, {"text": "Done."}, tools=[stubborn]))
        ).run_id
        await system.close()
        try:
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert [(call.run_id, call.tool) for call in system.abandoned] == [(run_id, "stubborn")]
        finally:
            may_end.set()

    asyncio.run(story())


@pytest.mark.parametrize("calls", [1, 2])
def test_a_tool_that_swallows_its_cancellation_does_not_keep_a_system_from_closing(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (hub, in_process):
        monkeypatch.setattr(place, "STOP_GRACE_S", 0.05)

    async def story() -> None:
        begun, told, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @tool(effect="read", network=False)
        async def stubborn(n: int) -> str:
            """Go on whatever happens."""
            begun.set()
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    told.set()
            return "done"

        wanted: list[JsonObject] = [{"name": "stubborn", "arguments": {"n": n}} for n in range(calls)]
        store = MemoryStore()
        system = system_on(store)
        kit = scripted({"tool_calls": wanted}, {"text": "Done."}, tools=[stubborn])
        caller = asyncio.create_task(system.run(request(), kit))
        await begun.wait()
        others = asyncio.all_tasks()
        await system.close()
        assert told.is_set()
        with pytest.raises(RemitError, match="SYSTEM_CLOSED"):
            await caller

        (entry,) = await store.catalogue.entries()
        turns = len(await store.journal.read(entry.run_id))
        may_end.set()
        await asyncio.wait(others - {asyncio.current_task()})
        assert len(await store.journal.read(entry.run_id)) == turns
        assert not await store.leases.is_held(entry.run_id)

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_caller_that_waits_for_a_run_is_told_that_its_system_was_closed_and_how_to_go_on(
    kind: str, tmp_path: Path
) -> None:
    async def story() -> None:
        begun = asyncio.Event()

        @tool(effect="read", network=False)
        async def slow() -> str:
            """Take long."""
            begun.set()
            await asyncio.Event().wait()
            return "never"

        system = system_on(store_of(kind, tmp_path))
        kit = scripted({"tool_calls": [{"name": "slow", "arguments": {}}]}, {"text": "Done."}, tools=[slow])
        run = await system.start(request(), kit)
        await begun.wait()
        waiters: dict[str, Coroutine[Any, Any, object]] = {
            "result": run.result(),
            "events": _all_of(run.events(chunks=True)),
            "watch": _all_of(system.watch(run.id)),
            "one run": _all_of(system.subscribe(Subject(run.id))),
            "everything": _all_of(system.subscribe(Subject(), since=-1)),
            "settle": system.settle(run.id),
        }
        waiting = {name: asyncio.create_task(waiter) for name, waiter in waiters.items()}
        await anext(run.events())
        await system.close()
        for name, waiter in waiting.items():
            with pytest.raises(RemitError, match="open the store again") as told:
                await waiter
            assert (name, told.value.code) == (name, SYSTEM_CLOSED)
        with pytest.raises(RemitError, match=f"`resume` run {run.id}"):
            await run
        await system.close()

    play(story())


def test_a_store_that_is_closed_under_a_subscriber_tells_it_that_the_system_was(tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of("embedded", tmp_path)
        system = system_on(store)
        await store.close()
        subscription = system.subscribe(Subject(), since=-1)
        with pytest.raises(RemitError, match="STORE_CLOSED"):
            await anext(subscription)

        async def closed_meanwhile(_: object, **__: object) -> NoReturn:
            await system.close()
            raise StoreUnusable("STORE_CLOSED", "was closed")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(subscription, "_next_of_many", closed_meanwhile)
            patched.setattr(subscription, "_is_standing", True)
            with pytest.raises(RemitError, match=SYSTEM_CLOSED):
                await anext(subscription)

    play(story())


async def _all_of(events: AsyncIterable[object]) -> list[object]:
    return [event async for event in events]
