"""Workers, assembled: processes that share the store of a cluster, each with one part of the work.

Rule 1: a worker has what its part takes and nothing else: engines where models are asked, tools where they are called, neither
        where runs are driven.
Rule 2: a worker is served until it is told to leave; then it finishes or hands back what it has, and lets the store go.
"""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from remit import stores
from remit.assemble import (
    Settings,
    expect_ours,
    kit_for,
    open_store,
    queues_for,
    quotas_for,
    signer_of,
    system_on,
    tools_at,
    vault_for,
)
from remit.backend.clock import WallClock
from remit.backend.tethered import tethered
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.queued import Came, DeadLetter, Lane
from remit.core.record import Text
from remit.observe.worker_figures import WorkerFigures, serve_figures
from remit.orchestrate.errand_ports import Queue, SharedStore
from remit.orchestrate.executors.carrier import MODEL, TOOL
from remit.orchestrate.executors.division import Division
from remit.orchestrate.executors.errands import Errand, ToolErrand, decode_report
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import report_words
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.workers.errand_worker import ErrandWorker
from remit.orchestrate.workers.loop_worker import LoopWorker

WORKER_STORE_LOCAL = "WORKER_STORE_LOCAL"
# What the workers of this machine say, in the folder of the store.
WORKERS_LOG = stores.WORKERS_LOG
# How long a worker of this machine may take to leave.
_END_S_MAX = 40.0
# A supervisor that asks whether a worker is ready waits for a second.
_READY_S_MAX = 0.8
_HEEDED = (signal.SIGINT, signal.SIGTERM)


# What became of an errand that was sent again and of which no worker reports.
_CAME = {
    Came.LOST: "it was not performed: it had begun before, or its worker fell silent over it",
    Came.WITHDRAWN: "it was not performed: it was taken back",
    Came.DEAD: "it could not be performed, and is a dead letter again",
}


class Serving(Protocol):
    """A worker at work."""

    async def serve(self) -> None:
        """Work until it is told to leave."""

    async def leave(self) -> None:
        """Take nothing more."""

    def figures(self) -> WorkerFigures:
        """How it stands."""

    async def is_ready(self) -> bool:
        """Whether the servers answer it."""


def shared_store(settings: Settings) -> "tuple[Store, SharedStore]":
    """The store of a cluster; raises RequestRejected where the settings name a folder."""
    store = open_store(settings) if settings.store else None
    if store is None or not isinstance(store, SharedStore):
        message = (
            "workers share the runs of a cluster: name its servers with --nats nats://HOST:PORT, or in REMIT_STORE"
        )
        raise RequestRejected(WORKER_STORE_LOCAL, message)
    return store, store


@dataclass(slots=True)
class _Driving:
    worker: LoopWorker
    store: Store
    close: Callable[[], Awaitable[None]]

    async def serve(self) -> None:
        try:
            await self.worker.serve()
        finally:
            await self.close()

    async def leave(self) -> None:
        await self.worker.leave()

    def figures(self) -> WorkerFigures:
        return WorkerFigures("loop", self.worker.driven, {"taken": self.worker.taken})

    async def is_ready(self) -> bool:
        return await _answers(self.store)


@dataclass(slots=True)
class _Performing:
    kind: str
    worker: ErrandWorker
    performers: Performers
    kit: Kit
    store: Store

    async def serve(self) -> None:
        try:
            await self.worker.serve(
                lambda errand: self.performers.perform(errand, self.kit), _texts_of(self.store), self._is_repeatable
            )
        finally:
            await self.store.close()

    async def leave(self) -> None:
        await self.worker.leave()

    def figures(self) -> WorkerFigures:
        tasks = self.worker.tasks
        return WorkerFigures(self.kind, len(tasks.under_way), dict(tasks.done))

    async def is_ready(self) -> bool:
        return await _answers(self.store)

    def _is_repeatable(self, errand: Errand) -> bool:
        """Whether a call may be made twice: its tool, which this process has, takes the same key for the same call."""
        tool = self.kit.tools.get(errand.command.tool) if isinstance(errand, ToolErrand) else None
        return tool is not None and tool.definition.idempotent


def loop_worker(settings: Settings, concurrency: int) -> Serving:
    """A worker that drives runs."""
    store, shared = shared_store(settings)
    system = system_on(
        store,
        signer=signer_of(store),
        engines=settings.engines,
        secrets=vault_for(settings),
        quotas=quotas_for(settings),
        queues=queues_for(settings),
        signers=lambda: expect_ours(settings).signers,
        division=Division(shared.claims, shared.queue),
    )
    hub, carrier = system.driving()
    assert carrier is not None, "it was just divided"
    look_s = store.leases.lasts_ms / 2_000
    worker = LoopWorker(hub, carrier, shared.queue, concurrency=concurrency, look_s=look_s)
    return _Driving(worker, store, system.close)


def model_worker(settings: Settings, engines: Sequence[str], concurrency: int) -> Serving:
    """A worker that asks models."""
    kits = [kit_for(spec, base=Path.cwd(), settings=settings) for spec in engines]
    kit = Kit({name: engine for one in kits for name, engine in one.engines.items()})
    return _performing(settings, MODEL, kit, [Lane(MODEL, name) for name in kit.engines], concurrency)


def tool_worker(settings: Settings, tools: Sequence[str], concurrency: int) -> Serving:
    """A worker that calls tools."""
    kit = Kit({}, tools_at(tools))
    lanes = [Lane(TOOL, one.name, one.version) for one in kit.tools.definitions]
    return _performing(settings, TOOL, kit, lanes, concurrency)


def _performing(settings: Settings, kind: str, kit: Kit, lanes: Sequence[Lane], concurrency: int) -> Serving:
    store, shared = shared_store(settings)
    worker = ErrandWorker(shared.queue, shared.claims, lanes, concurrency=concurrency)
    vault, clock = vault_for(settings), WallClock()
    sealer = Sealer(store.seals, vault)
    halts = Halts(store.halts, clock, name_model=str, cover=sealer.covered, key=store.key, check_name=vault.check_name)
    resources = ProcessResources(
        text=_texts_of(store),
        vault=vault,
        sealer=sealer,
        halts=halts,
        clock=clock,
        on_late=worker.late,
        claim=worker.claim,
        is_wanted=worker.is_wanted,
    )
    return _Performing(kind, worker, Performers(resources), kit, store)


def _texts_of(store: Store) -> Callable[[Text], Awaitable[str]]:
    """Gives texts of a store in full."""

    async def text(text: Text) -> str:
        return text if isinstance(text, str) else (await store.blobs.get(text.digest)).decode()

    return text


async def _answers(store: Store) -> bool:
    """Whether the servers of a store answer within a moment."""
    try:
        async with asyncio.timeout(_READY_S_MAX):
            await store.halts.refresh()
    except (TimeoutError, RemitError):
        return False
    return True


async def serve(worker: Serving, *, port: int = 0) -> None:
    """Serve a worker until this process is told to end; with a port, its health and its figures are served there."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in _HEEDED:
        loop.add_signal_handler(number, told.set)
    serving = asyncio.ensure_future(worker.serve())
    waiting = asyncio.ensure_future(told.wait())
    try:
        async with serve_figures(port, worker.figures, worker.is_ready):
            await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
            for number in _HEEDED:
                # Again, it ends at once.
                loop.remove_signal_handler(number)
            if not serving.done():
                await worker.leave()
            await serving
    finally:
        waiting.cancel()


@contextmanager
def local_workers(settings: Settings, engine: str, tools: Sequence[str]) -> Iterator[None]:
    """One worker of each part on this machine, as processes that end with this one's work; none of tools where there are none.

    What they say is kept in workers.log of the store's folder: at the terminal another program talks.
    """
    parts = [
        ["loop"],
        ["model", "--engine", engine],
        *([["tools", *(w for t in tools for w in ("--tools", t))]] if tools else []),
    ]
    where = ["--nats", settings.store, "--home", str(settings.home)]
    command = [sys.executable, "-m", "remit", "worker"]
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (settings.home / WORKERS_LOG).open("ab") as log:
            for part in parts:
                worker = tethered([*command, *part, *where])
                # Ctrl-C at a terminal is for the caller, who ends them.
                started.append(
                    subprocess.Popen(worker, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)  # noqa: S603  # this very program
                )
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            _waited_for(process)


def _waited_for(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@asynccontextmanager
async def _letters(settings: Settings) -> AsyncIterator[Queue]:
    store, shared = await asyncio.to_thread(shared_store, settings)
    try:
        yield shared.queue
    finally:
        await store.close()


async def dead_letters(settings: Settings) -> Sequence[DeadLetter]:
    """The errands that no worker is given any more."""
    async with _letters(settings) as queue:
        return await queue.letters.listed()


async def replay_letter(settings: Settings, number: int, wait_s: float) -> tuple[DeadLetter, str, str]:
    """Send such an errand again; gives it as it was sent, and what came of it within so long: how, and in words."""
    async with _letters(settings) as queue:
        letter = await queue.letters.replay(number)
        report = await queue.awaited(letter.name, letter.lane, wait_s)
    if report is None:
        return letter, "", "no worker has performed it so far; one that can will"
    said = report_words(decode_report(report.data)) if report.came is Came.DONE else _CAME[report.came]
    return letter, report.came.value, said
