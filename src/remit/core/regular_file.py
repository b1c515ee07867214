"""Files that lie in a folder which another user may have made: they are opened only where they are files.

Rule 1: a link, a pipe, a device or a folder in the place of a file is refused, and no process waits for its writer.
Rule 2: what is looked at is what was opened, so that nothing else can be put there in between.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


class NotRegular(OSError):
    """What stands in the place of a file is none."""


def open_regular(path: Path) -> BinaryIO:
    """A file, open to be read; raises NotRegular for what is none, and OSError for what cannot be opened."""
    return os.fdopen(_opened(path, os.O_RDONLY), "rb")


def open_to_append(path: Path) -> int:
    """The descriptor of a file that lines are added to, made where there is none, for its owner alone; raises as above."""
    return _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def _opened(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        # Links are not followed, the pipe is not read, and nothing connects to a socket by opening it.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _refused(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(path)
    return descriptor


def expect_regular(path: Path) -> None:
    """Expect that a file which others open is regular: raises NotRegular, and OSError where it is not there."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise _refused(path)


def _refused(path: Path) -> NotRegular:
    return NotRegular(errno.ELOOP, "it is no regular file", str(path))
