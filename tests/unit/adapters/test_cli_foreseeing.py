"""Runs that are foreseen not to finish, at the command line: stopped, explained, and let be."""

import pytest

from remit.core.limits.foresight import RUNS_MIN
from tests.unit.adapters.desk import Desk, calls

# Each begins many runs.
pytestmark = pytest.mark.slow


def words(desk: Desk) -> tuple[object, ...]:
    script = desk.script(calls("look", place="here"), calls("look", place="there"), "Found.")
    return ("run", "Look around", "--engine", script, "--tools", desk.tools(), "--user", "ann")


def learned(desk: Desk) -> tuple[object, ...]:
    """How to begin a run like those that have succeeded often enough."""
    run = words(desk)
    for _ in range(RUNS_MIN):
        assert desk.say(*run).code == 0
    return run


def test_a_run_that_cannot_finish_is_stopped_and_says_why(desk: Desk) -> None:
    run = learned(desk)
    assert desk.say(*run, "--budget", "tool_calls=1").code == 4
    told = "1 tool_calls were left and at least 2 needed, which saved at most "
    assert f"stopped     early: {told}" in " ".join(desk.say("show", "last").out.split("\n            "))
    said = desk.say("explain", "last", "--json").values
    assert f"was stopped early, since {told}" in said["sentence"]
    stopped = said["explanation"]["stopped"]
    assert (stopped["dimension"], stopped["left"], stopped["needed"]) == ("tool_calls", 1, 2)


def test_a_run_that_nobody_foresees_spends_its_budget(desk: Desk) -> None:
    run = learned(desk)
    assert desk.say(*run, "--budget", "tool_calls=1", "--no-foresee").code == 4
    said = desk.say("explain", "last", "--json").values
    assert said["explanation"].get("stopped") is None
    assert "called look once" in said["sentence"]


def test_an_open_run_says_what_it_still_needs(desk: Desk) -> None:
    script = desk.script(calls("write", text="hello"), "Written.")
    asks = ("run", "Write hello", "--engine", script, "--tools", desk.tools(), "--user", "ann", "--json")
    for _ in range(RUNS_MIN):
        (packet,) = desk.say(*asks).values["waiting_for"]["packet_ids"]
        assert desk.say("approve", packet).code == 0
    assert desk.say(*asks).code == 3
    assert "\nneeds       " in desk.say("show", "last").out
    assert "more, as runs like it did, and has not ended" in desk.say("explain", "last", "--json").values["sentence"]
