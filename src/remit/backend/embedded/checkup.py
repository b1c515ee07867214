"""A check-up of the store: is it there, whole, private, signed for, and on a disk that keeps what it is given.

Rule 1: looking changes nothing; the one file that is written to measure the disk is removed again.
Rule 2: every failure is told as the store itself would tell it.
"""

import asyncio
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from remit.backend.embedded.disk.database import DATABASE, WAL, ReadConnection, connect_to_read
from remit.backend.embedded.disk.disk_failures import (
    DATABASE_ERRORS,
    FULL,
    NOT_FOUND,
    NOT_TRUSTED,
    store_unusable,
)
from remit.backend.embedded.disk.permissions import weaknesses, weaknesses_inside
from remit.backend.embedded.disk.tables import MIGRATIONS, refuse_later_version, schema_version
from remit.backend.embedded.head_log import ill_listed_count, losses_in, refuse_cleared, refuse_emptied
from remit.backend.embedded.heads_file import HEADS_LOG, HeadsFile
from remit.backend.embedded.owner.key_file import KEY, load_signer, refuse_lost_key
from remit.backend.embedded.owner.trusted_stores import TrustList, signers_in, standing_of
from remit.core.failure import RemitError
from remit.core.journal.storage import RUN_NOT_VOUCHED, STORE_BEHIND_ITS_LOG, STORE_INDEX_LOST, STORE_LOG_DAMAGED
from remit.observe.checkup import Check, CheckState

# Beyond this, looking at every page takes longer than a person waits for a check-up.
WHOLE_BYTES_MAX = 500_000_000
# A few long runs; with less a disk is as good as full.
FREE_BYTES_MIN = 100_000_000
# No disk that waits for its own medium returns sooner; memory does, and a disk that only pretends.
SYNC_US_MIN = 25
SYNCS = 9
_BLOCK = b"\0" * 4096


class FolderCheckup:
    """Looks at the store in a folder, whether a process has it open or not, and also where none can.

    With a list of this user's stores it says whether the store is one of them; `webhooks` are the addresses that a file in the
    folder names.
    """

    def __init__(
        self, home: Path, trusted: TrustList | None = None, webhooks: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._home = home
        self._trusted = trusted
        self._webhooks = webhooks

    async def look(self) -> Sequence[Check]:
        """How the store is, and its disk."""
        return await asyncio.to_thread(lambda: list(self._checks()))

    def _checks(self) -> Iterator[Check]:
        home, path = self._home, self._home / DATABASE
        if home.exists() and not home.is_dir():
            way_out = "name a folder with --home or REMIT_HOME"
            yield Check("store", CheckState.PROBLEM, f"{home} is no folder", way_out, NOT_FOUND)
            return
        if not path.exists():
            yield _told("store", lambda: _absent(home))
            if home.exists():
                yield from self._trust()
        else:
            yield _told("store", lambda: _contents(home))
            yield _told("store.whole", lambda: _whole(path))
            yield _told("store.log", lambda: _log(home))
            yield _told("store.index", lambda: _index(home))
            yield _told("store.private", lambda: _private(home))
            yield from self._trust()
            yield _told("store.key", lambda: _key(home))
        yield _free(home)
        yield _syncing(home)

    def _trust(self) -> Iterator[Check]:
        if (trusted := self._trusted) is not None:
            yield _told("store.trust", lambda: _trust(self._home, trusted, self._webhooks))


def _told(name: str, look: Callable[[], Check]) -> Check:
    """What a look comes to; a store that cannot be used says why and what to do."""
    try:
        return look()
    except RemitError as error:
        seen, _, way_out = error.message.partition("; ")
        return Check(name, CheckState.PROBLEM, f"{error.code}: {seen}", way_out, error.code)


def _absent(home: Path) -> Check:
    refuse_emptied(home)
    return Check("store", CheckState.MISSING, f"none at {home}", "the first `remit run` makes it")


def _log(home: Path) -> Check:
    """Whether the log of heads and the database know the same turns; what the turns say is proven by `remit verify`."""
    path = home / DATABASE
    refuse_emptied(home)
    with closing(connect_to_read(path)) as connection:
        if not schema_version(connection, path):
            return Check("store.log", CheckState.OK, "nothing was signed yet")
        refuse_cleared(home, connection)
        lost = losses_in(ReadConnection(connection, path), HeadsFile(home))
    if lost.is_log_lost:
        seen = f"{HEADS_LOG} is gone or empty, although heads of this store were signed"
        way_out = "put back a copy of it; `remit verify --all` says more"
        return Check("store.log", CheckState.PROBLEM, seen, way_out, STORE_LOG_DAMAGED)
    if lost.is_log_damaged:
        seen = f"lines of {HEADS_LOG} cannot be read, so runs that are older than them are not gone on with"
        way_out = "put back a copy of it; or see `remit restore --all`"
        return Check("store.log", CheckState.PROBLEM, seen, way_out, STORE_LOG_DAMAGED)
    if lost.behind or lost.missing:
        seen = f"{len(lost.behind)} runs lack turns that were signed, {len(lost.missing)} are gone and were not deleted"
        way_out = "put back the newest database; or see `remit restore --all`"
        return Check("store.log", CheckState.PROBLEM, seen, way_out, STORE_BEHIND_ITS_LOG)
    return Check("store.log", CheckState.OK, "the log of heads and the database know the same turns")


def _index(home: Path) -> Check:
    """Whether the list of runs agrees with what was signed; whether it tells what the turns say, `remit verify` proves."""
    path = home / DATABASE
    with closing(connect_to_read(path)) as connection:
        if not schema_version(connection, path):
            return Check("store.index", CheckState.OK, "nothing is listed yet")
        refuse_cleared(home, connection)
        wrong = ill_listed_count(ReadConnection(connection, path), HeadsFile(home))
    if wrong:
        seen = f"{wrong} runs are kept and not listed, or not as what they are"
        return Check(
            "store.index", CheckState.PROBLEM, f"{STORE_INDEX_LOST}: {seen}", "remit rebuild", STORE_INDEX_LOST
        )
    seen = (
        "every run that was signed for is listed, ended or open as was signed; `remit verify --all` compares the rest"
    )
    return Check("store.index", CheckState.OK, seen)


def _contents(home: Path) -> Check:
    path = home / DATABASE
    with closing(connect_to_read(path)) as connection:
        try:
            version = schema_version(connection, path)
            refuse_later_version(version, path)
            runs, opened, waiting = 0, 0, 0
            if version:
                refuse_cleared(home, connection)
                # What is kept without being listed, as the journal of halts is, is no run.
                query = (
                    "SELECT count(*), sum(ending = ''), sum(ending = '' AND waiting_for <> '') FROM runs"
                    " WHERE started_at_ms IS NOT NULL"
                )
                runs, opened, waiting = (amount or 0 for amount in connection.execute(query).fetchone())
        except DATABASE_ERRORS as error:
            raise store_unusable(error, path) from error
    size_bytes = sum((home / name).stat().st_size for name in (DATABASE, WAL, HEADS_LOG) if (home / name).exists())
    seen = f"{home}: {runs} runs, {opened} open, {waiting} wait for a person; {size_bytes / 1e6:.1f} MB"
    if version < len(MIGRATIONS):
        way_out = "the next run brings it up to date; keep a copy before, if you may need the older remit again"
        return Check("store", CheckState.DOUBTFUL, f"{seen}; schema {version} of {len(MIGRATIONS)}", way_out)
    return Check("store", CheckState.OK, f"{seen}; schema {version}")


def _whole(path: Path) -> Check:
    """Whether every page of the database is where it belongs; what the turns say is proven by `remit verify`."""
    size_bytes = path.stat().st_size
    if size_bytes > WHOLE_BYTES_MAX:
        seen = f"not looked at: {size_bytes / 1e6:.0f} MB, more than {WHOLE_BYTES_MAX / 1e6:.0f} MB"
        return Check("store.whole", CheckState.DOUBTFUL, seen, f"sqlite3 {path} 'PRAGMA quick_check'")
    with closing(connect_to_read(path)) as connection:
        try:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except DATABASE_ERRORS as error:
            raise store_unusable(error, path) from error
    if found != "ok":
        raise store_unusable(sqlite3.DatabaseError(str(found)), path)
    return Check("store.whole", CheckState.OK, "every page is where it belongs")


def _private(home: Path) -> Check:
    """Whether only the owner may read what runs said."""
    # What may be written by others comes before what they may read.
    found = sorted([*weaknesses(home), *weaknesses_inside(home)], key=lambda weakness: not weakness.code)
    if found and found[0].code:
        seen = f"{found[0].code}: {found[0].path} {found[0].what}"
        return Check("store.private", CheckState.PROBLEM, seen, found[0].way_out, found[0].code)
    is_writable = os.access(home, os.W_OK | os.X_OK) and os.access(home / DATABASE, os.W_OK)
    if not is_writable:
        seen = f"{home} may only be read by this user"
        return Check("store.private", CheckState.DOUBTFUL, seen, "make it writable, or choose another with --home")
    if found:
        return Check("store.private", CheckState.DOUBTFUL, f"{found[0].path} {found[0].what}", f"chmod -R go= {home}")
    return Check("store.private", CheckState.OK, "readable and writable for its owner alone")


def _trust(home: Path, trusted: TrustList, webhooks: Callable[[], Sequence[str]]) -> Check:
    """Whether the store may be used, or only looked at."""
    standing = standing_of(home, trusted, webhooks())
    if standing.is_ours and not standing.is_new and (strangers := sorted(signers_in(home) - standing.signers)):
        seen = f"yours, and runs of it are signed by {', '.join(strangers)}, not accepted by you: none of them is gone on with"
        return Check("store.trust", CheckState.PROBLEM, seen, f"remit trust {home}", RUN_NOT_VOUCHED)
    if standing.is_ours:
        return Check("store.trust", CheckState.OK, "yours: nothing is in it yet" if standing.is_new else "yours")
    seen = f"{NOT_TRUSTED}: {standing.why_not}; it may only be looked at"
    return Check("store.trust", CheckState.DOUBTFUL, seen, f"remit trust {home}", NOT_TRUSTED)


def _key(home: Path) -> Check:
    if not (home / KEY).exists():
        # A file that was only just made holds nothing that could have been signed.
        if (home / DATABASE).stat().st_size:
            refuse_lost_key(home)
        return Check("store.key", CheckState.MISSING, "none yet", "the first turn that must be signed makes it")
    return Check("store.key", CheckState.OK, load_signer(home).did)


def _free(home: Path) -> Check:
    folder = _nearest(home)
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        seen, code = f"{folder}: {error.strerror}", store_unusable(error, folder).code
        return Check("disk.free", CheckState.PROBLEM, seen, "check the path", code)
    seen = f"{free_bytes / 1e9:.1f} GB free at {folder}"
    if free_bytes < FREE_BYTES_MIN:
        way_out = "make room: `remit gc` removes runs that ended long ago"
        return Check("disk.free", CheckState.PROBLEM, seen, way_out, FULL)
    return Check("disk.free", CheckState.OK, seen)


def _syncing(home: Path) -> Check:
    """How long the disk takes to say that something is on it."""
    folder = _nearest(home)
    try:
        took_us = sync_us(folder)
    except OSError as error:
        seen, _, way_out = store_unusable(error, folder).message.partition("; ")
        return Check("disk.sync", CheckState.DOUBTFUL, f"not measured: {seen}", way_out)
    seen = f"a block is on the disk after {took_us / 1000:.2f} ms"
    if took_us < SYNC_US_MIN:
        seen = f"a block is said to be on the disk after {took_us} us, sooner than any disk can"
        way_out = "a disk in memory, or one that pretends, forgets runs when the power goes; choose another with --home"
        return Check("disk.sync", CheckState.DOUBTFUL, seen, way_out)
    return Check("disk.sync", CheckState.OK, seen)


def sync_us(folder: Path) -> int:
    """Measure fdatasync on this file system with a file of its own: the median of several goes, in microseconds."""
    path = folder / f".remit-sync-{secrets.token_hex(8)}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        took_ns = []
        for _ in range(SYNCS):
            os.write(descriptor, _BLOCK)
            began_ns = time.perf_counter_ns()
            os.fdatasync(descriptor)
            took_ns.append(time.perf_counter_ns() - began_ns)
        return round(median(took_ns) / 1000)
    finally:
        os.close(descriptor)
        path.unlink()


def _nearest(home: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next((folder for folder in (home, *home.parents) if folder.is_dir()), Path(home.anchor or "."))
