"""The embedded store does what every backend must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.orchestrate.ports import Blobs, Catalogue, Inbox, Journal, Leases, Ledger, Snapshots
from remit.testing.conformance.processes.inbox import INBOX_CHECKS, InboxCheck
from remit.testing.conformance.processes.leases import LEASES_CHECKS, LeasesCheck
from remit.testing.conformance.records.blobs import BLOBS_CHECKS, BlobsCheck
from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS, CatalogueCheck
from remit.testing.conformance.records.journal import JOURNAL_CHECKS, JournalCheck
from remit.testing.conformance.records.ledger import LEDGER_CHECKS, LedgerCheck
from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS, SnapshotsCheck


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore.open(home)
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
def test_the_embedded_journal_does_what_every_journal_must(check: JournalCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_journal() -> AsyncIterator[Journal]:
        async with opened(tmp_path) as store:
            yield store.journal

    asyncio.run(check(open_journal))


@pytest.mark.parametrize("check", BLOBS_CHECKS, ids=lambda check: check.__name__)
def test_embedded_blobs_do_what_all_blobs_must(check: BlobsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_blobs() -> AsyncIterator[Blobs]:
        async with opened(tmp_path) as store:
            yield store.blobs

    asyncio.run(check(open_blobs))


@pytest.mark.parametrize("check", CATALOGUE_CHECKS, ids=lambda check: check.__name__)
def test_the_embedded_catalogue_says_what_every_catalogue_must(check: CatalogueCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_catalogue() -> AsyncIterator[tuple[Journal, Catalogue]]:
        async with opened(tmp_path) as store:
            yield store.journal, store.catalogue

    asyncio.run(check(open_catalogue))


@pytest.mark.parametrize("check", LEDGER_CHECKS, ids=lambda check: check.__name__)
def test_the_embedded_ledger_counts_as_every_ledger_must(check: LedgerCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_ledger() -> AsyncIterator[tuple[Journal, Ledger]]:
        async with opened(tmp_path) as store:
            yield store.journal, store.ledger

    asyncio.run(check(open_ledger))


@pytest.mark.parametrize("check", INBOX_CHECKS, ids=lambda check: check.__name__)
def test_the_embedded_inbox_does_what_every_inbox_must(check: InboxCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_inbox() -> AsyncIterator[Inbox]:
        async with opened(tmp_path) as store:
            yield store.inbox

    asyncio.run(check(open_inbox))


@pytest.mark.parametrize("check", LEASES_CHECKS, ids=lambda check: check.__name__)
def test_embedded_leases_do_what_all_leases_must(check: LeasesCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_leases() -> AsyncIterator[tuple[Journal, Leases]]:
        async with opened(tmp_path) as store:
            yield store.journal, store.leases

    asyncio.run(check(open_leases))


@pytest.mark.parametrize("check", SNAPSHOTS_CHECKS, ids=lambda check: check.__name__)
def test_embedded_snapshots_do_what_all_snapshots_must(check: SnapshotsCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_snapshots() -> AsyncIterator[tuple[Journal, Snapshots]]:
        async with opened(tmp_path) as store:
            yield store.journal, store.snapshots

    asyncio.run(check(open_snapshots))
