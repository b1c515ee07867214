"""A copy of a store that is in use: whole, private, and a store itself.

Rule 1: the log of heads is copied before the database: a log that is behind verifies, one that is ahead tells of a loss.
Rule 2: SQLite copies its own database, at one moment, whatever others write meanwhile.
Rule 3: the copy has its name once all of it is on the disk; before that, and where it fails, there is none.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from remit.backend.embedded.disk.database import DATABASE, connect_to_read, sync_folder
from remit.backend.embedded.disk.disk_failures import store_unusable
from remit.backend.embedded.disk.locks import LOCKS
from remit.backend.embedded.disk.permissions import BELLS, refuse_links
from remit.backend.embedded.heads_file import HEADS_LOG
from remit.backend.embedded.owner.key_file import KEY
from remit.core.failure import RequestRejected

BACKUP_UNUSABLE = "BACKUP_UNUSABLE"
# What belongs to the processes that use a store, and not to the store.
_OF_PROCESSES = (LOCKS, BELLS)
# As much of a name as is repeated.
_NAME_CHARS_MAX = 100
_OWNER_FILE, _OWNER_FOLDER = 0o600, 0o700


@contextmanager
def drafted(to: Path, failing: Path) -> Iterator[tuple[Path, Callable[[], int]]]:
    """A folder to fill, and what puts it in its place, giving how many bytes it takes there; left before, there is none.

    `failing` is the database that an error of SQLite speaks of.
    """
    draft = to.with_name(f".{to.name[:_NAME_CHARS_MAX]}.{os.getpid()}.draft")

    def finish() -> int:
        size_bytes = _settle(draft)
        draft.rename(to)
        sync_folder(to.parent)
        return size_bytes

    try:
        if to.exists() or to.is_symlink():
            raise _unusable(to, "is there already; name a folder that is not")
        draft.mkdir(mode=_OWNER_FOLDER, parents=True)
        yield draft, finish
    except sqlite3.Error as error:
        raise store_unusable(error, failing) from error
    except (OSError, ValueError) as error:
        raise _unusable(to, f"cannot be written: {getattr(error, 'strerror', '') or error}") from error
    finally:
        with suppress(OSError, ValueError):
            shutil.rmtree(draft)


def back_up_store(home: Path, to: Path) -> int:
    """Copy a store to a folder that is not there yet; gives how many bytes it takes there."""
    refuse_links(home)
    with drafted(to, home / DATABASE) as (draft, finish):
        _copy(home, draft)
        return finish()


def _unusable(to: Path, problem: str) -> RequestRejected:
    return RequestRejected(BACKUP_UNUSABLE, f"{str(to)[:_NAME_CHARS_MAX]!r} {problem}")


def _copy(home: Path, draft: Path) -> None:
    log = home / HEADS_LOG
    if log.exists():
        shutil.copyfile(log, draft / HEADS_LOG)
    with (
        closing(connect_to_read(home / DATABASE)) as source,
        closing(sqlite3.connect(draft / DATABASE)) as target,
    ):
        source.backup(target)
        # What is only read leaves no files beside it then; a process that opens the copy to write sets its own mode.
        target.execute("PRAGMA journal_mode = DELETE")
        problem = target.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
    copy_beside(home, draft)


def copy_beside(home: Path, draft: Path, besides: Sequence[str] = ()) -> None:
    """Copy what stands in the folder of a store beside its runs: its key, sealed values, limits; not what is named `besides`."""
    for path in sorted(home.iterdir()):
        if path.name.startswith((DATABASE, HEADS_LOG)) or path.name in (*_OF_PROCESSES, *besides):
            continue
        if path.is_dir():
            shutil.copytree(path, draft / path.name)
        elif path.is_file():
            shutil.copyfile(path, draft / path.name)


def restore_beside(backup: Path, home: Path) -> None:
    """Give a folder that has no key what stands beside the runs of a backup: what its key signed stays vouched for."""
    if not (home / KEY).exists():
        home.mkdir(mode=_OWNER_FOLDER, parents=True, exist_ok=True)
        copy_beside(backup, home)
        _settle(home)


def _settle(draft: Path) -> int:
    """Make a copy its owner's alone, put it on the disk, and count its bytes."""
    size_bytes = 0
    for path in sorted(draft.rglob("*")):
        path.chmod(_OWNER_FOLDER if path.is_dir() else _OWNER_FILE)
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
            size_bytes += path.stat().st_size
        else:
            sync_folder(path)
    sync_folder(draft)
    return size_bytes
