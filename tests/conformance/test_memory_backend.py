"""The backend in memory, and the journal of the simulated world, do what every backend must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.backend.memory.blobs import MemoryBlobs, MemorySnapshots
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.store import MemoryStore
from remit.orchestrate.ports import Blobs, Catalogue, Inbox, Journal, Leases, Ledger, Snapshots
from remit.testing.conformance.processes.inbox import INBOX_CHECKS, InboxCheck
from remit.testing.conformance.processes.leases import LEASES_CHECKS, LeasesCheck
from remit.testing.conformance.records.blobs import BLOBS_CHECKS, BlobsCheck
from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS, CatalogueCheck
from remit.testing.conformance.records.journal import JOURNAL_CHECKS, JournalCheck, OpenJournal
from remit.testing.conformance.records.ledger import LEDGER_CHECKS, LedgerCheck
from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS, SnapshotsCheck
from remit.testing.scripts import in_turn, says
from remit.testing.world import SimulatedWorld


@asynccontextmanager
async def memory_journal() -> AsyncIterator[Journal]:
    yield MemoryJournal()


@asynccontextmanager
async def simulated_journal() -> AsyncIterator[Journal]:
    yield SimulatedWorld(model=in_turn(says("done"))).journal


@asynccontextmanager
async def memory_blobs() -> AsyncIterator[Blobs]:
    yield MemoryBlobs()


@asynccontextmanager
async def memory_catalogue() -> AsyncIterator[tuple[Journal, Catalogue]]:
    journal = MemoryJournal()
    yield journal, journal


@asynccontextmanager
async def memory_ledger() -> AsyncIterator[tuple[Journal, Ledger]]:
    journal = MemoryJournal()
    yield journal, journal.ledger


@asynccontextmanager
async def memory_snapshots() -> AsyncIterator[tuple[Journal, Snapshots]]:
    yield MemoryJournal(), MemorySnapshots()


@asynccontextmanager
async def memory_leases() -> AsyncIterator[tuple[Journal, Leases]]:
    store = MemoryStore()
    yield store.journal, store.leases


@asynccontextmanager
async def memory_inbox() -> AsyncIterator[Inbox]:
    yield MemoryInbox()


@pytest.mark.req("3.30")
@pytest.mark.parametrize("open_journal", [memory_journal, simulated_journal], ids=["memory", "simulated"])
@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
def test_a_journal_does_what_every_journal_must(check: JournalCheck, open_journal: OpenJournal) -> None:
    asyncio.run(check(open_journal))


@pytest.mark.parametrize("check", BLOBS_CHECKS, ids=lambda check: check.__name__)
def test_blobs_do_what_all_blobs_must(check: BlobsCheck) -> None:
    asyncio.run(check(memory_blobs))


@pytest.mark.parametrize("check", CATALOGUE_CHECKS, ids=lambda check: check.__name__)
def test_the_catalogue_in_memory_says_what_every_catalogue_must(check: CatalogueCheck) -> None:
    asyncio.run(check(memory_catalogue))


@pytest.mark.parametrize("check", LEDGER_CHECKS, ids=lambda check: check.__name__)
def test_the_ledger_in_memory_counts_as_every_ledger_must(check: LedgerCheck) -> None:
    asyncio.run(check(memory_ledger))


@pytest.mark.parametrize("check", INBOX_CHECKS, ids=lambda check: check.__name__)
def test_the_inbox_in_memory_does_what_every_inbox_must(check: InboxCheck) -> None:
    asyncio.run(check(memory_inbox))


@pytest.mark.parametrize("check", LEASES_CHECKS, ids=lambda check: check.__name__)
def test_leases_in_memory_do_what_all_leases_must(check: LeasesCheck) -> None:
    asyncio.run(check(memory_leases))


@pytest.mark.parametrize("check", SNAPSHOTS_CHECKS, ids=lambda check: check.__name__)
def test_snapshots_in_memory_do_what_all_snapshots_must(check: SnapshotsCheck) -> None:
    asyncio.run(check(memory_snapshots))
