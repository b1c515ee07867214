"""Endings: which code ends a run, whether SUCCESS was earned, and what is released."""

import pytest

from remit.core.failure import ENDINGS, Ending, ErrorCode
from remit.core.journal import arrivals, commands, rulings
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import CallModel, CallTool, CancelCommand
from remit.core.journal.rulings import Answer, Rung
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.work.graph import EXIT_ENDINGS, Edge, EndingClass, Node, NodeKind, NodeOutcome
from remit.kernel.results.endings import CLASS_OF, head_for
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

REACHES = [Ending, EndingClass]


def test_every_ending_belongs_to_a_class_of_terminals() -> None:
    assert set(CLASS_OF) == set(Ending)
    assert set(CLASS_OF.values()) == set(EndingClass)


@pytest.mark.parametrize("ending", [ending for ending in Ending if CLASS_OF[ending] is not EndingClass.SUCCESS])
def test_an_ending_names_the_outcome_that_leads_to_its_terminal(ending: Ending) -> None:
    tally = Run().tally()
    outcome = head_for(tally, ending, ErrorCode.TOOL_TIMEOUT, "why")
    assert CLASS_OF[ending] is EXIT_ENDINGS[NodeOutcome(outcome)]
    assert (tally.ending, tally.error, tally.message) == (ending, ErrorCode.TOOL_TIMEOUT, "why")


# SUCCESS is earned.


def test_an_answer_with_nothing_left_undone_is_a_success() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.returns()
    run.says("written")
    assert (run.state.end.ending, run.state.end.message) == (Ending.SUCCESS, "")


def test_some_effects_done_and_others_not_is_a_partial_success_that_names_them() -> None:
    run = Run()
    run.proposes(wants("write"), wants("pay"))
    run.approves()
    run.returns("write")
    run.rejects()
    run.says("written and paid")
    assert run.state.end.ending is Ending.PARTIAL_SUCCESS
    assert run.state.end.message == f"not done: pay#{wants('pay').arguments_hash.hex()[:8]}"


@pytest.mark.parametrize(
    ("tool", "budget", "ending"),
    [
        ("pay", Budget(human_reviews=0), Ending.BUDGET_EXHAUSTED),
        ("pay", Budget(), Ending.PERMISSION_DENIED),
    ],
)
def test_when_all_effects_were_refused_the_refusal_is_the_ending(tool: str, budget: Budget, ending: Ending) -> None:
    run = Run(manifest_of(budget=budget))
    run.proposes(wants(tool))
    if run.state.people.asking:
        run.rejects()
    run.says("done")
    assert run.state.end.ending is ending
    assert run.path()[-1] == ENDING_TERMINALS[CLASS_OF[ending]]


ENDING_TERMINALS = {
    EndingClass.EXHAUSTION: "exhausted",
    EndingClass.ESCALATION: "escalated",
    EndingClass.FAILURE: "failed",
}


def test_an_approval_nobody_gave_leaves_the_confirmation_that_was_required() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.rings(commands.TimerPurpose.APPROVAL)
    run.says("paid")
    assert run.state.end.ending is Ending.CONFIRM_REQUIRED


def test_refusals_of_several_kinds_read_as_missing_authority() -> None:
    run = Run(manifest_of(budget=Budget(human_reviews=1)))
    run.proposes(wants("pay"))
    run.rings(commands.TimerPurpose.APPROVAL)
    run.proposes(wants("write"))
    run.says("done")
    assert run.state.end.ending is Ending.PERMISSION_DENIED


@pytest.mark.req("4.11")
def test_an_effect_that_was_attempted_and_never_proven_is_a_grounding_violation() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.fails("write")
    run.says("written")
    claim = f"write#{wants('write').arguments_hash.hex()[:8]}"
    assert run.last(rulings.GroundingViolated).claims == (claim,)
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_SEMANTIC_FAILED)


def test_an_effect_known_not_to_have_happened_is_no_success_either() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.loses()
    run.judges(Happened.NO)
    run.says("written")
    assert run.state.end.ending is Ending.VALIDATION_FAIL


def test_an_effect_done_at_the_second_attempt_is_done() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.fails("write")
    run.proposes(wants("write"))
    run.approves()
    run.returns("write")
    run.says("written")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_loop_that_a_tool_ends_in_the_turn_of_its_own_effect_is_a_success() -> None:
    saved = {"type": "string", "pattern": "^saved"}
    saving = ToolDefinition("save", "", {"type": "object"}, saved, effect=Effect.WRITE, may_stop_loop=True)
    run = Run(manifest_of(tools=(saving,)))
    run.proposes(wants("save"))
    run.approves()
    run.returns("save", "saved", stop_loop=True)
    assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "saved")


# Terminals that mean something else than what led to them.


@pytest.mark.parametrize(
    ("terminal", "ending"),
    [
        ("done", Ending.PARTIAL_SUCCESS),
        ("failed", Ending.UNAVAILABLE_DEP),
        ("cancelled", Ending.USER_CANCEL),
        ("escalated", Ending.REVIEW_REQUIRED),
        ("exhausted", Ending.BUDGET_EXHAUSTED),
    ],
)
def test_a_graph_may_lead_a_failure_to_another_terminal_and_the_code_says_so(terminal: str, ending: Ending) -> None:
    graph = in_line(Node("think", NodeKind.MODEL), edges=(Edge("think", terminal, "failed"),))
    run = Run(manifest_of(graph=graph, budget=Budget(retries=0)))
    run.breaks()
    assert (run.state.end.ending, run.state.end.error) == (ending, ErrorCode.INFERENCE_ENGINE_ERROR)


@pytest.mark.parametrize("terminal", ["failed", "cancelled", "escalated", "exhausted"])
def test_a_terminal_without_a_closer_reason_has_its_default(terminal: str) -> None:
    defaults = {
        "failed": Ending.IMPOSSIBLE,
        "cancelled": Ending.USER_CANCEL,
        "escalated": Ending.REVIEW_REQUIRED,
        "exhausted": Ending.BUDGET_EXHAUSTED,
    }
    graph = in_line(Node("sort", NodeKind.DECIDE), edges=(Edge("sort", terminal, "returned"),))
    assert Run(manifest_of(graph=graph)).state.end.ending is defaults[terminal]


# What an ending releases.


@pytest.mark.req("4.50")
def test_a_model_call_that_was_cut_off_is_cancelled_and_costs_all_it_reserved() -> None:
    run = Run()
    command = run.open(CallModel)[0]
    run.take(arrivals.CancelRequested("ada"))
    assert [cancel.about for cancel in run.now(CancelCommand)] == [command.id]
    assert run.now(rulings.CommandSettled) == [rulings.CommandSettled(command.id, command.reserved)]


@pytest.mark.req("4.50")
def test_a_read_that_was_cut_off_is_settled_as_attempted() -> None:
    run = Run()
    run.proposes(wants("look"))
    command = run.open(CallTool)[0]
    run.take(arrivals.CancelRequested("ada"))
    assert run.now(rulings.CallSettled) == [
        rulings.CallSettled(command.id, Rung.ATTEMPTED, command.reserved, code=ErrorCode.CANCELLED_SIGNAL)
    ]
    assert run.state.commands.open == {}


@pytest.mark.req("4.50")
def test_a_change_that_was_cut_off_stays_in_doubt_and_keeps_its_reservation() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    command = run.open(CallTool)[0]
    run.take(arrivals.CancelRequested("ada"))
    assert run.now(rulings.OutcomeDoubted) == [rulings.OutcomeDoubted(command.id, ErrorCode.CANCELLED_SIGNAL)]
    assert (run.open(CallTool), run.reserved(Dimension.SIDE_EFFECTS)) == ([command], 1)


def test_a_change_already_in_doubt_is_not_doubted_again() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.loses()
    run.take(arrivals.CancelRequested("ada"))
    assert len(run.all(rulings.OutcomeDoubted)) == 1
    assert len(run.state.commands.open) == 1


@pytest.mark.req("4.50")
def test_questions_are_withdrawn_and_children_cancelled() -> None:
    run = Run()
    run.proposes(wants("write"), wants("ask_child"))
    question, child = run.question(), run.open(commands.StartChild)[0]
    run.take(arrivals.CancelRequested("ada"))
    assert run.now(rulings.QuestionSettled) == [rulings.QuestionSettled(question.id, Answer.WITHDRAWN)]
    assert [cancel.about for cancel in run.now(CancelCommand)] == [child.id]


def test_what_arrived_with_the_ending_is_settled_once() -> None:
    run = Run()
    run.says("done")
    assert len(run.now(rulings.CommandSettled)) == 1
    assert run.now(CancelCommand) == []


def test_an_ended_run_shows_the_lifecycle_of_its_ending() -> None:
    run = Run(manifest_of(boundary=Boundary("narrow", allowed_tools=())))
    for n in range(3):
        run.proposes(wants("look", n))
    assert run.state.end.ending is Ending.PERMISSION_DENIED
    assert ENDINGS[run.state.end.ending].exit_code == 4
