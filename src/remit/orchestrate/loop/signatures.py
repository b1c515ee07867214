"""What a deployment vouches for: heads of turns and kept states, signed before any backend is given them.

Rule 1: a turn that is acted on is signed, and so is the first turn of a run, which names its code.
Rule 2: the key is asked for before anything is written: one that cannot be had refuses the turn.
Rule 3: a kept state that this deployment did not sign is not taken up; a process that only reads makes no key for it.
"""

import logging
from collections.abc import Sequence

from remit.core.journal.codec import hash_turn
from remit.core.journal.commands import Command
from remit.core.journal.signing import is_snapshot_signed, sign_head, sign_snapshot
from remit.core.journal.storage import Barrier, Place, RunListing, SignedHead, Snapshot, Stretch, Warrant
from remit.core.record import replace
from remit.observe.logs import run_fields
from remit.orchestrate.ports import Journal, SigningKey, Snapshots

_NO_WARRANT = Warrant()

_log = logging.getLogger(__name__)


class SignedJournal:
    """A journal that is given the signed heads of its turns."""

    def __init__(self, journal: Journal, key: SigningKey) -> None:
        self._journal = journal
        self._key = key

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        """Write the next turn of a run that stands at `after`, signed where it has a barrier or a listing."""
        if barrier is not None or listing is not None:
            seq, ending = (0, "") if barrier is None else (barrier.seq, barrier.ending)
            warrant = replace(warrant or _NO_WARRANT, head=head_of(self._key, run_id, data, seq, ending))
        return await self._journal.append(run_id, data, after, barrier, listing, warrant, orders)

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        return await self._journal.read(run_id, after=after)


class SignedSnapshots:
    """Snapshots that this deployment has signed."""

    def __init__(self, snapshots: Snapshots, key: SigningKey) -> None:
        self._snapshots = snapshots
        self._key = key

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        """Keep a state instead of any that was kept before, signed."""
        signature = signature or sign_snapshot(self._key.signer, Snapshot(run_id, seq, head, data))
        await self._snapshots.keep(run_id, seq, head, data, signature)

    async def latest(self, run_id: str) -> Snapshot | None:
        """The state that was kept last, if this deployment has signed it."""
        snapshot = await self._snapshots.latest(run_id)
        if snapshot is None:
            return None
        if not self._key.is_made or not is_snapshot_signed(self._key.signer.did, snapshot, snapshot.signature):
            _log.warning("a snapshot is not signed by this deployment and is not used", extra=run_fields(run_id))
            return None
        return snapshot


def head_of(key: SigningKey | None, run_id: str, data: bytes, seq: int, ending: str = "") -> SignedHead | None:
    """The signed head of turn number `seq`; None where nothing is signed."""
    if key is None:
        return None
    return sign_head(key.signer, run_id=run_id, seq=seq, head=hash_turn(data), ending=ending)


def signed_journal(journal: Journal, key: SigningKey | None) -> Journal:
    """A journal whose turns are signed with a key; the journal itself where there is none."""
    return journal if key is None else SignedJournal(journal, key)


def signed_snapshots(snapshots: Snapshots, key: SigningKey | None) -> Snapshots:
    """Snapshots that are signed with a key; as they are where there is none."""
    return snapshots if key is None else SignedSnapshots(snapshots, key)
