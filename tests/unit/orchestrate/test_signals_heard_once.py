"""A retry that is delivered again, here, in another system or after a restart, is the same retry: it makes one fork."""

import asyncio
from pathlib import Path

import pytest

from remit import Signal, UserSignal
from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from tests.unit.orchestrate.house import STORES, request, scripted, store_of, systems
from tests.unit.orchestrate.stage import play


def again(run_id: str, signal_id: str = "sig-1") -> UserSignal:
    """A retry under an id that its sender gave."""
    return UserSignal(signal_id, Signal.RETRY, run_id, "ann", payload={"reason": "again"})


@pytest.mark.parametrize("kind", STORES)
def test_a_retry_that_is_delivered_three_times_makes_one_fork_and_each_sender_is_told_it(
    kind: str, tmp_path: Path
) -> None:
    async def story() -> None:
        system, kit = system_on(store_of(kind, tmp_path)), scripted({"text": "Done."})
        run_id = (await system.run(request(), kit)).run_id
        told = [(await system.signal(again(run_id), kit=kit)).fork_id for _ in range(3)]
        others = [(await system.signal(again(run_id, f"sig-{n}"), kit=kit)).fork_id for n in (2, 3)]
        runs = await system.archive.runs(with_children=True)
        await system.close()
        assert len(set(told)) == 1
        assert len({run_id, *told, *others}) == 4
        assert {one.run_id for one in runs} == {run_id, *told, *others}

    play(story())


def test_two_systems_that_are_told_of_one_retry_at_once_make_one_fork() -> None:
    async def story() -> None:
        store, kit = MemoryStore(), scripted({"text": "Done."})
        async with systems(store, store) as (one, other):
            run_id = (await one.run(request(), kit)).run_id
            told = await asyncio.gather(*[system.signal(again(run_id), kit=kit) for system in (one, other, one, other)])
            assert len({outcome.fork_id for outcome in told}) == 1
            assert len(await one.archive.runs(with_children=True)) == 2

    play(story())


def test_after_a_restart_a_retry_that_was_heard_is_known(tmp_path: Path) -> None:
    async def story() -> None:
        kit = scripted({"text": "Done."})
        first = system_on(store_of("embedded", tmp_path))
        run_id = (await first.run(request(), kit)).run_id
        told = (await first.signal(again(run_id), kit=kit)).fork_id
        await first.close()
        second = system_on(store_of("embedded", tmp_path))
        assert (await second.signal(again(run_id), kit=kit)).fork_id == told
        assert len(await second.archive.runs(with_children=True)) == 2
        await second.close()

    play(story())
