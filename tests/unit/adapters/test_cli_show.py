"""`remit show` tells one run: how it stands, what it called and spent, its answer, and each turn in full."""

import asyncio
from pathlib import Path

import pytest

from remit.adapters.cli.screen.glance import LISTED_MAX
from remit.adapters.cli.screen.single_turn import turn_values
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.storage import BlobMissing
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.record import BlobRef, Text
from tests.unit.adapters.desk import Desk, calls


def test_show_tells_a_run_and_its_answer(desk: Desk) -> None:
    script = desk.script(calls("look", place="here"), "Two\nlines.")
    desk.say("run", "Look around", "--engine", script, "--tools", desk.tools(), "--user", "ann", "--session", "s1")
    said = desk.say("show", "last")
    assert "request     Look around" in said.out
    assert "for ann" in said.out
    assert "session     s1, exchange 0" in said.out
    assert 'call        look {"place": "here"}: committed' in said.out
    assert "committed   look" in said.out
    assert "tool_calls              1 of 50" in said.out
    assert "signed      " in said.out
    assert "did:key:" in said.out
    assert said.out.endswith("\nTwo\nlines.\n")


def test_show_tells_why_a_call_failed_with_nothing_that_a_terminal_obeys(desk: Desk) -> None:
    file = Path(desk.tools())
    file.write_text(file.read_text().replace('return f"nothing at {place}"', 'raise OSError(f"no {place}")'))
    script = desk.script(calls("look", place="\x1b[2Jhere" + "x" * 5000), "Sorry.")
    desk.say("run", "Look", "--engine", script, "--tools", str(file))
    (line,) = [line for line in desk.say("show", "last").out.splitlines() if line.startswith("failed ")]
    assert line.startswith("failed      TOOL_EXECUTION_FAILED: OSError: no \\x1b[2Jhere")
    assert len(line) < 400


def test_show_tells_what_a_run_waits_for_and_what_to_type_next(desk: Desk) -> None:
    run_id = desk.waiting()
    said = desk.say("show", "last")
    assert said.code == 0
    assert "stands      waits: CONFIRM_REQUIRED at act" in said.out
    assert f"remit approve {run_id}/" in said.out
    values = desk.say("show", "last", "--json").values
    assert values["response"]["waiting_for"]["ending"] == "CONFIRM_REQUIRED"
    assert values["explanation"]["standing"]["status"] == "waiting"
    assert values["next"] == [f"remit approve {values['response']['waiting_for']['packet_ids'][0]}"]
    desk.say("signal", run_id, "pause")
    desk.say("reject", run_id)
    assert desk.say("show", run_id, "--json").values["next"] == [f"remit resume {run_id}"]
    assert f"next        remit resume {run_id}" in desk.say("show", run_id).out


def test_show_says_how_a_run_that_failed_is_tried_again(desk: Desk) -> None:
    failing = desk.script(*[{"error": "INFERENCE_ENGINE_ERROR"}] * 9)
    run_id = desk.say("run", "Hi", "--engine", failing, "--budget", "retries=0", "--json").values["run_id"]
    said = desk.say("show", run_id)
    assert f"next        remit signal {run_id} retry" in said.out
    fork = desk.say("signal", run_id, "retry", "--json").values["run_id"]
    assert f"fork of     {run_id}" in desk.say("show", fork).out


def test_show_lists_the_runs_beneath_and_where_one_came_from(desk: Desk) -> None:
    run_id = desk.delegating()
    said = desk.say("show", run_id)
    (child,) = desk.say("show", run_id, "--json").values["children"]
    assert f"child       {child['run_id']}  CONFIRM_REQUIRED" in said.out
    assert f"parent      {run_id}" in desk.say("show", child["run_id"]).out


def test_show_counts_what_is_too_much_for_a_glance(desk: Desk) -> None:
    proposed = [call for number in range(LISTED_MAX + 2) for call in calls("look", place=f"p{number}")["tool_calls"]]
    again = [calls("look", place=f"place {number}") for number in range(4)]
    script = desk.script({"tool_calls": proposed}, *again, calls("write", text="x"), "Done.")
    desk.say("run", "Look", "--engine", script, "--tools", desk.tools())
    lines = desk.say("show", "last").out.splitlines()
    assert sum(line.startswith("call ") for line in lines) == LISTED_MAX
    assert any(line.startswith("            and 6 calls more: remit trace ") for line in lines)
    assert any("more) > " in line for line in lines if line.startswith("path "))
    assert "uncommitted write" in "\n".join(lines)


def test_one_turn_is_shown_with_everything_it_holds(desk: Desk) -> None:
    long = "word " * 1_000
    run_id = desk.ended(f"{long}\nend \x1b[2J")
    said = desk.say("show", run_id, "--turn", "1").out
    assert said.startswith("turn 1  ")
    assert "arrived  ModelAnswered" in said
    assert "ruled    CommandSettled" in said
    assert "".join(said.split()).count("word") == 1_000, "a text that is kept elsewhere is fetched"
    assert max(map(len, said.splitlines())) <= 170
    assert "\\x1b[2J" in said
    values = desk.say("show", run_id, "--turn", "1", "--json").values
    assert values["arrival"]["text"] == f"{long}\nend \x1b[2J"
    assert [command["type"] for command in desk.say("show", run_id, "--turn", "0", "--json").values["commands"]] != []
    assert "ordered  CallModel" in desk.say("show", run_id, "--turn", "0").out


@pytest.mark.parametrize("turn", ["-1", "2", "99"])
def test_a_turn_that_a_run_does_not_have_is_wrong_usage(desk: Desk, turn: str) -> None:
    run_id = desk.ended()
    said = desk.say("show", run_id, f"--turn={turn}", "--json")
    assert (said.code, said.error) == (2, "USAGE")
    assert "0 to 1" in said.values["error"]["message"]


def test_a_text_that_is_gone_is_named_by_its_digest() -> None:
    async def fetch(text: Text) -> str:
        raise BlobMissing(b"\x01" * 32)

    turn = Turn(0, 0, b"", KERNEL_VERSION, ModelAnswered("0.1", BlobRef(b"\x01" * 32, 5000)))
    values = asyncio.run(turn_values(turn, fetch))
    assert values["arrival"]["text"] == f"<5000 bytes {'01' * 32} that are not kept any more>"
