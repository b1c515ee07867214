"""When a run's state is kept, and how a run is taken up from one.

Rule 1: a snapshot is a cache. Whatever is wrong with it, the run is folded from its first turn on, as without it.
Rule 2: a snapshot belongs to a turn: it is taken up only where the turn of its number has the hash that it names.
Rule 3: keeping one never fails a run.
"""

import logging
from collections.abc import Sequence

from remit.core.failure import RemitError
from remit.core.journal.codec import hash_turn
from remit.core.journal.storage import Place, Snapshot
from remit.core.run.run_events import expect_unreadable
from remit.kernel.fold.snapshot import snapshot_of, state_from
from remit.kernel.state import RunState
from remit.observe.linked_turns import Linked, linked_turns
from remit.observe.logs import run_fields
from remit.orchestrate.loop.live import Live
from remit.orchestrate.ports import Journal, Snapshots

# Fewer turns are folded in about a millisecond. A snapshot would save half of that, which is not worth its bytes.
SNAPSHOT_TURNS_MIN = 256
# A snapshot grows with its run, so one every so many turns would write the square of what the run writes. One each
# time that the run has grown by a third writes at most four times what the last one takes, however long the run, and
# leaves at most a quarter of its turns to be folded.
SNAPSHOT_NEW_SHARE = 4
# It is made and committed on the event loop, where all runs wait for it: a tenth of a second for this much.
SNAPSHOT_BYTES_MAX = 16 << 20

_log = logging.getLogger(__name__)


async def restore_state(live: Live, snapshots: Snapshots, journal: Journal) -> tuple[Sequence[Linked], Place] | None:
    """Give a run the state that was kept of it, and say which turns follow and where it stands then.

    None when it has to be folded whole.
    """
    run_id = live.run_id
    try:
        snapshot = await snapshots.latest(run_id)
        if snapshot is None:
            return None
        stored = await journal.read(run_id, after=snapshot.seq - 1)
        state = _state_in(snapshot, stored)
    except RemitError as error:
        expect_unreadable(error)
        _log.warning("the snapshot of a run cannot be used: %s", error, extra=run_fields(run_id))
        return None
    if state is None:
        message = "the snapshot of a run belongs to another turn or another version; the run is folded"
        _log.info(message, extra=run_fields(run_id))
        return None
    later = linked_turns(run_id, stored[1:], after=state.seq, head=state.head)
    live.state, live.snapshot_seq = state, state.seq
    return later, stored.place


def _state_in(snapshot: Snapshot, stored: Sequence[bytes]) -> RunState | None:
    """The state in a snapshot, given what is stored from its turn on; None where it does not belong there."""
    if not stored or hash_turn(stored[0]) != snapshot.head:
        return None
    state = state_from(snapshot.data)
    if state is None or (state.run_id, state.seq, state.head) != (snapshot.run_id, snapshot.seq, snapshot.head):
        return None
    return state


async def keep_if_due(live: Live, snapshots: Snapshots) -> None:
    """Keep the state of a run that rests, when enough turns were taken since the last time."""
    state = live.state
    if not is_due(state.seq + 1, live.snapshot_seq + 1):
        return
    data = snapshot_of(state)
    if data is None or len(data) > SNAPSHOT_BYTES_MAX:
        return
    seq = state.seq
    try:
        await snapshots.keep(live.run_id, seq, state.head, data)
    except RemitError as error:
        # The turns are written, and the next one to be kept makes up for it.
        _log.warning("no snapshot of a run was kept: %s", error, extra=run_fields(live.run_id, state))
        return
    live.snapshot_seq = seq


def is_due(turns: int, turns_kept: int) -> bool:
    """Whether a run of so many turns is worth another snapshot, given how many the last one covers."""
    new = turns - turns_kept
    return new >= SNAPSHOT_TURNS_MIN and new * SNAPSHOT_NEW_SHARE >= turns
