"""A run from a file, written into a store of any kind, so that it goes on there.

Rule 1: a file is taken only where it verifies, whole, under a key that the caller accepts; then this store vouches for it.
Rule 2: with the first turn the head of the last one is signed. A run of which a part was written is known to lack turns, so
        nothing goes on with it; importing the file again writes what is missing.
Rule 3: a run goes on in one place. To import it is to say that it does not go on where it was exported.
"""

from collections.abc import Callable, Iterable, Sequence

from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.commands import StartChild
from remit.core.journal.signing import sign_head
from remit.core.journal.storage import START, Barrier, SignedHead, Warrant
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.linked_turns import Linked, linked_turns
from remit.observe.proof.export import Export, read_export, verify_export
from remit.orchestrate.loop.durability import barrier_of, run_listing
from remit.orchestrate.ports import Store

IMPORT_UNVERIFIED = "IMPORT_UNVERIFIED"
IMPORT_NOT_TRUSTED = "IMPORT_NOT_TRUSTED"
IMPORT_DIFFERS = "IMPORT_DIFFERS"
IMPORT_HELD = "IMPORT_HELD"
IMPORT_FAMILY_OPEN = "IMPORT_FAMILY_OPEN"


async def import_run(store: Store, lines: Iterable[bytes], accepted: Callable[[], frozenset[str]]) -> tuple[str, int]:
    """Write the run of an export into a store; gives its id, and how many turns were written. Raises with a code."""
    text = tuple(lines)
    export = read_export(text)
    run_id, signer = export.run_id, export.signer
    if signer not in (trusted := accepted()):
        message = (
            f"the export of run {run_id} is signed by {signer}, a signer that you have not accepted; name it with --key"
        )
        raise RequestRejected(IMPORT_NOT_TRUSTED, message, {"run_id": run_id, "signer": signer})
    if not (found := verify_export(text, signer=trusted)).ok:
        message = f"the export of run {run_id} does not verify: {found.findings[0].code.value}; export it again"
        raise RequestRejected(IMPORT_UNVERIFIED, message, {"run_id": run_id})
    steps = linked_turns(run_id, export.data)
    expect_no_open_children(run_id, steps)
    token = await store.leases.take(run_id)
    if token is None:
        message = f"run {run_id} is driven here by another process; it needs no import"
        raise RequestRejected(IMPORT_HELD, message, {"run_id": run_id})
    try:
        return run_id, await _write(store, export, steps, token)
    finally:
        await store.leases.release(run_id, token)


def expect_no_open_children(run_id: str, steps: Sequence[Linked]) -> None:
    """Refuse a run that waits for runs beneath it: its file does not hold them, so what they did would be done again."""
    state = RunState()
    for step in steps:
        apply(state, step.turn, step.link)
    if open_ones := [one.run_id for one in state.commands.open.values() if isinstance(one, StartChild)]:
        message = (
            f"run {run_id} waits for {len(open_ones)} runs beneath it, {open_ones[0]} among them, which its export does not"
            " hold; let them end where they are, then export it again"
        )
        raise RequestRejected(IMPORT_FAMILY_OPEN, message, {"run_id": run_id, "child": open_ones[0]})


async def _write(store: Store, export: Export, steps: Sequence[Linked], token: int) -> int:
    run_id = export.run_id
    there = await store.journal.read(run_id)
    if tuple(there) != export.data[: len(there)]:
        message = f"run {run_id} is here with other turns than the export has; delete it first, or keep it"
        raise RequestRejected(IMPORT_DIFFERS, message, {"run_id": run_id})
    for digest, data in export.blobs.items():
        await store.blobs.put(digest, data)
    barriers, place, last = _barriers(steps), there.place if there else START, len(steps) - 1
    for seq in range(len(there), len(steps)):
        arrival, barrier = steps[seq].turn.arrival, barriers[seq]
        listing = run_listing(arrival.manifest, steps[seq].turn.at_ms) if isinstance(arrival, RunStarted) else None
        signed = last if seq == 0 else seq
        # The head of the last turn was written with the first one.
        is_signed = seq == 0 or (barrier is not None and seq != last)
        head = _head(store, run_id, steps[signed], barriers[signed]) if is_signed else None
        place = await store.journal.append(run_id, export.data[seq], place, barrier, listing, Warrant(token, head))
    return len(steps) - len(there)


def _barriers(steps: Sequence[Linked]) -> list[Barrier | None]:
    """What each turn was kept with."""
    state, barriers = RunState(), list[Barrier | None]()
    for step in steps:
        barriers.append(barrier_of(state, step.turn))
        apply(state, step.turn, step.link)
    return barriers


def _head(store: Store, run_id: str, step: Linked, barrier: Barrier | None) -> SignedHead | None:
    if store.key is None:
        return None
    ending = "" if barrier is None else barrier.ending
    return sign_head(store.key.signer, run_id=run_id, seq=step.turn.seq, head=step.link, ending=ending)
