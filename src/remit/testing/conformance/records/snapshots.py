"""What all Snapshots must do.

A check is a coroutine function. It opens an empty journal and its snapshots with the function it is given, uses them,
and raises AssertionError with a sentence when they do not do what the runner relies on. Run each of SNAPSHOTS_CHECKS
against your snapshots, with any test runner. Snapshots may forget; those that are checked have no reason to.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.codec import hash_turn
from remit.core.journal.storage import Snapshot
from remit.orchestrate.ports import Journal, Snapshots
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import RUN, add

# Opens a journal and snapshots of its runs, both empty, and closes them afterwards.
OpenSnapshots = Callable[[], AbstractAsyncContextManager[tuple[Journal, Snapshots]]]
SnapshotsCheck = Callable[[OpenSnapshots], Coroutine[Any, Any, None]]

RIVALS = 20
# A run of some thousand turns.
LARGE_BYTES = 4 << 20
EVERY_BYTE = bytes(range(256))


async def a_run_that_nobody_kept_has_no_snapshot(open_snapshots: OpenSnapshots) -> None:
    """Nothing is made up for a run without a snapshot, whether it was started or not."""
    async with open_snapshots() as (journal, snapshots):
        await _run(journal, RUN, 1)
        assert await snapshots.latest(RUN) is None, "a state that was never kept is found"
        assert await snapshots.latest("unknown") is None, "a run that was never started has a snapshot"


async def a_snapshot_comes_back_exactly(open_snapshots: OpenSnapshots) -> None:
    """A state is bytes; nothing is decoded, trimmed or terminated by a zero, and it says where it belongs."""
    async with open_snapshots() as (journal, snapshots):
        for number, data in enumerate((EVERY_BYTE, b"\x00", b"\xff\xfe\r\n", EVERY_BYTE * (LARGE_BYTES // 256))):
            kept = await _keep(journal, snapshots, f"run{number}", 3, data)
            found = await snapshots.latest(kept.run_id)
            assert found == kept, f"a snapshot of {len(data)} bytes changed on its way"


async def the_newest_snapshot_is_found(open_snapshots: OpenSnapshots) -> None:
    """One that is kept later stands for all before it."""
    async with open_snapshots() as (journal, snapshots):
        await _keep(journal, snapshots, RUN, 2, b"older and longer")
        newer = Snapshot(RUN, 1, hash_turn(f"{RUN} 1".encode()), b"newer")
        await snapshots.keep(newer.run_id, newer.seq, newer.head, newer.data)
        assert await snapshots.latest(RUN) == newer, "what was kept last is not what is found"


async def snapshots_do_not_mix(open_snapshots: OpenSnapshots) -> None:
    """Every run has its own, whatever its name looks like."""
    async with open_snapshots() as (journal, snapshots):
        names = ["a", "A", "a.1", "a/1", "ä'; --", "%", "_"]
        kept = [await _keep(journal, snapshots, name, number, name.encode()) for number, name in enumerate(names)]
        for snapshot in kept:
            found = await snapshots.latest(snapshot.run_id)
            assert found == snapshot, f"the snapshot of {snapshot.run_id!r} is another one"


async def many_may_be_kept_at_once(open_snapshots: OpenSnapshots) -> None:
    """Runs do not wait for each other."""
    async with open_snapshots() as (journal, snapshots):
        made = [_keep(journal, snapshots, f"run{rival}", 1, b"%d" % rival * 1000) for rival in range(RIVALS)]
        for snapshot in await asyncio.gather(*made):
            found = await snapshots.latest(snapshot.run_id)
            assert found == snapshot, f"the snapshot of {snapshot.run_id} is lost or another one"


async def a_snapshot_changes_no_turn(open_snapshots: OpenSnapshots) -> None:
    """It is a cache beside the journal."""
    async with open_snapshots() as (journal, snapshots):
        await _keep(journal, snapshots, RUN, 2, b"state")
        await add(journal, RUN, f"{RUN} 3".encode())
        turns = list(await journal.read(RUN))
        assert turns == [f"{RUN} {number}".encode() for number in range(4)], f"the turns beside a snapshot are {turns}"


async def a_signature_is_kept_with_its_snapshot(open_snapshots: OpenSnapshots) -> None:
    """Who vouches for a state is asked when it is taken up; a backend only keeps what it was given."""
    async with open_snapshots() as (journal, snapshots):
        head = await _run(journal, RUN, 1)
        await snapshots.keep(RUN, 1, head, b"state", b"signature")
        found = await snapshots.latest(RUN)
        assert found == Snapshot(RUN, 1, head, b"state", b"signature"), f"a signed snapshot came back as {found}"


SNAPSHOTS_CHECKS: Sequence[SnapshotsCheck] = in_words(
    a_run_that_nobody_kept_has_no_snapshot,
    a_snapshot_comes_back_exactly,
    the_newest_snapshot_is_found,
    snapshots_do_not_mix,
    many_may_be_kept_at_once,
    a_snapshot_changes_no_turn,
    a_signature_is_kept_with_its_snapshot,
)


async def _run(journal: Journal, run_id: str, seq: int) -> bytes:
    """Write a run up to a turn; gives the hash of that turn."""
    turns = [f"{run_id} {number}".encode() for number in range(seq + 1)]
    for turn in turns:
        await add(journal, run_id, turn)
    return hash_turn(turns[-1])


async def _keep(journal: Journal, snapshots: Snapshots, run_id: str, seq: int, data: bytes) -> Snapshot:
    """A run up to a turn, and a snapshot of it there."""
    head = await _run(journal, run_id, seq)
    await snapshots.keep(run_id, seq, head, data)
    return Snapshot(run_id, seq, head, data)
