"""Which turns must survive a power loss, and how a run is listed."""

import pytest

from remit.core.failure import Ending
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival
from remit.core.journal.commands import StartChild
from remit.core.journal.storage import Barrier, RunListing
from remit.core.record import replace
from remit.core.run.manifest import Origin, SessionLink
from remit.kernel.decide import take_turn
from remit.observe.cost.like_runs import likeness_of
from remit.orchestrate.loop.durability import barrier_of, run_listing
from tests.unit.kernel.builders import Run, manifest_of, wants


def barrier_for(run: Run, arrival: Arrival, heard: int = 0) -> Barrier | None:
    """What a turn asks for, judged in the state before it, beside its own number."""
    turn = take_turn(run.state, arrival, run.now_ms)
    barrier = barrier_of(run.state, turn, heard)
    assert barrier is None or barrier.seq == turn.seq
    run.take(arrival, after_ms=0)
    return barrier if barrier is None else replace(barrier, seq=0)


def answered(run: Run, *tools: str) -> Arrival:
    """A model that wants tools called, or says that it is done."""
    calls = tuple(wants(tool, number, call_id=f"call {number}") for number, tool in enumerate(tools))
    text = "" if calls else "done"
    return arrivals.ModelAnswered(run._model_call(), text, calls=calls, tokens_bound=40)


def test_a_turn_that_only_reads_rides_on_the_next_barrier() -> None:
    run = Run()
    assert barrier_for(run, answered(run, "look")) is None


def test_a_question_to_a_person_is_a_barrier_and_the_run_is_listed_as_waiting() -> None:
    run = Run()
    assert barrier_for(run, answered(run, "write")) == Barrier(waiting_for=Ending.CONFIRM_REQUIRED)


def test_an_approval_and_the_effect_it_lets_through_are_one_barrier() -> None:
    run = Run()
    run.proposes(wants("write"))
    assert barrier_for(run, arrivals.ApprovalGiven(run.question().id, "ada")) == Barrier()


def test_an_ending_is_a_barrier_that_names_it() -> None:
    run = Run()
    assert barrier_for(run, answered(run)) == Barrier(Ending.SUCCESS)


def test_whatever_a_person_says_is_a_barrier_even_after_the_ending() -> None:
    run = Run()
    assert barrier_for(run, arrivals.FeedbackGiven("ada", "hurry", 10)) == Barrier()
    run.says("done")
    assert barrier_for(run, arrivals.SessionNoted("ada", "key", "1")) == Barrier(Ending.SUCCESS)


def test_an_entry_of_the_inbox_is_settled_with_its_turn() -> None:
    run = Run()
    assert barrier_for(run, answered(run, "look"), heard=7) == Barrier(heard=7)
    assert barrier_for(run, arrivals.CancelRequested("ada"), heard=8) == Barrier(Ending.USER_CANCEL, heard=8)


def test_a_run_that_asks_twice_waits_until_both_are_answered() -> None:
    run = Run()
    barrier_for(run, answered(run, "write", "write"))
    first = arrivals.ApprovalRefused(run.question().id, "ada")
    assert barrier_for(run, first) == Barrier(waiting_for=Ending.CONFIRM_REQUIRED)
    second = arrivals.ApprovalRefused(run.question().id, "ada")
    waiting = barrier_for(run, second)
    assert waiting is not None
    assert waiting.waiting_for == ""


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_run_whose_child_waits_is_listed_as_waiting_until_that_child_is_settled(is_lost: bool) -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0].id
    suspended = arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED)
    assert barrier_for(run, suspended) == Barrier(waiting_for=Ending.CONFIRM_REQUIRED)
    note = arrivals.FeedbackGiven("ada", "hurry", 10)
    assert barrier_for(run, note) == Barrier(waiting_for=Ending.CONFIRM_REQUIRED)
    settled = arrivals.ChildLost(child) if is_lost else arrivals.ChildEnded(child, Ending.SUCCESS, "done")
    assert barrier_for(run, settled) == Barrier()


def test_a_run_is_listed_with_its_place_and_its_people() -> None:
    manifest = manifest_of()
    request = replace(manifest.request, session_id="s", tenant_id="t")
    rooted = replace(manifest, request=request, session=SessionLink(3))
    assert run_listing(rooted, 17) == RunListing(17, "chat", "t", "s", 3, likeness=likeness_of(rooted))


def test_a_child_is_listed_under_its_parent_and_takes_no_place_in_the_session() -> None:
    manifest = manifest_of()
    request = replace(manifest.request, session_id="s")
    child = replace(manifest, request=request, parent=Origin("parent", "1.2"))
    assert run_listing(child, 17) == RunListing(17, "chat", parent_id="parent", lineage=("parent",))
