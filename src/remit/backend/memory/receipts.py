"""The receipts of a store in memory: what was done about the items of queues."""

from collections.abc import Sequence

from remit.core.limits.queue import Receipt, ReceiptKind


class MemoryReceipts:
    """Who took note of what, and what was delivered where."""

    def __init__(self) -> None:
        self._kept: dict[tuple[ReceiptKind, str, str], Receipt] = {}

    async def keep(self, receipt: Receipt) -> None:
        """Keep a receipt, unless there is one for the same item and place."""
        place = receipt.by if receipt.kind is ReceiptKind.DELIVERED else ""
        self._kept.setdefault((receipt.kind, receipt.item, place), receipt)

    def forget(self, run_id: str) -> None:
        """Keep no receipt of a run any more."""
        self._kept = {place: receipt for place, receipt in self._kept.items() if receipt.run_id != run_id}

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:
        """The receipts of a kind, oldest first."""
        return sorted((one for one in self._kept.values() if one.kind is kind), key=lambda one: (one.at_ms, one.item))
