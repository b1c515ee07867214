"""The journal: turns of every run, in one table, the turns that many runs have in a tick in one commit.

Rule 1: bytes in, bytes out; what a turn means, and whether its chain holds, is not asked here.
Rule 2: a turn with a barrier is committed together with its signed head, the standing of its run in the index and
        the entry of the inbox that it answers; it is told of once all that outlives the power.
        A head that comes without a barrier is logged later, and no caller waits for it.
Rule 3: so is what a first turn reserves of its tenant's quotas, and what an ended run came to. A run that reserves
        nothing asks nothing of them.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from remit.backend.embedded.disk.database import ReadConnection
from remit.backend.embedded.disk.tables import NEWEST_TURN, joined_lineage
from remit.backend.embedded.disk.writer import Act, Awaited, Outcome, Unawaited, Writer
from remit.backend.embedded.inbox import IS_SETTLED, SETTLE
from remit.backend.embedded.leases import FileLeases
from remit.backend.embedded.ledger import check_quota_room, reserve, settle_run
from remit.core.journal.commands import Command
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    EntrySettled,
    LeaseLost,
    Place,
    RunListing,
    SessionConflict,
    SignedHead,
    Stretch,
    Warrant,
    WrittenTurn,
)

_BEGIN_RUN = (
    "INSERT OR IGNORE INTO runs (run_id, started_at_ms, mode, tenant_id, session_id, ordinal, parent_id, likeness,"
    " lineage, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
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
_VOUCHED = "SELECT 1 FROM heads WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) LIMIT 1"
# A run that is not listed, as the journal of halts, is not followed.
_SINCE = (
    "SELECT turn_no, run_id, seq, data FROM turns JOIN runs USING (run_no)"
    " WHERE turn_no > ? AND started_at_ms IS NOT NULL ORDER BY turn_no LIMIT ?"
)
_READ = "SELECT data FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) AND seq > ? ORDER BY seq"


class SQLiteJournal:
    """Turns in the database of a store."""

    def __init__(self, writer: Writer, reader: ReadConnection, leases: FileLeases) -> None:
        self._writer = writer
        self._reader = reader
        self._leases = leases

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
        """Write the next turn of a run that stands at `after`, or raise AppendConflict. A place is the number of a turn."""
        head = None if warrant is None else warrant.head
        act = partial(_append, self._writer.now_ms, head, run_id, data, after, barrier, listing)
        if warrant is not None and warrant.token:
            act = partial(_held, self._leases, run_id, warrant.token, act)
        await self._writer.submit(act, len(data))
        return after + 1

    async def vouch(self, head: SignedHead) -> None:
        """Keep a head of a run that is not signed for yet; else nothing."""
        await self._writer.submit(partial(_vouch, head))

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        turns = [data for (data,) in self._reader.rows(_READ, (run_id, after))]
        if turns or after < 0:
            return Stretch(turns, max(after, START) + len(turns))
        ((last,),) = self._reader.rows(_LAST, (run_id,))
        return Stretch((), last)


class SQLiteFeed:
    """Turns by their number in the database: writers take turns, so numbers become visible in their order."""

    def __init__(self, reader: ReadConnection) -> None:
        self._reader = reader

    async def since(self, place: Place, *, limit: int) -> Sequence[WrittenTurn]:
        """The turns of listed runs behind a place, oldest first, at most so many."""
        return [WrittenTurn(*row) for row in self._reader.rows(_SINCE, (place, limit))]

    async def end(self) -> Place:
        """The place of the newest turn."""
        ((place,),) = self._reader.rows(NEWEST_TURN)
        return int(place)


def _held(leases: FileLeases, run_id: str, token: int, act: Act, cursor: sqlite3.Cursor) -> Outcome:
    """Do something for a run that is held under this token when it is written, not only when it was asked for."""
    if not leases.is_current(run_id, token):
        raise LeaseLost(run_id)
    return act(cursor)


def _append(
    now_ms: Callable[[], int],
    head: SignedHead | None,
    run_id: str,
    data: bytes,
    after: Place,
    barrier: Barrier | None,
    listing: RunListing | None,
    cursor: sqlite3.Cursor,
) -> Outcome:
    if barrier is not None and barrier.heard and cursor.execute(IS_SETTLED, (barrier.heard,)).fetchone() is not None:
        raise EntrySettled(run_id, barrier.heard)
    if after == START:
        cursor.execute(_FIRST_TURN, (_begin(cursor, run_id, listing), data))
    elif cursor.execute(_NEXT_TURN, (run_id, after, data)).rowcount != 1:
        raise AppendConflict(run_id)
    if head is not None:
        _keep_head(cursor, head)
    if barrier is None:
        return None, None if head is None else Unawaited(head)
    _settle(cursor, barrier, now_ms(), run_id)
    return None, Awaited(head)


def _begin(cursor: sqlite3.Cursor, run_id: str, listing: RunListing | None) -> int | None:
    """The number of a new run; raises when the run has begun, or its place in its session is taken."""
    if listing is None:
        cursor.execute(_BEGIN_UNLISTED_RUN, (run_id,))
    else:
        if listing.reserves is not None:
            check_quota_room(cursor, run_id, listing.tenant_id, listing.reserves)
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
                joined_lineage(listing.lineage),
                listing.name,
            ),
        )
    if cursor.rowcount == 1:
        run_no = cursor.lastrowid
        if listing is not None and listing.reserves is not None:
            reserve(cursor, run_no, listing.tenant_id, listing.reserves)
        return run_no
    if listing is not None and cursor.execute(_LAST, (run_id,)).fetchone() == (START,):
        raise SessionConflict(listing.session_id, listing.ordinal)
    raise AppendConflict(run_id)


def _settle(cursor: sqlite3.Cursor, barrier: Barrier, at_ms: int, run_id: str) -> None:
    """Write what is committed together with a turn that is acted on."""
    cursor.execute(_STANDING, (run_id, barrier.ending, barrier.waiting_for, at_ms if barrier.ending else None))
    if barrier.heard:
        cursor.execute(SETTLE, (barrier.heard, "", barrier.answer, at_ms))
    if barrier.charge is not None:
        settle_run(cursor, barrier.charge)


def _keep_head(cursor: sqlite3.Cursor, head: SignedHead) -> None:
    cursor.execute(_HEAD, (head.run_id, head.seq, head.head, head.ending, head.signer, head.signature))


def _vouch(head: SignedHead, cursor: sqlite3.Cursor) -> Outcome:
    if cursor.execute(_VOUCHED, (head.run_id,)).fetchone() is not None:
        return None, None
    _keep_head(cursor, head)
    return None, Awaited(head)
