"""From which runs a run came, through whole systems: children, their children, retries and forks."""

from pathlib import Path

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import RequestRejected
from remit.core.record import replace
from remit.core.run.lineage import derived_id, is_safe_id
from remit.core.run.signals import Signal
from remit.orchestrate.loop.offspring import REMEMBERED_MAX, Lineages
from remit.orchestrate.setup.kit import Kit
from remit.tool.delegate import delegate
from tests.unit.kernel.builders import manifest_of
from tests.unit.orchestrate.house import (
    LEASE,
    STORES,
    approval,
    calls,
    helper,
    in_memory,
    keep,
    request,
    scripted,
    signal,
    store_of,
    systems,
)
from tests.unit.orchestrate.stage import play


def three_deep() -> Kit:
    """A kit whose model delegates, and whose child delegates to one that asks a person."""
    half = delegate("half", description="Hand on.", lease={name: amount // 2 for name, amount in LEASE.items()})
    replies = (
        {"when": "deeper", **calls("keep", text="x")},
        {"when": "^kept x", "text": "it is safe"},
        {"when": '"task"', **calls("half", task="deeper")},
        {"when": "it is safe", "text": "safe, says my helper"},
        calls("helper", task="look around"),
        {"text": "thank you"},
    )
    return scripted(*replies, tools=[keep, helper, half])


@pytest.mark.parametrize("kind", STORES)
def test_every_run_is_listed_with_all_runs_above_it(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            root = (await system.run(request(), three_deep())).run_id
            child = derived_id(root, "1.2")
            grandchild = derived_id(child, "1.2")
            entries = await system.store.catalogue.entries()
            assert {entry.run_id: entry.listing.lineage for entry in entries} == {
                root: (),
                child: (root,),
                grandchild: (root, child),
            }
            assert all(is_safe_id(entry.run_id) for entry in entries)

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_another_process_goes_on_with_a_family_from_what_its_deepest_child_hears(kind: str, tmp_path: Path) -> None:
    """Its kit is lent to the whole family: each run above is taken up when the one beneath it has ended."""

    async def story() -> None:
        store = store_of(kind, tmp_path)
        other = store if isinstance(store, MemoryStore) else store_of(kind, tmp_path)
        async with systems(store, other) as (here, there):
            asked = await here.run(request(), three_deep())
            assert asked.waiting_for is not None
            (packet_id,) = asked.waiting_for.packet_ids
            await there.signal(approval(packet_id), kit=three_deep())
            await there.settle(asked.run_id)
            assert (await there.result(asked.run_id)).content == "thank you"

    play(story())


def test_a_retry_is_of_the_family_of_its_origin_and_a_fork_begins_one() -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = scripted({"text": "so be it"})
            root = (await system.run(request(), kit)).run_id
            again = signal(Signal.RETRY, root)
            tried = (await system.signal(replace(again, payload={"reason": "once more"}), kit=kit)).fork_id
            forked = (await system.fork(root, by="ada", kit=kit)).fork_id
            await system.settle()
            assert [await system.lineages.of(run_id) for run_id in (root, tried, forked)] == [(), (root,), ()]
            assert await system.lineages.family(tried) == root
            assert await system.lineages.is_beneath(tried, root)
            assert not await system.lineages.is_beneath(root, tried)

    play(story())


def test_what_holds_back_the_first_run_of_a_family_holds_back_the_last() -> None:
    async def story() -> None:
        async with in_memory() as system:
            root = (await system.run(request(), three_deep())).run_id
            grandchild = derived_id(derived_id(root, "1.2"), "1.2")
            await system.halt("wait", by="ada", run=root)
            with pytest.raises(RequestRejected, match="HALTED"):
                await system.resume(grandchild)

    play(story())


def test_a_run_that_nobody_started_came_from_nowhere() -> None:
    async def story() -> None:
        lineages = Lineages(MemoryStore().catalogue)
        assert (await lineages.of("nobody"), await lineages.family("nobody")) == ((), "nobody")

    play(story())


def test_of_the_runs_that_were_begun_only_so_many_are_remembered() -> None:
    async def story() -> None:
        lineages, manifest = Lineages(MemoryStore().catalogue), manifest_of()
        for number in range(REMEMBERED_MAX + 1):
            lineages.learn(replace(manifest, run_id=f"r{number}", lineage=("first",)))
        # The index lists it, once it has a turn.
        assert (await lineages.of("r0"), await lineages.of("r1")) == ((), ("first",))

    play(story())
