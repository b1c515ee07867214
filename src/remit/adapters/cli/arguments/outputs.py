"""Files that a command writes where its user says: private, whole or not there, and never in the place of a device.

Rule 1: what is written holds the texts of a private store, so it is for its owner alone (mode 0600), whatever the umask.
Rule 2: a regular file is there as a whole or not at all: it is written under another name, and takes its own at the end.
Rule 3: into a pipe, a terminal or another character device is written what would have been the file; a folder, a disk and
        a socket are refused. Nothing that is no regular file is ever replaced.
Rule 4: a symbolic link to a file, or to nothing, is refused: the maker of the link chose what would be replaced.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from remit.adapters.cli.arguments.inputs import STDIN

STDOUT_NAMES = frozenset({STDIN, Path("/dev/stdout"), Path("/dev/fd/1"), Path("/proc/self/fd/1")})

_OWNER_ONLY = 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {
    stat.S_IFDIR: "a folder; name a file in it",
    stat.S_IFBLK: "a disk; name a file on it",
    stat.S_IFSOCK: "a socket; name a file or a pipe",
}


class OutputRefused(OSError):
    """What stands at a path is nothing to write to."""

    def __init__(self, problem: str) -> None:
        super().__init__(0, problem)


def write_output(path: Path, lines: Iterable[bytes]) -> None:
    """Write to a path; raises OSError, and leaves what was there as it was."""
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    if found is not None and (stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        _write_into(path, lines)
        return
    if path.is_symlink():
        raise OutputRefused(f"is a symbolic link to {str(path.readlink())[:200]!r}; name the file itself")
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise OutputRefused(f"is {_KINDS.get(stat.S_IFMT(found.st_mode), 'no file')}")
    draft = path.with_name(f".{path.name[:200]}.{token_hex(4)}")
    try:
        write_new(draft, lines)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def write_new(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file that is not there yet; raises OSError when something is."""
    with os.fdopen(os.open(path, _NEW, _OWNER_ONLY), "wb") as stream:
        stream.writelines(lines)


def _write_into(path: Path, lines: Iterable[bytes]) -> None:
    """Write into a pipe or a device as it stands there, unless it has become something else meanwhile."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC), "wb") as stream:
        kind = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISFIFO(kind) and not stat.S_ISCHR(kind):
            raise OutputRefused("was changed while it was opened; name a file")
        stream.writelines(lines)
