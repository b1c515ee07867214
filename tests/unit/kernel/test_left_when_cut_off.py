"""A run that is cut off names what it had proposed to change, to the run that started it."""

import pytest

from remit.core.failure import Ending
from remit.core.journal.arrivals import CancelRequested, PauseRequested, RunHalted
from remit.core.journal.commands import StartChild, TimerPurpose
from remit.core.journal.rulings import LEFT_BY_CHILD, OUTCOME_UNKNOWN
from remit.kernel.results.proven_effects import all_left, cut_off_beneath, left_by, refused_by
from tests.unit.kernel.builders import Run, lawful, manifest_of, wants

CANCEL = CancelRequested("ada")
LEFT = (("write", LEFT_BY_CHILD),)


def test_a_call_that_was_held_when_its_run_was_cancelled_is_left() -> None:
    run = Run()
    run.proposes(wants("write", 1, call_id="a"), wants("look", 1, call_id="b"))
    run.take(CANCEL)
    lawful(run)
    assert (run.state.end.ending, left_by(run.state), refused_by(run.state)) == (Ending.USER_CANCEL, LEFT, ())


def test_a_call_that_was_held_when_its_run_was_halted_and_then_cancelled_is_left() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.take(RunHalted("ada", 3, "tool write", "it misbehaves", ()))
    run.take(CANCEL)
    assert left_by(lawful(run).state) == LEFT


def test_a_call_that_was_proposed_to_a_paused_run_is_left_when_it_is_cancelled() -> None:
    run = Run()
    run.take(PauseRequested("ada"))
    run.proposes(wants("write"))
    run.take(CANCEL)
    assert left_by(lawful(run).state) == LEFT


def test_a_call_that_a_filter_still_looked_at_is_left_when_the_time_is_up() -> None:
    run = Run(manifest_of(filters=("sift",)))
    run.proposes(wants("write"))
    run.rings(TimerPurpose.DEADLINE)
    assert (lawful(run).state.end.ending, left_by(run.state)) == (Ending.TIMEOUT, LEFT)


def test_a_call_that_nobody_approved_in_time_was_refused() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.rings(TimerPurpose.APPROVAL)
    run.take(CANCEL)
    refused = (("write", wants("write").arguments_hash),)
    assert (left_by(lawful(run).state), refused_by(run.state)) == ((), refused)


@pytest.mark.parametrize("has_changed", [True, False])
def test_a_call_that_was_proposed_again_under_the_same_id_is_left(*, has_changed: bool) -> None:
    run = Run()
    run.proposes(wants("write"))
    if has_changed:
        run.approves()
        run.returns()
    else:
        run.rejects()
    run.proposes(wants("write", 1 if not has_changed else 2))
    run.take(CANCEL)
    assert left_by(lawful(run).state) == LEFT


def test_a_call_that_was_changed_by_a_person_and_made_is_not_left() -> None:
    run = Run()
    run.proposes(wants("write", 1))
    run.approves(modified=wants("write", 2))
    run.returns()
    run.take(CANCEL)
    assert left_by(lawful(run).state) == ()


def test_of_a_call_under_way_in_a_run_that_is_about_to_be_cut_off_it_is_unknown_what_becomes() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    assert left_by(run.state) == (("write", OUTCOME_UNKNOWN),)
    run.take(CANCEL)
    assert left_by(lawful(run).state) == (("write", OUTCOME_UNKNOWN),)


def test_the_runs_that_are_cut_off_beneath_a_run_are_known() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    (child,) = run.open(StartChild)
    assert cut_off_beneath(run.state) == [child.run_id]
    run.take(CANCEL)
    assert cut_off_beneath(lawful(run).state) == [child.run_id]


def test_a_child_that_ended_before_was_not_cut_off() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    run.heard_from_child()
    run.take(CANCEL)
    assert cut_off_beneath(lawful(run).state) == []


def test_what_several_runs_leave_is_told_once() -> None:
    assert all_left([LEFT, (), (*LEFT, ("pay", OUTCOME_UNKNOWN))]) == (("pay", OUTCOME_UNKNOWN), *LEFT)
