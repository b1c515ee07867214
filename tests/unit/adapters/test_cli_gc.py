"""`remit gc` removes runs that ended long ago."""

import sqlite3
from contextlib import closing

from tests.unit.adapters.desk import Desk


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


def test_a_list_that_lies_about_an_open_run_does_not_get_it_collected(desk: Desk) -> None:
    desk.ended()
    waits = desk.waiting()
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("UPDATE runs SET ending = 'SUCCESS', ended_at_ms = 1 WHERE ending = ''")
    assert desk.say("gc", "--older-than", "0", "--dry-run", "--json").values["removed"]["ill_listed"] == [waits]
    said = desk.say("gc", "--older-than", "0")
    assert said.out.startswith("removed 1 runs")
    assert "INDEX_DIFFERS: 1 runs stay, whose turns do not end them before that time" in said.err
    assert f"as ending and ended_at_ms of the list do: {waits}; `remit rebuild`" in said.err
    assert desk.say("rebuild").code == 0
    assert desk.say("approve", waits).code == 0
    assert "INDEX_DIFFERS" not in desk.say("gc", "--older-than", "0").err


def test_an_ended_run_that_is_listed_as_older_than_it_is_stays_and_is_not_called_open(desk: Desk) -> None:
    ended = desk.ended()
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("UPDATE runs SET ended_at_ms = 1")
    said = desk.say("gc", "--older-than", "30d")
    assert said.out.startswith("removed 0 runs")
    assert (
        f"whose turns do not end them before that time, as ending and ended_at_ms of the list do: {ended};" in said.err
    )
