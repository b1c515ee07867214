"""Every store says what was signed, removes runs, takes words out of them and is looked at, as every store must."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.journal.signing import Signer
from remit.core.journal.storage import START, RunListing, StoreUnusable
from remit.orchestrate.ports import HeadLog, Journal, Store
from remit.testing.conformance.custody.checkup import CHECKUP_CHECKS, CheckupCheck
from remit.testing.conformance.custody.head_log import HEAD_LOG_CHECKS, HeadLogCheck
from remit.testing.conformance.custody.redactions import REDACTIONS_CHECKS, RedactionsCheck
from remit.testing.conformance.custody.retention import RETENTION_CHECKS, OpenStore, RetentionCheck, Time
from tests.simulation.shared_store import GuardParts, SharedStore


@pytest.mark.parametrize("check", HEAD_LOG_CHECKS, ids=lambda check: check.__name__)
def test_a_poor_store_says_what_was_signed_as_every_log_must(check: HeadLogCheck) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, HeadLog]]:
        store = poor_store()
        yield store.journal, store.log

    asyncio.run(check(opened))


def test_a_poor_store_removes_nothing_and_says_so() -> None:
    async def scene() -> None:
        store = poor_store()
        await store.journal.append("run", b"turn", START, None, RunListing(1))
        for refused in (
            store.retention.delete("run"),
            store.retention.gc(ended_before_ms=9),
            store.redactions.redact("run", text="x", by="ada", why="w"),
        ):
            with pytest.raises(StoreUnusable, match="STORE_KEEPS_ALL"):
                await refused
        assert await store.journal.read("run") == [b"turn"]
        assert [check.name for check in await store.checkup.look()] == ["store", "store.log", "store.key"]

    asyncio.run(scene())


def poor_store() -> Store:
    return SharedStore(GuardParts(), "process", lambda: asyncio.sleep(0), 600_000)


@pytest.fixture(params=["memory", "embedded"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    @asynccontextmanager
    async def opened(now_ms: Callable[[], int]) -> AsyncIterator[Store]:
        if request.param == "memory":
            yield MemoryStore(Signer.generate(), now_ms=now_ms)
            return
        store = EmbeddedStore.open(tmp_path / "store", now_ms=now_ms)
        try:
            yield store
        finally:
            await store.close()

    return opened


@pytest.mark.parametrize("check", HEAD_LOG_CHECKS, ids=lambda check: check.__name__)
def test_the_log_of_heads_says_what_every_log_must(check: HeadLogCheck, open_store: OpenStore) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, HeadLog]]:
        async with open_store(Time().now_ms) as store:
            yield store.journal, store.log

    asyncio.run(check(opened))


@pytest.mark.parametrize("check", RETENTION_CHECKS, ids=lambda check: check.__name__)
def test_a_store_removes_runs_as_every_store_must(check: RetentionCheck, open_store: OpenStore) -> None:
    asyncio.run(check(open_store))


@pytest.mark.parametrize("check", REDACTIONS_CHECKS, ids=lambda check: check.__name__)
def test_a_store_takes_words_out_of_runs_as_every_store_must(check: RedactionsCheck, open_store: OpenStore) -> None:
    asyncio.run(check(open_store))


@pytest.mark.parametrize("check", CHECKUP_CHECKS, ids=lambda check: check.__name__)
def test_a_store_is_looked_at_as_every_store_must_be(check: CheckupCheck, open_store: OpenStore) -> None:
    asyncio.run(check(open_store))
