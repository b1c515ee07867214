"""Looking at runs from the command line."""

from pathlib import Path

import pytest

from tests.unit.adapters.desk import Desk, calls


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
    assert waits.endswith("waits: CONFIRM_REQUIRED")
    assert ended.endswith("SUCCESS  session s1")


def test_show_tells_a_run_and_its_answer(desk: Desk) -> None:
    script = desk.script(calls("look", place="here"), "Two\nlines.")
    desk.say("run", "Look", "--engine", script, "--tools", desk.tools(), "--user", "ann")
    said = desk.say("show", "last")
    assert "for ann" in said.out
    assert 'call      look {"place": "here"}: committed' in said.out
    assert "spent     1 of 50 tool_calls" in said.out
    assert said.out.endswith("\nTwo\nlines.\n")


def test_show_tells_why_a_call_failed_with_nothing_that_a_terminal_obeys(desk: Desk) -> None:
    file = Path(desk.tools())
    file.write_text(file.read_text().replace('return f"nothing at {place}"', 'raise OSError(f"no {place}")'))
    script = desk.script(calls("look", place="\x1b[2Jhere" + "x" * 5000), "Sorry.")
    desk.say("run", "Look", "--engine", script, "--tools", str(file))
    (line,) = [line for line in desk.say("show", "last").out.splitlines() if line.startswith("failed ")]
    assert line.startswith("failed    TOOL_EXECUTION_FAILED: OSError: no \\x1b[2Jhere")
    assert len(line) < 400


def test_show_tells_what_a_run_waits_for_and_exits_with_0(desk: Desk) -> None:
    run_id = desk.waiting()
    said = desk.say("show", "last")
    assert said.code == 0
    assert "stands    waits: CONFIRM_REQUIRED" in said.out
    assert f"remit approve {run_id}/" in said.out
    values = desk.say("show", "last", "--json").values
    assert values["response"]["waiting_for"]["ending"] == "CONFIRM_REQUIRED"
    assert values["explanation"]["standing"]["status"] == "waiting"


@pytest.mark.req("4.43")
def test_explain_says_one_sentence_from_allowed_to_because(desk: Desk) -> None:
    desk.waiting()
    desk.say("approve", "last")
    said = desk.say("explain", "last")
    (sentence,) = said.out.splitlines()
    parts = [
        "was allowed",
        "chose",
        "called write once",
        "spent",
        "updated its state from 1 verified",
        "ended as SUCCESS",
    ]
    assert [sentence.index(part) for part in parts] == sorted(sentence.index(part) for part in parts)
    assert desk.say("explain", "last", "--json").values["sentence"] == sentence


def test_trace_lists_turns_for_people_and_for_programs(desk: Desk) -> None:
    desk.ended("\x1b[31mred")
    lines = desk.say("trace", "last").out
    assert "RunStarted" in lines
    assert "\\x1b[31mred" in lines
    assert "\x1b" not in lines
    rows = desk.say("trace", "last", "--json").rows
    assert [row["seq"] for row in rows] == [0, 1]


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
