"""Which observations become task state, and what a run may not claim."""

import pytest

from remit.core.failure import Refusal
from remit.core.journal.arrivals import ToolReturned
from remit.core.journal.rulings import Rung
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.schema.json_schema import Violation
from remit.kernel.results.proven_effects import (
    has_changed_anything,
    rung_reached,
    stops_loop,
    times_committed,
    unproven_effects,
)
from tests.unit.kernel.builders import Run, wants

BROKEN = (Violation("/n", "type", "is not a number"),)
FINISH = ToolDefinition("finish", "", {}, effect=Effect.NONE, may_stop_loop=True)


@pytest.mark.req("4.11")
def test_the_ladder_has_five_rungs_and_none_for_what_is_assumed() -> None:
    assert [rung.value for rung in Rung] == ["intended", "attempted", "observed", "verified", "committed"]


@pytest.mark.req("4.11")
@pytest.mark.parametrize(
    ("arrival", "rung"),
    [
        (ToolReturned("1.0", "{}", b""), Rung.COMMITTED),
        (ToolReturned("1.0", "{}", b"", violations=BROKEN), Rung.OBSERVED),
        (ToolReturned("1.0", "{}", b"", refuted="it is not there"), Rung.OBSERVED),
    ],
)
def test_only_what_nothing_contradicts_is_committed(arrival: ToolReturned, rung: Rung) -> None:
    assert rung_reached(arrival) is rung


def test_an_effect_of_this_turn_counts_before_it_is_folded() -> None:
    run = Run()
    run.proposes(wants("write"))
    tally = run.tally()
    assert list(unproven_effects(tally)) == [("write", wants("write").arguments_hash)]
    assert not has_changed_anything(tally)
    tally.note_effect("write", wants("write").arguments_hash, "")
    assert unproven_effects(tally) == {}
    assert has_changed_anything(tally)


def test_an_effect_that_a_person_replaced_is_claimed_no_more() -> None:
    run = Run()
    run.proposes(wants("write"))
    tally = run.tally()
    tally.note_effect("write", wants("write").arguments_hash, None)
    assert unproven_effects(tally) == {}


def test_an_unproven_effect_says_why() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.rejects()
    assert list(unproven_effects(run.tally()).values()) == [Refusal.APPROVAL_REJECTED]


def test_observations_of_a_tool_add_up_over_turns() -> None:
    run = Run()
    run.proposes(wants("look", 1), wants("look", 2))
    run.returns()
    run.returns()
    tally = run.tally()
    tally.committed = ("look",)
    assert (times_committed(tally, "look"), times_committed(tally, "fetch")) == (3, 0)
    tally.observed_below = {"look": 2, "fetch": 1}
    assert (times_committed(tally, "look"), times_committed(tally, "fetch")) == (5, 1)


@pytest.mark.req("3.22")
@pytest.mark.parametrize(
    ("arrival", "may_stop", "stops"),
    [
        (ToolReturned("1.0", "done", b"", stop_loop=True), True, True),
        (ToolReturned("1.0", "done", b"", stop_loop=True), False, False),
        (ToolReturned("1.0", "done", b""), True, False),
        (ToolReturned("1.0", "", b"", stop_loop=True), True, False),
    ],
)
def test_a_result_is_the_answer_when_its_tool_may_stop_the_loop_does_and_has_something_to_say(
    arrival: ToolReturned, may_stop: bool, stops: bool
) -> None:
    tool = FINISH if may_stop else ToolDefinition("look", "", {})
    assert stops_loop(arrival, tool) is stops
