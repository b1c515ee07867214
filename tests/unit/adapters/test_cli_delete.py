"""`remit delete` removes runs, and everything else verifies as before."""

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
        connection.execute("DELETE FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?)", (taken,))
        connection.execute("DELETE FROM runs WHERE run_id = ?", (taken,))
    assert desk.say("verify", deleted, "--json").error == "RUN_DELETED"
    said = desk.say("verify", taken, "--json")
    assert (said.code, said.error) == (1, "RUN_MISSING")


def test_a_child_of_an_open_run_is_not_deleted_and_its_parent_takes_it_along(desk: Desk) -> None:
    parent = desk.delegating()
    child = desk.say("runs", "--children", "--json").rows[0]["run_id"]
    said = desk.say("delete", child, "--json")
    assert (said.code, said.error) == (1, "PARENT_OPEN")
    assert desk.say("delete", parent, "--json").values["runs"] == 2
    assert desk.say("runs", "--children", "--json").rows == []
    assert desk.say("show", child, "--json").error == "RUN_DELETED"
