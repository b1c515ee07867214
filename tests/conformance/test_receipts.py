"""Every store remembers receipts of queues as it must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.journal.storage import RunListing
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.orchestrate.ports import Journal, Receipts
from remit.testing.conformance.records.receipts import RECEIPTS_CHECKS, ReceiptsCheck


@pytest.mark.parametrize("check", RECEIPTS_CHECKS, ids=lambda check: check.__name__)
def test_receipts_in_memory_do_what_all_receipts_must(check: ReceiptsCheck) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, Receipts]]:
        store = MemoryStore()
        yield store.journal, store.receipts

    asyncio.run(check(opened))


@pytest.mark.parametrize("check", RECEIPTS_CHECKS, ids=lambda check: check.__name__)
def test_embedded_receipts_do_what_all_receipts_must(check: ReceiptsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, Receipts]]:
        store = EmbeddedStore.open(tmp_path)
        try:
            yield store.journal, store.receipts
        finally:
            await store.close()

    asyncio.run(check(opened))
    # What was kept is there for the next one who opens the store.
    if check is RECEIPTS_CHECKS[2]:
        asyncio.run(_still_there(tmp_path))


async def _still_there(home: Path) -> None:
    store = EmbeddedStore.open_to_read(home)
    try:
        assert [one.by for one in await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)] == ["ann"]
    finally:
        await store.close()


def test_receipts_go_with_their_run_and_none_is_kept_of_a_run_that_is_gone(tmp_path: Path) -> None:
    async def play() -> None:
        store = EmbeddedStore.open(tmp_path)
        try:
            receipt = Receipt(ReceiptKind.ACKNOWLEDGED, "a", "a", "ann", 5)
            await store.receipts.keep(receipt)
            assert list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)) == []
            await store.journal.append("a", b"turn", after=-1, listing=RunListing(0))
            await store.receipts.keep(receipt)
            assert list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)) == [receipt]
            await store.retention.delete("a")
            assert list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)) == []
        finally:
            await store.close()

    asyncio.run(play())
