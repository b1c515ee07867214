"""What all Receipts must do.

A check is a coroutine function. It opens an empty store with the function it is given, uses it, and raises
AssertionError with a sentence when it does not do what is relied on. Run each of RECEIPTS_CHECKS against yours, with any
test runner.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import RunListing
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.orchestrate.ports import Journal, Receipts
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import add

# Opens a store in which nothing was written, and closes it afterwards.
OpenReceipts = Callable[[], AbstractAsyncContextManager[tuple[Journal, Receipts]]]
ReceiptsCheck = Callable[[OpenReceipts], Coroutine[Any, Any, None]]


async def _begun(journal: Journal, *run_ids: str) -> None:
    for at_ms, run_id in enumerate(run_ids):
        await add(journal, run_id, b"turn", listing=RunListing(at_ms))


async def nothing_is_kept_at_first(open_receipts: OpenReceipts) -> None:
    """No person has taken note of anything."""
    async with open_receipts() as (_, receipts):
        for kind in ReceiptKind:
            assert list(await receipts.kept(kind)) == [], f"a {kind} is kept that was never given"


async def what_was_kept_comes_back_oldest_first(open_receipts: OpenReceipts) -> None:
    """Receipts come back exactly, those of a kind alone."""
    async with open_receipts() as (journal, receipts):
        await _begun(journal, "a", "b")
        later = Receipt(ReceiptKind.ACKNOWLEDGED, "a", "a", "ä'; --", 7)
        sooner = Receipt(ReceiptKind.ACKNOWLEDGED, "b", "b", "bob", 5)
        other = Receipt(ReceiptKind.DELIVERED, "a/1.2", "a", "example.org#1", 6)
        for receipt in (later, sooner, other):
            await receipts.keep(receipt)
        assert list(await receipts.kept(ReceiptKind.ACKNOWLEDGED)) == [sooner, later], "receipts differ"
        assert list(await receipts.kept(ReceiptKind.DELIVERED)) == [other], "a receipt of another kind is missing"


async def the_first_to_acknowledge_stays(open_receipts: OpenReceipts) -> None:
    """A second receipt changes nothing."""
    async with open_receipts() as (journal, receipts):
        await _begun(journal, "a")
        first = Receipt(ReceiptKind.ACKNOWLEDGED, "a", "a", "ann", 5)
        await receipts.keep(first)
        await receipts.keep(Receipt(ReceiptKind.ACKNOWLEDGED, "a", "a", "bob", 6))
        assert list(await receipts.kept(ReceiptKind.ACKNOWLEDGED)) == [first], "the second took the place of the first"


async def an_item_is_delivered_once_to_each_place(open_receipts: OpenReceipts) -> None:
    """Two addresses are two deliveries, and the same one twice is one."""
    async with open_receipts() as (journal, receipts):
        await _begun(journal, "a")
        for at_ms, place in enumerate(("one", "two", "one")):
            await receipts.keep(Receipt(ReceiptKind.DELIVERED, "a/1.2", "a", place, at_ms))
        kept = [(receipt.by, receipt.at_ms) for receipt in await receipts.kept(ReceiptKind.DELIVERED)]
        assert kept == [("one", 0), ("two", 1)], f"deliveries are remembered as {kept}"


RECEIPTS_CHECKS: Sequence[ReceiptsCheck] = in_words(
    nothing_is_kept_at_first,
    what_was_kept_comes_back_oldest_first,
    the_first_to_acknowledge_stays,
    an_item_is_delivered_once_to_each_place,
)
