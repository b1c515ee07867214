"""The index of a store, made anew for runs of which it knew nothing; and leases that are renewed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.journal.storage import START, Barrier, Derived, LeaseLost, RunListing, SessionConflict, Warrant

Opened = Callable[[], AbstractAsyncContextManager[MemoryStore | EmbeddedStore]]

LISTING = RunListing(5, "chat", "acme", "session", 0, likeness="alike", lineage=("first",))


@pytest.fixture(params=["memory", "embedded"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    @asynccontextmanager
    async def one() -> AsyncIterator[MemoryStore | EmbeddedStore]:
        store = MemoryStore() if request.param == "memory" else EmbeddedStore.open(tmp_path)
        try:
            yield store
        finally:
            await store.close()

    return one


def test_a_run_that_was_not_listed_is_found_in_every_way_once_it_is_renewed(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await store.journal.append("run", b"turn", START)
            assert await store.catalogue.entry("run") is None
            made = Derived("run", 1, LISTING, Barrier("SUCCESS"), ended_at_ms=9)
            for _ in range(2):
                assert await store.index.renew([made]) == ["run"]
                assert [entry.run_id for entry in await store.catalogue.session("session")] == ["run"]
                assert [entry.run_id for entry in await store.catalogue.alike("alike", limit=9)] == ["run"]
            with pytest.raises(SessionConflict):
                await store.journal.append("rival", b"turn", START, None, LISTING)

    asyncio.run(scene())


def test_what_a_run_heard_is_settled_once_it_is_renewed(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await store.journal.append("run", b"turn", START)
            heard, refused = await store.inbox.put("run", b"a"), await store.inbox.put("run", b"b")
            await store.inbox.settle(refused, "NO", "no")
            await store.index.renew([Derived("run", 1, LISTING, Barrier(), None, ((heard, "fork"), (refused, "")))])
            assert await store.inbox.outcome(heard) == ("", "fork")
            assert await store.inbox.outcome(refused) == ("NO", "no")

    asyncio.run(scene())


def test_a_run_that_has_gone_on_meanwhile_is_not_renewed(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            place = await store.journal.append("run", b"0", START)
            number = await store.inbox.put("run", b"a")
            await store.journal.append("run", b"1", place)
            stale = Derived("run", 1, LISTING, Barrier(), None, ((number, ""),))
            assert await store.index.renew([stale, Derived("nobody", 1, LISTING, Barrier())]) == []
            assert await store.catalogue.entry("run") is None
            assert await store.inbox.outcome(number) is None

    asyncio.run(scene())


def test_a_lease_is_renewed_by_its_holder_until_it_is_let_go(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            token = await store.leases.take("run") or 0
            assert await store.leases.renew("run", token)
            assert not await store.leases.renew("run", token + 1)
            assert await store.leases.take("run") is None
            # A token that is not current lets nothing go.
            await store.leases.release("run", token + 1)
            assert await store.leases.is_held("run")
            await store.leases.release("run", token)
            assert not await store.leases.renew("run", token)
            with pytest.raises(LeaseLost):
                await store.journal.append("run", b"turn", START, None, None, Warrant(token))
            with pytest.raises(LeaseLost):
                await store.journal.append("run", b"turn", START, Barrier(), None, Warrant(token))

    asyncio.run(scene())
