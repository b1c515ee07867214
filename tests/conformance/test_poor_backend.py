"""The poorest backend there is, of which one entry of one log is written at a time and whose leases expire, does all the same."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.orchestrate.ports import (
    Blobs,
    Catalogue,
    Inbox,
    Journal,
    Leases,
    Ledger,
    Receipts,
    Snapshots,
    Store,
)
from remit.testing.conformance.processes.inbox import INBOX_CHECKS, InboxCheck
from remit.testing.conformance.processes.leases import LEASES_CHECKS, LeasesCheck
from remit.testing.conformance.records.blobs import BLOBS_CHECKS, BlobsCheck
from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS, CatalogueCheck
from remit.testing.conformance.records.journal import JOURNAL_CHECKS, JournalCheck
from remit.testing.conformance.records.ledger import LEDGER_CHECKS, LedgerCheck
from remit.testing.conformance.records.receipts import RECEIPTS_CHECKS, ReceiptsCheck
from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS, SnapshotsCheck
from tests.simulation.shared_store import GuardParts, SharedStore

LEASE_MS = 600_000


async def pause() -> None:
    await asyncio.sleep(0)


def poor_store() -> Store:
    return SharedStore(GuardParts(), "process", pause, LEASE_MS)


@asynccontextmanager
async def journal() -> AsyncIterator[Journal]:
    yield poor_store().journal


@asynccontextmanager
async def blobs() -> AsyncIterator[Blobs]:
    yield poor_store().blobs


@asynccontextmanager
async def catalogue() -> AsyncIterator[tuple[Journal, Catalogue]]:
    store = poor_store()
    yield store.journal, store.catalogue


@asynccontextmanager
async def ledger() -> AsyncIterator[tuple[Journal, Ledger]]:
    store = poor_store()
    yield store.journal, store.ledger


@asynccontextmanager
async def snapshots() -> AsyncIterator[tuple[Journal, Snapshots]]:
    store = poor_store()
    yield store.journal, store.snapshots


@asynccontextmanager
async def leases() -> AsyncIterator[tuple[Journal, Leases]]:
    store = poor_store()
    yield store.journal, store.leases


@asynccontextmanager
async def receipts() -> AsyncIterator[tuple[Journal, Receipts]]:
    store = poor_store()
    yield store.journal, store.receipts


@asynccontextmanager
async def inbox() -> AsyncIterator[Inbox]:
    yield poor_store().inbox


@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
def test_a_poor_journal_does_what_every_journal_must(check: JournalCheck) -> None:
    asyncio.run(check(journal))


@pytest.mark.parametrize("check", BLOBS_CHECKS, ids=lambda check: check.__name__)
def test_poor_blobs_do_what_all_blobs_must(check: BlobsCheck) -> None:
    asyncio.run(check(blobs))


@pytest.mark.parametrize("check", CATALOGUE_CHECKS, ids=lambda check: check.__name__)
def test_a_poor_catalogue_says_what_every_catalogue_must(check: CatalogueCheck) -> None:
    asyncio.run(check(catalogue))


@pytest.mark.parametrize("check", LEDGER_CHECKS, ids=lambda check: check.__name__)
def test_a_poor_ledger_counts_as_every_ledger_must(check: LedgerCheck) -> None:
    asyncio.run(check(ledger))


@pytest.mark.parametrize("check", INBOX_CHECKS, ids=lambda check: check.__name__)
def test_a_poor_inbox_does_what_every_inbox_must(check: InboxCheck) -> None:
    asyncio.run(check(inbox))


@pytest.mark.parametrize("check", LEASES_CHECKS, ids=lambda check: check.__name__)
def test_poor_leases_do_what_all_leases_must(check: LeasesCheck) -> None:
    asyncio.run(check(leases))


@pytest.mark.parametrize("check", SNAPSHOTS_CHECKS, ids=lambda check: check.__name__)
def test_poor_snapshots_do_what_all_snapshots_must(check: SnapshotsCheck) -> None:
    asyncio.run(check(snapshots))


@pytest.mark.parametrize("check", RECEIPTS_CHECKS, ids=lambda check: check.__name__)
def test_poor_receipts_do_what_all_receipts_must(check: ReceiptsCheck) -> None:
    asyncio.run(check(receipts))
