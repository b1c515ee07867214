"""Placing: how a file gets its content, in one piece and one writer after the other.

Rule 1: a file is written under a name of its own, made durable and then renamed: nobody ever sees half of it.
Rule 2: calls of this process that write into one folder take turns, so that none overlooks what another has just done.
Rule 3: no disk is filled to its end: runs have to write down what they do, and so has everybody else.
"""

import contextlib
import os
import secrets
import stat
from threading import Lock

from remit.tool.builtin.refusal import ToolRefused, shown

FILE_DISK_FULL = "FILE_DISK_FULL"

# Before the name of a file that is not yet complete; hidden, so nobody reads one that a crash left behind.
PARTIAL_MARK = ".remit-partial-"

# What has to be left on the disk: room for the journal of many runs.
FREE_BYTES_MIN = 16 * 1024 * 1024

# Folders share locks, so that there is no list of folders that grows; two of so many rarely meet.
_LOCKS = tuple(Lock() for _ in range(64))

_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def turn_in(folder: int) -> Lock:
    """The lock that writers of an open folder hold."""
    found = os.fstat(folder)
    return _LOCKS[hash((found.st_dev, found.st_ino)) % len(_LOCKS)]


def check_room(folder: int, size_bytes: int, path: str) -> None:
    """Refuse a file that would leave too little on its disk."""
    disk = os.statvfs(folder)
    # A file system that does not say how large it is has no end that we could keep away from.
    if disk.f_blocks and disk.f_bavail * disk.f_frsize - size_bytes < FREE_BYTES_MIN:
        message = f"{shown(path)} would leave less than free_bytes_min={FREE_BYTES_MIN} on the disk; make room first"
        raise ToolRefused(FILE_DISK_FULL, message)


def put(folder: int, name: str, data: bytes, known: os.stat_result | None) -> None:
    """Give a name in an open folder this content. `known` is the file that has the name so far."""
    partial = PARTIAL_MARK + secrets.token_hex(8)
    descriptor = os.open(partial, _MAKE, 0o666, dir_fd=folder)
    try:
        try:
            if known is not None:
                # What others may do with the file stays as it was; to run as its owner is not inherited.
                os.fchmod(descriptor, stat.S_IMODE(known.st_mode) & 0o777)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        # A rename replaces a link that has come to stand there, and never follows it.
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=folder)
        raise
    os.fsync(folder)
