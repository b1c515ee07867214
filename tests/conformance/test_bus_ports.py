"""Every store tells the turns of all runs in one order, and wakes those who listen, as every store must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.folded.log import LogEntry
from remit.backend.memory.store import MemoryStore
from remit.core.journal.storage import START, Place, RunListing
from remit.orchestrate.ports import Feed, Journal, Store
from remit.testing.conformance.processes.bell import BELL_CHECKS, BellCheck, OpenTwice
from remit.testing.conformance.processes.feed import FEED_CHECKS, FeedCheck
from remit.testing.conformance.processes.two_handles import TWO_HANDLES_CHECKS, TwoHandlesCheck
from tests.simulation.shared_store import GuardParts, PoorLog, SharedStore

KINDS = ("memory", "embedded", "folded", "paged")


class PagedLog(PoorLog):
    """A log that gives two entries at once, and more when it is asked again."""

    async def news(self, after: Place) -> list[LogEntry]:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """The next two."""
        return (await super().news(after))[:2]


def twice(kind: str, home: Path) -> OpenTwice:
    """One store as two processes have it open; what is only in memory is the same for both."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Store, Store]]:
        pair: tuple[Store, Store]
        if kind == "embedded":
            pair = EmbeddedStore.open(home), EmbeddedStore.open(home)
        elif kind == "memory":
            pair = (store := MemoryStore()), store
        else:
            ground = GuardParts()
            if kind == "paged":
                ground.log = PagedLog()
            pair = _poor(ground, "one"), _poor(ground, "two")
        try:
            yield pair
        finally:
            for one in pair:
                await one.close()

    return opened


def _poor(ground: GuardParts, process: str) -> SharedStore:
    return SharedStore(ground, process, lambda: asyncio.sleep(0), 600_000)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", FEED_CHECKS, ids=lambda check: check.__name__)
def test_a_feed_tells_what_every_feed_must(check: FeedCheck, kind: str, tmp_path: Path) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, Feed]]:
        # Written by one process and told by the other.
        async with twice(kind, tmp_path)() as (one, other):
            yield one.journal, other.feed

    asyncio.run(check(opened))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", BELL_CHECKS, ids=lambda check: check.__name__)
def test_a_bell_rings_as_every_bell_must(check: BellCheck, kind: str, tmp_path: Path) -> None:
    asyncio.run(check(twice(kind, tmp_path)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", TWO_HANDLES_CHECKS, ids=lambda check: check.__name__)
def test_two_handles_on_a_store_see_what_each_other_wrote(check: TwoHandlesCheck, kind: str, tmp_path: Path) -> None:
    asyncio.run(check(twice(kind, tmp_path)))


@pytest.mark.parametrize("kind", ["memory", "embedded"])
def test_a_place_is_not_given_again_when_the_newest_run_is_deleted(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with twice(kind, tmp_path)() as (store, _):
            for run_id in ("a", "b", "c"):
                await store.journal.append(run_id, run_id.encode(), START, listing=RunListing(1))
            end = await store.feed.end()
            for run_id in ("c", "b"):
                await store.retention.delete(run_id)
            assert await store.feed.end() == end
            await store.journal.append("d", b"d", START, listing=RunListing(1))
            assert [turn.data for turn in await store.feed.since(end, limit=9)] == [b"d"]
            assert [turn.data for turn in await store.feed.since(START, limit=9)] == [b"a", b"d"]

    asyncio.run(scene())
