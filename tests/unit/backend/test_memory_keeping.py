"""Deleting, collecting and looking after a store in memory: what the conformance suites do not ask for."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from remit.assemble import system_on
from remit.backend.memory.retention import MemoryRetention
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RequestRejected
from remit.core.journal.signing import Signer, sign_head
from remit.core.journal.storage import Barrier, Removed, RunListing, StoreUnusable, Warrant
from remit.observe.checkup import CheckState
from remit.testing.conformance.sample_turns import last_turn
from tests.e2e.house import asking, says, scripted


def play(scene: Callable[[MemoryStore], Awaitable[None]], signer: Signer | None = None) -> None:
    asyncio.run(_played(scene, signer))


async def _played(scene: Callable[[MemoryStore], Awaitable[None]], signer: Signer | None) -> None:
    await scene(MemoryStore(signer))


@pytest.mark.parametrize(("signer", "code"), [(Signer.generate(), "RUN_DELETED"), (None, "RUN_NOT_FOUND")])
def test_a_run_of_a_system_in_memory_is_deleted_like_any_other(signer: Signer | None, code: str) -> None:
    async def scene(store: MemoryStore) -> None:
        system = system_on(store, signer=None if signer is None else lambda: signer)
        first = await system.run(asking("Hello."), scripted([says("Hi.")]))
        second = await system.run(asking("Hello."), scripted([says("Hi.")]))
        assert (await system.store.retention.delete(first.run_id)).runs == 1
        with pytest.raises(RequestRejected, match=code):
            await system.archive.find(first.run_id)
        found = [verified async for verified in system.archive.verify_all()]
        # What no key signed for does not verify, and is no run that is missing.
        assert [(one.run_id, one.ok) for one in found] == [(second.run_id, signer is not None)]
        assert not [check for check in await system.store.checkup.look() if check.state is CheckState.PROBLEM]
        await system.close()

    play(scene, signer)


def test_a_run_that_another_has_collected_meanwhile_is_not_collected_twice() -> None:
    async def scene(store: MemoryStore) -> None:
        await store.journal.append("run", last_turn(1), -1, Barrier("SUCCESS"), RunListing(1))

        class Late:
            """A taker of a run finds that it was deleted while they asked."""

            is_driving = False

            async def take(self, run_id: str) -> int | None:
                await store.retention.delete(run_id)
                return 1

            async def release(self, run_id: str, token: int) -> None:
                """Nothing was held."""

        late = MemoryRetention(store, Late(), None, lambda: 1 << 60)
        assert await late.gc(ended_before_ms=1 << 60) == Removed()

    play(scene)


def test_an_ended_run_that_goes_on_is_open_again() -> None:
    async def scene(store: MemoryStore) -> None:
        await store.journal.append("run", b"0", -1, Barrier("SUCCESS"), RunListing(1))
        await store.journal.append("run", b"1", 0, Barrier())
        assert (await store.retention.gc(ended_before_ms=1 << 60)).runs == 0

    play(scene)


def test_of_two_heads_of_a_turn_the_later_one_counts() -> None:
    async def scene(store: MemoryStore) -> None:
        signer = Signer.generate()
        first = sign_head(signer, run_id="run", seq=0, head=b"a", ending="")
        later = sign_head(signer, run_id="run", seq=0, head=b"b", ending="")
        for after, head in enumerate((first, later)):
            await store.journal.append("run", b"turn", after - 1, Barrier(), None, Warrant(head=head))
        assert await store.log.last("run") == later

    play(scene)


def test_a_run_that_is_driven_is_refused_with_what_cannot_be_done() -> None:
    async def scene(store: MemoryStore) -> None:
        await store.journal.append("run", b"turn", -1, None, RunListing(1))
        assert await store.leases.take("run") is not None
        with pytest.raises(StoreUnusable, match="so it cannot be deleted;"):
            await store.retention.delete("run")
        with pytest.raises(StoreUnusable, match="so it cannot be redacted;"):
            await store.redactions.redact("run", text="words", by="ann", why="a mistake")

    play(scene, Signer.generate())
