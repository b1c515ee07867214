"""Removing runs from the command line."""

import sqlite3
from contextlib import closing

from tests.unit.adapters.desk import Desk


def test_a_deleted_run_is_gone_and_the_others_verify(desk: Desk) -> None:
    gone, kept = desk.ended("long " * 1000), desk.ended()
    said = desk.say("delete", gone, "--json")
    assert (said.code, said.values) == (0, {"run_id": gone, "runs": 1, "turns": 2, "texts": 1})
    assert [row["run_id"] for row in desk.say("runs", "--json").rows] == [kept]
    assert desk.say("verify", kept).code == 0
    assert desk.say("delete", kept).out == f"run {kept} deleted: 1 runs, 2 turns, 0 texts\n"


def test_a_run_that_was_deleted_on_purpose_is_told_from_one_that_was_taken_out(desk: Desk) -> None:
    deleted, taken, _ = desk.ended(), desk.ended(), desk.ended()
    desk.say("delete", deleted)
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM runs WHERE run_id = ?", (taken,))
    assert desk.say("verify", deleted, "--json").error == "RUN_DELETED"
    said = desk.say("verify", taken, "--json")
    assert (said.code, said.error) == (1, "RUN_MISSING")


def test_old_runs_are_collected_and_a_dry_run_only_counts(desk: Desk) -> None:
    desk.ended()
    waits = desk.waiting()
    assert desk.say("gc").out.startswith("removed 0 runs")
    assert desk.say("gc", "--older-than", "0", "--dry-run").out.startswith("would remove 1 runs")
    said = desk.say("gc", "--older-than", "0", "--json").values
    assert (said["dry_run"], said["removed"]["runs"]) == (False, 1)
    assert [row["run_id"] for row in desk.say("runs", "--json").rows] == [waits]


def test_a_number_of_days_below_zero_is_wrong_usage(desk: Desk) -> None:
    desk.ended()
    said = desk.say("gc", "--older-than=-1", "--json")
    assert (said.code, said.error) == (2, "USAGE")


def test_the_newest_run_of_a_session_is_kept_so_that_the_session_goes_on(desk: Desk) -> None:
    script = desk.script("one", "two", "three")
    for text in ("first", "second"):
        assert desk.say("run", text, "--engine", script, "--session", "s").code == 0
    assert desk.say("gc", "--older-than", "0").out.startswith("removed 1 runs")
    assert desk.say("run", "third", "--engine", script, "--session", "s").out == "three\n"
    assert [row["listing"]["ordinal"] for row in desk.say("runs", "--json").rows] == [2, 1]


def test_a_child_of_an_open_run_is_not_deleted_and_its_parent_takes_it_along(desk: Desk) -> None:
    parent = desk.delegating()
    child = desk.say("runs", "--children", "--json").rows[0]["run_id"]
    said = desk.say("delete", child, "--json")
    assert (said.code, said.error) == (1, "PARENT_OPEN")
    assert desk.say("delete", parent, "--json").values["runs"] == 2
    assert desk.say("runs", "--children", "--json").rows == []
    assert desk.say("show", child, "--json").error == "RUN_DELETED"
