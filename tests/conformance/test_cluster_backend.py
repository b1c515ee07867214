"""The store on JetStream does what every backend must."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.clock import wall_clock_ms
from remit.orchestrate.ports import (
    Blobs,
    Catalogue,
    Feed,
    HaltLog,
    HeadLog,
    Inbox,
    Journal,
    Key,
    Leases,
    Ledger,
    Receipts,
    Seals,
    Snapshots,
    Store,
)
from remit.testing.conformance.custody.checkup import CHECKUP_CHECKS, CheckupCheck
from remit.testing.conformance.custody.head_log import HEAD_LOG_CHECKS, HeadLogCheck
from remit.testing.conformance.custody.key import KEY_CHECKS, KeyCheck
from remit.testing.conformance.custody.redactions import REDACTIONS_CHECKS, RedactionsCheck
from remit.testing.conformance.custody.retention import RETENTION_CHECKS, RetentionCheck
from remit.testing.conformance.custody.seals import SEALS_CHECKS, SealsCheck
from remit.testing.conformance.processes.bell import BELL_CHECKS, BellCheck
from remit.testing.conformance.processes.feed import FEED_CHECKS, FeedCheck
from remit.testing.conformance.processes.halts import HALTS_CHECKS, HaltsCheck
from remit.testing.conformance.processes.inbox import INBOX_CHECKS, InboxCheck
from remit.testing.conformance.processes.leases import LEASES_CHECKS, LeasesCheck
from remit.testing.conformance.processes.two_handles import TWO_HANDLES_CHECKS, TwoHandlesCheck
from remit.testing.conformance.records.blobs import BLOBS_CHECKS, BlobsCheck
from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS, CatalogueCheck
from remit.testing.conformance.records.index import INDEX_CHECKS, IndexCheck
from remit.testing.conformance.records.journal import JOURNAL_CHECKS, JournalCheck
from remit.testing.conformance.records.ledger import LEDGER_CHECKS, LedgerCheck
from remit.testing.conformance.records.receipts import RECEIPTS_CHECKS, ReceiptsCheck
from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS, SnapshotsCheck
from tests.nats_server import clear, opened


@pytest.fixture(autouse=True)
def _empty() -> None:
    clear()


@asynccontextmanager
async def store_in(home: Path, now_ms: Callable[[], int] = wall_clock_ms) -> AsyncIterator[Store]:
    store = opened(home, now_ms)
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
def test_a_journal_on_the_cluster_does_what_every_journal_must(check: JournalCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_journal() -> AsyncIterator[Journal]:
        async with store_in(tmp_path) as store:
            yield store.journal

    asyncio.run(check(open_journal))


@pytest.mark.parametrize("check", BLOBS_CHECKS, ids=lambda check: check.__name__)
def test_blobs_on_the_cluster_do_what_all_blobs_must(check: BlobsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_blobs() -> AsyncIterator[Blobs]:
        async with store_in(tmp_path) as store:
            yield store.blobs

    asyncio.run(check(open_blobs))


@pytest.mark.parametrize("check", CATALOGUE_CHECKS, ids=lambda check: check.__name__)
def test_a_catalogue_on_the_cluster_says_what_every_catalogue_must(check: CatalogueCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_catalogue() -> AsyncIterator[tuple[Journal, Catalogue]]:
        async with store_in(tmp_path) as store:
            yield store.journal, store.catalogue

    asyncio.run(check(open_catalogue))


@pytest.mark.parametrize("check", LEDGER_CHECKS, ids=lambda check: check.__name__)
def test_a_ledger_on_the_cluster_counts_as_every_ledger_must(check: LedgerCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_ledger() -> AsyncIterator[tuple[Journal, Ledger]]:
        async with store_in(tmp_path) as store:
            yield store.journal, store.ledger

    asyncio.run(check(open_ledger))


@pytest.mark.parametrize("check", INBOX_CHECKS, ids=lambda check: check.__name__)
def test_an_inbox_on_the_cluster_does_what_every_inbox_must(check: InboxCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_inbox() -> AsyncIterator[Inbox]:
        async with store_in(tmp_path) as store:
            yield store.inbox

    asyncio.run(check(open_inbox))


@pytest.mark.parametrize("check", LEASES_CHECKS, ids=lambda check: check.__name__)
def test_leases_on_the_cluster_do_what_all_leases_must(check: LeasesCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_leases() -> AsyncIterator[tuple[Journal, Leases]]:
        async with store_in(tmp_path) as store:
            yield store.journal, store.leases

    asyncio.run(check(open_leases))


@pytest.mark.parametrize("check", SNAPSHOTS_CHECKS, ids=lambda check: check.__name__)
def test_snapshots_on_the_cluster_do_what_all_snapshots_must(check: SnapshotsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_snapshots() -> AsyncIterator[tuple[Journal, Snapshots]]:
        async with store_in(tmp_path) as store:
            yield store.journal, store.snapshots

    asyncio.run(check(open_snapshots))


@pytest.mark.parametrize("check", RECEIPTS_CHECKS, ids=lambda check: check.__name__)
def test_receipts_on_the_cluster_do_what_all_receipts_must(check: ReceiptsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_receipts() -> AsyncIterator[tuple[Journal, Receipts]]:
        async with store_in(tmp_path) as store:
            yield store.journal, store.receipts

    asyncio.run(check(open_receipts))


@pytest.mark.parametrize("check", HALTS_CHECKS, ids=lambda check: check.__name__)
def test_halts_on_the_cluster_do_what_all_halts_must(check: HaltsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_halts() -> AsyncIterator[HaltLog]:
        async with store_in(tmp_path) as store:
            yield store.halts

    asyncio.run(check(open_halts))


@pytest.mark.parametrize("check", SEALS_CHECKS, ids=lambda check: check.__name__)
def test_seals_on_the_cluster_do_what_all_seals_must(check: SealsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_seals() -> AsyncIterator[Seals]:
        async with store_in(tmp_path) as store:
            yield store.seals

    asyncio.run(check(open_seals))


@pytest.mark.parametrize("check", KEY_CHECKS, ids=lambda check: check.__name__)
def test_a_key_on_the_cluster_does_what_every_key_must(check: KeyCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_key() -> AsyncIterator[Key]:
        async with store_in(tmp_path) as store:
            assert store.key is not None
            yield store.key

    asyncio.run(check(open_key))


@pytest.mark.parametrize("check", FEED_CHECKS, ids=lambda check: check.__name__)
def test_a_feed_of_the_cluster_tells_what_every_feed_must(check: FeedCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_feed() -> AsyncIterator[tuple[Journal, Feed]]:
        # Written by one process and told by the other.
        async with store_in(tmp_path) as one, store_in(tmp_path) as other:
            yield one.journal, other.feed

    asyncio.run(check(open_feed))


@pytest.mark.parametrize("check", TWO_HANDLES_CHECKS, ids=lambda check: check.__name__)
def test_two_processes_on_a_cluster_see_what_each_other_wrote(check: TwoHandlesCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_twice() -> AsyncIterator[tuple[Store, Store]]:
        async with store_in(tmp_path) as one, store_in(tmp_path) as other:
            yield one, other

    asyncio.run(check(open_twice))


@pytest.mark.parametrize("check", BELL_CHECKS, ids=lambda check: check.__name__)
def test_a_bell_of_the_cluster_rings_as_every_bell_must(check: BellCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_twice() -> AsyncIterator[tuple[Store, Store]]:
        async with store_in(tmp_path) as one, store_in(tmp_path) as other:
            yield one, other

    asyncio.run(check(open_twice))


@pytest.mark.parametrize("check", HEAD_LOG_CHECKS, ids=lambda check: check.__name__)
def test_the_heads_on_the_cluster_say_what_every_log_must(check: HeadLogCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_log() -> AsyncIterator[tuple[Journal, HeadLog]]:
        async with store_in(tmp_path) as store:
            yield store.journal, store.log

    asyncio.run(check(open_log))


@pytest.mark.parametrize("check", RETENTION_CHECKS, ids=lambda check: check.__name__)
def test_a_cluster_removes_runs_as_every_store_must(check: RetentionCheck, tmp_path: Path) -> None:
    asyncio.run(check(lambda now_ms: store_in(tmp_path, now_ms)))


@pytest.mark.parametrize("check", REDACTIONS_CHECKS, ids=lambda check: check.__name__)
def test_a_cluster_takes_words_out_of_runs_as_every_store_must(check: RedactionsCheck, tmp_path: Path) -> None:
    asyncio.run(check(lambda now_ms: store_in(tmp_path, now_ms)))


@pytest.mark.parametrize("check", CHECKUP_CHECKS, ids=lambda check: check.__name__)
def test_a_cluster_is_looked_at_as_every_store_must_be(check: CheckupCheck, tmp_path: Path) -> None:
    asyncio.run(check(lambda now_ms: store_in(tmp_path, now_ms)))


@pytest.mark.parametrize("check", INDEX_CHECKS, ids=lambda check: check.__name__)
def test_the_index_of_a_cluster_is_made_anew_as_every_index_must(check: IndexCheck, tmp_path: Path) -> None:
    asyncio.run(check(lambda: store_in(tmp_path)))
