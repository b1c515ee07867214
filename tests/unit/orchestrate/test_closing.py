"""Closing a system ends, although code on the loop swallows its cancellation; and nothing of it is written afterwards."""

import asyncio

import pytest

from remit import tool
from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RemitError
from remit.core.record import JsonObject
from remit.orchestrate.loop import hub, in_process
from tests.unit.orchestrate.house import request, scripted
from tests.unit.orchestrate.stage import play


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
