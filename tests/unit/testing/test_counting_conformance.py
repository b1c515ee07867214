"""The conformance suites of ledgers and receipts pass what does its work, and find what does not."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.receipts import MemoryReceipts
from remit.backend.memory.store import MemoryStore
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import Charge, Committed, Limit
from remit.orchestrate.ports import Journal, Ledger, Receipts
from remit.testing.conformance.records.ledger import LEDGER_CHECKS, LedgerCheck
from remit.testing.conformance.records.receipts import RECEIPTS_CHECKS, ReceiptsCheck


class ForgetfulLedger:
    """A ledger that knows of no run."""

    async def committed(self, tenant_id: str, limits: Sequence[Limit]) -> Sequence[Committed]:
        return [Committed(0, 0) for _ in limits]

    async def uncounted(self, tenant_id: str, from_ms: int) -> Sequence[str]:
        return []

    async def count(self, charges: Sequence[Charge]) -> None:
        return None

    async def tenants(self) -> Sequence[str]:
        return []


class ForgetfulReceipts(MemoryReceipts):
    """Receipts that cannot be looked up."""

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:  # type: ignore[explicit-override]  # comes with 3.12
        return []


@asynccontextmanager
async def a_ledger() -> AsyncIterator[tuple[Journal, Ledger]]:
    journal = MemoryJournal()
    yield journal, journal.ledger


@asynccontextmanager
async def a_forgetful_ledger() -> AsyncIterator[tuple[Journal, Ledger]]:
    yield MemoryJournal(), ForgetfulLedger()


@asynccontextmanager
async def some_receipts() -> AsyncIterator[tuple[Journal, Receipts]]:
    store = MemoryStore()
    yield store.journal, store.receipts


@asynccontextmanager
async def forgetful_receipts() -> AsyncIterator[tuple[Journal, Receipts]]:
    yield MemoryJournal(), ForgetfulReceipts()


@pytest.mark.parametrize("check", LEDGER_CHECKS, ids=lambda check: check.__name__)
def test_a_ledger_that_counts_passes_every_check(check: LedgerCheck) -> None:
    asyncio.run(check(a_ledger))


@pytest.mark.parametrize("check", RECEIPTS_CHECKS, ids=lambda check: check.__name__)
def test_receipts_that_are_kept_pass_every_check(check: ReceiptsCheck) -> None:
    asyncio.run(check(some_receipts))


def test_a_ledger_that_forgets_is_found() -> None:
    with pytest.raises(AssertionError):
        asyncio.run(LEDGER_CHECKS[0](a_forgetful_ledger))


def test_receipts_that_nobody_can_look_up_are_found() -> None:
    with pytest.raises(AssertionError):
        asyncio.run(RECEIPTS_CHECKS[1](forgetful_receipts))
