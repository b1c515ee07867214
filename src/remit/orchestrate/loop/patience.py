"""Patience: what became of an effect is written although the store cannot be written just now.

Rule 1: the outcome of a call that changes something is not given up while its process lives: a lock that another process
        holds, a full disk or a folder that cannot be written goes by. Each failure is logged, so that an operator can see to
        it.
Rule 2: what was written although its writer was told otherwise is not written twice.
Rule 3: closing the system, or ending the process, ends the waiting; the call is then in doubt, as after any crash.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from remit.core.journal.commands import Command
from remit.core.journal.storage import AppendConflict, Barrier, Place, RunListing, StoreUnusable, Warrant
from remit.observe.logs import run_fields
from remit.orchestrate.ports import Journal

# A day: the person who is to make room comes back to work within it.
KEPT_MS_MAX = 24 * 3_600_000
# The first and the longest pause between two tries. The store itself waits ten seconds for another process before it fails.
PAUSE_S_MIN, PAUSE_S_MAX = 0.1, 5.0
# Code that cleans up after being told to stop is done by then; code that swallows its cancellation is not waited for.
STOP_GRACE_S = 10.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def insist(act: Callable[[], Awaitable[T]], run_id: str) -> T:
    """Do something that writes to a store, again and again until it is written or cannot be."""
    deadline_s, pause_s, failures = asyncio.get_running_loop().time() + KEPT_MS_MAX / 1000, PAUSE_S_MIN, 0
    while True:
        try:
            return await act()
        except StoreUnusable as error:
            if not error.may_pass or asyncio.get_running_loop().time() > deadline_s:
                raise
            failures += 1
            # The first, the second, the fourth and so on: a line every now and then, however long it takes.
            if failures & (failures - 1) == 0:
                text = "an outcome is known and cannot be written; it is kept and tried again: %s"
                _log.warning(text, error, extra=run_fields(run_id))
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, PAUSE_S_MAX)


async def append_at_last(
    journal: Journal,
    run_id: str,
    data: bytes,
    after: Place,
    barrier: Barrier | None,
    listing: RunListing | None,
    warrant: Warrant | None,
    orders: Sequence[Command],
) -> Place:
    """Append a turn that could not be appended just now, for as long as that takes; raises AppendConflict as a journal does."""

    async def write() -> Place:
        try:
            return await journal.append(run_id, data, after, barrier, listing, warrant, orders)
        except AppendConflict:
            # It may have been committed although its head could not be logged; then it is ours.
            turns = await journal.read(run_id)
            if turns[-1:] != [data]:
                raise
            return turns.place

    return await insist(write, run_id)
