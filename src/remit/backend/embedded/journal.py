"""The journal: turns of every run, in one table, the turns that many runs have in a tick in one commit.

Rule 1: bytes in, bytes out; what a turn means, and whether its chain holds, is not asked here.
Rule 2: a turn with a barrier is committed together with its signed head, the standing of its run in the index and
        the entry of the inbox that it answers; it is told of once all that outlives the power.
        The first turn of a run names its code, so it is signed in any case; without a barrier nobody waits for it.
Rule 3: so is what a first turn reserves of its tenant's quotas, and what an ended run came to. A run that reserves
        nothing asks nothing of them.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from remit.backend.embedded.database import Reader
from remit.backend.embedded.inbox import IS_SETTLED, SETTLE
from remit.backend.embedded.quotas import check_room, reserve, settle
from remit.backend.embedded.writer import Outcome, Unawaited, Writer
from remit.core.codec import hash_turn
from remit.core.signing import Signer, sign_head
from remit.core.storage import AppendConflict, Barrier, EntrySettled, Listing, SessionConflict, SignedHead

_BEGIN_RUN = (
    "INSERT OR IGNORE INTO runs (run_id, started_at_ms, mode, tenant_id, session_id, ordinal, parent_id, likeness)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_BEGIN_UNLISTED_RUN = "INSERT OR IGNORE INTO runs (run_id) VALUES (?)"
_FIRST_TURN = "INSERT INTO turns (run_no, seq, data) VALUES (?, 0, ?)"
# Written only after the turn it follows, and only where no other stands.
_NEXT_TURN = (
    "INSERT OR IGNORE INTO turns (run_no, seq, data) SELECT run_no, ?2 + 1, ?3 FROM turns"
    " WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?1) AND seq = ?2"
)
_HEAD = (
    "INSERT INTO heads (run_no, seq, head, ending, signer, signature)"
    " SELECT run_no, ?2, ?3, ?4, ?5, ?6 FROM runs WHERE run_id = ?1"
)
_STANDING = "UPDATE runs SET ending = ?2, waiting_for = ?3, ended_at_ms = ?4 WHERE run_id = ?1"
_LAST = "SELECT coalesce(max(seq), -1) FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?)"
_UNSIGNED = (
    "SELECT seq, data, ending FROM turns JOIN runs USING (run_no) WHERE run_id = ?"
    " AND run_no NOT IN (SELECT run_no FROM heads) ORDER BY seq DESC LIMIT 1"
)
_READ = "SELECT data FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) AND seq > ? ORDER BY seq"


class SQLiteJournal:
    """Turns in the database of a store."""

    def __init__(self, writer: Writer, reader: Reader, signer: Callable[[], Signer]) -> None:
        self._writer = writer
        self._reader = reader
        self._signer = signer

    async def append(
        self, run_id: str, data: bytes, after: int, barrier: Barrier | None = None, listing: Listing | None = None
    ) -> None:
        """Write the turn that follows number `after`, or raise AppendConflict."""
        # Asked for here, because a key that cannot be had must refuse the turn before anything of it is written.
        signer = None if barrier is None and listing is None else self._signer()
        act = partial(_append, self._writer.now_ms, signer, run_id, data, after, barrier, listing)
        await self._writer.submit(act, len(data))

    async def vouch(self, run_id: str) -> None:
        """Sign for a run that nobody has signed for yet, as it stands."""
        act = partial(_vouch, self._signer(), run_id)
        await self._writer.submit(act)

    async def read(self, run_id: str, *, after: int = -1) -> Sequence[bytes]:
        """The turns that follow number `after`, oldest first."""
        return [data for (data,) in self._reader.rows(_READ, (run_id, after))]


def _append(
    now_ms: Callable[[], int],
    signer: Signer | None,
    run_id: str,
    data: bytes,
    after: int,
    barrier: Barrier | None,
    listing: Listing | None,
    cursor: sqlite3.Cursor,
) -> Outcome:
    if barrier is not None and barrier.heard and cursor.execute(IS_SETTLED, (barrier.heard,)).fetchone() is not None:
        raise EntrySettled(run_id, barrier.heard)
    if after == -1:
        cursor.execute(_FIRST_TURN, (_begin(cursor, run_id, listing), data))
    elif cursor.execute(_NEXT_TURN, (run_id, after, data)).rowcount != 1:
        raise _conflict(cursor, run_id, after)
    if signer is None:
        return None, None
    if barrier is None:
        return None, Unawaited(_signed(cursor, signer, run_id, after + 1, data, ""))
    return None, _settle(cursor, signer, barrier, now_ms(), run_id, after + 1, data)


def _begin(cursor: sqlite3.Cursor, run_id: str, listing: Listing | None) -> int | None:
    """The number of a new run; raises when the run has begun, or its place in its session is taken."""
    if listing is None:
        cursor.execute(_BEGIN_UNLISTED_RUN, (run_id,))
    else:
        if listing.reserves is not None:
            check_room(cursor, run_id, listing.tenant_id, listing.reserves)
        cursor.execute(
            _BEGIN_RUN,
            (
                run_id,
                listing.started_at_ms,
                listing.mode,
                listing.tenant_id,
                listing.session_id,
                listing.ordinal,
                listing.parent_id,
                listing.likeness,
            ),
        )
    if cursor.rowcount == 1:
        run_no = cursor.lastrowid
        if listing is not None and listing.reserves is not None:
            reserve(cursor, run_no, listing.tenant_id, listing.reserves)
        return run_no
    conflict = _conflict(cursor, run_id, -1)
    if conflict.details["last"] == -1 and listing is not None:
        raise SessionConflict(listing.session_id, listing.ordinal)
    raise conflict


def _settle(
    cursor: sqlite3.Cursor, signer: Signer, barrier: Barrier, at_ms: int, run_id: str, seq: int, data: bytes
) -> SignedHead:
    """What is committed together with a turn that somebody will act on."""
    head = _signed(cursor, signer, run_id, seq, data, barrier.ending)
    cursor.execute(_STANDING, (run_id, barrier.ending, barrier.waiting_for, at_ms if barrier.ending else None))
    if barrier.heard:
        cursor.execute(SETTLE, (barrier.heard, "", barrier.answer, at_ms))
    if barrier.charge is not None:
        settle(cursor, barrier.charge)
    return head


def _signed(cursor: sqlite3.Cursor, signer: Signer, run_id: str, seq: int, data: bytes, ending: str) -> SignedHead:
    head = sign_head(signer, run_id=run_id, seq=seq, head=hash_turn(data), ending=ending)
    cursor.execute(_HEAD, (run_id, seq, head.head, head.ending, head.signer, head.signature))
    return head


def _vouch(signer: Signer, run_id: str, cursor: sqlite3.Cursor) -> Outcome:
    found = cursor.execute(_UNSIGNED, (run_id,)).fetchone()
    return None, None if found is None else _signed(cursor, signer, run_id, found[0], found[1], found[2])


def _conflict(cursor: sqlite3.Cursor, run_id: str, after: int) -> AppendConflict:
    (last,) = cursor.execute(_LAST, (run_id,)).fetchone()
    return AppendConflict(run_id, after, last)
