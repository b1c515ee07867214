"""What workers cost: runs a second on clusters of one node and of three, beside the bare protocol and bare publish-and-ack.

    python -m benchmarks.workers [--runs N] [--workers 1 2 4] [--nodes 1 3]

A run asks a model five times and looks something up four times; it changes nothing, so it claims nothing. The bare protocol
writes the same turns, errands and reports with the same expectations, and has no remit in it; publish-and-ack writes the turns
alone. Both are measured on nodes like those of the workers, in the same run.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nats.aio.msg import Msg

from benchmarks.nodes import Nodes, cpu_s, nodes
from remit.assemble import kit_for, open_store, settings_of, system_on
from remit.backend.cluster.server.connection import connect, prepare_streams
from remit.backend.cluster.server.jetstream import JetMessage, JetStream
from remit.wire.subjects import STREAM

LOOPS = 4
ERRANDS = 2 * LOOPS + 1
TURNS = ERRANDS + 1
# About what a turn, an errand and a report have of bytes.
TURN, ERRAND, REPORT = b"t" * 900, b"e" * 1_200, b"r" * 300
AT_ONCE = 50
# The workers of each set, in the order in which they are employed.
PARTS = ("loop", "model", "tools")
# So many runs a second are a million a day.
MILLION_A_DAY = 1_000_000 / 86_400
# How many times as many runs the bare protocol may do, at most.
WANTED = 1.5
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


@dataclass(frozen=True)
class Reached:
    """What runs with workers came to: how many a second, bytes kept of a turn, and milliseconds of CPU time a run by part."""

    runs_per_s: float
    turn_bytes: float
    cpu_ms: Mapping[str, float]


async def with_workers(cluster: Nodes, folder: Path, runs: int, sets: int) -> Reached:
    """Runs with so many workers of each kind."""
    processes = employed(cluster.address, folder, sets)
    where = f"{cluster.address}?drive=workers"
    store = await asyncio.to_thread(open_store, settings_of(home=folder / "home", store=where))
    parts = {part: [one.pid for one in processes[n * sets : (n + 1) * sets]] for n, part in enumerate(PARTS)}
    parts |= {"nodes": list(cluster.pids), "the program that waits": [os.getpid()]}
    system = system_on(store)
    kit = kit_for(f"scripted:{folder / 'script.json'}", [str(folder / "tools.py")], base=folder)
    try:
        await system.run("Warm up.", kit)
        before = {part: cpu_s(*pids) for part, pids in parts.items()}
        took_s = await spread(runs, lambda number: system.run(f"Look {number}.", kit))
        cpu_ms = {part: (cpu_s(*pids) - before[part]) * 1000 / runs for part, pids in parts.items()}
        info = await store.link.call(store.link.jet.asked(f"$JS.API.STREAM.INFO.{STREAM}"))  # type: ignore[attr-defined]  # of the cluster
        return Reached(runs / took_s, info["state"]["bytes"] / ((runs + 1) * TURNS), cpu_ms)
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
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 3])
    options = parser.parse_args()
    for count in options.nodes:
        with tempfile.TemporaryDirectory() as name, nodes(Path(name), count) as cluster:
            floor = asyncio.run(bare_protocol(cluster.address, options.runs))
            _tell(f"{count} node(s): the bare protocol", floor)
            _tell(f"{count} node(s): bare publish-and-ack", asyncio.run(bare_acks(cluster.address, options.runs)))
        for sets in options.workers:
            with tempfile.TemporaryDirectory() as name, nodes(Path(name), count) as cluster:
                folder = Path(name)
                (folder / "script.json").write_text(script())
                (folder / "tools.py").write_text(TOOLS)
                reached = asyncio.run(with_workers(cluster, folder, options.runs, sets))
            _tell_reached(f"{count} node(s): {sets} worker(s) of each kind", reached, floor)


def _tell_reached(what: str, reached: Reached, floor: float) -> None:
    times = floor / reached.runs_per_s
    _tell(f"{what}; the bare protocol does {times:.1f} times as many, {WANTED} are wanted", reached.runs_per_s)
    cpu_ms = sum(reached.cpu_ms.values())
    parts = ", ".join(f"{part} {took:.0f}" for part, took in reached.cpu_ms.items())
    print(f"           {reached.turn_bytes:,.0f} bytes kept a turn; {cpu_ms:.0f} ms of CPU time a run: {parts}")
    print(f"           a million runs a day: {MILLION_A_DAY * cpu_ms / 1000:.1f} cores on average", flush=True)


def _tell(what: str, reached: float) -> None:
    print(f"{reached:8.1f} runs/s  {what}", flush=True)


if __name__ == "__main__":
    main()
