"""`remit runs` lists runs, and a run is found by its name."""

import sqlite3
from contextlib import closing

import pytest

from remit.adapters.cli.commands.runs import entry_lines, run_line
from remit.core.journal.storage import RunEntry, RunListing
from tests.unit.adapters.desk import Desk


def test_runs_are_listed_newest_first_up_to_a_limit(desk: Desk) -> None:
    first, second, third = desk.ended(), desk.waiting(), desk.ended()
    assert [row["run_id"] for row in desk.say("runs", "--json").rows] == [third, second, first]
    assert [row["run_id"] for row in desk.say("runs", "--json", "--limit", "1").rows] == [third]
    assert [row["run_id"] for row in desk.say("runs", "--json", "--open").rows] == [second]
    assert [row["run_id"] for row in desk.say("runs", "--json", "--waiting", "--children").rows] == [second]


def test_a_listed_run_says_how_it_stands(desk: Desk) -> None:
    desk.say("run", "Hi", "--engine", desk.script("Hello."), "--session", "s1")
    desk.waiting()
    waits, ended = desk.say("runs").out.splitlines()
    assert waits.endswith("waits: CONFIRM_REQUIRED  awaiting_approval  Write hello")
    assert ended.endswith("SUCCESS  session s1  complete  Hi")


def test_one_turn_is_one_turn() -> None:
    assert run_line(RunEntry("run", RunListing(0), 1)).endswith("   1 turn   open")
    assert run_line(RunEntry("run", RunListing(0), 2)).endswith("   2 turns  open")


def test_what_was_asked_is_shown_by_its_first_words_and_obeyed_by_no_terminal(desk: Desk) -> None:
    prompt = desk.file("prompt.txt", "\x1b[2J\n\nTell me\u202e  all " + "words " * 20_000)
    desk.say("run", "--file", prompt, "--engine", desk.script("Hello."))
    said = desk.say("runs").out
    assert "complete  \\x1b[2J Tell me\\u202e all words " in said
    assert said.endswith("…\n")
    assert len(said) < 180
    assert desk.say("runs", "--json").values["asked"].startswith("\\x1b[2J Tell me")


@pytest.mark.parametrize(
    ("columns", "expected"), [(60, ["a run", "    what was"]), (36, ["a run  what was"]), (0, ["a run  what was"])]
)
def test_what_was_asked_stands_behind_a_run_or_below_it_where_there_is_no_room(
    columns: int, expected: list[str]
) -> None:
    standing = "a run" + "." * 40 if len(expected) > 1 else "a run"
    lines = list(entry_lines(standing, "what was asked of it, at length, in many words", columns))
    assert [line[: len(begins)] for line, begins in zip(lines, expected, strict=True)] == expected
    assert not columns or max(map(len, lines)) <= columns


def test_a_text_that_was_taken_out_of_the_store_is_left_out(desk: Desk) -> None:
    desk.say("run", "--file", desk.file("p.txt", "long " * 20_000), "--engine", desk.script("Hello."))
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM blobs")
    assert desk.say("runs").out.endswith("complete\n")


def test_a_run_is_found_by_the_beginning_of_its_id(desk: Desk) -> None:
    run_id = desk.ended()
    assert desk.say("show", run_id[:-2], "--json").values["entry"]["run_id"] == run_id


@pytest.mark.parametrize("name", ["nobody", "", "\udcff"])
def test_a_run_that_is_not_there_is_an_error_with_a_code(desk: Desk, name: str) -> None:
    desk.ended()
    said = desk.say("show", name, "--json")
    assert (said.code, said.error) == (1, "RUN_NOT_FOUND")


def test_a_beginning_that_two_runs_share_is_refused_with_both(desk: Desk) -> None:
    runs = {desk.ended(), desk.ended()}
    said = desk.say("show", "1", "--json")
    assert (said.code, said.error) == (1, "RUN_AMBIGUOUS")
    assert set(said.values["error"]["details"]["candidates"]) == runs


def test_a_limit_below_zero_is_wrong_usage(desk: Desk) -> None:
    desk.ended()
    said = desk.say("runs", "--limit", "-1")
    assert (said.code, "--limit -1 is less than 0" in said.err) == (2, True)


def test_a_run_that_cannot_be_read_is_listed_and_named(desk: Desk) -> None:
    run_id = desk.waiting()
    desk.say("run", "Hi", "--engine", desk.script("Hi"))
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        query = "UPDATE turns SET data = x'00' WHERE seq = 0 AND run_no = (SELECT run_no FROM runs WHERE run_id = ?)"
        connection.execute(query, (run_id,))
    said = desk.say("runs")
    assert (said.code, len(said.out.splitlines())) == (1, 2)
    assert f"run {run_id} cannot be read; `remit verify {run_id}` says what is wrong" in said.err
