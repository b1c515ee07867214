"""What the disk and the database say when they fail, in the words of the house.

Rule 1: a failure names the path, what is wrong with it, and what to do.
Rule 2: a failure of the disk never passes for a bug, nor a bug for a failure of the disk.
"""

import errno
import sqlite3
from pathlib import Path

from remit.core.journal.storage import STORE_INDEX_LOST, StoreUnusable
from remit.core.regular_file import NotRegular

FULL = "STORE_FULL"
READ_ONLY = "STORE_READ_ONLY"
DAMAGED = "STORE_DAMAGED"
BUSY = "STORE_BUSY"
NOT_FOUND = "STORE_NOT_FOUND"
VERSION_UNKNOWN = "STORE_VERSION_UNKNOWN"
CLOSED = "STORE_CLOSED"
KEY_UNUSABLE = "STORE_KEY_UNUSABLE"
KEY_MISSING = "STORE_KEY_MISSING"
NOT_TRUSTED = "STORE_NOT_TRUSTED"
LINKED = "STORE_LINKED"
EXPOSED = "STORE_EXPOSED"
EMPTIED = "STORE_EMPTIED"

_WAY_OUT = {
    FULL: "make room (or raise the quota), then go on; what was written before is whole",
    READ_ONLY: "make the folder and its files writable for this user, or choose another with REMIT_HOME",
    DAMAGED: "put back a backup, or move the folder away and start a new one",
    BUSY: "another process writes to it; try again, or end that process",
    CLOSED: "open it again",
    NOT_FOUND: "check the path; a run makes a new store wherever its folder can be made",
    NOT_TRUSTED: "it may be read; `remit trust` shows every path and address that it names, and lets you accept them",
    LINKED: "put the file or folder itself there, or name the store that holds it with REMIT_HOME",
    EXPOSED: "look whether it is still what you left there (`remit verify --all`), then chmod -R go-w on the folder",
    EMPTIED: "put back a backup of remit.db; to begin anew on purpose, move heads.log to where you keep it",
    STORE_INDEX_LOST: "`remit rebuild` lists them again as their turns tell",
    KEY_MISSING: "put back a backup of it; docs/store.md says how to go on with a new key on purpose",
}

_OF_ERRNO = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EFBIG: FULL,
    errno.EROFS: READ_ONLY,
    errno.EACCES: READ_ONLY,
    errno.EPERM: READ_ONLY,
    errno.ENOENT: NOT_FOUND,
    errno.ENOTDIR: NOT_FOUND,
    errno.ENAMETOOLONG: NOT_FOUND,
}

# By primary result code; what is not listed means that the file cannot be trusted.
_OF_SQLITE = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: READ_ONLY,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
}
# A write that fails for another reason than ENOSPC meets a quota or a limit far more often than a broken disk.
# The shared memory of a WAL is a file too, and is made when a store is opened.
_OF_SQLITE_EXTENDED = {sqlite3.SQLITE_IOERR_WRITE: FULL, sqlite3.SQLITE_IOERR_SHMSIZE: FULL}


# A database that is damaged may be quoted in SQLite's complaint, which Python then cannot read.
DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def store_unusable(error: sqlite3.Error | OSError | UnicodeDecodeError, path: Path) -> StoreUnusable:
    """The failure of a store, from what the database or the operating system said of a file."""
    if isinstance(error, UnicodeDecodeError):
        return disk_failure(DAMAGED, path, "malformed database schema")
    if isinstance(error, NotRegular):
        return disk_failure(LINKED, path, "is a link, a folder, a pipe or a device, and no regular file")
    if isinstance(error, OSError):
        return disk_failure(_OF_ERRNO.get(error.errno or 0, DAMAGED), path, error.strerror or str(error))
    extended = sqlite_code(error)
    code = _OF_SQLITE_EXTENDED.get(extended) or _OF_SQLITE.get(extended & 0xFF, DAMAGED)
    return disk_failure(code, path, str(error))


def disk_failure(code: str, path: Path, what: str) -> StoreUnusable:
    """A failure with the way out that belongs to its code."""
    return StoreUnusable(code, f"{path}: {what}; {_WAY_OUT[code]}", {"path": str(path)})


def sqlite_code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    """The extended result code; errors that Python raises without asking SQLite have none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)


def is_busy(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Whether another connection stands in the way, and will go."""
    return sqlite_code(error) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
