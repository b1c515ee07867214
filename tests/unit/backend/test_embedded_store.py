"""Opening a store: what is made, what is migrated, and what is refused with a code and a way out."""

import asyncio
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from remit.backend.embedded.disk import checkpoints, database, tables
from remit.backend.embedded.disk.checkpoints import Checkpointer
from remit.backend.embedded.disk.disk_failures import store_unusable
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.storage import Barrier, RunListing, StoreUnusable
from tests.unit.backend.signed import journal_of

NOBODY = 65534

# Opens the store named by the first argument as a user who is not the superuser, and says what came of it.
PROGRAM = """
import asyncio, concurrent.futures.thread, os, sys
from pathlib import Path
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RemitError

async def whole(home, way):
    store = getattr(EmbeddedStore, way)(home)
    try:
        print(len(await store.journal.read("run")), flush=True)
        await store.journal.append("run", b"turn", after=0)
    finally:
        await store.close()

if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    asyncio.run(whole(Path(sys.argv[1]), sys.argv[2]))
except RemitError as error:
    print(error.code, error.message)
"""


def fill(home: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(home)
        await journal_of(store).append("run", b"turn", after=-1, listing=RunListing(1), barrier=Barrier())
        await store.close()

    asyncio.run(scene())


def refused(home: Path) -> StoreUnusable:
    with pytest.raises(StoreUnusable) as caught:
        EmbeddedStore.open(home)
    assert str(home) in caught.value.message
    return caught.value


def alter(home: Path, *statements: str) -> None:
    connection = sqlite3.connect(home / "remit.db", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def as_nobody(home: Path, way: str) -> list[str]:
    """What a process without special rights meets at a store that is not its own."""
    command = [sys.executable, "-c", PROGRAM, str(home), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def let_others_read(home: Path) -> None:
    home.chmod(0o755)
    for path in home.iterdir():
        path.chmod(0o644)


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A folder that everybody may enter, which those of pytest are not."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "home"


def test_a_new_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    fill(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == dict.fromkeys(
        ["heads.log", "key", "locks", "remit.db"], 0o600
    )


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    fill(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "remit.db").stat().st_mode) == 0o600


def test_the_file_says_whose_it_is_and_of_which_version(tmp_path: Path) -> None:
    fill(tmp_path)
    connection = sqlite3.connect(tmp_path / "remit.db")
    assert connection.execute("PRAGMA application_id").fetchone() == (tables.APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(tables.MIGRATIONS),)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_closing_leaves_no_wal(tmp_path: Path) -> None:
    fill(tmp_path)
    assert not (tmp_path / "remit.db-wal").exists()


def test_opening_twice_in_one_process_shares_the_store(tmp_path: Path) -> None:
    async def scene() -> None:
        first, second = EmbeddedStore.open(tmp_path), EmbeddedStore.open(tmp_path)
        await journal_of(first).append("run", b"first", after=-1)
        await journal_of(second).append("run", b"second", after=0, barrier=Barrier())
        assert first.did == second.did
        await first.close()
        assert await second.journal.read("run") == [b"first", b"second"]
        await journal_of(second).append("run", b"third", after=1, barrier=Barrier())
        await second.close()

    asyncio.run(scene())


def test_a_store_of_a_later_version_is_not_touched(tmp_path: Path) -> None:
    fill(tmp_path)
    alter(tmp_path, "PRAGMA user_version = 99")
    error = refused(tmp_path)
    assert error.code == "STORE_VERSION_UNKNOWN"
    assert error.details == {"path": str(tmp_path / "remit.db"), "version": 99, "known": len(tables.MIGRATIONS)}
    with pytest.raises(StoreUnusable, match="STORE_VERSION_UNKNOWN"):
        EmbeddedStore.open_to_read(tmp_path)


NEXT: Sequence[Sequence[str]] = (
    *tables.MIGRATIONS,
    ("ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'", "CREATE INDEX colours ON runs (colour)"),
    ("UPDATE runs SET colour = 'blue'",),
)


def lengthen(monkeypatch: pytest.MonkeyPatch, migrations: Sequence[Sequence[str]]) -> None:
    """Let this process know a longer list, as a later release would."""
    monkeypatch.setattr(database, "MIGRATIONS", migrations)
    monkeypatch.setattr(checkpoints, "MIGRATIONS", migrations)
    for function in (tables.migrate, tables.refuse_later_version):
        assert function.__kwdefaults__ is not None
    monkeypatch.setitem(tables.migrate.__kwdefaults__ or {}, "migrations", migrations)
    monkeypatch.setitem(tables.refuse_later_version.__kwdefaults__ or {}, "known", len(migrations))


def test_an_older_store_is_brought_to_the_newest_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    lengthen(monkeypatch, NEXT)

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        assert await store.journal.read("run") == [b"turn"]
        await journal_of(store).append("run", b"next", after=0)
        await store.close()

    asyncio.run(scene())
    connection = sqlite3.connect(tmp_path / "remit.db")
    assert connection.execute("SELECT colour FROM runs").fetchall() == [("blue",)]
    assert connection.execute("PRAGMA user_version").fetchone() == (len(NEXT),)
    connection.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    with monkeypatch.context() as later:
        lengthen(later, (*NEXT, ("INSERT INTO nowhere VALUES (1)",)))
        assert refused(tmp_path).code == "STORE_DAMAGED"
    connection = sqlite3.connect(tmp_path / "remit.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (len(tables.MIGRATIONS),)
    assert "colour" not in [row[1] for row in connection.execute("PRAGMA table_info (runs)")]
    connection.close()
    fill_again = EmbeddedStore.open(tmp_path)
    assert asyncio.run(fill_again.journal.read("run")) == [b"turn"]
    asyncio.run(fill_again.close())


def test_a_store_in_use_is_not_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        with monkeypatch.context() as later:
            lengthen(later, NEXT)
            assert refused(tmp_path).code == "STORE_BUSY"
        await store.close()

    asyncio.run(scene())


def test_a_schema_that_is_no_text_any_more_is_damaged(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "remit.db"
    data = path.read_bytes()
    assert b"CREATE TABLE turns" in data
    path.write_bytes(data.replace(b"CREATE TABLE turns", b"CRE\xd9\xff\xd9TABLE turns"))
    assert refused(tmp_path).code == "STORE_DAMAGED"
    with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
        EmbeddedStore.open_to_read(tmp_path)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_FULL])
def test_a_file_that_cannot_grow_means_a_full_disk(code: int, tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    assert store_unusable(error, tmp_path).code == "STORE_FULL"


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "remit.db").write_bytes(b"no database" * 1000)
    assert refused(tmp_path).code == "STORE_DAMAGED"
    with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
        EmbeddedStore.open_to_read(tmp_path)


def test_a_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    alter(tmp_path, "CREATE TABLE a (b)")
    error = refused(tmp_path)
    assert error.code == "STORE_DAMAGED"
    assert "another program" in error.message
    connection = sqlite3.connect(tmp_path / "remit.db")
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("a",)]
    connection.close()


def test_a_damaged_page_is_said_to_be_damaged(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "remit.db"
    # The pages that say which tables there are stay whole, so that the store can be opened.
    connection = sqlite3.connect(path)
    roots = connection.execute("SELECT rootpage FROM sqlite_schema WHERE tbl_name IN ('runs', 'turns')").fetchall()
    connection.close()
    data = bytearray(path.read_bytes())
    for (page,) in roots:
        data[(page - 1) * 4096 : (page - 1) * 4096 + 512] = b"\xff" * 512
    path.write_bytes(data)

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
            await store.journal.read("run")
        with pytest.raises(StoreUnusable, match="STORE_DAMAGED") as caught:
            await journal_of(store).append("run", b"turn", after=0)
        assert "backup" in caught.value.message
        await store.close()

    asyncio.run(scene())


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("not a folder")
    assert refused(home).code == "STORE_NOT_FOUND"


def test_a_store_held_by_another_process_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    monkeypatch.setattr(database, "BUSY_WAIT_MS_MAX", 50)
    monkeypatch.setitem(database.connect_to_database.__kwdefaults__ or {}, "busy_wait_ms", 10)
    holder = sqlite3.connect(tmp_path / "remit.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert refused(tmp_path).code == "STORE_BUSY"
    holder.close()


def test_a_store_that_the_user_may_only_read_is_read_only(open_home: Path) -> None:
    home = open_home
    fill(home)
    let_others_read(home)
    (line,) = as_nobody(home, "open")
    assert line.startswith(f"STORE_READ_ONLY {home}")


def test_a_folder_that_the_user_may_not_write_is_read_only(open_home: Path) -> None:
    home = open_home
    home.mkdir(mode=0o755)
    (line,) = as_nobody(home, "open")
    assert line.startswith(f"STORE_READ_ONLY {home}")


def test_a_read_only_store_can_be_read_and_refuses_writes(open_home: Path) -> None:
    home = open_home
    fill(home)
    let_others_read(home)
    read, line = as_nobody(home, "open_to_read")
    assert read == "1"
    assert line.startswith("STORE_READ_ONLY")


def test_a_read_only_store_with_a_wal_of_its_own_is_read_or_refused_but_never_misread(open_home: Path) -> None:
    home = open_home

    async def scene() -> list[str]:
        store = EmbeddedStore.open(home)
        await journal_of(store).append("run", b"turn", after=-1)
        let_others_read(home)
        lines = await asyncio.to_thread(as_nobody, home, "open_to_read")
        await store.close()
        return lines

    lines = asyncio.run(scene())
    assert lines[0] == "1" or lines[0].startswith("STORE_READ_ONLY")


def test_a_store_whose_wal_cannot_be_read_is_refused(open_home: Path) -> None:
    home = open_home
    fill(home)
    (home / "remit.db-wal").write_bytes(b"newer turns")
    let_others_read(home)
    (line,) = as_nobody(home, "open_to_read")
    assert line.startswith("STORE_READ_ONLY")
    assert "closed cleanly" in line


def test_a_closed_store_is_read_without_the_files_that_writing_needs(tmp_path: Path) -> None:
    fill(tmp_path)
    # A WAL that is not there and cannot be made, as on a read-only disk.
    (tmp_path / "remit.db-wal").symlink_to(tmp_path / "nowhere" / "wal")

    async def scene() -> None:
        store = EmbeddedStore.open_to_read(tmp_path)
        assert await store.journal.read("run") == [b"turn"]
        with pytest.raises(StoreUnusable, match="STORE_READ_ONLY"):
            await journal_of(store).append("run", b"turn", after=0)
        await store.close()

    asyncio.run(scene())
    (tmp_path / "remit.db-wal").unlink()
    (tmp_path / "remit.db-wal").mkdir()
    with pytest.raises(StoreUnusable, match=r"STORE_READ_ONLY.*closed cleanly"):
        EmbeddedStore.open_to_read(tmp_path)
    (tmp_path / "remit.db-wal").rmdir()
    (tmp_path / "remit.db-wal").symlink_to(tmp_path / "nowhere" / "wal")
    (tmp_path / "remit.db").write_bytes((tmp_path / "remit.db").read_bytes()[:100])
    with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
        EmbeddedStore.open_to_read(tmp_path)


def test_runs_are_listed_by_standing_and_by_session(tmp_path: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        standings = {"ended": Barrier("SUCCESS"), "waiting": Barrier(waiting_for="MISSING_INFO"), "going": None}
        for ordinal, (run_id, barrier) in enumerate(standings.items()):
            listing = RunListing(1, session_id="s", ordinal=ordinal)
            await journal_of(store).append(run_id, b"turn", after=-1, barrier=barrier, listing=listing)
        await journal_of(store).append("unlisted", b"turn", after=-1)
        listed = store.catalogue
        assert [entry.run_id for entry in await listed.entries()] == ["going", "waiting", "ended"]
        assert [entry.run_id for entry in await listed.entries(open_only=True)] == ["going", "waiting"]
        assert [entry.run_id for entry in await listed.entries(waiting_only=True)] == ["waiting"]
        assert [entry.run_id for entry in await listed.session("s")] == ["ended", "waiting", "going"]
        assert await listed.session("") == []
        await store.close()

    asyncio.run(scene())


def test_opening_to_read_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="STORE_NOT_FOUND"):
        EmbeddedStore.open_to_read(tmp_path / "home")
    assert list(tmp_path.iterdir()) == []


def test_what_is_opened_to_read_can_be_read_beside_a_writer(tmp_path: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        await journal_of(store).append("run", b"turn", after=-1, listing=RunListing(1), barrier=Barrier())
        reader = EmbeddedStore.open_to_read(tmp_path)
        assert await reader.journal.read("run") == [b"turn"]
        assert await reader.log.heads("run") == await store.catalogue.heads("run")
        await store.inbox.settle(await store.inbox.put("run", b"hello"), "NO", "not now")
        assert await reader.inbox.outcome(1) == ("NO", "not now")
        with pytest.raises(StoreUnusable, match="STORE_READ_ONLY"):
            await reader.inbox.put("run", b"hello")
        await reader.close()
        await store.close()

    asyncio.run(scene())


def test_nothing_is_removed_from_a_store_that_was_opened_to_read(tmp_path: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        await journal_of(store).append("run", b"turn", after=-1, listing=RunListing(1), barrier=Barrier("SUCCESS"))
        await store.close()
        reader = EmbeddedStore.open_to_read(tmp_path)
        removals: tuple[Coroutine[Any, Any, object], ...] = (
            reader.retention.delete("run"),
            reader.retention.gc(ended_before_ms=1 << 60),
            reader.redactions.redact("run", text="turn", by="ann", why="a mistake"),
        )
        for removal in removals:
            with pytest.raises(StoreUnusable, match=r"STORE_READ_ONLY: .* was opened only to be read"):
                await removal
        assert await reader.journal.read("run") == [b"turn"]
        assert await reader.log.deletion("run") is None
        await reader.close()

    asyncio.run(scene())


FULL = """
import asyncio, resource, sys
from pathlib import Path
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RemitError

async def whole(home):
    store = EmbeddedStore.open(home)
    resource.setrlimit(resource.RLIMIT_FSIZE, (240_000, resource.RLIM_INFINITY))
    written = 0
    try:
        while True:
            await store.journal.append("run", bytes(10_000), after=written - 1)
            written += 1
    except RemitError as error:
        print(error.code, written, len(await store.journal.read("run")), flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.journal.append("run", b"last", after=written - 1)
    print(len(await store.journal.read("run")) - written)
    await store.close()

asyncio.run(whole(Path(sys.argv[1])))
"""


def test_a_file_that_may_not_grow_is_a_full_store_and_nothing_is_lost(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    code, written, kept = printed[0].split()
    assert code == "STORE_FULL"
    assert int(written) == int(kept) > 3
    assert printed[1] == "1"


def test_a_failure_of_the_system_names_the_path_and_a_way_out() -> None:
    error = store_unusable(OSError(5, os.strerror(5)), Path("home"))
    assert error.code == "STORE_DAMAGED"
    assert error.message.startswith("home: Input/output error; put back a backup")
    assert store_unusable(OSError("odd"), Path("home")).message.startswith("home: odd; ")
    assert store_unusable(sqlite3.ProgrammingError("odd"), Path("home")).code == "STORE_DAMAGED"


def salt_of_wal(home: Path) -> bytes:
    """What the header of the WAL holds that changes whenever the WAL begins anew."""
    with (home / "remit.db-wal").open("rb") as wal:
        return wal.read(20)[16:]


def test_the_wal_begins_anew_while_a_writer_writes_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "WAL_BYTES_MAX", 200_000)
    turns_max = 20_000

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        written, salts = 0, set[bytes]()
        while written < turns_max and len(salts) < 3:
            await journal_of(store).append("run", b"%d" % written, after=written - 1)
            written += 1
            salts.add(salt_of_wal(tmp_path))
        assert written < turns_max
        assert await store.journal.read("run") == [b"%d" % number for number in range(written)]
        await store.close()

    asyncio.run(scene())
    assert "remit-checkpoint" not in [thread.name for thread in threading.enumerate()]


def test_a_checkpoint_that_fails_is_told_to_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpointer = Checkpointer(tmp_path / "nowhere")
    checkpointer.count(checkpoints.WAL_BYTES_MAX)
    checkpointer.close()
    assert "no checkpoint of" in caplog.text
