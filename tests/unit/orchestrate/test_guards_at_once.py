"""Several guards that begin the same conversation at once: one run of it begins, on every ground, under an id without chance."""

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from remit.assemble import system_on
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.record import JsonObject
from remit.core.run.lineage import derived_id
from remit.orchestrate.facade import System
from remit.orchestrate.guard.guard import Guard
from tests.nats_server import clear, opened
from tests.simulation.shared_store import Ground, SharedStore
from tests.unit.orchestrate.test_guarding import BOB, DELETE, FIND, MAIL, PROMPT

START: JsonObject = {"op": "start", "run": "talk", "prompt": PROMPT, "tools": [MAIL, FIND, DELETE]}
CALL: JsonObject = {"op": "call", "run": "talk", "id": "c", "tool": "send_mail", "args": {"to": BOB, "body": "Ready."}}
SEEDS = range(25)
ROUNDS = 5


async def told(guard: Guard, operation: JsonObject) -> JsonObject:
    return await guard.answer(operation) or {}


async def host(guard: Guard) -> tuple[str, str]:
    """What a host hears that starts and proposes at once what the words order once."""
    started = await told(guard, START)
    called = await told(guard, CALL)
    return started.get("code", "ok"), called.get("decision", "")


async def names(system: System) -> list[str]:
    entries = await system.store.catalogue.entries()
    return [entry.run_id for entry in entries if entry.listing.name == "talk"]


async def rounds(systems: Sequence[System], *, count: int = ROUNDS) -> None:
    """One conversation after the other under one name, each of them begun by all at once."""
    guards = [system.guard() for system in systems]
    for done in range(1, count + 1):
        heard = await asyncio.gather(*map(host, guards))
        assert sorted(heard) == [("RUN_HELD", ""), ("ok", "allow")], heard
        assert len(await names(systems[0])) == done
        for guard in guards:
            await told(guard, {"op": "end", "run": "talk"})
    assert set(await names(systems[0])) == {derived_id("guard", "", "talk", str(place)) for place in range(count)}


def slowly(seed: int) -> Callable[[], Any]:
    make = random.Random(seed)

    async def pause() -> None:
        for _ in range(make.randint(0, 3)):
            await asyncio.sleep(0)

    return pause


@pytest.mark.parametrize("seed", SEEDS)
def test_one_begins_where_one_entry_is_written_at_a_time(seed: int) -> None:
    async def scene() -> None:
        ground, pause = Ground(), slowly(seed)
        await rounds([system_on(SharedStore(ground, name, pause)) for name in "ab"], count=3)

    asyncio.run(scene())


@pytest.mark.parametrize("seed", SEEDS)
def test_one_run_begins_where_a_lease_expired_before_the_first_turn(seed: int) -> None:
    async def scene() -> None:
        ground, pause = Ground(), slowly(seed)
        stores = [SharedStore(ground, name, pause) for name in "ab"]
        systems = [system_on(store) for store in stores]
        for store in stores:

            async def granted(run_id: str, take: Any = store.leases.take) -> int | None:
                ground.leases.pop(run_id, None)
                token: int | None = await take(run_id)
                return token

            store.leases.take = granted  # type: ignore[method-assign]
        heard = await asyncio.gather(*(told(system.guard(), START) for system in systems))
        assert sum(one == {"ok": True} for one in heard) == 1, heard
        assert len(await names(systems[0])) == 1

    asyncio.run(scene())


def test_the_same_name_of_another_tenant_is_another_conversation() -> None:
    async def scene() -> None:
        system = system_on(MemoryStore())
        guards = [system.guard(), system.guard()]
        whose = [{**START, "tenant": tenant} for tenant in ("acme", "globex")]
        heard = [await told(guards[0], start) for start in whose]
        assert heard == [{"ok": True}] * 2
        assert [(await told(guards[1], start))["code"] for start in whose] == ["RUN_HELD"] * 2
        await system.close()

    asyncio.run(scene())


@pytest.mark.parametrize("gone", [(0,), (0, 1), (1, 3), (4,), (0, 1, 2, 3, 4)])
def test_a_name_is_used_again_though_conversations_of_it_were_deleted(gone: Sequence[int], tmp_path: Path) -> None:
    async def scene() -> None:
        system = system_on(EmbeddedStore.open(tmp_path))
        guard = system.guard()
        for _ in range(5):
            assert await told(guard, START) == {"ok": True}
            await told(guard, {"op": "end", "run": "talk"})
        for place in gone:
            assert (await system.delete(derived_id("guard", "", "talk", str(place)))).runs == 1
        await told(guard, START)
        assert guard.run_id_of("talk") == derived_id("guard", "", "talk", "5"), "no id is given twice"
        assert (await told(system.guard(), START))["code"] == "RUN_HELD"
        await guard.close()
        await system.close()

    asyncio.run(scene())


def test_a_run_that_was_begun_and_not_told_of_is_gone_on_with(tmp_path: Path) -> None:
    async def scene() -> None:
        system = system_on(EmbeddedStore.open(tmp_path))
        # Its process ends between the first turn and the answer.
        lost = system.guard()
        await told(lost, START)
        await lost.close()
        again = system.guard()
        assert await told(again, START) == {"ok": True, "resumed": True}
        assert len(await names(system)) == 1
        await again.close()
        await system.close()

    asyncio.run(scene())


def test_one_begins_in_memory() -> None:
    async def scene() -> None:
        system = system_on(MemoryStore())
        await rounds([system, system])
        await system.close()

    asyncio.run(scene())


@pytest.mark.parametrize("kind", ["folder", "cluster"])
def test_one_begins_on_a_store_of_processes(kind: str, tmp_path: Path) -> None:
    if kind == "cluster":
        clear()
    opens = EmbeddedStore.open if kind == "folder" else opened

    async def scene() -> None:
        systems = [system_on(opens(tmp_path)) for _ in range(2)]
        await rounds(systems)
        for system in systems:
            await system.close()

    asyncio.run(scene())
