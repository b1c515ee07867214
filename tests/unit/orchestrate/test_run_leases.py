"""Leases that expire under a living holder: it learns that it lost them, and writes nothing behind the next one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.leases import MemoryLeases
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RemitError
from remit.core.journal.arrivals import ApprovalGiven, RunStarted, RunTaken
from remit.core.journal.codec import decode_turn
from remit.core.journal.storage import AppendConflict, LeaseLost, RunHeld, StoreUnusable, Warrant
from remit.kernel.state import RunState
from remit.orchestrate.facade import System
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.run_leases import RunLeases, fenced_journal
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import Said, approval, calls, keep, request, scripted, systems, unaudited, until
from tests.unit.orchestrate.stage import play

# Long enough that nothing is renewed within a test, and short enough that everything is.
LONG_MS, SHORT_MS = 3_600_000, 30


class ExpiringLeases(MemoryLeases):
    """Leases that end when the test says so, under a holder that lives."""

    def __init__(self, lasts_ms: int) -> None:
        super().__init__()
        self.lasts_ms = lasts_ms
        self.trouble: RemitError | None = None
        self.renewed = 0

    def expire(self, run_id: str) -> None:
        """Let the time of a lease run out."""
        del self._held[run_id]

    async def take(self, run_id: str) -> int | None:  # type: ignore[explicit-override]
        await asyncio.sleep(0)
        return await super().take(run_id)

    async def renew(self, run_id: str, token: int) -> bool:  # type: ignore[explicit-override]
        await asyncio.sleep(0)
        self.renewed += 1
        if self.trouble is not None:
            raise self.trouble
        return await super().renew(run_id, token)

    async def release(self, run_id: str, token: int) -> None:  # type: ignore[explicit-override]
        await asyncio.sleep(0)
        if self.trouble is not None:
            raise self.trouble
        await super().release(run_id, token)


class PoorStore(MemoryStore):
    """A store that promises compare-and-append and nothing more: its journal knows nothing of leases."""

    def __init__(self, lasts_ms: int) -> None:
        super().__init__()
        self.leases: ExpiringLeases = ExpiringLeases(lasts_ms)
        # Every token is good enough for it.
        self.journal._leases.is_current = lambda run_id, token: True  # type: ignore[method-assign]


@asynccontextmanager
async def two_systems(lasts_ms: int) -> AsyncIterator[tuple[PoorStore, System, System]]:
    """Two processes on a store, as far as they can tell."""
    store = PoorStore(lasts_ms)
    async with systems(store, store) as (one, other):
        yield store, one, other


async def arrivals_of(store: MemoryStore, run_id: str) -> list[object]:
    return [decode_turn(data).arrival for data in await store.journal.read(run_id)]


def under_way(system: System, run_id: str) -> Callable[[], Awaitable[bool]]:
    async def has_asked() -> bool:
        return run_id in system._hub.drivers and bool(system._hub.drivers[run_id].live.state.commands.open)

    return has_asked


def test_the_next_holder_writes_first_and_the_stale_driver_writes_nothing_more() -> None:
    async def story() -> None:
        async with two_systems(LONG_MS) as (store, stale, current):
            slow = scripted({"text": "too late", "delay_ms": 100})
            run_id = await stale.submit(request(), slow)
            await until(under_way(stale, run_id))
            store.leases.expire(run_id)
            response = await current.resume(run_id, kit=scripted({"text": "in time"}))
            assert (response.terminal_code, response.content) == (Ending.SUCCESS, "in time")
            told = await arrivals_of(store, run_id)
            with pytest.raises(LeaseLost):
                await stale.result(run_id)
            assert await arrivals_of(store, run_id) == told
            began, taken = told[:2]
            assert isinstance(began, RunStarted)
            assert taken == RunTaken(2)

    play(story())


def test_what_a_stale_driver_is_told_orders_nothing() -> None:
    async def story() -> None:
        async with two_systems(LONG_MS) as (store, stale, current):
            run_id = await stale.submit(request(), scripted({**calls("keep", text="x"), "delay_ms": 50}, tools=[keep]))
            await until(under_way(stale, run_id))
            store.leases.expire(run_id)
            response = await current.resume(run_id, kit=scripted(calls("keep", text="y"), tools=[keep]))
            assert response.waiting_for is not None
            with pytest.raises(LeaseLost):
                await stale.result(run_id)
            proposed = [arrival for arrival in await arrivals_of(store, run_id) if hasattr(arrival, "calls")]
            assert len(proposed) == 1

    play(story())


def test_a_holder_learns_by_renewing_that_its_lease_is_lost_and_puts_its_run_down() -> None:
    async def story() -> None:
        async with two_systems(SHORT_MS) as (store, stale, _):
            run_id = await stale.submit(request(), scripted({"text": "never", "delay_ms": 600_000}))
            waiting = asyncio.create_task(stale.result(run_id))
            await until(under_way(stale, run_id))
            store.leases.expire(run_id)
            with pytest.raises(LeaseLost):
                await waiting
            assert run_id not in stale._hub.drivers
            assert not await store.leases.is_held(run_id)
            with pytest.raises(LeaseLost):
                await stale.result(run_id)
            response = await stale.resume(run_id, kit=scripted({"text": "again"}))
            assert response.content == "again"
            assert RunTaken(2) in await arrivals_of(store, run_id)

    play(story())


def test_a_run_that_is_lost_while_a_person_is_heard_begins_nothing_of_what_that_ordered() -> None:
    made = list[str]()

    @tool(effect="write")
    async def note(text: str) -> Said:
        """Note a text."""
        made.append(text)
        return f"noted {text}"

    async def story() -> None:
        store = PoorStore(SHORT_MS)
        append, here = store.journal.append, list[System]()

        async def lose(run_id: str, data: bytes, *rest: Any) -> int:
            place = await append(run_id, data, *rest)
            if isinstance(decode_turn(data).arrival, ApprovalGiven):
                store.leases.expire(run_id)

                async def is_known() -> bool:
                    return run_id not in here[0]._hub.run_leases._warrants

                await until(is_known)
            return place

        store.journal.append = lose  # type: ignore[assignment, method-assign]
        async with unaudited(store) as systems_here:
            here += systems_here
            kit = scripted(calls("note", text="x"), {"text": "noted"}, tools=[note])
            waiting = (await here[0].run(request(), kit)).waiting_for
            assert waiting is not None
            run_id = waiting.packet_ids[0].partition("/")[0]
            await here[0].signal(approval(waiting.packet_ids[0]))
            with pytest.raises(LeaseLost):
                await here[0].result(run_id)
            assert made == []
            assert run_id not in here[0]._hub.drivers

    play(story())


def test_a_lease_is_renewed_for_as_long_as_its_run_is_driven(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with two_systems(SHORT_MS) as (store, system, _):
            run_id = await system.submit(request(), scripted({"text": "hello", "delay_ms": 100}))
            await until(under_way(system, run_id))
            store.leases.trouble = StoreUnusable("STORE_BUSY", "a writer is busy")

            async def has_failed() -> bool:
                return "could not be renewed" in caplog.text

            await until(has_failed)
            store.leases.trouble = None
            assert (await system.result(run_id)).content == "hello"
            assert store.leases.renewed > 1

    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.run_leases"):
        play(story())


def test_a_lease_that_cannot_be_let_go_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with two_systems(LONG_MS) as (store, system, _):
            store.leases.trouble = StoreUnusable("STORE_BUSY", "a writer is busy")
            assert (await system.run(request(), scripted({"text": "hello"}))).content == "hello"

    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.run_leases"):
        play(story())
    assert "could not be let go" in caplog.text


def test_a_caller_that_wants_a_run_that_is_being_let_go_waits_for_that() -> None:
    async def story() -> None:
        leases = ExpiringLeases(LONG_MS)
        run_leases = RunLeases(leases, lambda run_id: None)
        first = await run_leases.take("run")
        with pytest.raises(RunHeld):
            await run_leases.take("run")
        leaving = run_leases.leave("run", first)
        assert leaving is not None
        assert run_leases.leave("run", first) is None
        second = await run_leases.take("run")
        assert second == Warrant(2)
        # What was let go, or lost, is not let go again in the name of the next holder.
        await run_leases.let_go("run", first)
        assert await leases.is_held("run")
        run_leases.leave("run", second)
        await run_leases.close()
        assert not await leases.is_held("run")

    play(story())


def test_a_conflict_of_a_holder_that_still_holds_its_run_is_a_conflict() -> None:
    async def story() -> None:
        leases, journal = ExpiringLeases(LONG_MS), MemoryJournal()
        fenced = fenced_journal(journal, leases)
        token = await leases.take("run")
        assert token is not None
        await journal.append("run", b"theirs", -1)
        for warrant in (None, Warrant()):
            with pytest.raises(AppendConflict):
                await fenced.append("run", b"ours", -1, warrant=warrant)
        with pytest.raises(AppendConflict):
            await fenced.append("run", b"ours", -1, warrant=Warrant(token))
        leases.expire("run")
        with pytest.raises(LeaseLost):
            await fenced.append("run", b"ours", -1, warrant=Warrant(token))
        assert list(await fenced.read("run")) == [b"theirs"]
        assert fenced_journal(journal, MemoryLeases()) is journal

    play(story())


def test_a_turn_under_a_lease_that_was_let_go_is_refused() -> None:
    async def story() -> None:
        store = MemoryStore()
        token = await store.leases.take("run")
        assert token is not None
        await store.journal.append("run", b"0", -1, warrant=Warrant(token))
        await store.leases.release("run", token)
        with pytest.raises(LeaseLost) as caught:
            await store.journal.append("run", b"1", 0, warrant=Warrant(token))
        assert caught.value.code == "LEASE_LOST"
        assert list(await store.journal.read("run")) == [b"0"]

    play(story())


def test_a_later_token_is_of_another_store_while_the_lease_is_held_and_of_the_next_holder_once_it_is_lost() -> None:
    async def story() -> None:
        leases = ExpiringLeases(LONG_MS)
        run_leases = RunLeases(leases, lambda _: None)
        warrant = await run_leases.take("run")
        live = Live("run", RunState())
        live.state.token = 5_000
        await run_leases.bind(live, warrant)
        assert (live.warrant, live.foreign_token) == (warrant, 5_000)
        leases.expire("run")
        with pytest.raises(LeaseLost):
            await run_leases.bind(live, warrant)
        await run_leases.close()

    asyncio.run(story())
