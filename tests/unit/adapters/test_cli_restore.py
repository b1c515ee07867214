"""`remit restore` and `remit verify --all`: what a store has lost, and how a run goes on all the same."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.unit.adapters.desk import Desk


def backed_up(desk: Desk) -> None:
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection:
        connection.execute("VACUUM INTO ?", (str(desk.folder / "backup.db"),))


def put_back(desk: Desk) -> None:
    shutil.copy(desk.folder / "backup.db", desk.home / "remit.db")
    for name in ("remit.db-wal", "remit.db-shm"):
        (desk.home / name).unlink(missing_ok=True)


@pytest.fixture
def restored(desk: Desk) -> str:
    """A run whose note was written, in a store whose database was put back to before it."""
    run_id = desk.waiting()
    backed_up(desk)
    assert desk.say("approve", run_id).code == 0
    put_back(desk)
    assert desk.notes == ["hello"]
    return run_id


def test_no_command_does_again_what_was_done_in_turns_that_are_missing(desk: Desk, restored: str) -> None:
    for words in (
        ["resume", "--all"],
        ["resume", restored],
        ["approve", restored],
        ["reject", restored],
        ["signal", restored, "cancel"],
        ["signal", restored, "resume"],
        ["fork", restored, "--why", "x"],
    ):
        said = desk.say(*words)
        assert (said.code, "STORE_BEHIND_ITS_LOG" in said.err) == (1, True), words
        assert f"remit restore {restored}" in said.err
    assert desk.notes == ["hello"]


def test_what_is_in_doubt_is_said_and_looking_changes_nothing(desk: Desk, restored: str) -> None:
    said = desk.say("restore", "--all")
    assert said.code == 3
    assert f"run {restored} stands at turn 1; turns 2 to 4 were signed and are missing" in said.out
    assert "it may have been done: write was held for a person" in said.out
    assert "ended as SUCCESS" in said.out
    (doubt,) = desk.say("restore", restored, "--json").values["runs"]
    assert (doubt["run_id"], doubt["last"], doubt["signed"]) == (restored, 1, 4)
    assert desk.say("verify", "--all").code == 1
    assert "1 runs lack turns that were signed" in desk.say("doctor").out


def test_a_person_who_accepts_the_loss_lets_a_fork_go_on_that_asks_first(desk: Desk, restored: str) -> None:
    said = desk.say("restore", restored, "--accept", "--why", "the disk died", "--by", "ann", "--json")
    fork = said.values["run_id"]
    assert (said.code, fork != restored, desk.notes) == (3, True, ["hello"])
    asked = desk.say("approvals", f"{fork}", "--json").rows[0]
    assert f"run {restored} may have done this: turns 2 to 4 of it are missing" in asked["reasons"][0]
    shown = desk.say("trace", fork, "--json").out
    assert "the disk died" in shown
    assert desk.say("reject", fork).code == 3
    assert desk.say("signal", fork, "resume").code != 3
    assert desk.notes == ["hello"]
    assert desk.say("verify", fork).code == 0
    # The run itself stays in doubt, and no person is asked for it.
    assert f"run {restored} is not gone on with: turn 4 of it was signed" in desk.say("show", restored).err
    listed = desk.say("approvals")
    assert (f"{restored}/" in listed.out, f"run {restored} hears no answer" in listed.err) == (False, True)
    assert (listed.code, "no run asks anything" in listed.err) == (1, False)
    assert desk.say("resume", restored, "--json").error == "STORE_BEHIND_ITS_LOG"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["last", "--all"],
        ["--all", "--accept", "--why", "x"],
        ["last", "--accept"],
        ["last", "--accept", "--why", " "],
    ],
)
def test_a_restoration_says_what_and_why(desk: Desk, words: list[str]) -> None:
    assert desk.say("restore", *words, "--json").error == "USAGE"


def test_where_nothing_is_missing_nothing_is_restored(desk: Desk) -> None:
    run_id = desk.waiting()
    said = desk.say("restore", "--all")
    assert (said.code, said.out) == (0, "nothing is in doubt: every turn that was signed is here\n")
    assert desk.say("restore", run_id, "--accept", "--why", "x", "--json").error == "RUN_WHOLE"


def test_a_call_that_was_under_way_when_the_backup_was_made_may_have_been_done(desk: Desk) -> None:
    run_id = desk.waiting()
    assert desk.say("approve", run_id).code == 0
    # A backup from between the order and the outcome.
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM turns WHERE seq > 2")
        connection.execute("DELETE FROM heads WHERE seq > 2")
        connection.execute("UPDATE runs SET ending = ''")
    said = desk.say("restore", run_id)
    assert (said.code, "write (" in said.out, "was under way" in said.out) == (3, True, True)
    assert desk.say("resume", run_id, "--json").error == "STORE_BEHIND_ITS_LOG"
    assert desk.notes == ["hello"]


def test_a_run_that_is_gone_and_a_log_that_is_gone_are_told(desk: Desk) -> None:
    gone, kept = desk.ended(), desk.ended()
    deleted = desk.ended()
    assert desk.say("verify", "--all").out == "all 3 are as they were written\n"
    desk.say("delete", deleted)
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?)", (gone,))
        connection.execute("DELETE FROM runs WHERE run_id = ?", (gone,))
    said = desk.say("verify", "--all", "--json")
    assert (said.code, [row["run_id"] for row in said.rows if not row["ok"] and "run_id" in row]) == (1, [gone])
    assert said.rows[-1] == {"ok": False, "signer_trusted": True, "verified": 2, "failed": 1}
    said = desk.say("restore", "--all")
    assert (said.code, f"run {gone} is gone, and was not deleted" in said.out) == (3, True)
    assert "RUN_GONE" in desk.say("verify", "--all").out
    (desk.home / "heads.log").write_text("")
    said = desk.say("verify", "--all")
    assert (said.code, "the store: LOG_GONE" in said.out, kept in said.out) == (1, True, False)
    assert desk.say("restore", "--all").code == 3
    assert "is gone or empty" in desk.say("doctor").out


def test_the_journal_of_halts_is_verified_with_the_rest(desk: Desk) -> None:
    desk.ended()
    assert desk.say("halt", "--tool", "write", "--why", "x").code == 0
    assert desk.say("verify", "--all").code == 0
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute(
            "UPDATE heads SET head = x'00' WHERE run_no IN (SELECT run_no FROM runs WHERE started_at_ms IS NULL)"
        )
    said = desk.say("verify", "--all")
    assert (said.code, "HALTS_ALTERED" in said.out) == (1, True)


@pytest.mark.parametrize("words", [["verify"], ["verify", "last", "--all"]])
def test_a_verdict_is_about_one_run_or_all(desk: Desk, words: list[str]) -> None:
    desk.ended()
    assert desk.say(*words, "--json").error == "USAGE"


def test_an_emptied_or_missing_database_beside_signed_heads_is_never_replaced(desk: Desk) -> None:
    desk.ended()
    database = desk.home / "remit.db"
    whole = database.read_bytes()
    for spoil in (database.unlink, lambda: database.write_bytes(b"")):
        spoil()
        for words in (["run", "Hi", "--engine", desk.script("Hi")], ["runs"], ["resume", "--all"], ["trust"], ["gc"]):
            said = desk.say(*words, "--json")
            assert (said.code, said.error) == (1, "STORE_EMPTIED"), words
        assert "STORE_EMPTIED" in desk.say("doctor").out
    database.write_bytes(whole)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM runs")
        connection.execute("DELETE FROM turns")
    for words in (["run", "Hi", "--engine", desk.script("Hi")], ["runs"]):
        assert desk.say(*words, "--json").error == "STORE_EMPTIED"
    assert "STORE_EMPTIED" in desk.say("doctor").out
    # On purpose, a new store begins where the log was moved away.
    database.unlink()
    (desk.home / "heads.log").unlink()
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0


def test_a_store_whose_runs_were_all_deleted_on_purpose_goes_on(desk: Desk) -> None:
    desk.say("delete", desk.ended())
    assert desk.say("runs").code == 0
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0


def test_a_database_of_no_bytes_without_heads_is_an_empty_store(desk: Desk) -> None:
    desk.home.mkdir(mode=0o700)
    (desk.home / "remit.db").touch(0o600)
    assert (desk.say("runs").code, desk.say("approvals").code, desk.say("cost").code) == (0, 0, 0)
    assert "nothing was signed yet" in desk.say("doctor").out
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0
    assert len(desk.say("runs", "--json").rows) == 1


def cut_short(log: bytes) -> bytes:
    return b"".join(log.splitlines(True)[:2])


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda log: None,
    "unread": lambda log: cut_short(log) + b"\x01 nonsense\n" * 3,
    "overwritten": lambda log: cut_short(log) + b"#" * 200 + b"}\n",
    "forged": lambda log: log.replace(b'"signature":"', b'"signature":"00'),
    "forged_last": lambda log: cut_short(log) + log.splitlines(True)[-1].replace(b'"seq":4', b'"seq":1'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_log_that_may_have_said_more_keeps_a_run_from_going_on(desk: Desk, restored: str, damage: str) -> None:
    log = desk.home / "heads.log"
    left = DAMAGES[damage](log.read_bytes())
    log.unlink()
    if left is not None:
        log.touch(0o600)
        log.write_bytes(left)
    # A run that begins now is not held up, and hides nothing.
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0
    for words in (["resume", restored], ["approve", restored], ["fork", restored], ["signal", restored, "cancel"]):
        said = desk.say(*words, "--json")
        assert (said.code, said.error) == (1, "STORE_LOG_DAMAGED"), words
    assert desk.notes == ["hello"]
    told = desk.say("restore", restored)
    assert (told.code, "later turns may be missing" in told.out) == (3, True)
    assert "it may have been done: write was held for a person" in told.out
    said = desk.say("restore", restored, "--accept", "--why", "the log was lost", "--json")
    fork = said.values["run_id"]
    assert (said.code, desk.notes) == (3, ["hello"])
    asked = desk.say("approvals", "--json").rows
    assert [one["run_id"] for one in asked] == [fork], "what the run in doubt asks is asked of nobody"
    assert "may be missing" in asked[0]["reasons"][0]
    assert desk.say("approve", fork).code == 0
    assert desk.notes == ["hello", "hello"]


@pytest.mark.parametrize("damage", ["gone", "unread", "overwritten"])
def test_a_check_up_and_a_verification_tell_of_a_damaged_log(desk: Desk, restored: str, damage: str) -> None:
    log = desk.home / "heads.log"
    left = DAMAGES[damage](log.read_bytes())
    log.write_bytes(left or b"")
    if left is None:
        log.unlink()
    assert desk.say("doctor").code == 1
    assert desk.say("verify", "--all").code == 1
    assert desk.say("restore", "--all").code == 3


@pytest.mark.parametrize("cut", [1, 5, 30, 120])
@pytest.mark.parametrize("is_followed", [False, True])
def test_a_line_that_a_crash_cut_keeps_nothing_from_going_on(desk: Desk, cut: int, is_followed: bool) -> None:
    run_id = desk.waiting()
    log = desk.home / "heads.log"
    *_, last = log.read_bytes().splitlines(True)
    log.write_bytes(log.read_bytes().removesuffix(last) + last[:cut])
    if is_followed:
        desk.ended()
    assert desk.say("approve", run_id).code == 0
    assert desk.notes == ["hello"]
    assert desk.say("doctor").code == 0
    assert desk.say("restore", "--all").code == 0


def test_lines_that_the_power_took_keep_nothing_from_going_on(desk: Desk) -> None:
    run_id = desk.waiting()
    log = desk.home / "heads.log"
    first, *rest = log.read_bytes().splitlines(True)
    log.write_bytes(first + b"".join(bytes(len(line) - 1) + b"\n" for line in rest))
    assert desk.say("approve", run_id).code == 0
    assert desk.notes == ["hello"]


def test_an_empty_log_is_what_a_crash_leaves(desk: Desk) -> None:
    run_id = desk.waiting()
    (desk.home / "heads.log").write_bytes(b"")
    assert desk.say("approve", run_id).code == 0
    assert desk.notes == ["hello"]
