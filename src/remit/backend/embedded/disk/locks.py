"""Which process drives which run, and which have the store open: locks of the operating system, in one file.

Rule 1: a lock belongs to an open file and dies with it, so a killed process holds nothing.
Rule 2: every run has one byte of the file, found by hashing its id; the file itself stays empty.
Rule 3: a thousand runs take one descriptor.
Rule 4: one thread at a time uses the descriptor. Once it is closed nothing is taken: what was opened anew would hold it until
        the process ends.

Where the system has no locks of open files (OFD locks, a feature of Linux), those of the process take their place.
Those do not tell two stores of one process apart. A process that is forked without starting another program shares
the locks of its parent until it ends.
"""

import errno
import fcntl
import os
import struct
import threading
from hashlib import sha256
from pathlib import Path

from remit.backend.embedded.disk.disk_failures import CLOSED, disk_failure, store_unusable

LOCKS = "locks"

# Bytes of the lock file are positions, not storage. Those of runs lie below this one.
_RUN_POSITIONS = 1 << 62
_PRESENCE = _RUN_POSITIONS
_CLEANING = _RUN_POSITIONS + 1

# struct flock of Linux: type, whence, start, length, pid.
_FLOCK = "@hhqqi4x"
_HAS_OFD = hasattr(fcntl, "F_OFD_SETLK")


class FileLocks:
    """The locks that one open store holds."""

    def __init__(self, home: Path) -> None:
        self.path = home / LOCKS
        self._descriptor: int | None = None
        self._is_closed = False
        self._held: set[str] = set()
        # A clean-up takes runs from a thread; within one open file the system would let it take one twice.
        self._mutex = threading.RLock()

    @property
    def is_driving(self) -> bool:
        """Whether this store holds any run."""
        return bool(self._held)

    def take(self, run_id: str) -> bool:
        """Take a run, or say that another process holds it."""
        with self._mutex:
            if run_id in self._held or not self._lock(fcntl.F_WRLCK, _position(run_id)):
                return False
            self._held.add(run_id)
        return True

    def release(self, run_id: str) -> None:
        """Let it go."""
        with self._mutex:
            if run_id in self._held:
                self._held.discard(run_id)
                self._lock(fcntl.F_UNLCK, _position(run_id))

    def is_held(self, run_id: str) -> bool:
        """Whether a run is held. Where the system cannot tell, its lock is taken and let go again."""
        with self._mutex:
            if run_id in self._held:
                return True
            if _HAS_OFD:
                return not self._is_free(_position(run_id))
            if is_free := self.take(run_id):
                self.release(run_id)
            return not is_free

    def enter(self) -> None:
        """Be counted among those who have the store open."""
        self._lock(fcntl.F_RDLCK, _PRESENCE)

    def is_alone(self) -> bool:
        """Whether no other process has the store open at this moment; a system that cannot tell says no."""
        if not _HAS_OFD:
            return False
        return self._is_free(_PRESENCE)

    def begin_cleaning(self) -> bool:
        """Be the one who removes runs and texts, or learn that another process is at it."""
        return self._lock(fcntl.F_WRLCK, _CLEANING)

    def end_cleaning(self) -> None:
        """Let the next one clean."""
        self._lock(fcntl.F_UNLCK, _CLEANING)

    def close(self) -> None:
        """Let everything go, for good."""
        with self._mutex:
            self._is_closed = True
            self._held.clear()
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _is_free(self, position: int) -> bool:
        """Whether no other open file holds a position."""
        wish = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, position, 1, 0)
        with self._mutex:
            try:
                answer = fcntl.fcntl(self._open(), fcntl.F_OFD_GETLK, wish)
            except OSError as error:
                raise store_unusable(error, self.path) from error
        kind: int = struct.unpack(_FLOCK, answer)[0]
        return kind == fcntl.F_UNLCK

    def _open(self) -> int:
        if self._is_closed:
            raise disk_failure(CLOSED, self.path, "was closed")
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._descriptor

    def _lock(self, kind: int, position: int) -> bool:
        with self._mutex:
            try:
                descriptor = self._open()
            except OSError as error:
                raise store_unusable(error, self.path) from error
            try:
                _set_lock(descriptor, kind, position)
            except OSError as error:
                if error.errno in {errno.EAGAIN, errno.EACCES}:
                    return False
                raise store_unusable(error, self.path) from error
        return True


def _position(run_id: str) -> int:
    digest = sha256(run_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % _RUN_POSITIONS


def _set_lock(descriptor: int, kind: int, position: int) -> None:
    if _HAS_OFD:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, position, 1, 0))
        return
    operation = {fcntl.F_WRLCK: fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.F_RDLCK: fcntl.LOCK_SH | fcntl.LOCK_NB}
    fcntl.lockf(descriptor, operation.get(kind, fcntl.LOCK_UN), 1, position)
