"""A check-up of the store finds what is wrong with it and with its disk, and changes nothing."""

import asyncio
import errno
import os
import shutil
from collections import namedtuple
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from remit.backend.embedded import checkup
from remit.backend.embedded.checkup import SYNC_US_MIN, FolderCheckup, sync_us
from remit.backend.embedded.disk.database import DATABASE, connect_to_database
from remit.backend.embedded.owner.key_file import KEY
from remit.backend.embedded.owner.trusted_stores import TrustList, enter_new
from remit.backend.embedded.store import EmbeddedStore
from remit.observe.checkup import Check, CheckState


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store that a key has signed for."""

    async def make() -> None:
        store = EmbeddedStore.open(tmp_path / "home")
        enter_new(tmp_path / "home", trusted(tmp_path / "home"))
        await store.close()

    asyncio.run(make())
    return tmp_path / "home"


def looked(home: Path) -> Sequence[Check]:
    return asyncio.run(FolderCheckup(home, trusted(home)).look())


def found(home: Path) -> dict[str, Check]:
    return {check.name: check for check in looked(home)}


def trusted(home: Path) -> TrustList:
    return TrustList(home.with_name("stores.jsonl"))


def states(home: Path) -> dict[str, CheckState]:
    return {name: check.state for name, check in found(home).items() if name.startswith("store")}


def test_a_store_that_is_well_is_well_and_stays_as_it_is(home: Path) -> None:
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    assert set(states(home).values()) == {CheckState.OK}
    assert found(home)["store.key"].seen.startswith("did:key:")
    assert "0 runs, 0 open" in found(home)["store"].seen
    # SQLite makes its shared memory for a reader, too.
    after = {path.name: path.read_bytes() for path in home.iterdir() if path.suffix not in (".db-shm", ".db-wal")}
    assert after == before


def test_where_there_is_no_store_only_the_disk_is_looked_at(tmp_path: Path) -> None:
    checks = found(tmp_path / "none" / "deep")
    assert checks["store"].state is CheckState.MISSING
    assert set(checks) == {"store", "disk.free", "disk.sync"}
    assert str(tmp_path) in checks["disk.free"].seen
    assert not (tmp_path / "none").exists()


def test_a_file_in_place_of_the_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    (check,) = looked(tmp_path / "home")
    assert (check.state, "no folder" in check.seen, check.code) == (CheckState.PROBLEM, True, "STORE_NOT_FOUND")


def damaged(home: Path) -> None:
    path = home / DATABASE
    path.write_bytes(path.read_bytes()[:100] + os.urandom(path.stat().st_size - 100))


def with_a_lost_page(home: Path) -> None:
    """The root page of the heads, which is not needed to count runs."""
    connection = connect_to_database(home / DATABASE)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'blobs'").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    data = bytearray((home / DATABASE).read_bytes())
    data[(page - 1) * size : (page - 1) * size + 16] = b"\xff" * 16
    (home / DATABASE).write_bytes(data)


def of_a_later_version(home: Path) -> None:
    connection = connect_to_database(home / DATABASE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def with_an_open_key(home: Path) -> None:
    (home / KEY).chmod(0o644)


def with_a_lost_key(home: Path) -> None:
    (home / KEY).unlink()
    (home / "heads.log").write_text("{}\n")


@pytest.mark.parametrize(
    ("spoil", "name", "code"),
    [
        (damaged, "store", "STORE_DAMAGED"),
        (with_a_lost_page, "store.whole", "STORE_DAMAGED"),
        (of_a_later_version, "store", "STORE_VERSION_UNKNOWN"),
        (with_an_open_key, "store.key", "STORE_KEY_UNUSABLE"),
        (with_a_lost_key, "store.key", "STORE_KEY_MISSING"),
    ],
)
def test_what_is_broken_is_a_problem_with_its_code_and_a_way_out(
    spoil: Callable[[Path], None], name: str, code: str, home: Path
) -> None:
    spoil(home)
    check = found(home)[name]
    assert (check.state, check.seen.partition(":")[0], check.code) == (CheckState.PROBLEM, code, code)
    assert check.way_out


def test_a_store_of_an_earlier_version_is_told_of_and_no_failure(home: Path) -> None:
    connection = connect_to_database(home / DATABASE)
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert found(home)["store"].state is CheckState.DOUBTFUL


def test_a_store_that_was_never_written_has_no_runs_to_count(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"")
    assert found(tmp_path)["store"].state is CheckState.DOUBTFUL
    assert found(tmp_path)["store.key"].state is CheckState.MISSING


def test_a_folder_that_others_may_enter_is_doubtful(home: Path) -> None:
    home.chmod(0o755)
    check = found(home)["store.private"]
    assert (check.state, "mode 755" in check.seen) == (CheckState.DOUBTFUL, True)
    assert check.way_out == f"chmod -R go= {home}"


def test_a_store_that_may_only_be_read_is_doubtful(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert found(home)["store.private"].state is CheckState.DOUBTFUL


def test_a_very_large_store_is_not_read_from_end_to_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "WHOLE_BYTES_MAX", 10)
    check = found(home)["store.whole"]
    assert (check.state, "quick_check" in check.way_out) == (CheckState.DOUBTFUL, True)


Usage = namedtuple("Usage", ["free"])


def test_a_disk_with_little_room_is_a_problem(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1_000))
    check = found(home)["disk.free"]
    assert (check.state, "remit gc" in check.way_out, check.code) == (CheckState.PROBLEM, True, "STORE_FULL")


def failing(number: int) -> Callable[..., None]:
    def fail(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_disk_that_cannot_be_asked_is_a_problem(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", failing(errno.EIO))
    assert (found(home)["disk.free"].state, found(home)["disk.free"].code) == (CheckState.PROBLEM, "STORE_DAMAGED")


@pytest.mark.parametrize(("took_us", "state"), [(SYNC_US_MIN - 1, CheckState.DOUBTFUL), (SYNC_US_MIN, CheckState.OK)])
def test_a_disk_that_answers_sooner_than_a_disk_can_is_doubted(
    took_us: int, state: CheckState, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "sync_us", lambda folder: took_us)
    check = found(home)["disk.sync"]
    assert (check.state, bool(check.way_out)) == (state, state is CheckState.DOUBTFUL)


def test_a_disk_that_cannot_be_written_is_not_measured(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fdatasync", failing(errno.ENOSPC))
    check = found(home)["disk.sync"]
    assert (check.state, "make room" in check.way_out) == (CheckState.DOUBTFUL, True)


def test_measuring_a_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    assert sync_us(tmp_path) >= 0
    assert list(tmp_path.iterdir()) == []
