"""`remit backup` copies a store that is in use; the copy is a store, verified, and goes on."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded import backup
from tests.unit.adapters.desk import Desk


def test_a_copy_is_verified_private_and_goes_on_in_the_place_of_the_store(desk: Desk, tmp_path: Path) -> None:
    ended, waits = desk.ended(), desk.waiting()
    (desk.home / "queues.yaml").write_text("queues: []\n")
    (desk.home / "sealed").mkdir(exist_ok=True)
    (desk.home / "sealed" / "x").write_text("s")
    to = tmp_path / "copies" / "monday"
    with closing(sqlite3.connect(desk.home / "remit.db")) as user:  # A reader has it open.
        user.execute("BEGIN")
        user.execute("SELECT count(*) FROM runs").fetchone()
        said = desk.say("backup", to)
    assert (said.code, said.out.splitlines()[0].startswith("2 runs, ")) == (0, True), said.err
    names = {path.relative_to(to).as_posix() for path in to.rglob("*")}
    assert names >= {"heads.log", "key", "remit.db", "queues.yaml", "sealed/x"}
    assert not any("wal" in name or "lock" in name for name in names)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (to, *to.rglob("*")))
    assert list(to.parent.iterdir()) == [to], "no draft is left"
    shutil.rmtree(desk.home)
    shutil.copytree(to, desk.home)
    assert {row["run_id"] for row in desk.say("runs", "--json").rows} == {ended, waits}
    assert desk.say("approve", waits).code == 0
    assert desk.notes == ["hello"]


def test_programs_are_told_what_was_copied(desk: Desk, tmp_path: Path) -> None:
    desk.ended()
    said = desk.say("backup", tmp_path / "copy", "--json").values
    assert (said["runs"], said["failed"], said["bytes"] > 0) == (1, [], True)


def test_a_copy_of_a_run_that_was_changed_is_made_and_said_to_fail(desk: Desk, tmp_path: Path) -> None:
    run_id = desk.ended()
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("UPDATE turns SET data = x'00' WHERE seq = 1")
    said = desk.say("backup", tmp_path / "copy")
    assert (said.code, f"run {run_id} FAILED verification" in said.err) == (1, True)


@pytest.mark.parametrize("where", ["there", "file/below"])
def test_a_folder_that_cannot_be_made_is_named_and_nothing_is_left(desk: Desk, tmp_path: Path, where: str) -> None:
    desk.ended()
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("x")
    said = desk.say("backup", tmp_path / where, "--json")
    assert (said.code, said.error) == (1, "BACKUP_UNUSABLE")
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".draft")]


def test_a_database_that_cannot_be_copied_is_no_backup(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.ended()

    def broken(home: Path, draft: Path) -> None:
        raise sqlite3.DatabaseError("page 7 is gone")

    monkeypatch.setattr(backup, "_copy", broken)
    assert desk.say("backup", tmp_path / "copy", "--json").error == "STORE_DAMAGED"
    assert not (tmp_path / "copy").exists()
