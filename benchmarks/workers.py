"""What workers cost: runs a second on a cluster of one node, beside the bare protocol and bare publish-and-ack.

    python -m benchmarks.workers [--runs N] [--workers 1 2 4]

A run asks a model five times and looks something up four times. The bare protocol writes the same turns, errands and reports with
the same expectations, and has no remit in it; publish-and-ack writes the turns alone.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from nats.aio.msg import Msg

from remit.assemble import kit_for, open_store, settings_of, system_on
from remit.backend.cluster.server.connection import connect, prepare_streams
from remit.backend.cluster.server.jetstream import JetMessage, JetStream
from remit.backend.cluster.server.nats_server import NatsServer
from remit.wire.subjects import STREAM

LOOPS = 4
ERRANDS = 2 * LOOPS + 1
TURNS = ERRANDS + 1
# About what a turn, an errand and a report have of bytes.
TURN, ERRAND, REPORT = b"t" * 900, b"e" * 1_200, b"r" * 300
AT_ONCE = 50
TOOLS = '''
from remit import tool

@tool(effect="read", network=False)
def look(n: int) -> int:
    """Look."""
    return n
'''


def script() -> str:
    """Four calls and an answer."""
    calls = [{"tool_calls": [{"name": "look", "arguments": {"n": n}}]} for n in range(LOOPS)]
    return json.dumps({"replies": [*calls, {"text": "Done."}]})


async def spread(count: int, one: Callable[[int], Awaitable[object]]) -> float:
    """Seconds that so many take, some at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def bounded(number: int) -> None:
        async with slots:
            await one(number)

    began_s = time.perf_counter()
    await asyncio.gather(*(bounded(number) for number in range(count)))
    return time.perf_counter() - began_s


async def bare_acks(address: str, runs: int) -> float:
    """Runs a second where every turn is published and acknowledged, and nothing else happens."""
    client = await connect(address, name="bench")
    await prepare_streams(client, address)
    jet = JetStream(client, address)

    async def run(number: int) -> None:
        place = 0
        for _ in range(TURNS):
            place = await jet.write(JetMessage(f"agent.bench.acks.{number}", TURN, after=place))

    took_s = await spread(runs, run)
    await jet.purge("agent.bench.>")
    await client.close()
    return runs / took_s


async def bare_protocol(address: str, runs: int) -> float:
    """Runs a second where every turn has its errand performed by another connection, which stores a report and rings."""
    driver, worker = [await connect(address, name="bench") for _ in range(2)]
    await prepare_streams(driver, address)
    ours, theirs = JetStream(driver, address), JetStream(worker, address)
    rings: dict[str, asyncio.Event] = {}

    async def perform(message: Msg) -> None:
        which = message.subject.rpartition("agent.bench.errand.")[2]
        await theirs.write(JetMessage(f"agent.bench.report.{which}", REPORT, after=0))
        await worker.publish(f"bench.ring.{which}", b"")

    async def ring(message: Msg) -> None:
        rings[message.subject.removeprefix("bench.ring.")].set()

    async def begin(message: Msg) -> None:
        task = asyncio.create_task(perform(message))
        performing.add(task)
        task.add_done_callback(performing.discard)

    performing: set[asyncio.Task[None]] = set()
    await worker.subscribe("agent.bench.errand.>", cb=begin)
    await driver.subscribe("bench.ring.>", cb=ring)
    await worker.flush()

    async def run(number: int) -> None:
        place = await ours.write(JetMessage(f"agent.bench.run.{number}", TURN, after=0))
        for errand in range(ERRANDS):
            which = f"{number}.{errand}"
            rung = rings[which] = asyncio.Event()
            await ours.write(JetMessage(f"agent.bench.errand.{which}", ERRAND, after=0))
            await rung.wait()
            await ours.last(f"agent.bench.report.{which}")
            place = await ours.write(JetMessage(f"agent.bench.run.{number}", TURN, after=place))

    took_s = await spread(runs, run)
    await ours.purge("agent.bench.>")
    for client in (driver, worker):
        await client.close()
    return runs / took_s


def employed(address: str, folder: Path, sets: int) -> list["subprocess.Popen[bytes]"]:
    """So many workers of each kind."""
    where = ["--nats", address, "--home", str(folder / "home"), "--log-level", "error", "--concurrency", str(AT_ONCE)]
    engine, tools = f"scripted:{folder / 'script.json'}", str(folder / "tools.py")
    parts = (["loop"], ["model", "--engine", engine], ["tools", "--tools", tools])
    command = [sys.executable, "-m", "remit", "worker"]
    return [
        subprocess.Popen([*command, *part, *where], stderr=subprocess.DEVNULL)  # this very program
        for part in parts
        for _ in range(sets)
    ]


async def with_workers(address: str, folder: Path, runs: int, sets: int) -> tuple[float, float]:
    """Runs a second with so many workers of each kind, and the bytes that a turn takes in the stream."""
    processes = employed(address, folder, sets)
    store = await asyncio.to_thread(open_store, settings_of(home=folder / "home", store=f"{address}?drive=workers"))
    system = system_on(store)
    kit = kit_for(f"scripted:{folder / 'script.json'}", [str(folder / "tools.py")], base=folder)
    try:
        await system.run("Warm up.", kit)
        took_s = await spread(runs, lambda number: system.run(f"Look {number}.", kit))
        info = await store.link.call(store.link.jet.asked(f"$JS.API.STREAM.INFO.{STREAM}"))  # type: ignore[attr-defined]  # of the cluster
        return runs / took_s, info["state"]["bytes"] / ((runs + 1) * TURNS)
    finally:
        await system.close()
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description="Measure what workers cost.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    options = parser.parse_args()
    for sets in options.workers:
        with tempfile.TemporaryDirectory() as name, NatsServer(Path(name) / "nats") as server:
            folder = Path(name)
            (folder / "script.json").write_text(script())
            (folder / "tools.py").write_text(TOOLS)
            reached, size = asyncio.run(with_workers(server.address, folder, options.runs, sets))
            _tell(f"{sets} worker(s) of each kind, {size:,.0f} bytes kept a turn", reached)
    with tempfile.TemporaryDirectory() as name, NatsServer(Path(name) / "nats") as server:
        _tell("the bare protocol", asyncio.run(bare_protocol(server.address, options.runs)))
        _tell("bare publish-and-ack", asyncio.run(bare_acks(server.address, options.runs)))


def _tell(what: str, reached: float) -> None:
    print(f"{reached:8.1f} runs/s  {what}", flush=True)


if __name__ == "__main__":
    main()
