"""A whole store written into another one, of whatever kind: a cluster into a folder, which is its backup, and back again.

Rule 1: turns, texts, heads, halts, receipts and what people left are copied as they stand; all else is made anew from them.
Rule 2: a store that is in use may go on meanwhile. What was left for a run is copied only where no copied turn answers it.
Rule 3: the target takes a turn that follows those it has. A run that stands there with other turns is named, and nothing of it
        is changed.
"""

from collections.abc import Iterable, Sequence

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.codec import decode_turn, digests_in
from remit.core.journal.storage import (
    START,
    Barrier,
    BlobMissing,
    InboxEntry,
    RunEntry,
    SignedHead,
    Warrant,
)
from remit.core.limits.queue import ReceiptKind
from remit.core.record import Record
from remit.core.run.halt import HALTS
from remit.observe.linked_turns import references
from remit.orchestrate.history.import_run import IMPORT_DIFFERS, IMPORT_HELD
from remit.orchestrate.ports import Store

# Rounds in which a store that goes on is followed. One that is never still for the length of a round is copied as it was.
ROUNDS_MAX = 5


class StoreCopied(Record):
    """What was written: how many runs there are, and how many turns and entries of inboxes were new."""

    runs: int
    turns: int
    left: int = 0


async def copy_store(source: Store, target: Store) -> StoreCopied:
    """Write all that one store holds into another; raises with a code where the target holds something else."""
    await _copy_halts(source, target)
    copied: dict[str, int] = {}
    turns, left = 0, list[InboxEntry]()
    for _ in range(ROUNDS_MAX):
        left = list(await source.inbox.pending(after=0))
        # The oldest first, so that sessions and families grow as they did.
        for entry in reversed(await source.catalogue.entries()):
            if entry.turns > copied.get(entry.run_id, 0):
                written, copied[entry.run_id] = await _copy_run(source, target, entry)
                turns += written
        numbers = {letter.number for letter in await source.inbox.pending(after=0)}
        if all(letter.number in numbers for letter in left):
            break
        # Something was answered meanwhile, perhaps by a turn that is not copied yet.
    for kind in ReceiptKind:
        for receipt in await source.receipts.kept(kind):
            await target.receipts.keep(receipt)
    there = {(letter.run_id, letter.data) for letter in await target.inbox.pending(after=0)}
    new = [letter for letter in left if letter.run_id in copied and (letter.run_id, letter.data) not in there]
    for letter in new:
        await target.inbox.put(letter.run_id, letter.data)
    return StoreCopied(len(copied), turns, len(new))


async def _copy_halts(source: Store, target: Store) -> None:
    await source.halts.refresh()
    await target.halts.refresh()
    data, there = source.halts.since(0), target.halts.since(0)
    if tuple(there) != tuple(data[: len(there)]):
        message = "the target has halts of its own; copy the store into one that holds nothing"
        raise RequestRejected(IMPORT_DIFFERS, message)
    heads = _by_turn(await source.log.heads(HALTS), len(data))
    for number in range(len(there), len(data)):
        await target.halts.append(data[number], after=number, head=heads.get(number))


async def _copy_run(source: Store, target: Store, entry: RunEntry) -> tuple[int, int]:
    """Write the turns of a run that the target lacks; gives how many these were, and how many the run has."""
    run_id = entry.run_id
    data, there = await source.journal.read(run_id), await target.journal.read(run_id)
    if tuple(there) != tuple(data[: len(there)]):
        message = (
            f"run {run_id} is there with other turns; delete it there first, or copy into a store that holds nothing"
        )
        raise RequestRejected(IMPORT_DIFFERS, message, {"run_id": run_id})
    missing = data[len(there) :]
    if not missing:
        return 0, len(data)
    await _copy_texts(source, target, missing)
    token = await target.leases.take(run_id)
    if token is None:
        message = f"run {run_id} is driven there by another process; let it rest first"
        raise RequestRejected(IMPORT_HELD, message, {"run_id": run_id})
    place, heads = there.place if there else START, _by_turn(await source.catalogue.heads(run_id), len(data))
    try:
        for seq in range(len(there), len(data)):
            listing = entry.listing if seq == 0 else None
            # How the run stands is said by its last turn; what earlier ones said of it is over.
            is_last = seq == len(data) - 1
            barrier = Barrier(entry.ending, entry.waiting_for, seq=seq) if is_last else None
            warrant = Warrant(token, heads.get(seq))
            place = await target.journal.append(run_id, data[seq], place, barrier, listing, warrant)
    finally:
        await target.leases.release(run_id, token)
    return len(missing), len(data)


def _by_turn(heads: Sequence[SignedHead], turns: int) -> dict[int, SignedHead]:
    """The heads by the turn that each is written with: its own, or the last one where that turn is not there."""
    return {min(head.seq, turns - 1): head for head in sorted(heads, key=lambda head: head.seq)}


async def _copy_texts(source: Store, target: Store, data: Iterable[bytes]) -> None:
    for digest in dict.fromkeys(digest for stored in data for digest in _named(stored)):
        try:
            text = await source.blobs.get(digest)
        except BlobMissing:
            continue  # It was taken out, or is lost; the run says which when it is verified.
        await target.blobs.put(digest, text)


def _named(stored: bytes) -> list[bytes]:
    """The texts that a turn names; of one that cannot be read, whatever may be such a name."""
    try:
        return [reference.digest for reference in references(decode_turn(stored))]
    except InvariantBroken:
        return list(digests_in(stored))
