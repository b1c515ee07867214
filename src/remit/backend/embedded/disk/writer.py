"""One writer per process: whatever many runs have to write in a tick of the event loop is one transaction.

Rule 1: a piece of work either writes all it has to or raises before it wrote anything; its refusal is its own and
        leaves the others of the batch alone.
Rule 2: texts go in front of the turns of their batch, and stay queued until they are committed. No crash and no
        failure can therefore leave a turn without a text that was put before it.
Rule 3: a run that has been alone for a while does not wait for the tick to end, since no other run would join its batch.
Rule 4: a commit happens on the event loop, since it takes less than handing it to a thread; waiting for another
        process or for the disk never does.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from remit.backend.embedded.bell import SocketBell
from remit.backend.embedded.disk.checkpoints import Checkpointer
from remit.backend.embedded.disk.database import BUSY_WAIT_MS_MAX, DATABASE
from remit.backend.embedded.disk.disk_failures import CLOSED, disk_failure, is_busy, store_unusable
from remit.backend.embedded.disk.syncer import Syncer, Waiting
from remit.core.failure import InvariantBroken, RemitError
from remit.core.journal.storage import SignedHead, StoreUnusable, Topic

# The first and the longest pause between two tries while another process writes; its commits take less.
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.001, 0.02
# A put returns at once while less than this is queued; beyond, it waits for the commit, so that memory stays bounded.
QUEUED_BYTES_MAX = 8 << 20
# SQLite holds less than a gigabyte in a row, and a reader of a text holds it in memory whole.
TEXT_BYTES_MAX = 256 << 20
# A text put again counts as new, for those who clean up; once in ten minutes is often enough for their hour.
_PUT_AGAIN_MS = 600_000

_PUT = (
    "INSERT INTO blobs (digest, put_at_ms, data) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (digest) DO UPDATE SET put_at_ms = ?2 WHERE put_at_ms < ?2 - ?4"
)
# After so many ticks with one piece of work each, the next one is written at once; and so many at most in one tick, so
# that a run whose model and tools never wait lets others have their turn.
SOLO_TICKS = 4
AT_ONCE_MAX = 16
# What Python or SQLite say of a single value that cannot be written: a text that is no Unicode, a number or a turn
# too large for any store.
_UNFIT = (ValueError, OverflowError, TypeError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError)


class Awaited(NamedTuple):
    """Has to be synced before it is told of, and its head logged, if it has one."""

    head: SignedHead | None


class Unawaited(NamedTuple):
    """A head that is logged with the next sync, and that no caller waits for."""

    head: SignedHead


# What a piece of work came to: the value it gives, and what has to be synced and logged before it may, or later.
Outcome = tuple[Any, Awaited | Unawaited | None]
Act = Callable[[sqlite3.Cursor], Outcome]


class WriteJob:
    """Something to write, and the future that its caller waits for."""

    __slots__ = ("act", "future", "size_bytes")

    def __init__(self, act: Act, future: "asyncio.Future[Any]", size_bytes: int) -> None:
        self.act = act
        self.future = future
        self.size_bytes = size_bytes


class _Unfit(Exception):
    """One piece of work holds what cannot be written; the rest of its batch can."""

    def __init__(self, work: WriteJob, error: Exception) -> None:
        super().__init__(error)
        self.work = work


class Writer:
    """Owns the connection that writes, and the queue in front of it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        home: Path,
        now_ms: Callable[[], int],
        *,
        syncer: Syncer | None,
        checkpointer: Checkpointer,
        bell: SocketBell,
    ) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self.path = home / DATABASE
        self.now_ms = now_ms
        self._syncer = syncer
        self._checkpointer = checkpointer
        self._bell = bell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.Handle | None = None
        self._queue: list[WriteJob] = []
        self.texts: dict[bytes, bytes] = {}
        self._texts_bytes = 0
        self._busy_since_s: float | None = None
        self._pause_s = _PAUSE_S_MIN
        self._is_closed = False
        self._solo_ticks = 0
        self._at_once = 0

    def submit(self, act: Act, size_bytes: int = 0) -> "asyncio.Future[Any]":
        """Write this with the next batch; the future gives its value."""
        loop = self._wake()
        future = loop.create_future()
        self._queue.append(WriteJob(act, future, size_bytes))
        if self._solo_ticks >= SOLO_TICKS and self._at_once < AT_ONCE_MAX and len(self._queue) == 1:
            self._at_once += 1
            self._write()
        return future

    async def keep(self, digest: bytes, data: bytes) -> None:
        """Queue a text in front of the next batch."""
        self._wake()
        if len(data) > TEXT_BYTES_MAX:
            raise InvariantBroken("STORE_VALUE_UNFIT", f"a text of {len(data)} bytes exceeds {TEXT_BYTES_MAX}")
        if digest not in self.texts:
            self.texts[digest] = data
            self._texts_bytes += len(data)
        if self._texts_bytes > QUEUED_BYTES_MAX:
            await self.submit(_nothing)

    async def synced(self) -> None:
        """Return once everything that can be read here survives a power loss, no matter which process wrote it.

        A process that only reads has nothing to sync with, and tells what stands there.
        """
        if self._syncer is None:
            return
        loop = self._wake()
        future: asyncio.Future[None] = loop.create_future()
        self._syncer.settle([(future, None)])
        await future

    async def close(self) -> None:
        """Write what is queued; nothing more is taken, so that the connection is not used once this returns."""
        last = self.submit(_nothing) if self._queue or self.texts else None
        self._is_closed = True
        try:
            if last is not None:
                await last
        finally:
            # Only a caller that stopped waiting for this leaves anything behind.
            if self._handle is not None:
                self._handle.cancel()
            self._fail(self._queue, disk_failure(CLOSED, self.path, "was closed"))

    def _wake(self) -> asyncio.AbstractEventLoop:
        """See to it that the queue is written in this tick of the running loop, unless nothing more is taken."""
        if self._is_closed:
            raise disk_failure(CLOSED, self.path, "was closed")
        return self._scheduled()

    def _scheduled(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_to(loop)
        if self._handle is None:
            self._handle = loop.call_soon(self._flush)
        return loop

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Serve another event loop, after the last one has ended."""
        if self._loop is not None and self._loop.is_running():
            raise InvariantBroken("STORE_IN_TWO_LOOPS", f"{self.path} is in use by another event loop; open it twice")
        self._queue = [work for work in self._queue if not work.future.get_loop().is_closed()]
        self._loop, self._handle = loop, None

    def _flush(self) -> None:
        """Write what came up in this tick."""
        self._handle, self._at_once = None, 0
        if len(self._queue) > 1:
            self._solo_ticks = 0
        elif self._queue:
            self._solo_ticks += 1
        if self._queue or self.texts:
            self._write()

    def _write(self) -> None:
        """Write one batch, and tell every caller how it went."""
        works = [work for work in self._queue if not work.future.done()]
        self._queue = []
        try:
            outcomes = self._transact(works)
        except _Unfit as unfit:
            self._fail([unfit.work], InvariantBroken("STORE_VALUE_UNFIT", f"no store can hold this: {unfit.__cause__}"))
            self._queue = works
            self._scheduled()
        except sqlite3.Error as error:
            if not self._may_try_again(error, works):
                self._fail(works, store_unusable(error, self.path))
        except StoreUnusable as error:
            self._fail(works, error)
        except BaseException as error:
            self._fail(works, InvariantBroken("STORE_BATCH_BROKEN", f"a batch could not be written: {error!r}"))
            raise
        else:
            self._busy_since_s, self._pause_s = None, _PAUSE_S_MIN
            self._settle(works, outcomes)

    def _transact(self, works: list[WriteJob]) -> list[Outcome | Exception]:
        """Commit the queued texts and this work, all of it or nothing."""
        if self._syncer is not None and self._syncer.failure is not None:
            raise self._syncer.failure
        cursor, outcomes = self._cursor, list[Outcome | Exception]()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            if self.texts:
                at_ms = self.now_ms()
                cursor.executemany(_PUT, [(digest, at_ms, data, _PUT_AGAIN_MS) for digest, data in self.texts.items()])
            for work in works:
                try:
                    outcomes.append(work.act(cursor))
                except RemitError as refusal:
                    outcomes.append(refusal)
                except _UNFIT as error:
                    raise _Unfit(work, error) from error
            cursor.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                cursor.execute("ROLLBACK")
        return outcomes

    def _may_try_again(self, error: sqlite3.Error, works: list[WriteJob]) -> bool:
        """Queue the work again when another process was writing, unless that has lasted too long."""
        now_s = time.monotonic()
        if not is_busy(error) or self._loop is None:
            return False
        self._busy_since_s = now_s if self._busy_since_s is None else self._busy_since_s
        if now_s - self._busy_since_s > BUSY_WAIT_MS_MAX / 1000:
            self._busy_since_s = None
            return False
        self._queue = works + self._queue
        self._handle = self._loop.call_later(self._pause_s, self._flush)
        self._pause_s = min(self._pause_s * 2, _PAUSE_S_MAX)
        return True

    def _settle(self, works: Sequence[WriteJob], outcomes: Sequence[Outcome | Exception]) -> None:
        """Tell the callers of a batch that it was committed; those that asked for a sync are told by the syncer."""
        self._bell.ring(Topic.TURNS)
        waiting: list[Waiting] = []
        unawaited: list[SignedHead] = []
        size_bytes = self._texts_bytes
        self.texts, self._texts_bytes = {}, 0
        for work, outcome in zip(works, outcomes, strict=True):
            future = work.future
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
                continue
            size_bytes += work.size_bytes
            value, sync = outcome
            if isinstance(sync, Awaited):
                waiting.append((future, sync.head))
                continue
            if sync is not None:
                unawaited.append(sync.head)
            future.set_result(value)
        assert self._syncer is not None, "a store that cannot be written has committed"
        if unawaited:
            self._syncer.log_later(unawaited)
        if waiting:
            self._syncer.settle(waiting)
        else:
            self._syncer.touch()
        self._checkpointer.count(size_bytes)

    def _fail(self, works: Sequence[WriteJob], error: RemitError) -> None:
        for work in works:
            if not work.future.done():
                work.future.set_exception(type(error)(error.code, error.message, error.details))


def _nothing(cursor: sqlite3.Cursor) -> Outcome:
    return None, None
