"""What a cluster of nodes and workers costs besides runs a second: the time of a turn, bytes on the wire, runs that wait.

    python -m benchmarks.cluster [--runs N] [--nodes 1 3] [--suspended N]

Rule 1: a turn is timed one run after the other, beside the same runs in a folder and beside bare appends to the same servers.
Rule 2: bytes are counted by the nodes, of all connections of clients, in and out; those between nodes are not among them.
Rule 3: runs that wait are begun by workers. What these hold is read before and after, and of workers that begin when all wait.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from benchmarks.nodes import held_kb, nodes
from benchmarks.workers import PARTS, TOOLS, TURN, TURNS, employed, script, spread
from remit.assemble import kit_for, open_store, settings_of, system_on
from remit.backend.cluster.server.connection import connect, prepare_streams
from remit.backend.cluster.server.jetstream import JetMessage, JetStream
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit

# Runs that wait and are then answered one by one.
ANSWERED = 20
# How long workers have to come to rest before what they hold is read.
REST_S = 5.0
PAYS = '''
from remit import tool

@tool(effect="external", network=False, asks=["pay"])
def pay(n: int) -> int:
    """Pay."""
    return n
'''


def looking(folder: Path) -> Kit:
    """What the runs are given that look something up."""
    (folder / "script.json").write_text(script())
    (folder / "tools.py").write_text(TOOLS)
    return kit_for(f"scripted:{folder / 'script.json'}", [str(folder / "tools.py")], base=folder)


def paying(folder: Path) -> Kit:
    """What the runs are given that wait for a yes."""
    replies = [{"tool_calls": [{"name": "pay", "arguments": {"n": 1}}]}, {"text": "Paid."}]
    (folder / "script.json").write_text(json.dumps({"replies": replies}))
    (folder / "tools.py").write_text(PAYS)
    return kit_for(f"scripted:{folder / 'script.json'}", [str(folder / "tools.py")], base=folder)


async def opened(folder: Path, address: str, closing: AsyncExitStack) -> System:
    """A system on servers, or on the folder where none are named."""
    store = await asyncio.to_thread(open_store, settings_of(home=folder / "home", store=address))
    system = system_on(store)
    closing.push_async_callback(system.close)
    return system


async def turn_ms(system: System, kit: Kit, runs: int) -> float:
    """Milliseconds of a turn, the median of runs one after the other."""
    await system.run("Warm up.", kit)
    found = []
    for number in range(runs):
        began_s = time.perf_counter()
        await system.run(f"Look {number}.", kit)
        found.append((time.perf_counter() - began_s) * 1000 / TURNS)
    return statistics.median(found)


async def append_ms(address: str, runs: int) -> float:
    """Milliseconds of a bare append of as many bytes, the median of as many."""
    client = await connect(address, name="bench")
    await prepare_streams(client, address)
    jet, place, found = JetStream(client, address), 0, []
    for _ in range(runs * TURNS):
        began_s = time.perf_counter()
        place = await jet.write(JetMessage("agent.bench.append", TURN, after=place))
        found.append((time.perf_counter() - began_s) * 1000)
    await jet.purge("agent.bench.>")
    await client.close()
    return statistics.median(found)


@contextmanager
def at_work(address: str, folder: Path) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """A worker of each kind, by its kind."""
    processes = dict(zip(PARTS, employed(address, folder, 1), strict=True))
    try:
        yield processes
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait()


async def measure_turns(count: int, runs: int) -> None:
    """The time of a turn and its bytes, on so many nodes, beside the floors."""
    with tempfile.TemporaryDirectory() as name, nodes(Path(name), count) as cluster:
        folder, address = Path(name), cluster.address
        kit, where = looking(folder), f"{count} node(s)"
        async with AsyncExitStack() as closing:
            tell(await turn_ms(await opened(folder / "embedded", "", closing), kit, runs), "ms", "a turn in a folder")
            tell(await append_ms(address, runs), "ms", f"a bare append, {where}")
            here = await opened(folder, address, closing)
            tell(await turn_ms(here, kit, runs), "ms", f"a turn driven and performed by one process, {where}")
        with at_work(address, folder):
            async with AsyncExitStack() as closing:
                system = await opened(folder, f"{address}?drive=workers", closing)
                tell(await turn_ms(system, kit, runs), "ms", f"a turn with workers, {where}")
                before = cluster.bytes_of_clients()
                await spread(runs, lambda number: system.run(f"Look {number}.", kit))
                sent = (cluster.bytes_of_clients() - before) / (runs * TURNS)
                tell(
                    sent, "bytes", f"on the wire a turn with a worker of each kind and the program that waits, {where}"
                )


async def measure_suspended(runs: int) -> None:
    """What runs that wait for people cost, and how soon one goes on."""
    with tempfile.TemporaryDirectory() as name, nodes(Path(name), 1) as cluster:
        folder, address = Path(name), cluster.address
        kit = paying(folder)
        async with AsyncExitStack() as closing:
            with at_work(address, folder) as workers:
                system = await opened(folder, f"{address}?drive=workers", closing)
                first = await system.run("Please pay.", kit)
                assert first.waiting_for is not None, first
                await asyncio.sleep(REST_S)
                before = {part: held_kb(process.pid) for part, process in workers.items()}
                waiting: list[tuple[str, str]] = []

                async def suspend(number: int) -> None:
                    response = await system.run(f"Please pay {number}.", kit)
                    assert response.waiting_for is not None, response
                    waiting.append((response.run_id, response.waiting_for.packet_ids[0]))

                tell(runs / await spread(runs, suspend), "runs/s", f"begun and put to rest, {runs:,} in all")
                await asyncio.sleep(REST_S)
                for part, process in workers.items():
                    grown = held_kb(process.pid) - before[part]
                    tell(grown * 1000 / runs, "bytes", f"a run more in the {part} worker that drove or served it")
            began_s = time.perf_counter()
            with at_work(address, folder) as workers:
                times = [await answered(system, *one) for one in waiting[:ANSWERED]]
                tell((times[0][0] - began_s), "s", "until workers that begin when all wait let the first run go on")
                tell(
                    statistics.median(took for _, took in times[1:]),
                    "s",
                    "from the yes to the end of a run, the median",
                )
                for part, process in workers.items():
                    tell(
                        held_kb(process.pid) / 1000,
                        "MB",
                        f"in the {part} worker that has just begun (with one run: {before[part] / 1000:.0f})",
                    )


async def answered(system: System, run_id: str, packet: str) -> tuple[float, float]:
    """Say yes to a run; gives when it has ended, and how long that took."""
    began_s = time.perf_counter()
    said = {"packet_id": packet}
    await system.signal(UserSignal(signal_id=packet, type=Signal.APPROVE, run_id=run_id, user_id="bench", payload=said))
    await (await system.find(run_id))
    return time.perf_counter(), time.perf_counter() - began_s


def main() -> None:
    """Measure, and print as it goes on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description="Measure what a cluster costs.")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 3])
    parser.add_argument("--suspended", type=int, default=10_000)
    options = parser.parse_args()
    for count in options.nodes:
        asyncio.run(measure_turns(count, options.runs))
    if options.suspended:
        asyncio.run(measure_suspended(options.suspended))


def tell(reached: float, unit: str, what: str) -> None:
    """Print a figure."""
    print(f"{reached:10,.2f} {unit:<6}  {what}", flush=True)


if __name__ == "__main__":
    main()
