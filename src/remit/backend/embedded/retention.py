"""Retention: removing runs, and the texts that only they referred to.

Rule 1: a run goes with the runs beneath it, all of them or none, and every other run verifies as before. A signed line
        in heads.log says that they were deleted on purpose; it is written first, so a run is never gone without it.
Rule 2: a text goes when no turn refers to it. One that was put within the last TEXT_GRACE_MS may belong to a turn that
        is about to be written, and stays, unless no other process has the store open and nothing is driven here.
Rule 3: everything happens in a thread and in short transactions, so that runs go on meanwhile.
Rule 4: what will still be asked for stays: a child whose parent is open, and the newest run of a session with all
        that came from it.
Rule 5: the values that were sealed for a run go with it.
Rule 6: what a run cost its tenant stays counted in the period in which it began.
Rule 7: what is removed has ended, and belongs where it is said to, by its own turns. The list of runs is derived from them
        and may be wrong.
Rule 8: a turn refers to a text by its 32-byte digest, and whatever in a turn has that shape counts as a reference: a text
        may be kept in error, never removed in error. Nothing is counted when a turn is written, which keeps appending
        fast. A sweep reads the turns instead: most of them while others write, the rest inside the transaction that removes.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from remit.backend.embedded.disk.database import DATABASE, Users, connect_to_database
from remit.backend.embedded.disk.disk_failures import BUSY, READ_ONLY, disk_failure, store_unusable
from remit.backend.embedded.disk.locks import FileLocks
from remit.backend.embedded.disk.tables import NEWEST_TURN, NOBODY, split_lineage
from remit.backend.embedded.heads_file import HeadsFile
from remit.backend.embedded.journal_names import Journals
from remit.backend.embedded.ledger import close_deleted
from remit.backend.embedded.seals import FileSeals
from remit.core.journal.codec import digests_in, hash_turn
from remit.core.journal.ended import Belongings, ended_at_ms, is_child_of, is_over, parent_in
from remit.core.journal.signing import Signer, sign_deletion
from remit.core.journal.storage import ANSWER_GRACE_MS, STORE_INDEX_LOST, TEXT_GRACE_MS, ParentOpen, Removed

# Turns and texts per query or transaction: milliseconds each, so that no writer waits longer.
_TURNS_AT_ONCE = 1_000
_TEXTS_AT_ONCE = 100

_TURNS = "SELECT turn_no, run_no, data FROM turns WHERE turn_no > ? ORDER BY turn_no LIMIT ?"
_TURNS_OF_RUN = "SELECT data FROM turns WHERE run_no = ?"
_OLD_TEXTS = "SELECT digest, length(data) FROM blobs WHERE put_at_ms < ?"
_TEXT = "SELECT length(data) FROM blobs WHERE digest = ?"
_REMOVE = "DELETE FROM blobs WHERE digest = ? AND put_at_ms < ?"
# Runs that are signed for with one sync of the log.
_RUNS_AT_ONCE = 100
# Rewriting the file pays when this share of it is empty.
_EMPTY_SHARE_MIN = 0.25
# Readers of remit take milliseconds; a clearing that has to wait longer is left to the next checkpoint.
_CLEARING_MS_MAX = 500
_FIRST = "SELECT parent_id, data FROM runs JOIN turns USING (run_no) WHERE run_id = ? AND seq = 0"
_CHILDREN = "SELECT run_no, run_id, data FROM runs JOIN turns USING (run_no) WHERE parent_id = ? AND seq = 0"
_ENDED = (
    "SELECT run_no, run_id, parent_id FROM runs WHERE ending <> '' AND ended_at_ms < ?"
    " AND parent_id NOT IN (SELECT run_id FROM runs WHERE ending = '') ORDER BY run_no"
)
_RUN_NO = "SELECT run_no FROM runs WHERE run_id = ?"
_BACKWARDS = "SELECT data FROM turns WHERE run_no = ? ORDER BY seq DESC"
_LINEAGES = "SELECT run_id, lineage FROM runs WHERE lineage <> ''"
# Of each session the run with the highest place: SQLite takes the other columns from the row that has the maximum.
_NEWEST = "SELECT run_id, max(ordinal) FROM runs WHERE session_id <> '' GROUP BY tenant_id, session_id"
_LAST_TURN = "SELECT seq, data FROM turns WHERE run_no = ? ORDER BY seq DESC LIMIT 1"
_COUNT_TURNS = "SELECT count(*) FROM turns WHERE run_no = ?"
_COUNT_ENTRIES = "SELECT count(*) FROM inbox WHERE run_id = ?"
_ANSWERS = "SELECT run_id FROM inbox WHERE settled_at_ms < ?"
_REMOVE_ANSWERS = "DELETE FROM inbox WHERE settled_at_ms < ?"
_log = logging.getLogger(__name__)


class Sweep:
    """One pass over a store. `texts` are the candidates: digest and size of those that no turn was seen to refer to."""

    def __init__(self, connection: sqlite3.Connection, texts: dict[bytes, int]) -> None:
        self._connection = connection
        self._turn_no = 0
        self.texts = texts

    def spare_referred(self, *, besides: Collection[int] = ()) -> None:
        """Strike out what the turns refer to that were not looked at yet, those of some runs excepted."""
        while rows := self._connection.execute(_TURNS, (self._turn_no, _TURNS_AT_ONCE)).fetchall():
            self._turn_no = rows[-1][0]
            for _, run_no, data in rows:
                if run_no not in besides:
                    for digest in digests_in(data):
                        self.texts.pop(digest, None)

    def remove(self, put_before_ms: Callable[[], int]) -> tuple[int, int]:
        """Remove the candidates that were put before a time, asked anew for each piece; gives number and bytes."""
        count = size_bytes = 0
        self.spare_referred()
        for start in range(0, len(garbage := list(self.texts)), _TEXTS_AT_ONCE):
            with transaction(self._connection):
                self.spare_referred()
                cutoff_ms = put_before_ms()
                for digest in garbage[start : start + _TEXTS_AT_ONCE]:
                    if digest in self.texts and self._connection.execute(_REMOVE, (digest, cutoff_ms)).rowcount:
                        count, size_bytes = count + 1, size_bytes + self.texts.pop(digest)
        return count, size_bytes


def texts_of_run(connection: sqlite3.Connection, run_no: int) -> dict[bytes, int]:
    """The texts that a run refers to, with their sizes."""
    found = {digest for (data,) in connection.execute(_TURNS_OF_RUN, (run_no,)) for digest in digests_in(data)}
    sizes = ((digest, connection.execute(_TEXT, (digest,)).fetchone()) for digest in found)
    return {digest: size[0] for digest, size in sizes if size is not None}


def old_texts(connection: sqlite3.Connection, put_before_ms: int) -> dict[bytes, int]:
    """All texts that were put before a time, with their sizes."""
    return dict(connection.execute(_OLD_TEXTS, (put_before_ms,)).fetchall())


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all that is written inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class SQLiteRetention:
    """Removes runs and texts from one store."""

    def __init__(
        self,
        home: Path,
        *,
        locks: FileLocks,
        users: Users,
        signer: Callable[[], Signer],
        now_ms: Callable[[], int],
        is_read_only: bool = False,
    ) -> None:
        self._is_read_only = is_read_only
        self._home = home
        self._path = home / DATABASE
        self._locks = locks
        self._users = users
        self._signer = signer
        self._now_ms = now_ms

    async def delete(self, run_id: str) -> Removed:
        """Remove a run however it stands, the runs beneath it, and the texts that only they referred to.

        Nothing where it was not started. A child whose parent is open is refused with PARENT_OPEN, and a family of
        which one is driven with STORE_BUSY; then nothing of it is gone.
        """
        return await asyncio.to_thread(self._delete, run_id)

    async def gc(self, *, ended_before_ms: int, dry_run: bool = False) -> Removed:
        """Remove the runs that ended before a time, texts that no turn refers to, and inbox entries long settled."""
        return await asyncio.to_thread(self._count if dry_run else self._collect, ended_before_ms)

    def _delete(self, run_id: str) -> Removed:
        with self.cleaning() as connection:
            found = connection.execute(_FIRST, (run_id,)).fetchone()
            if found is None:
                return Removed()
            parent_id = parent_in(found[1], listed=found[0])
            if _goes_on(connection, Journals(connection), parent_id):
                raise ParentOpen(run_id, parent_id)
            with self.hold_family(connection, run_id, what="deleted") as runs:
                mentioned: dict[bytes, int] = {}
                for run_no in runs:
                    mentioned |= texts_of_run(connection, run_no)
                sweep = Sweep(connection, mentioned)
                count, turns, entries = self._remove_runs(connection, runs)
            texts, text_bytes = sweep.remove(self._forgotten_before_ms)
            self.shrink(connection)
        return Removed(
            runs=count,
            turns=turns,
            texts=texts,
            text_bytes=text_bytes,
            texts_spared=len(sweep.texts),
            inbox_entries=entries,
        )

    @contextmanager
    def hold_family(self, connection: sqlite3.Connection, run_id: str, *, what: str) -> Iterator[dict[int, str]]:
        """A run and all beneath it, the deepest first, every one of them held; `what` cannot be done where one is driven."""
        taken: dict[int, str] = {}
        try:
            # A run that is held begins no more children, so what is beneath those that are held is all there is.
            while new := [row for row in _family(connection, run_id) if row[0] not in taken]:
                for run_no, member in new:
                    if not self._locks.take(member):
                        which = "it" if member == run_id else f"run {run_id} above it"
                        raise disk_failure(
                            BUSY, self._path, f"run {member} is being driven, so {which} cannot be {what}"
                        )
                    taken[run_no] = member
            if child := Journals(connection).unlisted_child(taken.values()):
                raise disk_failure(STORE_INDEX_LOST, self._path, f"run {child} beneath {run_id} is kept and not listed")
            yield dict(reversed(taken.items()))
        finally:
            for member in taken.values():
                self._locks.release(member)

    def _collect(self, ended_before_ms: int) -> Removed:
        runs = turns = entries = 0
        with self.cleaning() as connection:
            collectable, ill_listed = _collectable(connection, ended_before_ms)
            ended = list(collectable.items())
            for start in range(0, len(ended), _RUNS_AT_ONCE):
                # A process may be writing an addendum to a run that cannot be taken; it will be as old tomorrow.
                taken = {no: run_id for no, run_id in ended[start : start + _RUNS_AT_ONCE] if self._locks.take(run_id)}
                try:
                    removed = self._remove_runs(connection, taken)
                finally:
                    for run_id in taken.values():
                        self._locks.release(run_id)
                runs, turns, entries = (sum(both) for both in zip((runs, turns, entries), removed, strict=True))
            sweep = Sweep(connection, old_texts(connection, self._now_ms() - TEXT_GRACE_MS))
            texts, text_bytes = sweep.remove(lambda: self._now_ms() - TEXT_GRACE_MS)
            entries += connection.execute(_REMOVE_ANSWERS, (self._now_ms() - ANSWER_GRACE_MS,)).rowcount
            self.shrink(connection)
        return Removed(runs, turns, texts, text_bytes, inbox_entries=entries, ill_listed=ill_listed)

    def _count(self, ended_before_ms: int) -> Removed:
        """What a collection would remove."""
        with self.cleaning() as connection:
            ended, ill_listed = _collectable(connection, ended_before_ms)
            turns = sum(connection.execute(_COUNT_TURNS, (run_no,)).fetchone()[0] for run_no in ended)
            entries = sum(connection.execute(_COUNT_ENTRIES, (run_id,)).fetchone()[0] for run_id in ended.values())
            answers, gone = connection.execute(_ANSWERS, (self._now_ms() - ANSWER_GRACE_MS,)), frozenset(ended.values())
            entries += sum(run_id not in gone for (run_id,) in answers)
            sweep = Sweep(connection, old_texts(connection, self._now_ms() - TEXT_GRACE_MS))
            sweep.spare_referred(besides=ended)
        return Removed(
            runs=len(ended),
            turns=turns,
            texts=len(sweep.texts),
            text_bytes=sum(sweep.texts.values()),
            inbox_entries=entries,
            ill_listed=ill_listed,
        )

    @contextmanager
    def cleaning(self) -> Iterator[sqlite3.Connection]:
        """A connection for the one who cleans: two at a time could each see the other's texts as needed."""
        if self._is_read_only:
            raise disk_failure(READ_ONLY, self._path, "was opened only to be read, and nothing is removed from it so")
        # Runs are removed in a thread, whose caller may not wait for it; the locks stay open for that long.
        with self._users:
            if not self._locks.begin_cleaning():
                raise disk_failure(BUSY, self._path, "another process removes runs from it")
            try:
                with closing(connect_to_database(self._path)) as connection:
                    yield connection
            except sqlite3.Error as error:
                raise store_unusable(error, self._path) from error
            finally:
                self._locks.end_cleaning()

    def _forgotten_before_ms(self) -> int:
        """Texts put before this time are in no caller's hands. Asked while the write lock is held, the answer stays true."""
        if self._locks.is_alone() and not self._locks.is_driving:
            return self._now_ms() + 1
        return self._now_ms() - TEXT_GRACE_MS

    def _remove_runs(self, connection: sqlite3.Connection, runs: Mapping[int, str]) -> tuple[int, int, int]:
        """Remove runs, after having signed for them; gives the numbers of runs, of turns and of inbox entries.

        One that another thread removed before it was taken is gone.
        """
        last = {no: found for no in runs if (found := connection.execute(_LAST_TURN, (no,)).fetchone()) is not None}
        signer, lines = self._signer(), []
        for run_no, (seq, data) in last.items():
            run_id = runs[run_no]
            lines.append(sign_deletion(signer, run_id=run_id, seq=seq, head=hash_turn(data), at_ms=self._now_ms()))
        with closing(HeadsFile(self._home)) as log:
            log.append(lines)
            log.sync()
        turns = entries = 0
        for run_no in last:
            run_id = runs[run_no]
            with transaction(connection):
                turns += _remove_turns(connection, run_no)
                connection.execute("DELETE FROM heads WHERE run_no = ?", (run_no,))
                connection.execute("DELETE FROM snapshots WHERE run_no = ?", (run_no,))
                close_deleted(connection, run_no)
                connection.execute("DELETE FROM receipts WHERE run_id = ?", (run_id,))
                entries += connection.execute("DELETE FROM inbox WHERE run_id = ?", (run_id,)).rowcount
                connection.execute("DELETE FROM runs WHERE run_no = ?", (run_no,))
            # What was sealed for a run goes with it; children and forks rely on what the first of them has.
            FileSeals(self._home, self._signer).forget(run_id)
        return len(last), turns, entries

    def shrink(self, connection: sqlite3.Connection) -> None:
        """Give space back where that disturbs no other process, and clear the WAL, in which removed texts may still be read."""
        try:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (empty,) = connection.execute("PRAGMA freelist_count").fetchone()
            if empty >= pages * _EMPTY_SHARE_MIN and self._locks.is_alone() and not self._locks.is_driving:
                connection.execute("VACUUM")
            # It keeps all others from writing while it waits for readers, so it does not wait long.
            connection.execute(f"PRAGMA busy_timeout = {_CLEARING_MS_MAX}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            # What was to be removed is removed; only the file is still as large as before.
            _log.warning("%s was not made smaller: %s", self._path, error)


def _family(connection: sqlite3.Connection, run_id: str) -> list[tuple[int, str]]:
    """The run and its descendants, parents first; a listed child whose first turn names another parent is left out."""
    found = [(run_no, run_id) for (run_no,) in connection.execute(_RUN_NO, (run_id,))]
    for _, parent_id in found:
        rows = connection.execute(_CHILDREN, (parent_id,)).fetchall()
        new = [(run_no, child) for run_no, child, first in rows if is_child_of(first, parent_id)]
        found += [member for member in new if member not in found]
    return found


def _remove_turns(connection: sqlite3.Connection, run_no: int) -> int:
    """Remove the turns of a run, and keep the number of the newest turn of all from being given again."""
    (end,) = connection.execute(NEWEST_TURN).fetchone()
    turns = connection.execute("DELETE FROM turns WHERE run_no = ?", (run_no,)).rowcount
    if connection.execute(NEWEST_TURN).fetchone()[0] != end:
        connection.execute("DELETE FROM turns WHERE run_no = ?", (NOBODY,))
        connection.execute("INSERT INTO turns (turn_no, run_no, seq, data) VALUES (?, ?, 0, x'')", (end, NOBODY))
    return turns


def _collectable(connection: sqlite3.Connection, ended_before_ms: int) -> tuple[dict[int, str], tuple[str, ...]]:
    """The runs that ended before a time and that will not be asked for; and those of which only the list says so."""
    journals, newest = Journals(connection), {run_id for run_id, _ in connection.execute(_NEWEST)}
    listed = connection.execute(_ENDED, (ended_before_ms,)).fetchall()
    lineages = {run_id: split_lineage(told) for run_id, told in connection.execute(_LINEAGES)}
    told = Belongings(journals.firsts() if listed else ())
    ended: dict[int, str] = {}
    ill_listed: list[str] = []
    for run_no, run_id, parent_id in listed:
        if not newest.isdisjoint((run_id, *lineages.get(run_id, ()))) or told.is_asked_for(run_id):
            continue
        if not is_over(_backwards(connection, run_no), ended_before_ms):
            ill_listed.append(run_id)
        elif not _goes_on(connection, journals, told.parent_of(run_id, listed=parent_id)):
            ended[run_no] = run_id
    return ended, tuple(ill_listed)


def _backwards(connection: sqlite3.Connection, run_no: int) -> Iterator[bytes]:
    """The turns of a run, the last one first."""
    return (data for (data,) in connection.execute(_BACKWARDS, (run_no,)))


def _goes_on(connection: sqlite3.Connection, journals: Journals, run_id: str) -> bool:
    """Whether there is a run of this name, listed or not, that its turns do not end."""
    return any(ended_at_ms(_backwards(connection, run_no)) is None for run_no in journals.numbers_of(run_id))
