"""Three nodes: the one that leads is killed while turns are written, and nothing that was acknowledged is lost or doubled."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from remit.backend.cluster.store import ClusterStore
from remit.core.journal.storage import START, RunListing, Warrant
from remit.wire.subjects import STREAM
from tests.e2e.house import until
from tests.nats_server import three_nodes

RUNS = 10
# A server alone is silent for four to eight seconds until another leads.
RECOVERY_S_MAX = 15


@pytest.mark.slow
def test_no_acknowledged_turn_is_lost_or_doubled_when_the_leader_is_killed(tmp_path: Path) -> None:
    nodes = three_nodes(tmp_path)
    address = ",".join(node.address for node in nodes)

    async def scene() -> None:
        store = await asyncio.to_thread(ClusterStore.open, address, tmp_path / "home")
        assert store.link.replicas == 3
        written, is_enough = Counter[str](), asyncio.Event()

        async def drive(run_id: str, ordinal: int) -> None:
            warrant = Warrant(await store.leases.take(run_id) or 0)
            listing, place = RunListing(1, session_id="s", ordinal=ordinal), START
            while not is_enough.is_set():
                data = b"%d" % written[run_id]
                place = await store.journal.append(run_id, data, place, listing=listing, warrant=warrant)
                written[run_id], listing = written[run_id] + 1, None  # type: ignore[assignment]

        async def more(count: int) -> None:
            wanted = {f"run{number}": written[f"run{number}"] + count for number in range(RUNS)}
            async with asyncio.timeout(RECOVERY_S_MAX):
                await until(lambda: all(written[one] >= least for one, least in wanted.items()), "turns are written")

        driving = [asyncio.ensure_future(drive(f"run{number}", number)) for number in range(RUNS)]
        await more(5)
        info = await store.link.call(store.link.jet.asked(f"$JS.API.STREAM.INFO.{STREAM}"))
        leader = nodes[int(info["cluster"]["leader"].removeprefix("node"))]
        leader.process.kill()
        await more(5)
        is_enough.set()
        await asyncio.gather(*driving)
        later = await asyncio.to_thread(ClusterStore.open, address, tmp_path / "home")
        for run_id, count in written.items():
            assert list(await later.journal.read(run_id)) == [b"%d" % number for number in range(count)]
        for one in (store, later):
            await one.close()

    try:
        asyncio.run(scene())
    finally:
        for node in nodes:
            node.stop()
