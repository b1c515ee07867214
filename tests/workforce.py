"""Workers of a cluster within one process, each with a store of its own, as other processes have theirs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from remit.assemble import system_on
from remit.backend.cluster.store import ClusterStore
from remit.core.journal.queued import Lane
from remit.core.record import Text
from remit.orchestrate.executors.division import Division
from remit.orchestrate.executors.errands import Errand, ToolErrand
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.workers.errand_worker import ErrandWorker
from remit.orchestrate.workers.loop_worker import LoopWorker
from tests.nats_server import opened


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
