"""Who may write to the files of a store, and whether they are files at all.

Rule 1: a file of a store that is a link, a pipe or a device is refused: its maker chose where remit writes. So is a
        folder in it that is none.
Rule 2: what any user of this machine may write to is not written to here: any of them could have put there what is acted on.
        A folder in which only owners may rename (sticky, as /tmp is) is no such place.
Rule 3: what a group may write to, or others may read, is told and used: that may be meant so.
Rule 4: a file that has a second name is refused like a link: a process that knows that name writes here without being seen.
"""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from remit.backend.embedded.disk.disk_failures import EXPOSED, LINKED, disk_failure, store_unusable
from remit.core.record import Record

_log = logging.getLogger(__name__)

# Every file that a store makes in its folder.
_READ = ("remit.db", "heads.log", "key", "queues.yaml")
FILES = ("remit.db", "remit.db-wal", "remit.db-shm", "heads.log", "key", "locks", "halts.news")
# Every folder that a store makes in its own.
SEALED, BELLS = "sealed", "bells"
FOLDERS = (SEALED, BELLS)
# Files that people put there, or remit for their user alone: the reader of each checks who may write to it.
SETTINGS = ("queues.yaml", "quotas.yaml", "secrets.toml", "secrets.json", "revoked.log", "revoked.key", "chat_history")
_KEY = "key"
# While a key is made, it has a second name for a moment.
_DRAFTS = "key.????????????????"
_NAMES = "names in the file system"
_GROUP = "may be written by its group"


class Weakness(Record):
    """What is wrong with a file of a store, how grave it is, and what to do."""

    path: str
    what: str
    way_out: str
    # STORE_LINKED or STORE_EXPOSED where nothing may be written; empty for what is only told.
    code: str = ""


def weaknesses(home: Path) -> Iterator[Weakness]:
    """What is wrong with the folder of a store and its files, the gravest of each first; raises StoreUnusable."""
    for path in (home, *(home / name for name in (*FILES, *FOLDERS))):
        try:
            # The folder may be a link of its owner's to another disk; what is in it may not.
            seen = path.stat() if path == home else path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise store_unusable(error, path) from error
        if path.name in FOLDERS and not stat.S_ISDIR(seen.st_mode):
            yield Weakness(str(path), _what_instead(path, seen, "folder"), "put the folder itself there", LINKED)
        else:
            yield from _of_file(path, seen, is_folder=path == home or path.name in FOLDERS)
    for path in (home / name for name in SETTINGS):
        with suppress(FileNotFoundError):
            if not stat.S_ISREG((seen := path.lstat()).st_mode):
                yield from _of_file(path, seen, is_folder=False)


def weaknesses_inside(home: Path) -> Iterator[Weakness]:
    """What is wrong with the files in the folders of a store; there may be as many as there are runs."""
    for folder in (home / name for name in FOLDERS):
        try:
            paths = sorted(folder.iterdir()) if stat.S_ISDIR(folder.lstat().st_mode) else []
        except FileNotFoundError:
            continue
        except OSError as error:
            raise store_unusable(error, folder) from error
        for path in paths:
            with suppress(FileNotFoundError):
                seen = path.lstat()
                if folder.name != BELLS or not stat.S_ISSOCK(seen.st_mode):
                    yield from _of_file(path, seen, is_folder=False)
                if seen.st_uid not in _allowed(folder):
                    yield Weakness(str(path), f"belongs to user {seen.st_uid}", "look who put it there", EXPOSED)


def refuse_no_folder(folder: Path) -> None:
    """Raise STORE_LINKED where a folder of a store is a link, a pipe or a file; one that is not there yet is none of them."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR((seen := folder.lstat()).st_mode):
            raise disk_failure(LINKED, folder, _what_instead(folder, seen, "folder"))


def refuse_other_names(path: Path, descriptor: int) -> None:
    """Raise STORE_LINKED where an open file in a folder of a store has a second name, or belongs to another user."""
    seen = os.fstat(descriptor)
    if seen.st_nlink > 1:
        raise disk_failure(LINKED, path, f"has {seen.st_nlink} {_NAMES}")
    if seen.st_uid not in _allowed(path.parent):
        raise disk_failure(LINKED, path, f"belongs to user {seen.st_uid}, who is not the owner of its folder")


def _allowed(folder: Path) -> tuple[int, ...]:
    """The users who may have made a file in a folder of a store: its owner, this user, and users that may write anywhere."""
    return folder.stat().st_uid, os.geteuid(), 0


def refuse_links(home: Path) -> None:
    """Raise STORE_LINKED where the database, the log or the key of a store that is only read is no file."""
    for found in weaknesses(home):
        if found.code == LINKED and Path(found.path).name in _READ and not found.what.endswith(_NAMES):
            raise disk_failure(LINKED, Path(found.path), found.what)


def refuse_exposed(home: Path) -> None:
    """Raise where nothing may be written to a store; log what is only worth knowing.

    A key that others may read or write is refused where it is read.
    """
    for found in weaknesses(home):
        if found.code == LINKED or (found.code and Path(found.path).name != _KEY):
            raise disk_failure(found.code, Path(found.path), found.what)
        if found.what.startswith(_GROUP):
            _log.warning("%s %s; %s", found.path, found.what, found.way_out)


def owners_of(home: Path) -> dict[int, Path]:
    """The users to whom the folder of a store and its files belong, each with the first path that is theirs."""
    found: dict[int, Path] = {}
    # SQLite gives the files beside a database to the database's owner, no matter which process makes them.
    for path in (home, *(home / name for name in (*FILES, *FOLDERS) if not name.startswith("remit.db-"))):
        try:
            found.setdefault(path.stat().st_uid, path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise store_unusable(error, path) from error
    return found


def _of_file(path: Path, seen: os.stat_result, *, is_folder: bool) -> Iterator[Weakness]:
    mode, shown = seen.st_mode, f"(mode {stat.S_IMODE(seen.st_mode):o})"
    if not is_folder and not stat.S_ISREG(mode):
        yield Weakness(str(path), _what_instead(path, seen, "regular file"), "put the file itself there", LINKED)
    elif not is_folder and (names := _names(path, seen)) > 1:
        yield Weakness(str(path), f"has {names} {_NAMES}", "copy it, and put the copy in its place", LINKED)
    elif mode & stat.S_IWOTH and not (is_folder and mode & stat.S_ISVTX):
        yield Weakness(str(path), f"may be written by any user {shown}", f"chmod -R go-w {path}", EXPOSED)
    elif mode & stat.S_IWGRP:
        yield Weakness(str(path), f"{_GROUP} {shown}", f"chmod -R go-w {path}")
    elif mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Weakness(str(path), f"may be read by others {shown}", f"chmod -R go= {path}")


def _what_instead(path: Path, seen: os.stat_result, wanted: str) -> str:
    """What stands in the place of a file or a folder."""
    return f"is a link to {str(path.readlink())!r:.200}" if stat.S_ISLNK(seen.st_mode) else f"is no {wanted}"


def _names(path: Path, seen: os.stat_result) -> int:
    """How many names a file has, but for those under which a key is being made."""
    if seen.st_nlink == 1 or path.name != _KEY:
        return seen.st_nlink
    drafts = len(list(path.parent.glob(_DRAFTS)))
    return path.lstat().st_nlink - drafts
