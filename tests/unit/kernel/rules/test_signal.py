"""Signals: each of the seven, at the moment it takes effect."""

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import CallModel, CallTool, ForkRun, TimerPurpose
from remit.core.limits.budget import Budget
from remit.core.record import replace
from remit.core.run.lineage import derived_id
from remit.core.run.manifest import SESSION_ENTRIES_MAX, SessionLink, Source
from remit.kernel.state import loop_state
from tests.unit.kernel.builders import Run, manifest_of, wants


@pytest.mark.req("3.8")
@pytest.mark.parametrize(("reason", "message"), [("", "cancelled by ada"), ("enough", "cancelled by ada: enough")])
def test_cancel_ends_the_run_at_once(reason: str, message: str) -> None:
    run = Run()
    run.take(arrivals.CancelRequested("ada", reason))
    assert (run.state.end.ending, run.state.end.error) == (Ending.USER_CANCEL, ErrorCode.CANCELLED_SIGNAL)
    assert run.state.end.message == message
    assert run.state.commands.open == {}


@pytest.mark.req("3.8")
def test_cancel_ends_a_paused_run_too() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.CancelRequested("ada"))
    assert run.state.end.ending is Ending.USER_CANCEL


@pytest.mark.req("3.8")
def test_pause_lets_what_is_under_way_return_and_orders_nothing_more() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.take(arrivals.PauseRequested("ada"))
    run.returns()
    assert run.state.effects.committed == {"look": 1}
    assert run.open(CallModel) == []
    assert loop_state(run.state) == "paused"


def test_a_paused_run_is_not_paused_again() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    assert run.fault_of(arrivals.PauseRequested("bob")) is ArrivalFault.ALREADY_PAUSED


def test_a_run_that_a_halt_has_paused_is_paused_beyond_the_halt_by_a_person_who_asks_for_it() -> None:
    run = Run()
    run.proposes(wants("look"))
    (call,) = run.open(CallTool)
    run.take(arrivals.RunHalted("ada", 1, "tool look", "smoke", (call.id,)))
    assert (run.state.place.paused, run.state.place.paused_by) == (True, "")
    run.take(arrivals.PauseRequested("bob"))
    assert (run.state.place.paused, run.state.place.paused_by, run.state.place.halted) == (True, "bob", None)
    assert run.fault_of(arrivals.PauseRequested("cy")) is ArrivalFault.ALREADY_PAUSED
    run.take(arrivals.ResumeRequested("bob"))
    assert (run.state.place.paused, run.state.place.paused_by, run.state.commands.withheld) == (False, "", {})


@pytest.mark.req("3.8")
def test_resume_goes_where_the_run_was_going() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.proposes(wants("look"))
    run.take(arrivals.ResumeRequested("ada"))
    assert run.path()[-1] == "act"
    assert [call.tool for call in run.open(CallTool)] == ["look"]


def test_resume_of_a_run_that_still_waits_orders_nothing() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ResumeRequested("ada"))
    assert len(run.open(CallModel)) == 1
    assert run.turns[-1].decisions == (rulings.RunResumed("ada"),)


def test_resume_ends_a_run_that_came_to_its_end_while_paused() -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.take(arrivals.PauseRequested("ada"))
    run.breaks()
    run.take(arrivals.ResumeRequested("ada"))
    assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.INFERENCE_ENGINE_ERROR)


def test_a_run_that_is_not_paused_cannot_be_resumed() -> None:
    assert Run().fault_of(arrivals.ResumeRequested("ada")) is ArrivalFault.NOT_PAUSED


@pytest.mark.req("3.8")
def test_approve_lets_a_held_call_run() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    assert [call.tool for call in run.open(CallTool)] == ["write"]


@pytest.mark.req("3.8")
def test_reject_refuses_a_held_call() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.rejects()
    assert run.all(CallTool) == []


@pytest.mark.req("3.8")
def test_feedback_is_heard_with_the_next_model_call_and_decides_nothing() -> None:
    run = Run()
    run.take(arrivals.FeedbackGiven("ada", "be brief", 12))
    assert run.turns[-1].decisions == (rulings.FeedbackTaken("ada"),)
    run.breaks()
    run.rings(TimerPurpose.RETRY)
    assert (run.messages(), run.open(CallModel)[0].messages_count) == (["please", "be brief"], 2)


def test_several_words_of_feedback_are_heard_in_the_order_they_came() -> None:
    run = Run()
    for text in ("first", "second"):
        run.take(arrivals.FeedbackGiven("ada", text, 12))
    run.proposes(wants("look"))
    run.returns()
    assert run.messages()[-2:] == ["first", "second"]


@pytest.mark.req("3.8")
def test_retry_forks_a_failed_run_from_its_last_turn_before_the_ending() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.take(arrivals.CancelRequested("ada"))
    run.take(arrivals.RetryRequested("bob"))
    assert run.now(ForkRun) == [ForkRun("3.1", derived_id("run", "3.1"), 1, "bob")]
    assert run.state.end.ending is Ending.USER_CANCEL


def test_every_retry_is_a_fork_of_its_own() -> None:
    run = Run()
    run.take(arrivals.CancelRequested("ada"))
    for _ in range(2):
        run.take(arrivals.RetryRequested("ada"))
    assert [fork.run_id for fork in run.all(ForkRun)] == [derived_id("run", "2.1"), derived_id("run", "3.1")]
    assert {fork.at_seq for fork in run.all(ForkRun)} == {0}


def test_a_run_that_is_open_or_succeeded_cannot_be_retried() -> None:
    run = Run()
    assert run.fault_of(arrivals.RetryRequested("ada")) is ArrivalFault.NOT_RETRYABLE
    run.says("done")
    assert run.fault_of(arrivals.RetryRequested("ada")) is ArrivalFault.NOT_RETRYABLE


def test_a_run_that_ended_in_its_first_turn_has_nothing_to_go_on_from() -> None:
    run = Run(manifest_of(budget=Budget(steps=0)))
    assert run.fault_of(arrivals.RetryRequested("ada")) is ArrivalFault.NOT_RETRYABLE


@pytest.mark.req("2.10")
def test_an_entry_of_the_session_is_kept_and_decides_nothing() -> None:
    run = Run()
    run.take(arrivals.SessionNoted("ada", "language", '"en"'))
    assert run.turns[-1].decisions == (rulings.SessionEntryKept("language", '"en"'),)
    assert run.state.session == {"language": '"en"'}
    assert len(run.open(CallModel)) == 1


@pytest.mark.req("2.10")
def test_an_entry_is_kept_after_the_ending_too_as_an_addendum() -> None:
    run = Run()
    run.says("done")
    run.take(arrivals.SessionNoted("ada", "language", '"en"'))
    assert (run.state.session, run.state.end.addenda) == ({"language": '"en"'}, 1)
    assert run.state.end.ending is Ending.SUCCESS


def test_a_run_begins_with_the_entries_of_its_session() -> None:
    manifest = replace(manifest_of(), session=SessionLink(1, "before", b"head", (("language", '"en"'),)))
    assert Run(manifest).state.session == {"language": '"en"'}


def test_a_full_session_takes_no_new_key_but_a_new_value() -> None:
    entries = tuple((f"key {number}", "1") for number in range(SESSION_ENTRIES_MAX))
    run = Run(replace(manifest_of(), session=SessionLink(0, entries=entries)))
    assert run.fault_of(arrivals.SessionNoted("ada", "one more", "1")) is ArrivalFault.SESSION_FULL
    run.take(arrivals.SessionNoted("ada", "key 0", "2"))
    assert run.state.session["key 0"] == "2"


def test_accepted_sources_replace_those_of_the_manifest_by_name() -> None:
    old, other = Source("look", "/tools.py", "look", "aa"), Source("write", "/tools.py", "write", "aa")
    run = Run(replace(manifest_of(), sources=(old, other)))
    accepted = replace(old, digest="bb")
    run.take(arrivals.SourcesAccepted("ada", (accepted,)))
    assert run.turns[-1].decisions == (rulings.SourcesReplaced("ada", (accepted,)),)
    assert run.state.sources == {"look": accepted, "write": other}


def test_an_ended_run_accepts_no_sources_any_more() -> None:
    run = Run()
    run.says("done")
    assert run.fault_of(arrivals.SourcesAccepted("ada", ())) is ArrivalFault.RUN_ENDED


def test_being_taken_up_decides_nothing_and_an_ended_run_is_not_taken_up() -> None:
    run = Run()
    before = run.state.seq
    run.take(arrivals.RunTaken(7))
    assert run.state.seq == before + 1
    assert run.turns[-1].decisions == ()
    run.take(arrivals.CancelRequested("ada"))
    assert run.fault_of(arrivals.RunTaken(8)) is ArrivalFault.RUN_ENDED
