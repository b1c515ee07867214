"""Doubt: a change whose outcome is unknown is never repeated and never assumed."""

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, ReconcileTool, TimerPurpose
from remit.core.limits.boundary import At, Boundary, Condition, Then
from remit.core.limits.budget import Budget
from remit.core.schema.json_schema import Violation
from remit.kernel.results.doubt import LOST
from remit.observe.views.late_outcomes import in_doubt
from tests.unit.kernel.builders import Run, bound, known, lawful, manifest_of, wants


def attempted(tool: str, *, budget: Budget = Budget()) -> Run:
    run = Run(manifest_of(budget=budget))
    run.proposes(wants(tool))
    run.approves()
    return run


@pytest.mark.req("4.11")
@pytest.mark.parametrize("tool", ["write", "put", "pay"])
def test_a_change_that_ran_out_of_time_stays_open_and_in_doubt(tool: str) -> None:
    run = attempted(tool)
    command = run.open(CallTool)[0]
    run.fails(tool, ErrorCode.TOOL_TIMEOUT)
    assert run.all(rulings.CallSettled) == []
    assert run.state.commands.doubted == {command.id: ErrorCode.TOOL_TIMEOUT}
    assert run.open(CallTool) == [command]


def test_a_read_that_ran_out_of_time_is_settled_as_a_failure() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look", ErrorCode.TOOL_TIMEOUT)
    assert run.state.commands.doubted == {}
    assert run.path()[-1] == "think"


def test_a_change_whose_performer_died_is_in_doubt() -> None:
    run = attempted("write")
    run.loses()
    assert list(run.state.commands.doubted.values()) == [LOST]


def test_a_tool_that_keeps_accounts_is_asked_first() -> None:
    run = attempted("pay")
    command = run.open(CallTool)[0]
    run.loses()
    inquiry = run.open(ReconcileTool)[0]
    assert (inquiry.about, inquiry.key, inquiry.tool) == (command.id, command.key, "pay")
    assert run.open(AskHuman) == []


def test_a_person_is_asked_when_the_tool_keeps_none() -> None:
    run = attempted("write")
    command = run.open(CallTool)[0]
    run.loses()
    question = run.question()
    assert (question.purpose, question.ending) == (AskPurpose.OUTCOME, Ending.REVIEW_REQUIRED)
    assert question.packet is not None
    assert (question.packet.about, question.packet.releases) == (command.id, ())
    assert question.packet.reasons == (f"the outcome of write ({command.key}) is not known",)


def test_a_person_is_asked_when_the_tool_cannot_say() -> None:
    run = attempted("pay")
    run.loses()
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.UNKNOWN))
    assert run.question().purpose is AskPurpose.OUTCOME


def test_a_run_nobody_can_be_asked_about_ends_for_review_with_the_call_in_doubt() -> None:
    run = attempted("write", budget=Budget(human_reviews=1))
    command = run.open(CallTool)[0]
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert run.state.end.ending is Ending.REVIEW_REQUIRED
    assert command.key in run.state.end.message
    assert run.open(CallTool) == [command]


def test_a_doubt_that_ends_the_run_keeps_its_own_reason() -> None:
    run = attempted("write", budget=Budget(human_reviews=1))
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert [doubted.reason for doubted in run.all(rulings.OutcomeDoubted)] == [ErrorCode.TOOL_TIMEOUT]


@pytest.mark.parametrize("kind", ["timeout", "lost"])
def test_a_doubt_reported_twice_asks_once(kind: str) -> None:
    run = attempted("write")
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    command_id = run.open(CallTool)[0].id
    timeout = arrivals.ToolFailed(command_id, ErrorCode.TOOL_TIMEOUT)
    again = timeout if kind == "timeout" else arrivals.ToolOutcomeLost(command_id)
    assert run.fault_of(again) is ArrivalFault.DUPLICATE


def test_a_call_in_doubt_is_settled_by_its_late_failure() -> None:
    run = attempted("write")
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    run.fails("write", ErrorCode.TOOL_EXECUTION_FAILED)
    assert run.state.commands.doubted == {}
    assert run.path()[-1] == "think"


# While the run is paused nothing is asked; the resume asks.


@pytest.mark.parametrize(("tool", "asked"), [("write", AskHuman), ("pay", ReconcileTool)])
def test_a_doubt_that_comes_up_during_a_pause_is_asked_about_on_resume(tool: str, asked: type) -> None:
    run = attempted(tool)
    run.take(arrivals.PauseRequested("ada"))
    run.fails(tool, ErrorCode.TOOL_TIMEOUT)
    assert run.open(asked) == []
    run.take(arrivals.ResumeRequested("ada"))
    assert len(run.open(asked)) == 1


def test_a_tool_that_cannot_say_during_a_pause_makes_nobody_be_asked_until_the_resume() -> None:
    run = attempted("pay")
    run.fails("pay", ErrorCode.TOOL_TIMEOUT)
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.UNKNOWN))
    assert run.open(AskHuman) == []
    run.take(arrivals.ResumeRequested("ada"))
    assert len(run.open(ReconcileTool)) == 1


def test_a_resume_asks_nobody_who_is_being_asked() -> None:
    run = attempted("write")
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ResumeRequested("ada"))
    assert len(run.open(AskHuman)) == 1


def test_a_resume_ends_the_run_when_nobody_can_be_asked() -> None:
    run = attempted("write", budget=Budget(human_reviews=1))
    run.take(arrivals.PauseRequested("ada"))
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert run.state.end.ending is None
    run.take(arrivals.ResumeRequested("ada"))
    assert run.state.end.ending is Ending.REVIEW_REQUIRED


def test_a_question_about_a_call_that_expires_ends_the_run_for_review() -> None:
    run = attempted("write")
    run.loses()
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.end.ending is Ending.REVIEW_REQUIRED
    assert len(run.state.commands.doubted) == 1


# A tool that broke within.


@pytest.mark.parametrize(("tool", "asked"), [("write", AskHuman), ("pay", ReconcileTool)])
def test_a_change_whose_tool_broke_within_is_in_doubt(tool: str, asked: type) -> None:
    run = attempted(tool)
    command = run.open(CallTool)[0]
    run.breaks_within(tool)
    assert run.all(rulings.CallSettled) == []
    assert run.state.commands.doubted == {command.id: ErrorCode.TOOL_EXECUTION_FAILED}
    assert len(run.open(asked)) == 1
    again = arrivals.ToolFailed(command.id, ErrorCode.TOOL_EXECUTION_FAILED, is_unknown=True)
    assert run.fault_of(again) is ArrivalFault.DUPLICATE
    lawful(run)


UNFIT = (Violation("/fee", "additionalProperties", "nobody named it"),)


@pytest.mark.parametrize(("tool", "asked"), [("write", AskHuman), ("pay", ReconcileTool)])
def test_a_change_that_returned_what_its_schema_refuses_is_in_doubt(tool: str, asked: type) -> None:
    run = attempted(tool)
    command = run.open(CallTool)[0]
    returned = run.returns(tool, "raw bytes", violations=UNFIT).arrival
    assert run.all(rulings.CallSettled) == []
    assert run.state.commands.doubted == {command.id: ErrorCode.CONSTRAINT_SCHEMA_INVALID}
    assert len(run.open(asked)) == 1
    trace = run.state.calls.made[command.id]
    assert (trace.content, trace.reason) == ("raw bytes", "result /fee: nobody named it")
    assert run.fault_of(returned) is ArrivalFault.DUPLICATE
    lawful(run)


def test_a_change_in_doubt_that_returned_what_its_own_check_refutes_is_settled() -> None:
    run = attempted("write")
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    run.returns("write", violations=UNFIT, refuted="it is not there")
    assert run.state.commands.doubted == {}
    assert run.last(rulings.CallSettled).code == ErrorCode.VALIDATION_RULE_FAILED


def test_a_tool_that_takes_keys_and_returned_what_its_schema_refuses_goes_on_as_unknown() -> None:
    run = attempted("put")
    run.returns("put", violations=UNFIT)
    assert run.last(rulings.CallSettled).code == rulings.OUTCOME_UNKNOWN
    assert run.state.effects.unknown
    lawful(run)


def test_what_an_ended_run_is_returned_late_is_kept_also_where_its_schema_refuses_it() -> None:
    run = attempted("write", budget=Budget(human_reviews=1))
    command = run.open(CallTool)[0]
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    run.returns("write", "late", violations=UNFIT)
    assert run.state.end.late[command.id].code == ErrorCode.CONSTRAINT_SCHEMA_INVALID


def test_a_change_whose_tool_says_that_nothing_happened_is_settled() -> None:
    run = attempted("write")
    run.fails("write")
    assert run.state.commands.doubted == {}
    assert run.last(rulings.CallSettled).code == ErrorCode.TOOL_EXECUTION_FAILED


def test_a_read_that_broke_within_is_settled_as_a_failure() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.breaks_within("look")
    assert run.last(rulings.CallSettled).code == ErrorCode.TOOL_EXECUTION_FAILED
    assert run.path()[-1] == "think"


def test_a_person_reads_what_the_tool_said_also_after_its_tool_could_not_say() -> None:
    run = attempted("pay")
    run.breaks_within("pay")
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.UNKNOWN))
    packet = run.question().packet
    assert packet is not None
    assert packet.reasons[1] == "it said: it broke"


def test_a_tool_that_takes_keys_goes_on_as_unknown_and_is_called_again_with_the_same_key() -> None:
    run = attempted("put")
    first = run.open(CallTool)[0]
    run.breaks_within("put")
    assert run.last(rulings.CallSettled).code == rulings.OUTCOME_UNKNOWN
    assert run.state.counts.failures_in_a_row["put"].code == ErrorCode.TOOL_EXECUTION_FAILED
    run.proposes(wants("put"))
    run.approves()
    second = run.open(CallTool)[0]
    assert (second.key, second.id == first.id) == (first.key, False)
    run.returns("put")
    assert run.state.effects.unknown == {}
    run.says("done")
    assert lawful(run).state.end.ending is Ending.SUCCESS


def test_other_arguments_get_another_key() -> None:
    run = attempted("put")
    first = run.open(CallTool)[0]
    run.breaks_within("put")
    run.proposes(wants("put", 2))
    run.approves()
    assert run.open(CallTool)[0].key != first.key


def test_an_attempt_that_did_nothing_says_nothing_of_the_one_before() -> None:
    run = attempted("put")
    run.breaks_within("put")
    run.proposes(wants("put"))
    run.approves()
    run.fails("put")
    run.says("done")
    assert lawful(run).state.end.ending is Ending.REVIEW_REQUIRED
    assert "nobody knows what became of put#" in run.state.end.message


@pytest.mark.parametrize("happened", [Happened.YES, Happened.NO])
def test_what_a_person_says_of_a_key_holds_for_every_attempt_with_it(happened: Happened) -> None:
    run = attempted("put")
    run.breaks_within("put")
    run.proposes(wants("put"))
    run.approves()
    run.fails("put", ErrorCode.TOOL_TIMEOUT)
    run.judges(happened)
    assert run.state.effects.unknown == {}
    run.says("done")
    assert lawful(run).state.end.ending is (Ending.SUCCESS if happened is Happened.YES else Ending.VALIDATION_FAIL)


def test_an_effect_that_nothing_verified_the_second_time_is_not_unknown_any_more() -> None:
    run = Run(manifest_of(tools=(known("put", result={}),)))
    run.proposes(wants("put"))
    run.approves()
    run.breaks_within("put")
    run.proposes(wants("put"))
    run.approves()
    run.returns("put")
    assert run.state.effects.unknown == {}
    run.says("done")
    assert lawful(run).state.end.ending is Ending.PARTIAL_SUCCESS


def test_what_stays_unknown_is_never_a_partial_success_either() -> None:
    run = Run()
    run.proposes(wants("put"), wants("write", 2, call_id="other"))
    run.approves()
    run.approves()
    run.returns("write")
    run.breaks_within("put")
    run.says("done")
    assert lawful(run).state.end.ending is Ending.REVIEW_REQUIRED


def test_a_fallback_stands_in_for_nothing_that_may_have_happened() -> None:
    free = Boundary(name="free", approval_effects=(), approval_categories=(), budget=Budget(side_effects=9))
    run = Run(manifest_of(tools=(known("put", fallback="write"), known("write")), boundary=free))
    run.proposes(bound(wants("put")))
    command = run.open(CallTool)[0]
    run.take(arrivals.ToolFailed(command.id, ErrorCode.TOOL_UNAVAILABLE, "gone", is_unknown=True))
    assert run.all(rulings.FallbackChosen) == []
    assert run.last(rulings.CallSettled).code == rulings.OUTCOME_UNKNOWN


# What the words of a tool in doubt raise.


def test_a_flag_that_a_tool_in_doubt_raises_stays_up() -> None:
    run = attempted("write")
    run.breaks_within("write", "vendor_risk")
    assert run.now(rulings.OutcomeDoubted)[0].raised == ("vendor_risk",)
    assert lawful(run).state.calls.flags == {"vendor_risk": "write"}
    assert run.question().purpose is AskPurpose.OUTCOME


def test_a_flag_that_stops_the_run_stops_it_with_the_call_in_doubt() -> None:
    stops = Condition("leak", "'vendor_risk' in flags", Then.STOP, at=At.OBSERVATION)
    run = Run(manifest_of(boundary=Boundary(name="strict", conditions=(stops,))))
    run.proposes(wants("write"))
    run.approves()
    run.breaks_within("write", "vendor_risk")
    assert lawful(run).state.end.ending is Ending.UNSAFE_DETECTION
    assert len(run.state.commands.doubted) == 1


def denied(run: Run) -> str:
    """A call that was lost and that its tool says did not happen; gives its command."""
    command = run.open(CallTool)[0]
    run.loses()
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.NO))
    return command.id


def test_a_call_that_returns_after_it_was_said_not_to_have_happened_is_told_once_and_settled_no_anew() -> None:
    run = attempted("pay")
    command_id = denied(run)
    settled = len(run.all(rulings.CallSettled))
    run.take(arrivals.ToolReturned(command_id, "paid", b""))
    assert run.now(rulings.OutcomeContradicted) == [rulings.OutcomeContradicted(command_id)]
    assert len(run.all(rulings.CallSettled)) == settled
    assert (run.state.end.late[command_id].was_denied, run.state.end.late[command_id].content) == (True, "paid")
    assert run.fault_of(arrivals.ToolReturned(command_id, "paid", b"")) is ArrivalFault.DUPLICATE
    lawful(run)


def test_a_person_who_is_asked_about_a_second_call_learns_that_the_first_happened_after_all() -> None:
    run = attempted("pay")
    command_id = denied(run)
    run.proposes(wants("pay"))
    before = run.open(AskHuman)[0]
    assert before.packet is not None
    run.take(arrivals.ToolReturned(command_id, "paid", b""))
    (now,) = run.open(AskHuman)
    assert now.id != before.id
    assert now.packet is not None
    assert now.packet.reasons != before.packet.reasons
    assert "happened" in "; ".join(now.packet.reasons)
    lawful(run)


def test_a_call_that_returns_after_the_ending_contradicts_what_was_said_before_it() -> None:
    run = attempted("pay")
    command_id = denied(run)
    run.take(arrivals.CancelRequested("ada"))
    assert not any("returned after all" in warning for warning in in_doubt(run.state))
    run.take(arrivals.ToolReturned(command_id, "paid", b""))
    assert run.state.end.addenda == 1
    assert any("pay" in told and "returned after all" in told and "twice" in told for told in in_doubt(run.state))


def test_what_only_failed_again_contradicts_nothing() -> None:
    run = attempted("pay")
    command_id = denied(run)
    assert run.fault_of(arrivals.ToolFailed(command_id, ErrorCode.TOOL_TIMEOUT)) is ArrivalFault.DUPLICATE


def test_a_call_that_was_told_not_to_have_happened_after_the_ending_and_returns_contradicts_that() -> None:
    run = attempted("write")
    command_id = run.open(CallTool)[0].id
    run.take(arrivals.CancelRequested("ada"))
    run.take(arrivals.ToolFailed(command_id, ErrorCode.TOOL_EXECUTION_FAILED, "nothing written"))
    assert not run.state.end.late[command_id].is_returned
    run.take(arrivals.ToolReturned(command_id, "written", b""))
    assert run.now(rulings.OutcomeContradicted) == [rulings.OutcomeContradicted(command_id)]
    assert run.state.end.late[command_id].is_returned
    assert run.fault_of(arrivals.ToolReturned(command_id, "written", b"")) is ArrivalFault.DUPLICATE


@pytest.mark.parametrize("tool", ["look", "pay"])
def test_a_result_of_a_call_that_succeeded_is_a_duplicate(tool: str) -> None:
    run = Run()
    run.proposes(wants(tool))
    if tool == "pay":
        run.approves()
    command_id = run.open(CallTool)[0].id
    run.returns(tool)
    assert run.fault_of(arrivals.ToolReturned(command_id, "paid", b"")) is ArrivalFault.DUPLICATE
