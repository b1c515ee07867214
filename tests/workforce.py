"""Workers of a cluster within one process, each with a store of its own, as other processes have theirs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from remit import tool
from remit.assemble import system_on
from remit.backend.cluster.store import ClusterStore
from remit.backend.cluster.work import errand_queue
from remit.core.journal.queued import Lane
from remit.core.record import Text
from remit.core.run.contract import SystemResponse
from remit.core.run.signals import Signal
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.executors.division import Division
from remit.orchestrate.executors.errands import Errand, ToolErrand
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.orchestrate.workers import errand_worker
from remit.orchestrate.workers.errand_worker import ErrandWorker
from remit.orchestrate.workers.loop_worker import LoopWorker
from tests.e2e.house import asking, calls, says, tell
from tests.nats_server import clear, opened


class Crew:
    """A program that begins runs, and workers that come and go."""

    def __init__(self, home: Path, kit: Kit, closing: AsyncExitStack, *, lease_ms: int) -> None:
        self.home, self.kit, self._closing, self._lease_ms = home, kit, closing, lease_ms
        self.stores: list[ClusterStore] = []
        # The systems of loop workers.
        self.systems: list[System] = []
        # Workers at work; one that is taken out here is awaited by a test.
        self.serving: list[asyncio.Future[None]] = []

    async def store(self, *, leaves: bool = False) -> ClusterStore:
        """The store as one more process has it."""
        store = await asyncio.to_thread(opened, self.home, lease_ms=self._lease_ms)
        store.leaves = leaves
        self._closing.push_async_callback(store.close)
        self.stores.append(store)
        return store

    async def program(self) -> System:
        """A system whose runs are left to loop workers."""
        store = await self.store(leaves=True)
        system = system_on(store, signer=lambda: store.key.signer)
        self._closing.push_async_callback(system.close)
        return system

    async def drives(self, concurrency: int = 20) -> tuple[LoopWorker, System]:
        """A loop worker at work."""
        store = await self.store()
        system = system_on(store, signer=lambda: store.key.signer, division=Division(store.claims, store.queue))
        self.systems.append(system)
        hub, carrier = system.driving()
        assert carrier is not None
        look_s = self._lease_ms / 2000
        worker = LoopWorker(hub, carrier, store.queue, concurrency=concurrency, look_s=look_s)
        self._closing.push_async_callback(system.close)
        self.at_work(worker.serve(), worker.leave)
        return worker, system

    async def performs(self, kind: str, concurrency: int = 4, kit: Kit | None = None) -> ErrandWorker:
        """A worker for all models or all tools of the kit, at work."""
        store, kit = await self.store(), kit or self.kit
        lanes = [Lane("model", name) for name in kit.engines]
        if kind == "tool":
            lanes = [Lane("tool", one.name, one.version) for one in kit.tools.definitions]
        worker = ErrandWorker(store.queue, store.claims, lanes, concurrency=concurrency)

        async def text(text: Text) -> str:
            return text if isinstance(text, str) else (await store.blobs.get(text.digest)).decode()

        def is_repeatable(errand: Errand) -> bool:
            tool = kit.tools.get(errand.command.tool) if isinstance(errand, ToolErrand) else None
            return tool is not None and tool.definition.idempotent

        resources = ProcessResources(text, on_late=worker.late, claim=worker.claim)
        performers = Performers(resources)
        self.at_work(worker.serve(lambda errand: performers.perform(errand, kit), text, is_repeatable), worker.leave)
        return worker

    def at_work(self, serve: Awaitable[None], leave: Callable[[], Awaitable[None]]) -> None:
        """Let a worker work until the crew goes home."""
        serving = asyncio.ensure_future(serve)
        self.serving.append(serving)

        async def end() -> None:
            await leave()
            if serving in self.serving:
                await serving

        self._closing.push_async_callback(end)


@asynccontextmanager
async def crew(home: Path, kit: Kit, *, lease_ms: int = 1_000) -> AsyncIterator[Crew]:
    """A crew on the server of the tests."""
    async with AsyncExitStack() as closing:
        yield Crew(home, kit, closing, lease_ms=lease_ms)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty server, which workers ask and tell more often than they need to outside of tests."""
    clear()
    monkeypatch.setattr(errand_queue, "PULL_S", 0.2)
    monkeypatch.setattr(errand_queue, "LOOK_S", 0.2)
    monkeypatch.setattr(errand_queue, "ACK_WAIT_S", 0.6)
    monkeypatch.setattr(errand_worker, "KEEP_S", 0.1)


def play(story: Coroutine[object, object, None]) -> None:
    """Play a story, which takes a minute at most."""

    async def in_time() -> None:
        async with asyncio.timeout(60):
            await story

    asyncio.run(in_time())


class Till:
    """A tool that pays when it may, and how often it has."""

    def __init__(self) -> None:
        self.may_pay = asyncio.Event()
        self.begun = self.paid = 0

        @tool(effect="write", asks=["pay"], timeout_ms=60_000, verify=lambda arguments, result: result == "paid")
        async def pay() -> str:
            """Pay."""
            self.begun += 1
            await self.may_pay.wait()
            self.paid += 1
            return "paid"

        self.pay = pay

    def kit(self) -> Kit:
        """A run that pays, and says so."""
        return engine_kit(ScriptedEngine([calls("pay"), says("Paid.")]), [self.pay])


async def approved(system: System, response: SystemResponse) -> str:
    """Say yes to what a run asks; gives its id."""
    assert response.waiting_for is not None, response
    await tell(system, Signal.APPROVE, response.run_id, {"packet_id": response.waiting_for.packet_ids[0]})
    return response.run_id


async def rested(system: System, run_id: str) -> SystemResponse:
    """How a run comes to rest."""
    async with asyncio.timeout(20):
        return await (await system.find(run_id))


@asynccontextmanager
async def paying(home: Path, till: Till) -> AsyncIterator[tuple[Crew, System, str]]:
    """A crew with a run that is about to pay, approved, and no worker that has the tool."""
    async with crew(home, till.kit()) as workers:
        await workers.drives()
        await workers.performs("model")
        program = await workers.program()
        try:
            yield workers, program, await approved(program, await program.run(asking("Please pay."), workers.kit))
        finally:
            till.may_pay.set()
