"""A run that was copied: it stands still where its origin was left, and does not repeat in silence what that did since."""

import pytest

from remit.core.failure import ArrivalFault, Ending
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import RunForked
from remit.core.journal.commands import AskPurpose, CallModel, CallTool, StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import Answer
from remit.core.limits.boundary import APPROVAL_WAIT_MS_MAX, Boundary, BoundaryMode
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.record import replace
from remit.core.run.manifest import EarlierEffect, Origin
from remit.kernel.decide import weigh
from remit.kernel.fold.apply import apply
from remit.testing.runs import fold_journal
from tests.simulation.scenarios import PARAMETERS
from tests.unit.kernel.builders import Run, bound, manifest_of, wants

WROTE = EarlierEffect("origin", "write", wants("write").arguments_hash, 9, "committed")


def copied(run: Run, *, why: str = "", earlier: tuple[EarlierEffect, ...] = (), at_ms: int = 0) -> Run:
    """The fork of a run at its last turn: the same arrivals under a manifest that names the origin."""
    origin = Origin("origin", seq=run.state.seq, by="dan", why=why, at_ms=at_ms)
    first = run.turns[0].arrival
    assert isinstance(first, arrivals.RunStarted)
    fork = Run(replace(first.manifest, forked_from=origin, earlier=earlier))
    for turn in run.turns[1:]:
        fork.take(turn.arrival)
    fork.take(RunForked("dan"), after_ms=0)
    return fork


def resumed(run: Run) -> Run:
    run.take(arrivals.ResumeRequested("dan"))
    return run


def test_a_fork_takes_back_what_was_asked_of_the_model_and_asks_it_anew_with_the_reason() -> None:
    fork = copied(Run(), why="the second page is missing")
    assert (fork.state.place.paused, fork.open(CallModel)) == (True, [])
    resumed(fork)
    (call,) = fork.now(CallModel)
    assert call.messages_count == 2
    assert fork.messages()[-1] == "the second page is missing"
    fork.says("Here it is.")
    assert fork.state.end.ending is Ending.SUCCESS
    assert fork.state == fold_journal(fork.journal)


def test_a_fork_stands_still_by_no_person_s_wish_until_a_person_has_one() -> None:
    origin = Run()
    origin.take(arrivals.PauseRequested("ada"))
    fork = copied(origin)
    assert (fork.state.place.paused, fork.state.place.paused_by, fork.state.place.is_copy) == (True, "", True)
    fork.take(arrivals.PauseRequested("bob"))
    assert (fork.state.place.paused, fork.state.place.paused_by, fork.state.place.is_copy) == (True, "bob", True)
    assert fork.fault_of(arrivals.PauseRequested("cy")) is ArrivalFault.ALREADY_PAUSED
    resumed(fork)
    assert (fork.state.place.paused, fork.state.place.paused_by, fork.state.place.is_copy) == (False, "", False)
    assert fork.state == fold_journal(fork.journal)


def test_what_a_fork_copied_open_is_sent_when_it_goes_on() -> None:
    origin = Run()
    origin.proposes(wants("look"))
    fork = copied(origin)
    (call,) = fork.open(CallTool)
    tally = weigh(fork.state, arrivals.ResumeRequested("dan"), fork.now_ms)
    assert call in tally.issued
    resumed(fork)
    fork.take(arrivals.PauseRequested("ada"))
    assert call not in weigh(fork.state, arrivals.ResumeRequested("ada"), fork.now_ms).issued


def test_without_a_reason_the_model_is_told_nothing() -> None:
    fork = resumed(copied(Run()))
    assert fork.now(CallModel)[0].messages_count == 1


@pytest.mark.parametrize("again", ["", "and the third"])
def test_the_fork_of_a_fork_was_told_why_its_origin_was_one(again: str) -> None:
    origin = resumed(copied(Run(), why="the second page is missing"))
    shown = origin.now(CallModel)[0].messages_count
    first = origin.turns[0].arrival
    assert isinstance(first, arrivals.RunStarted)
    fork = Run(replace(first.manifest, forked_from=Origin("origin", seq=origin.state.seq, by="dan", why=again)))
    for turn in origin.turns[1:]:
        arrival = turn.arrival
        copy = replace(arrival, why="the second page is missing") if isinstance(arrival, RunForked) else arrival
        apply(fork.state, replace(turn, arrival=copy), b"")
    assert fork.messages()[-1] == "the second page is missing"
    assert len(fork.messages()) == shown


def test_a_fork_of_a_paused_run_is_not_paused_twice() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    fork = copied(run)
    assert fork.now(rulings.RunPaused) == []
    assert len(resumed(fork).now(CallModel)) == 1


def test_nothing_but_a_copy_is_told_that_it_was_forked() -> None:
    assert Run().fault_of(RunForked("dan")) is ArrivalFault.ALREADY_STARTED
    assert copied(Run()).fault_of(RunForked("dan")) is ArrivalFault.ALREADY_STARTED


@pytest.mark.parametrize("mode", list(BoundaryMode))
@pytest.mark.parametrize(
    ("call", "why"),
    [
        (wants("write"), "run origin called write with the same arguments in turn 9: committed"),
        (wants("write", 2), "run origin called write with other arguments in turn 9: committed"),
        (wants("pay"), "run origin called write with the same arguments in turn 9: committed"),
    ],
)
def test_what_the_origin_did_since_is_done_again_only_by_a_person(
    mode: BoundaryMode, call: ProposedCall, why: str
) -> None:
    free = Run(manifest_of(boundary=Boundary(mode=mode, approval_effects=(), approval_categories=())))
    fork = resumed(copied(free, earlier=(WROTE,)))
    fork.proposes(bound(call))
    assert fork.open(CallTool) == []
    packet = fork.question().packet
    assert packet is not None
    assert packet.reasons[0] == why
    fork.approves()
    assert len(fork.now(CallTool)) == 1


def test_reads_and_other_effects_of_a_fork_ask_nobody_for_the_sake_of_its_origin() -> None:
    free = Run(manifest_of(boundary=Boundary(mode=BoundaryMode.AUDIT)))
    fork = resumed(copied(free, earlier=(WROTE,)))
    fork.proposes(wants("look"), bound(wants("pay", 3)))
    assert [call.tool for call in fork.open(CallTool)] == ["look", "pay"]


def test_a_fork_of_an_open_run_asks_before_any_change() -> None:
    free = Run(manifest_of(boundary=Boundary(mode=BoundaryMode.AUDIT)))
    fork = resumed(copied(free, earlier=(EarlierEffect("origin"),)))
    fork.proposes(bound(wants("pay", 3)))
    packet = fork.question().packet
    assert packet is not None
    assert packet.reasons[0] == "run origin was open when this one was forked from it, and may do the same"


def test_what_people_were_asked_they_are_asked_again_with_what_the_origin_did_since() -> None:
    run = Run()
    run.proposes(wants("write"))
    before, late_ms = run.question(), 10 * APPROVAL_WAIT_MS_MAX
    fork = copied(run, earlier=(WROTE,), at_ms=late_ms)
    asked = fork.question()
    assert fork.now(rulings.QuestionSettled)[0].answer is Answer.WITHDRAWN
    assert asked.expires_at_ms == late_ms + APPROVAL_WAIT_MS_MAX > before.expires_at_ms
    assert asked.packet is not None
    assert asked.packet.reasons[0].startswith("run origin called write with the same arguments")
    assert fork.state.spending.left == run.state.spending.left
    assert fork.state == fold_journal(fork.journal)


def test_a_question_of_the_model_is_asked_again_and_is_one_call() -> None:
    ask = ToolDefinition("ask", "ask a person", PARAMETERS, effect=Effect.NONE, asks_under=Ending.MISSING_INFO)
    run = Run(manifest_of(tools=(ask,)))
    run.proposes(wants("ask"))
    fork = resumed(copied(run))
    assert (len(fork.state.calls.made), fork.question().purpose) == (1, AskPurpose.QUESTION)
    fork.tells("Berlin")
    (trace,) = fork.state.calls.made.values()
    assert trace.content == "Berlin"
    assert fork.state == fold_journal(fork.journal)


def test_what_the_origin_knows_of_a_call_under_way_is_told_with_the_question_about_it() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    fork = copied(run, earlier=(WROTE,))
    fork.loses()
    packet = resumed(fork).question().packet
    assert packet is not None
    assert packet.reasons[1] == "run origin says of it in turn 9: committed"


def test_a_fork_of_a_run_with_missing_turns_asks_before_any_change_and_says_why() -> None:
    free = Run(manifest_of(boundary=Boundary(mode=BoundaryMode.AUDIT)))
    lost = EarlierEffect("origin", seq=4, how="turns 4 to 6 of it are missing")
    fork = resumed(copied(free, earlier=(lost,)))
    fork.proposes(bound(wants("pay", 3)))
    packet = fork.question().packet
    assert packet is not None
    assert packet.reasons[0] == "run origin may have done this: turns 4 to 6 of it are missing"


def test_the_child_that_an_origin_waits_with_is_not_the_fork_s() -> None:
    origin = Run()
    origin.proposes(wants("ask_child"))
    child = origin.open(StartChild)[0].id
    origin.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED))
    origin.take(arrivals.FeedbackGiven("ada", "hurry"), after_ms=5_000)
    fork = copied(origin)
    assert (fork.state.children.waiting, fork.state.clock.standstill) == ({}, None)
    resumed(fork)
    was_standing = fork.state.clock.is_standing
    fork.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED))
    assert (was_standing, fork.state.clock.is_standing) == (False, True)
    fork.heard_from_child()
    assert fork.state == fold_journal(fork.journal)


def test_a_child_of_a_fork_has_waited_for_nobody_before_the_fork_went_on() -> None:
    origin = Run()
    origin.proposes(wants("ask_child"))
    child = origin.open(StartChild)[0].id
    fork = copied(origin)
    fork.take(arrivals.ResumeRequested("dan"), after_ms=3_600_000)
    fork.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED), after_ms=0)
    ended = arrivals.ChildEnded(child, Ending.SUCCESS, "found it", tokens_bound=25, stood_ms=60_000)
    fork.take(ended, after_ms=61_000)
    assert fork.state.clock.stood_ms == 3_600_000 + 60_000
