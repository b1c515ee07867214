"""A tool node: judge what the model proposed, and settle what comes back."""

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import AskHuman, CallTool, ReconcileTool
from remit.core.journal.rulings import RECONCILED, Rung
from remit.core.limits.budget import Budget, Dimension
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import Node, NodeKind, ToolRules
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

REACHES = [Refusal]

BROKEN = (Violation("/n", "type", "is not a number"),)


def attempted(tool: str) -> Run:
    run = Run()
    run.proposes(wants(tool))
    run.approves()
    return run


def test_each_call_of_an_answer_is_ordered_held_or_refused() -> None:
    run = Run()
    run.proposes(wants("look"), wants("write"), wants("nothing"))
    assert [call.tool for call in run.open(CallTool)] == ["look"]
    assert [question.purpose for question in run.open(AskHuman)] == ["approval"]
    assert [refused.tool for refused in run.all(rulings.ToolCallRefused)] == ["nothing"]


@pytest.mark.req("4.22", "4.23")
def test_five_calls_of_one_answer_never_see_the_same_untouched_budget() -> None:
    run = Run(manifest_of(budget=Budget(tool_calls=2)))
    run.proposes(*(wants("look", n) for n in range(5)))
    assert len(run.open(CallTool)) == 2
    assert [refused.code for refused in run.all(rulings.ToolCallRefused)] == [Refusal.BUDGET_EXHAUSTED] * 3
    assert run.reserved(Dimension.TOOL_CALLS) == 2


def test_when_every_call_was_refused_the_model_is_told_and_asked_again() -> None:
    run = Run()
    run.proposes(wants("nothing"))
    assert run.path()[-1] == "think"
    assert run.now(rulings.NodeEntered)[-1].outcome == "refused"


@pytest.mark.req("4.23")
def test_a_budget_that_is_used_up_ends_a_run_that_needs_more_of_it() -> None:
    run = Run(manifest_of(budget=Budget(tool_calls=1)))
    run.proposes(wants("look", 1))
    run.returns()
    run.proposes(wants("look", 2))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.state.end.message == "tool_calls_max=1 leaves nothing for look"


def test_a_cap_of_zero_forbids_the_call_and_not_the_run() -> None:
    run = Run(manifest_of(budget=Budget(tool_calls=0)))
    run.proposes(wants("look"))
    assert run.path()[-1] == "think"
    run.says("then without")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_call_that_waits_keeps_an_exhausted_run_open() -> None:
    run = Run(manifest_of(budget=Budget(tool_calls=1)))
    run.proposes(wants("look", 1), wants("look", 2))
    assert run.state.end.ending is None


def test_the_third_denial_ends_the_run() -> None:
    run = Run()
    run.proposes(wants("secret", 1), wants("secret", 2))
    assert run.path()[-1] == "think"
    run.proposes(wants("secret", 3))
    assert run.state.end.ending is Ending.PERMISSION_DENIED
    assert run.state.end.message == "3 calls were denied, denials_max=3"


@pytest.mark.parametrize(
    ("tool", "violations", "code"),
    [
        ("nothing", (), ErrorCode.TOOL_NOT_FOUND),
        ("look", BROKEN, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
    ],
)
def test_a_model_that_cannot_repair_its_calls_ends_the_run(
    tool: str, violations: tuple[Violation, ...], code: ErrorCode
) -> None:
    run = Run()
    for n in range(3):
        run.proposes(wants(tool, n, violations=violations))
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, code)
    assert "argument_repairs_max=2" in run.state.end.message


def test_a_model_that_repeats_itself_is_blocked_once_and_then_stopped() -> None:
    run = Run()
    for _ in range(2):
        run.proposes(wants("look"))
        run.returns()
    run.proposes(wants("look"))
    assert run.path()[-1] == "think"
    run.proposes(wants("look"))
    assert (run.state.end.ending, run.state.end.error) == (
        Ending.REPEATED_FAILURE,
        ErrorCode.ORCHESTRATION_ITERATION_LIMIT,
    )


def test_a_committed_change_between_makes_the_same_call_a_new_one() -> None:
    run = Run()
    for n in range(4):
        run.proposes(wants("look"))
        run.returns()
        run.proposes(wants("write", n))
        run.approves()
        run.returns()
    assert run.all(rulings.ToolCallRefused) == []


@pytest.mark.parametrize(
    ("violations", "refuted", "code"),
    [
        ((), "it is not there", ErrorCode.VALIDATION_RULE_FAILED),
        (BROKEN, "it is not there", ErrorCode.VALIDATION_RULE_FAILED),
    ],
)
def test_a_result_that_was_not_verified_is_only_observed(
    violations: tuple[Violation, ...], refuted: str, code: ErrorCode
) -> None:
    run = attempted("write")
    run.returns("write", violations=violations, refuted=refuted)
    settled = run.last(rulings.CallSettled)
    assert (settled.rung, settled.code, settled.verifier) == (Rung.OBSERVED, code, "")
    assert run.state.effects.committed == {}


@pytest.mark.req("4.11", "4.13")
def test_a_result_is_written_as_it_came_and_then_judged_in_the_same_turn() -> None:
    run = Run()
    run.proposes(wants("look"))
    turn = run.returns("look", "raw bytes", violations=BROKEN)
    assert isinstance(turn.arrival, arrivals.ToolReturned)
    assert turn.arrival.content == "raw bytes"
    assert run.last(rulings.CallSettled).evidence == turn.arrival.evidence


@pytest.mark.req("3.22")
def test_a_tool_that_may_stop_the_loop_gives_the_answer() -> None:
    run = Run()
    run.proposes(wants("finish"))
    run.returns("finish", "that is all", stop_loop=True)
    assert (run.path()[-2:], run.state.result.answer) == (["check", "done"], "that is all")


@pytest.mark.req("3.22")
def test_a_tool_that_may_not_stop_the_loop_is_not_heard_when_it_wants_to() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.returns("look", "that is all", stop_loop=True)
    assert (run.path()[-1], run.state.result.answer, run.state.result.stopped) == ("think", "", False)


@pytest.mark.req("3.22")
@pytest.mark.parametrize(("violations", "refuted"), [(BROKEN, ""), ((), "it is not there")])
def test_a_result_that_was_not_verified_does_not_end_the_loop(violations: tuple[Violation, ...], refuted: str) -> None:
    run = Run()
    run.proposes(wants("finish"))
    run.returns("finish", stop_loop=True, violations=violations, refuted=refuted)
    assert (run.path()[-1], run.state.result.stopped) == ("think", False)


@pytest.mark.req("4.45")
def test_a_tool_whose_results_are_misread_is_halted_and_what_it_said_is_kept() -> None:
    run = Run(manifest_of(budget=Budget(retries=1)))
    for n in range(2):
        run.proposes(wants("look", n))
        run.returns("look", f"<new format {n}>", violations=BROKEN)
    assert (run.state.end.ending, run.state.end.error) == (Ending.REPEATED_FAILURE, ErrorCode.CONSTRAINT_SCHEMA_INVALID)
    assert [trace.content for trace in run.state.calls.made.values()] == ["<new format 0>", "<new format 1>"]
    assert {command.version for command in run.all(CallTool)} == {run.state.derived.tools["look"].version}
    assert run.state.effects.committed == {}


@pytest.mark.req("3.22")
def test_an_empty_result_ends_nothing_since_it_answers_nothing() -> None:
    run = Run()
    run.proposes(wants("finish"))
    run.returns("finish", "", stop_loop=True)
    assert run.path()[-1] == "think"


@pytest.mark.req("3.29")
@pytest.mark.parametrize("code", [ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_TIMEOUT, ErrorCode.TOOL_UNAVAILABLE])
def test_a_failed_tool_is_data_for_the_model_and_no_exception(code: ErrorCode) -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look", code)
    assert run.messages()[-1] == f"{code}: it broke"
    assert run.path()[-1] == "think"


def test_what_may_be_repeated_cannot_be_lost() -> None:
    run = Run()
    run.proposes(wants("look"))
    assert run.fault_of(arrivals.ToolOutcomeLost(run.open(CallTool)[0].id)) is ArrivalFault.NOT_WAITING


def reconciled(happened: Happened, violations: tuple[Violation, ...] = ()) -> Run:
    run = attempted("pay")
    run.loses()
    inquiry = run.open(ReconcileTool)[0]
    run.take(arrivals.ToolReconciled(inquiry.id, happened, '{"ok": true}', b"evidence", 28, violations))
    return run


def test_a_call_its_tool_says_happened_is_committed_on_its_word() -> None:
    run = reconciled(Happened.YES)
    settled = run.last(rulings.CallSettled)
    assert (settled.rung, settled.verifier, settled.evidence) == (Rung.COMMITTED, RECONCILED, b"evidence")
    run.says("paid")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_yes_is_a_yes_whatever_the_schema_says_of_its_result() -> None:
    settled = reconciled(Happened.YES, BROKEN).last(rulings.CallSettled)
    assert (settled.rung, settled.code, settled.verifier) == (Rung.COMMITTED, "", RECONCILED)


def test_a_call_its_tool_says_did_not_happen_may_be_proposed_again() -> None:
    run = reconciled(Happened.NO)
    assert run.last(rulings.CallSettled).rung is Rung.OBSERVED
    run.proposes(wants("pay"))
    run.approves()
    run.returns()
    run.says("paid")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_tool_node_without_proposals_refuses_nothing_and_goes_on() -> None:
    act = Node("act", NodeKind.TOOL, rules=ToolRules("boundary", "registry", "tool_calls", 1000, "result_schema"))
    run = Run(manifest_of(graph=in_line(act)))
    assert run.path() == ["act", "done"]


def test_calls_are_not_made_again_when_a_tool_node_is_entered_without_a_new_answer() -> None:
    rules = ToolRules("boundary", "registry", "tool_calls", 1000, "result_schema")
    act, again = (Node(name, NodeKind.TOOL, rules=rules) for name in ("act", "again"))
    run = Run(manifest_of(graph=in_line(Node("think", NodeKind.MODEL), act, again)))
    run.proposes(wants("look"))
    run.returns()
    assert len(run.all(CallTool)) == 1
    assert run.path() == ["think", "act", "again", "done"]


def test_a_result_that_ends_the_loop_must_keep_the_output_contract() -> None:
    run = Run()
    run.proposes(wants("finish"))
    wrong = (Violation("", "json", "expected value"),)
    command = run.open(CallTool)[0]
    run.take(arrivals.ToolReturned(command.id, "plain text", b"evidence", 26, stop_loop=True, answer_violations=wrong))
    assert run.last(rulings.CheckFailed).problems == ("output /: expected value",)
    assert run.path()[-2:] == ["check", "think"]
