"""The syncer: one thread syncs the WAL for every caller that waits, so that turns outlive the power.

Rule 1: the event loop never waits for a disk. Barriers that come while a sync is under way share the next one.
Rule 2: what no caller waits for is synced UNSYNCED_MS_MAX after it was written, at the latest.
Rule 3: what another process wrote, and may not have synced before it died or was asked, is synced before it is acted on
        or told of here: all of it when a store is opened, and whatever is asked about later.
Rule 4: after a sync has failed it is unknown what is on the disk, so nothing more is written until the store is opened
        again.
"""

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from remit.backend.embedded.disk.database import WAL, sync_folder
from remit.backend.embedded.disk.disk_failures import store_unusable
from remit.backend.embedded.heads_file import HeadsFile
from remit.core.journal.storage import SignedHead, StoreUnusable

# After a power loss a model call may have to be paid again when its answer was not synced; a fifth of a second of
# calls is little, and five idle syncs a second cost nothing.
UNSYNCED_MS_MAX = 200

# Who waits for a turn to be synced, and the head that vouches for it; none for what another process wrote.
Waiting = tuple["asyncio.Future[None]", SignedHead | None]


class Syncer:
    """Owns a descriptor of the WAL, the log of heads, and the thread that syncs them."""

    def __init__(self, home: Path, log: HeadsFile) -> None:
        self._path = home / WAL
        self._log = log
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        os.fdatasync(self._descriptor)
        sync_folder(home)
        self._changed = threading.Condition()
        self._waiting: list[Waiting] = []
        self._unlogged: list[SignedHead] = []
        self._is_dirty = False
        self._due_s = 0.0
        self._is_closing = False
        self.failure: StoreUnusable | None = None
        self._thread = threading.Thread(target=self._work, name="remit-sync", daemon=True)
        self._thread.start()

    def touch(self) -> None:
        """Something was committed that no caller waits for."""
        # Read without the lock: a sync that is about to begin forgets the mark before it syncs, never after.
        if not self._is_dirty:
            with self._changed:
                self._mark()
                self._changed.notify()

    def log_later(self, heads: Sequence[SignedHead]) -> None:
        """Put these heads, whose turns were committed, into the log after the next sync."""
        with self._changed:
            self._unlogged.extend(heads)

    def settle(self, waiting: Sequence[Waiting]) -> None:
        """Resolve these once the WAL, which holds their turns, is synced and their heads are in the log."""
        with self._changed:
            self._waiting.extend(waiting)
            self._changed.notify()

    def close(self) -> None:
        """Sync what is left and end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()
        os.close(self._descriptor)
        self._log.close()

    def _mark(self) -> None:
        self._is_dirty = True
        self._due_s = time.monotonic() + UNSYNCED_MS_MAX / 1000

    def _work(self) -> None:
        is_closing = False
        while not is_closing:
            with self._changed:
                while not (self._waiting or self._is_closing):
                    left_s = self._due_s - time.monotonic() if self._is_dirty else None
                    if left_s is not None and left_s <= 0:
                        break
                    self._changed.wait(left_s)
                waiting, self._waiting = self._waiting, []
                unlogged, self._unlogged = self._unlogged, []
                is_closing = self._is_closing
                self._is_dirty = False
                if waiting or unlogged:
                    # The lines these leave in the log are synced with the next idle sync.
                    self._mark()
            _tell(waiting, self._sync(waiting, unlogged))

    def _sync(self, waiting: Sequence[Waiting], unlogged: Sequence[SignedHead]) -> StoreUnusable | None:
        try:
            os.fdatasync(self._descriptor)
            if not waiting and not unlogged:
                self._log.sync()
                return None
        except OSError as error:
            failed = store_unusable(error, self._path)
            self.failure = StoreUnusable(failed.code, failed.message, {**failed.details, "is_final": True})
            return self.failure
        try:
            if heads := [*unlogged, *(head for _, head in waiting if head is not None)]:
                self._log.append(heads)
        except StoreUnusable as error:
            return error
        return None


def _tell(waiting: Sequence[Waiting], failure: StoreUnusable | None) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for future, _ in waiting:
        loops.setdefault(future.get_loop(), []).append(future)
    for loop, futures in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, futures, failure)
        except RuntimeError:
            # The loop is closed, so no caller waits any more; the turns are on the disk all the same.
            assert loop.is_closed()


def _resolve(futures: Sequence["asyncio.Future[None]"], failure: StoreUnusable | None) -> None:
    for future in futures:
        if future.done():
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(StoreUnusable(failure.code, failure.message, failure.details))
