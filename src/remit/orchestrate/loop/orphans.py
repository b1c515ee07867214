"""Orphans: children that are open although the run that started them has ended, or is gone.

A run that ends tells its children. When its process dies in between, they are left behind.

Rule 1: nobody waits for what an orphan does, so nothing more is done in it: whoever meets one cancels it.
Rule 2: what an orphan asks is not shown as asked, and no answer to it is taken.
"""

from remit.core.failure import RequestRejected
from remit.core.journal.storage import RunEntry
from remit.orchestrate.ports import Catalogue

PARENT_ENDED = "PARENT_ENDED"


async def orphan_above(catalogue: Catalogue, entry: RunEntry) -> RunEntry | None:
    """Of an open run and the open ones above it the one that was left behind; None when whoever began them is open."""
    while not entry.ending and entry.listing.parent_id:
        parent = await catalogue.entry(entry.listing.parent_id)
        if parent is None or parent.ending:
            return entry
        entry = parent
    return None


async def orphans(catalogue: Catalogue) -> list[RunEntry]:
    """The runs that were left behind, newest first; what is beneath them ends with them."""
    found = [(entry, await orphan_above(catalogue, entry)) for entry in await catalogue.entries(open_only=True)]
    return [entry for entry, orphan in found if orphan is not None and orphan.run_id == entry.run_id]


def left_behind(run_id: str, orphan: RunEntry) -> RequestRejected:
    """Why a run hears nobody any more."""
    parent_id = orphan.listing.parent_id
    message = (
        f"run {parent_id}, for which run {run_id} worked, has ended; so run {run_id} is cancelled and nothing more is "
        f"done in it; start anew what is still wanted, or try run {parent_id} again"
    )
    return RequestRejected(PARENT_ENDED, message, {"run_id": run_id, "parent_id": parent_id})
