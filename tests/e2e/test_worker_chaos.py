"""Processes are killed among nodes and workers: every run ends, nothing is paid twice, and every journal verifies."""

import asyncio
import random
import signal
from pathlib import Path

import pytest

from tests.e2e.house import until
from tests.e2e.worker_chaos import Scene, attended, begun, check, disturb
from tests.nats_server import Proxy, three_nodes

RUNS = 20
# When so many have paid, the process that is to die dies.
PAID = 4
# All of it, three nodes that have to find a leader twice among it.
SECONDS_MAX = 55


@pytest.mark.slow
def test_runs_survive_the_leader_a_driver_and_a_till_that_are_killed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, three_nodes(tmp_path))

    async def story() -> None:
        system, store = await asyncio.to_thread(scene.program)
        for name in ("loop-1", "loop-2", "model-1", "model-2", "tools-1", "tools-2"):
            scene.employ(name)
        runs = await begun(scene, system, RUNS)
        attending = asyncio.ensure_future(attended(scene, system, runs, SECONDS_MAX))
        await until(lambda: len(scene.payments()) >= PAID, "some have paid")
        for name in ("loop-1", "tools-1"):
            scene.kill(name)
        (await scene.leader(store)).process.kill()
        endings = await attending
        await check(scene, system, endings)
        assert set(endings.values()) == {"SUCCESS"}, (endings, scene.asked)
        await system.close()

    try:
        asyncio.run(story())
    finally:
        scene.dismiss()
        for node in scene.nodes:
            node.stop()


@pytest.mark.soak
def test_a_till_and_a_node_that_are_cut_off_for_a_while_pay_nothing_twice(tmp_path: Path) -> None:
    scene = Scene(tmp_path, three_nodes(tmp_path, advertise=False))

    async def story() -> None:
        system, store = await asyncio.to_thread(scene.program)
        leader = await scene.leader(store)
        others = [node for node in scene.nodes if node is not leader]
        proxy = Proxy(others[0].address)
        scene.routes["tools-1"] = await proxy.open()
        for name in ("loop-1", "loop-2", "model-1", "tools-1", "tools-2"):
            scene.employ(name)
        runs = await begun(scene, system, RUNS)
        attending = asyncio.ensure_future(attended(scene, system, runs, 120))
        await until(lambda: len(scene.payments()) >= PAID, "some have paid")
        proxy.cut()
        others[1].process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(12)
        proxy.mend()
        others[1].process.send_signal(signal.SIGCONT)
        await check(scene, system, await attending)
        await system.close()
        await proxy.close()

    try:
        asyncio.run(story())
    finally:
        scene.dismiss()
        for node in scene.nodes:
            node.stop()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_runs_survive_whatever_is_killed_or_stopped(tmp_path: Path, seed: int) -> None:
    scene = Scene(tmp_path, three_nodes(tmp_path))
    chance = random.Random(seed)

    async def story() -> None:
        system, store = await asyncio.to_thread(scene.program)
        for name in ("loop-1", "loop-2", "model-1", "model-2", "tools-1", "tools-2"):
            scene.employ(name)
        runs = await begun(scene, system, 200)
        attending = asyncio.ensure_future(attended(scene, system, runs, 1_200))
        await disturb(scene, chance, 10, 3.0)
        leader = await scene.leader(store)
        leader.process.kill()
        leader.process.wait()
        await asyncio.sleep(15)
        leader.start()
        await disturb(scene, chance, 10, 3.0)
        endings = await attending
        await check(scene, system, endings)
        await system.close()

    try:
        asyncio.run(story())
    finally:
        scene.dismiss()
        for node in scene.nodes:
            node.stop()
