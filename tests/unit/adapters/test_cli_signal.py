"""`remit signal` tells a run to cancel, pause, resume or retry, or gives it feedback."""

import json

from tests.unit.adapters.desk import HELPER, TOOLS, Desk, calls


def test_a_cancelled_run_has_ended(desk: Desk) -> None:
    run_id = desk.waiting()
    assert desk.say("signal", run_id, "cancel", "no longer wanted").out == f"run {run_id} heard: cancel\n"
    said = desk.say("resume", run_id)
    assert said.code == 1
    assert "no longer wanted" in said.err


INTERRUPTS_ONCE = '''
import asyncio, os, signal
from pathlib import Path

from remit.tool.declare.decorator import tool

SEEN = Path(__file__).with_name("seen")


@tool(effect="read")
async def interrupt() -> str:
    """End the process this runs in, the first time."""
    if not SEEN.exists():
        SEEN.touch()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
    return "here again"
'''


def test_a_paused_run_waits_among_others_and_goes_on_when_it_is_named(desk: Desk) -> None:
    tools = desk.file("once.py", INTERRUPTS_ONCE)
    assert desk.say("run", "Stop", "--engine", desk.script(calls("interrupt"), "Done."), "--tools", tools).code == 130
    desk.say("signal", "last", "pause", "--by", "ann")
    said = desk.say("resume", "--all")
    assert (said.code, said.out) == (3, "")
    assert "is paused by ann; go on with: remit resume" in said.err
    said = desk.say("resume", "last", "--by", "ann")
    assert (said.code, said.out) == (0, "Done.\n")
    told = desk.say("trace", "last", "--turns").out
    assert "ann" in told, "the journal keeps who let it go on"


def test_feedback_needs_words_and_others_take_none(desk: Desk) -> None:
    desk.waiting()
    assert desk.say("signal", "last", "feedback", "be brief").code == 0
    said = desk.say("signal", "last", "feedback", "--json")
    assert (said.code, said.error) == (1, "SIGNAL_INVALID")
    said = desk.say("signal", "last", "pause", "words", "--json")
    assert (said.code, said.error) == (2, "USAGE")


def test_a_failed_run_is_retried_as_a_fork(desk: Desk) -> None:
    script = desk.folder / "script.json"
    script.write_text(json.dumps({"replies": [{"error": "INFERENCE_CONTEXT_EXCEEDED"}]}))
    tools = desk.tools()
    script.write_text(json.dumps({"replies": [calls("look", place="here"), {"error": "INFERENCE_CONTEXT_EXCEEDED"}]}))
    first = desk.say("run", "Hi", "--engine", f"scripted:{script}", "--tools", tools, "--json")
    assert first.code == 1
    script.write_text(json.dumps({"replies": [calls("look", place="here"), {"text": "Better."}]}))
    refused = desk.say("signal", first.values["run_id"], "retry", "--json")
    assert (refused.code, refused.error) == (1, "ENGINE_SOURCE_CHANGED")
    fork = desk.say("runs", "--json").rows[0]["run_id"]
    assert fork != first.values["run_id"]
    said = desk.say("resume", fork, "--accept-tools", "--json")
    assert (said.code, said.values["content"], said.values["run_id"]) == (0, "Better.", fork)


def test_a_signal_that_is_not_wanted_is_refused_with_its_code(desk: Desk) -> None:
    desk.ended()
    said = desk.say("signal", "last", "retry", "--json")
    assert (said.code, said.error) == (1, "NOT_RETRYABLE")


def test_a_person_who_cancels_a_child_is_told_how_its_parent_goes_on_and_nobody_lists_it_as_waiting(desk: Desk) -> None:
    parent = desk.delegating()
    child = next(row["run_id"] for row in desk.say("runs", "--children", "--json").rows if row["run_id"] != parent)
    said = desk.say("signal", child, "cancel")
    assert (said.code, said.err.rpartition("; ")[2]) == (0, f"go on with: remit resume {parent}\n")
    assert desk.say("runs", "--waiting").out == ""
    assert f"next        remit resume {parent}" in desk.say("show", parent).out
    said = desk.say("resume", parent)
    assert (said.code, "safe calls repeated 0" in said.err) == (0, True), "that its child has ended is no call"
    assert desk.say("runs", "--open").out == ""


def test_a_person_who_cancels_one_of_two_children_is_told_of_no_parent_that_still_waits(desk: Desk) -> None:
    tools = desk.file("tools.py", TOOLS + HELPER)
    both = {"tool_calls": calls("helper", task="write")["tool_calls"] * 2}
    script = desk.script(*[{"when": '"task"', **calls("write", text="hello")}] * 2, both, "Done.")
    desk.say("run", "Have it written", "--engine", script, "--tools", tools)
    child = desk.say("runs", "--children", "--json").rows[0]["run_id"]
    said = desk.say("signal", child, "cancel")
    assert (said.code, said.err, len(desk.say("runs", "--waiting").out.splitlines())) == (0, "", 1)
