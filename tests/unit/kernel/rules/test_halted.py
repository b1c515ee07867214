"""A halt of dispatch: the run pauses, and what was withheld is sent by the resume, once and in no doubt."""

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import RunHalted
from remit.core.journal.commands import AskHuman, CallModel, CallTool
from remit.core.journal.rulings import RunPaused
from remit.kernel.decide import weigh
from remit.kernel.state import is_safe_to_repeat, loop_state
from tests.unit.kernel.builders import Run, wants
from tests.unit.kernel.test_doubt import attempted
from tests.unit.kernel.test_forks import copied


def halt(*withheld: str) -> RunHalted:
    return RunHalted("ada", 3, "tool write", "it misbehaves", withheld)


def test_a_halted_run_stands_still_and_says_for_which_halt() -> None:
    run = attempted("write")
    (call,) = run.open(CallTool)
    run.take(halt(call.id))
    assert loop_state(run.state) == "paused"
    assert run.state.place.halted == RunPaused("ada", 3, "tool write", "it misbehaves")
    assert run.open(CallTool) == [call]
    assert not run.state.commands.doubted


def test_what_was_withheld_is_sent_by_the_resume_and_reserved_once() -> None:
    run = attempted("write")
    (call,) = run.open(CallTool)
    reserved = run.state.reserved
    run.take(halt(call.id))
    assert not is_safe_to_repeat(run.state, call), "nobody but the resume sends it"
    tally = weigh(run.state, arrivals.ResumeRequested("bob"), run.state.at_ms)
    assert tally.issued == [call]
    run.take(arrivals.ResumeRequested("bob"))
    assert (run.state.commands.withheld, run.state.place.halted, run.state.place.paused) == ({}, None, False)
    assert run.state.reserved == reserved
    run.returns("write")
    assert run.state.effects.committed == {"write": 1}


def test_an_answer_that_comes_all_the_same_settles_what_was_withheld() -> None:
    run = Run()
    (call,) = run.open(CallModel)
    run.take(halt(call.id))
    run.proposes(wants("look"))
    assert run.state.commands.withheld == {}
    run.take(arrivals.ResumeRequested("bob"))
    assert [one.tool for one in run.open(CallTool)] == ["look"]
    run = attempted("write")
    run.take(halt(run.open(CallTool)[0].id))
    run.returns("write")
    assert run.state.commands.withheld == {}


def test_a_halt_that_is_heard_twice_is_a_duplicate() -> None:
    run = attempted("write")
    (call,) = run.open(CallTool)
    run.take(halt(call.id))
    assert run.fault_of(halt(call.id)) is ArrivalFault.DUPLICATE
    assert run.fault_of(halt()) is ArrivalFault.DUPLICATE
    assert run.fault_of(halt("9.9")) is ArrivalFault.DUPLICATE


def test_a_halt_that_withholds_nothing_pauses_the_run_all_the_same() -> None:
    run = Run()
    run.take(halt())
    assert run.state.place.paused
    assert run.state.commands.withheld == {}


def test_a_run_that_a_person_paused_stays_paused_by_that_person() -> None:
    run = attempted("write")
    (call,) = run.open(CallTool)
    run.take(arrivals.PauseRequested("eve"))
    run.take(halt(call.id))
    assert (run.state.place.halted, run.state.commands.withheld) == (None, {call.id: True})


def test_a_mutating_call_under_way_is_in_doubt_and_asked_about_after_the_resume() -> None:
    run = attempted("write")
    run.take(halt())
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert len(run.state.commands.doubted) == 1
    (call,) = run.open(CallTool)
    assert run.fault_of(halt(call.id)) is ArrivalFault.DUPLICATE, "what is in doubt was begun and is not withheld"


def test_a_loss_that_is_reported_of_a_withheld_call_keeps_it_from_being_sent() -> None:
    run = attempted("write")
    (call,) = run.open(CallTool)
    run.take(halt(call.id))
    run.take(arrivals.ToolOutcomeLost(call.id))
    assert (run.state.commands.withheld, list(run.state.commands.doubted)) == ({}, [call.id])


@pytest.mark.parametrize("tool", ["write", "look"])
def test_a_cancel_ends_a_halted_run_without_a_doubt_about_what_was_not_begun(tool: str) -> None:
    run = attempted(tool) if tool == "write" else Run()
    if tool == "look":
        run.proposes(wants("look"))
    run.take(halt(run.open(CallTool)[0].id))
    run.take(arrivals.CancelRequested("ada"))
    assert run.state.end.ending is Ending.USER_CANCEL
    assert (run.state.commands.doubted, run.state.commands.withheld, run.state.place.halted) == ({}, {}, None)
    assert not any(isinstance(one, rulings.OutcomeDoubted) for one in run.turns[-1].decisions)


def test_a_fork_of_a_halted_run_doubts_the_effect_that_its_origin_may_yet_make() -> None:
    run = attempted("write")
    run.take(halt(run.open(CallTool)[0].id))
    fork = copied(run)
    assert (fork.state.commands.withheld, list(fork.state.commands.doubted.values())) == ({}, ["CALL_WITHHELD"])
    fork.take(arrivals.ResumeRequested("ada"))
    (question,) = fork.open(AskHuman)
    assert question.packet is not None
    assert question.packet.reasons[0].startswith("a halt held it back, so it was not sent")
    reads = Run()
    reads.proposes(wants("look"))
    reads.take(halt(reads.open(CallTool)[0].id))
    fork = copied(reads)
    assert (len(fork.state.commands.withheld), fork.state.commands.doubted) == (1, {})
