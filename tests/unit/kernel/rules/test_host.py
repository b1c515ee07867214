"""An agent elsewhere proposes calls and makes them: judged like any other, and nothing that comes of one moves the run."""

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, Refusal, RequestRejected
from remit.core.journal.arrivals import (
    ApprovalGiven,
    ApprovalRefused,
    CallProposed,
    CancelRequested,
    Happened,
    HostFinished,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    TextShown,
    ToolFailed,
)
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import (
    OUTCOME_UNKNOWN,
    CallSettled,
    CallTaken,
    CommandsWithheld,
    OutcomeDoubted,
    RunEnded,
    ToolCallRefused,
)
from remit.core.limits.boundary import Boundary, Condition, Then
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.queue import QUEUE_MARK
from remit.core.limits.tools import Effect
from remit.core.record import replace
from remit.core.run.manifest import MANIFEST_INVALID, Host, Manifest
from remit.orchestrate.guard.begin_run import HOST_GRAPH
from tests.unit.kernel.builders import Run, bound, lawful, manifest_of, wants

OPEN = Boundary("open", approval_effects=(), budget=Budget(side_effects=9, tool_calls=9))


def hosted(boundary: Boundary = OPEN, **changes: object) -> Manifest:
    manifest = replace(manifest_of(graph=HOST_GRAPH, boundary=boundary), host=Host("r1"))
    return replace(manifest, **changes)


def proposed(run: Run, tool: str, n: int = 1, *, call_id: str = "c", takes: str = "") -> list[object]:
    """What is decided on a call whose values are bound."""
    return list(run.take(CallProposed(bound(wants(tool, n, call_id=call_id)), takes)).decisions)


def held(run: Run, tool: str = "write", n: int = 1, *, call_id: str = "c") -> AskHuman:
    """A call that waits for a person, since it was not traced."""
    run.take(CallProposed(wants(tool, n, call_id=call_id)))
    (question,) = run.now(AskHuman)
    return question


def test_calls_are_ordered_as_they_come_and_their_outcomes_move_nothing() -> None:
    run = Run(hosted())
    assert run.path() == ["host"]
    for n in (1, 2):
        (call,) = proposed(run, "look", n, call_id=f"c{n}")
        assert isinstance(call, CallTool)
    run.returns()
    run.fails()
    assert run.path() == ["host"]
    assert run.state.end.ending is None
    run.take(HostFinished())
    assert run.last(RunEnded).ending is Ending.SUCCESS
    assert run.fault_of(RetryRequested("ada", "why not")) is ArrivalFault.NOT_RETRYABLE
    lawful(run)


def test_what_is_left_open_is_told_by_the_ending() -> None:
    run = Run(hosted())
    proposed(run, "write")
    held(run, n=2, call_id="d")
    run.take(HostFinished())
    ended = run.last(RunEnded)
    assert ended.ending is Ending.REVIEW_REQUIRED
    assert run.last(OutcomeDoubted).reason == ErrorCode.CANCELLED_SIGNAL
    assert ended.doubted
    lawful(run)


def test_a_call_that_a_condition_stops_ends_the_run() -> None:
    stopping = Condition("no", 'tool == "write"', Then.STOP, message="never")
    run = Run(hosted(replace(OPEN, conditions=(stopping,))))
    proposed(run, "write")
    assert run.last(ToolCallRefused).code == Refusal.UNSAFE
    assert run.state.end.ending is Ending.UNSAFE_DETECTION
    assert run.fault_of(CallProposed(wants("look"))) is ArrivalFault.RUN_ENDED
    lawful(run)


def test_a_refused_call_leaves_the_run_open_however_often() -> None:
    run = Run(hosted())
    for n in range(5):
        proposed(run, "secret", n)
        assert run.last(ToolCallRefused).code == Refusal.PERMISSION_DENIED
    assert run.state.end.ending is None


def test_an_approved_call_is_withheld_until_it_is_proposed_again_and_then_made_once() -> None:
    run = Run(hosted())
    run.take(ApprovalGiven(held(run).id, "ada"))
    (command,) = run.open(CallTool)
    assert run.now(CommandsWithheld) == [CommandsWithheld((command.id,))]
    assert list(run.state.commands.withheld) == [command.id]
    for wrong in (
        CallProposed(wants("write", 2), command.id),
        CallProposed(wants("look", 1), command.id),
        CallProposed(wants("write"), "0.1"),
        CallProposed(wants("write"), "9.9"),
    ):
        assert run.fault_of(wrong) is ArrivalFault.UNKNOWN_COMMAND
    assert proposed(run, "write", call_id="later", takes=command.id) == [CallTaken(command.id)]
    assert run.state.commands.withheld == {}
    assert run.fault_of(CallProposed(wants("write"), command.id)) is ArrivalFault.UNKNOWN_COMMAND
    run.returns()
    assert run.last(CallSettled).command_id == command.id
    lawful(run)


def test_a_yes_that_is_waited_for_has_the_call_made_at_once() -> None:
    run = Run(hosted())
    run.take(ApprovalGiven(held(run).id, "ada", is_awaited=True))
    assert (run.now(CommandsWithheld), run.state.commands.withheld) == ([], {})
    assert len(run.open(CallTool)) == 1


def test_a_withheld_call_was_not_made_when_the_run_ends_and_outlasts_a_pause() -> None:
    run = Run(hosted())
    run.take(ApprovalGiven(held(run).id, "ada"))
    run.take(PauseRequested("ada"))
    assert run.fault_of(CallProposed(wants("look"))) is ArrivalFault.PAUSED
    run.take(ResumeRequested("ada"))
    assert len(run.state.commands.withheld) == 1
    run.take(HostFinished())
    assert run.last(RunEnded).doubted == ()
    lawful(run)


def test_an_approval_that_can_no_longer_be_used_leaves_its_call_held() -> None:
    run = Run(hosted(replace(OPEN, budget=Budget(side_effects=9, tool_calls=1))))
    question = held(run)
    proposed(run, "look", call_id="d")
    assert run.fault_of(ApprovalGiven(question.id, "ada")) is ArrivalFault.CALL_NOT_ALLOWED
    assert question.id in run.state.commands.open
    run.take(ApprovalRefused(question.id, "ada"))
    assert run.state.people.turned_away == {("write", wants("write").arguments_hash): "ada"}
    lawful(run)


def test_an_approval_that_meets_a_condition_that_stops_ends_the_run() -> None:
    late = Condition("late", "changes && at_ms >= 2000000", Then.STOP)
    run = Run(hosted(replace(OPEN, conditions=(late,))))
    question = held(run)
    run.take(ApprovalGiven(question.id, "ada"), after_ms=1_000_000)
    assert run.state.end.ending is Ending.UNSAFE_DETECTION
    lawful(run)


def test_a_no_holds_for_the_rest_of_the_run_unless_only_a_queue_was_full() -> None:
    asking = replace(OPEN, approval_effects=(Effect.READ,))
    run = Run(hosted(asking))
    run.take(ApprovalRefused(held(run, "look").id, "ada"))
    proposed(run, "look")
    refused = run.last(ToolCallRefused)
    assert (refused.code, refused.reason) == (Refusal.APPROVAL_REJECTED, "ada said no to exactly this call")
    run.take(ApprovalRefused(held(run, "look", 2).id, f"{QUEUE_MARK}operator"))
    assert held(run, "look", 2).purpose is AskPurpose.APPROVAL


def test_a_yes_to_the_same_call_takes_an_earlier_no_back() -> None:
    run = Run(hosted())
    first, second = held(run, call_id="a"), held(run, call_id="b")
    run.take(ApprovalRefused(first.id, "ada"))
    run.take(ApprovalGiven(second.id, "ada"))
    assert run.state.people.turned_away == {}


@pytest.mark.parametrize("tool", ["write", "put"])
def test_a_change_that_failed_within_is_a_persons_to_repeat_unless_its_tool_takes_keys(tool: str) -> None:
    run = Run(hosted())
    proposed(run, tool)
    run.breaks_within()
    assert run.last(CallSettled).code == OUTCOME_UNKNOWN
    proposed(run, tool, call_id="again")
    assert len(run.now(AskHuman)) == (tool == "write")
    lawful(run)


def test_a_change_in_doubt_is_a_persons_to_repeat_until_the_outcome_is_known() -> None:
    run = Run(hosted())
    proposed(run, "write")
    run.loses()
    asked = held(run, call_id="again")
    assert asked.packet is not None
    assert any("is in doubt" in reason for reason in asked.packet.reasons)
    assert proposed(run, "write", 2, call_id="other")
    run.judges(Happened.NO)
    assert run.state.commands.doubted == {}
    lawful(run)


def test_a_text_that_was_shown_decides_nothing() -> None:
    run = Run(hosted())
    assert run.take(TextShown("look", "a text")).decisions == ()
    assert run.used(Dimension.TOOL_CALLS) == 0


@pytest.mark.parametrize("arrival", [CallProposed(wants("look")), TextShown(), HostFinished()])
def test_a_run_that_makes_its_calls_itself_hears_none_of_it(
    arrival: CallProposed | TextShown | HostFinished,
) -> None:
    assert Run().fault_of(arrival) is ArrivalFault.NOT_WAITING


@pytest.mark.parametrize(
    "manifest", [manifest_of(graph=HOST_GRAPH), replace(manifest_of(), host=Host("r1"))], ids=["no host", "no node"]
)
def test_a_host_and_its_node_belong_together(manifest: Manifest) -> None:
    with pytest.raises(RequestRejected) as refused:
        Run(manifest)
    assert refused.value.code == MANIFEST_INVALID


def test_a_call_that_the_gate_turned_away_is_refused() -> None:
    run = Run(hosted())
    call = ProposedCall("c", "write", "{}", b"hash", provenance=Provenance.REFUSED, reasons=("no",))
    run.take(CallProposed(call))
    assert run.last(ToolCallRefused).code == Refusal.APPROVAL_REJECTED


def test_an_effect_that_was_not_allowed_ends_the_run_at_once() -> None:
    run = Run(hosted())
    run.take(TextShown(made=wants("write")))
    assert run.state.end.ending is Ending.UNSAFE_DETECTION
    lawful(run)


def test_a_yes_that_was_never_taken_costs_nothing_when_the_run_is_cancelled() -> None:
    run = Run(hosted())
    run.take(ApprovalGiven(held(run).id, "ada"))
    run.take(CancelRequested("ada"))
    assert run.last(RunEnded).doubted == ()
    assert run.state.used[Dimension.SIDE_EFFECTS] == 0
    lawful(run)


def test_one_of_two_like_calls_that_is_told_not_to_have_happened_leaves_the_doubt_about_the_other() -> None:
    run = Run(hosted())
    calls = []
    for name in ("one", "two"):
        proposed(run, "write", call_id=name)
        if run.open(AskHuman):
            run.approves()
        (call,) = run.open(CallTool)
        run.fails("write", ErrorCode.TOOL_TIMEOUT)
        calls.append(call.id)
    assert [run.state.calls.made[name].code for name in calls] == [OUTCOME_UNKNOWN] * 2
    first, second = calls
    run.take(ToolFailed(first, ErrorCode.TOOL_EXECUTION_FAILED, "it was not done"))
    assert run.now(CallSettled)[0].code == ErrorCode.TOOL_EXECUTION_FAILED
    assert list(run.state.effects.unknown) == [("write", run.state.calls.made[second].arguments_hash)]
    run.take(ToolFailed(second, ErrorCode.TOOL_EXECUTION_FAILED, "nor was it"))
    assert not run.state.effects.unknown
    lawful(run)
