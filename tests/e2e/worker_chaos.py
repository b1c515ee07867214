"""Chaos: nodes and workers as real processes, some of which are killed, stopped or cut off in an order made of a seed.

Every run reads, asks a person, and pays at a till that loses answers but keeps books. Whichever process is killed, in the end
every run has ended, every journal verifies, and the books hold no payment twice.
"""

import asyncio
import json
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from remit.assemble import kit_for, open_store, settings_of, system_on
from remit.backend.cluster.server.nats_server import NatsServer
from remit.backend.cluster.store import ClusterStore
from remit.core.failure import RemitError
from remit.core.run.approval import What
from remit.core.run.signals import Signal
from remit.orchestrate.facade import System
from remit.wire.subjects import STREAM
from tests import warm
from tests.e2e.command import COMMAND
from tests.e2e.house import asking, calls, says, tell

# One in so many payments is made and not answered in time.
LOST = 5

TOOLS = f"""
import time
from pathlib import Path
from typing import Literal
from remit import tool

BOOKS = Path(__file__).parent / "books"

def noted(key: str) -> bool:
    return BOOKS.exists() and key in BOOKS.read_text().split()

@tool(effect="read", network=False)
def look(item: str) -> int:
    \\"\\"\\"How many pieces of an item there are.\\"\\"\\"
    time.sleep(0.02)
    return 3

@tool(effect="external", network=True, asks=["pay"], timeout_ms=1_000, reconcile=noted)
def pay(idempotency_key: str) -> Literal["paid"]:
    \\"\\"\\"Pay, and keep books.\\"\\"\\"
    with BOOKS.open("a") as books:
        books.write(idempotency_key + "\\n")
    if sum(map(ord, idempotency_key)) % {LOST} == 0:
        time.sleep(1.5)
    return "paid"
"""
SCRIPT = {"replies": [calls("look", {"item": "lamp"}), calls("pay"), says("Paid.")]}


@dataclass
class Scene:
    """Nodes, workers and a program that begins runs."""

    folder: Path
    nodes: Sequence[NatsServer]
    lease_ms: int = 2_000
    workers: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    # Where a worker connects to, where that is not the nodes themselves.
    routes: dict[str, str] = field(default_factory=dict)
    # What people were asked for, and how often.
    asked: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        (self.folder / "tools.py").write_text(TOOLS.replace('\\"', '"'))
        (self.folder / "script.json").write_text(json.dumps(SCRIPT))

    @property
    def address(self) -> str:
        """Where the nodes are."""
        return ",".join(node.address for node in self.nodes)

    @property
    def home(self) -> Path:
        """The folder with the key, the same for all."""
        return self.folder / "home"

    def employ(self, name: str) -> None:
        """Start a worker; its name begins with its kind."""
        kind = name.partition("-")[0]
        given = {
            "loop": [],
            "model": ["--engine", f"scripted:{self.folder / 'script.json'}"],
            "tools": ["--tools", str(self.folder / "tools.py")],
        }
        address = f"{self.routes.get(name, self.address)}?lease_ms={self.lease_ms}"
        words = ["worker", kind, *given[kind], "--nats", address, "--home", str(self.home)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = warm.Popen([COMMAND, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        """End a worker in the middle of whatever it does."""
        worker = self.workers.pop(name)
        worker.kill()
        worker.wait()

    def dismiss(self) -> None:
        """End all workers."""
        for worker in self.workers.values():
            with suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
                worker.kill()
        for worker in self.workers.values():
            worker.wait()

    def program(self) -> tuple[System, ClusterStore]:
        """A system whose runs are left to the workers."""
        settings = settings_of(home=self.home, store=f"{self.address}?drive=workers&lease_ms={self.lease_ms}")
        store = open_store(settings)
        assert isinstance(store, ClusterStore)
        return system_on(store, signer=lambda: store.key.signer), store

    async def leader(self, store: ClusterStore) -> NatsServer:
        """The node that leads the stream."""
        info = await store.link.call(store.link.jet.asked(f"$JS.API.STREAM.INFO.{STREAM}"))
        return self.nodes[int(info["cluster"]["leader"].removeprefix("node"))]

    def payments(self) -> Counter[str]:
        """The keys in the books, and how often each is there."""
        books = self.folder / "books"
        return Counter(books.read_text().split() if books.exists() else ())


async def begun(scene: Scene, system: System, count: int) -> list[str]:
    """So many runs."""
    engine = f"scripted:{scene.folder / 'script.json'}"
    kit = kit_for(engine, [str(scene.folder / "tools.py")], base=scene.folder)
    return [await system.submit(asking(f"Please pay order {number}."), kit) for number in range(count)]


async def attended(scene: Scene, system: System, run_ids: Sequence[str], within_s: float) -> dict[str, str]:
    """Answer whatever the runs ask, truly, until all of them have ended; gives how."""
    endings: dict[str, str] = {}
    async with asyncio.timeout(within_s):
        while len(endings) < len(run_ids):
            with suppress(RemitError):  # No leader just now, or another was faster.
                await _answered(scene, system)
            for run_id in run_ids:
                entry = await system.archive.find(run_id) if run_id not in endings else None
                if entry is not None and entry.ending:
                    endings[run_id] = entry.ending
            await asyncio.sleep(0.1)
    return endings


async def _answered(scene: Scene, system: System) -> None:
    for packet in await system.archive.approvals():
        is_outcome = packet.purpose is What.OUTCOME
        has_happened = f"{packet.run_id}:{packet.about}" in scene.payments()
        said = Signal.APPROVE if has_happened or not is_outcome else Signal.REJECT
        scene.asked[packet.purpose] += 1
        with suppress(RemitError):  # Answered just now; or its worker is gone, and the next hears it.
            await tell(system, said, packet.run_id, {"packet_id": packet.id})


async def check(scene: Scene, system: System, endings: dict[str, str]) -> None:
    """Nothing was done twice, and every journal is as it was written."""
    twice = [key for key, times in scene.payments().items() if times > 1]
    assert not twice, f"mutating effects executed twice: {twice}"
    runs = Counter(key.partition(":")[0] for key in scene.payments())
    for run_id, ending in endings.items():
        verified = await system.archive.verify(run_id)
        assert verified.ok, verified
        assert ending != "SUCCESS" or runs[run_id] == 1, (run_id, ending, runs[run_id])


async def disturb(scene: Scene, chance: random.Random, rounds: int, pause_s: float) -> None:
    """Kill or stop workers in an order made of a seed; who was killed is replaced, who was stopped goes on after a while."""
    for number in range(rounds):
        await asyncio.sleep(pause_s)
        name = chance.choice(sorted(scene.workers))
        worker = scene.workers[name]
        if chance.random() < 1 / 2:
            scene.kill(name)
            scene.employ(f"{name.partition('-')[0]}-{number}-again")
        else:
            worker.send_signal(signal.SIGSTOP)
            asyncio.get_running_loop().call_later(scene.lease_ms / 1000 * 3, worker.send_signal, signal.SIGCONT)
