"""Answers that are not certain, sources that contradict each other, what is unsafe, and tools that stand in for others."""

from typing import Any

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import AskHuman, AskPurpose, CallCode, CallModel, CallTool, Retrieve, TimerPurpose
from remit.core.journal.proposed_call import Provenance
from remit.core.journal.rulings import Answer, FallbackChosen, Rung
from remit.core.limits.boundary import Boundary, BoundaryMode, Condition, Rate, Then
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import ToolDefinition
from remit.core.record import replace
from remit.core.run.messages import Message, Role
from remit.core.schema.json_schema import Violation
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import Node, NodeKind
from remit.kernel.results.acceptance import confidence_ppm_of
from remit.kernel.state import waiting_for
from tests.simulation.scenarios import TOOLS
from tests.unit.kernel.builders import Run, bound, in_line, known, lawful, manifest_of, wants
from tests.unit.kernel.plans import PlanRun, vote_of

SURE = Goal("be sure", confidence_ppm_min=900_000)
CHECKED = replace(SURE, criteria=(Criterion("polite", validator="polite"),))


# How sure an answer is.


def counted(run: Run, passed: int, failed: int) -> None:
    """The oldest open validator is satisfied, and has counted."""
    command = run.open(CallCode)[0]
    run.take(arrivals.CodeReturned(command.id, checks_passed=passed, checks_failed=failed))


def doubted(goal: Goal = SURE, **manifest: Any) -> Run:
    """A run whose answer nothing speaks for."""
    run = Run(manifest_of(goal=goal, **manifest))
    run.says("perhaps")
    return run


def test_an_answer_for_which_nothing_speaks_goes_to_a_reviewer() -> None:
    run = doubted()
    asked = run.question()
    assert (asked.purpose, asked.ending, waiting_for(run.state)) == (
        AskPurpose.REVIEW,
        Ending.LOW_CONFIDENCE,
        Ending.LOW_CONFIDENCE,
    )
    assert asked.question == "confidence 0.00 is below 0.90. Let the answer stand?"
    assert run.path()[-1] == "check"
    lawful(run)


def test_a_reviewer_may_let_a_doubtful_answer_stand() -> None:
    run = doubted()
    run.approves()
    assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "perhaps")
    lawful(run)


def test_a_reviewer_who_says_no_fails_the_answer() -> None:
    run = doubted()
    run.rejects("it is wrong")
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_SEMANTIC_FAILED)
    assert run.state.end.message.endswith("it is wrong")
    lawful(run)


def test_a_doubtful_answer_that_nobody_reviews_ends_as_one() -> None:
    run = doubted()
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.end.ending is Ending.LOW_CONFIDENCE
    lawful(run)


def test_words_let_no_doubtful_answer_stand() -> None:
    run = doubted()
    told = arrivals.QuestionAnswered(run.question().id, "ada", "No, it is wrong!", 30)
    assert run.fault_of(told) is ArrivalFault.WRONG_PACKET


def test_where_nobody_may_be_asked_a_doubtful_answer_ends_the_run() -> None:
    run = doubted(budget=Budget(human_reviews=0))
    assert (run.state.end.ending, run.all(AskHuman)) == (Ending.LOW_CONFIDENCE, [])
    assert run.state.end.message == "confidence 0.00 is below 0.90, and nobody may be asked any more"


@pytest.mark.parametrize(("passed", "failed", "is_sure"), [(9, 1, True), (10, 0, True), (8, 1, False), (0, 3, False)])
def test_checks_speak_for_an_answer_in_the_turn_in_which_they_are_heard(
    passed: int, failed: int, is_sure: bool
) -> None:
    run = doubted(CHECKED)
    counted(run, passed, failed)
    assert (run.state.end.ending is Ending.SUCCESS) is is_sure
    assert (len(run.open(AskHuman)) == 1) is not is_sure


def test_the_checks_of_all_validators_count_together() -> None:
    goal = replace(SURE, criteria=(Criterion("polite", validator="polite"), Criterion("short", validator="short")))
    run = doubted(goal)
    counted(run, 1, 1)
    counted(run, 18, 0)
    assert run.state.end.ending is Ending.SUCCESS


def test_how_well_the_evidence_fits_speaks_for_an_answer_without_checks() -> None:
    for relevance_ppm, ending in ((950_000, Ending.SUCCESS), (100_000, None), (-1, None)):
        run = Run(manifest_of(goal=SURE, retrieves_context=True))
        run.take(arrivals.ContextFound(run.open(Retrieve)[0].id, "evidence", 20, relevance_ppm))
        run.says("it is so")
        assert run.state.end.ending is ending
        assert confidence_ppm_of(run.tally()) == max(relevance_ppm, 0)


@pytest.mark.parametrize(("ppm", "ending"), [(666_667, None), (1_000_000, Ending.SUCCESS)])
def test_a_vote_speaks_for_an_answer_in_the_turn_in_which_it_is_counted(ppm: int, ending: Ending | None) -> None:
    run = PlanRun(replace(vote_of(), goal=SURE))
    for text in ("a", "b", "b"):
        run.answers(text)
    run.elects(1, 2, ppm)
    assert run.state.end.ending is ending
    assert (len(run.open(AskHuman)) == 1) is (ending is None)


def test_a_graph_without_a_check_does_not_get_around_being_sure() -> None:
    hasty = in_line(Node("think", NodeKind.MODEL))
    run = Run(manifest_of(goal=SURE, graph=hasty))
    run.says("perhaps")
    assert (run.state.end.ending, run.state.end.message) == (Ending.LOW_CONFIDENCE, "confidence 0.00 is below 0.90")
    lawful(run)
    sure = in_line(Node("prepare", NodeKind.RETRIEVE), Node("think", NodeKind.MODEL))
    run = Run(manifest_of(goal=SURE, graph=sure, retrieves_context=True))
    run.take(arrivals.ContextFound(run.open(Retrieve)[0].id, "evidence", 20, 950_000))
    run.says("it is so")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_goal_that_asks_for_no_confidence_asks_nobody() -> None:
    assert doubted(Goal("answer")).state.end.ending is Ending.SUCCESS


def test_an_answer_that_breaks_its_contract_is_sent_back_and_not_reviewed() -> None:
    run = Run(manifest_of(goal=SURE))
    run.says("{}", violations=(Violation("/n", "type", "is not a number"),))
    assert (run.path()[-1], run.all(AskHuman)) == ("think", [])


# Sources that contradict each other.


def agreeing() -> Run:
    run = Run(manifest_of(goal=Goal("agree", critical=("price",))))
    run.proposes(wants("look"), wants("fetch"))
    return run


def test_observations_that_contradict_each_other_end_the_run() -> None:
    run = agreeing()
    run.returns("look", critical=(("price", "3"),))
    run.returns("fetch", critical=(("price", "4"),))
    assert run.state.end.ending is Ending.SOURCE_CONFLICT
    assert run.state.end.message == "sources conflict on price: look says 3, fetch says 4"
    lawful(run)


def test_observations_that_agree_or_speak_of_something_else_let_the_run_go_on() -> None:
    run = agreeing()
    run.returns("look", critical=(("price", "3"),))
    run.returns("fetch", critical=(("date", "4"), ("price", "3")))
    assert run.path()[-1] == "think"
    assert run.state.effects.critical == {"price": ("3", "look"), "date": ("4", "fetch")}


def test_the_same_source_that_says_something_else_later_is_a_conflict_too() -> None:
    run = agreeing()
    run.returns("look", critical=(("price", "3"),))
    run.returns("fetch")
    run.proposes(wants("look", 2))
    run.returns("look", critical=(("price", "5"),))
    assert run.state.end.message == "sources conflict on price: look says 3, look says 5"


def test_what_was_not_verified_contradicts_nothing_and_is_not_kept() -> None:
    run = agreeing()
    run.returns("look", critical=(("price", "3"),), refuted="it is old")
    run.returns("fetch", critical=(("price", "4"),))
    assert (run.state.end.ending, run.state.effects.critical) == (None, {"price": ("4", "fetch")})
    run.proposes(wants("look", 2))
    run.returns("look", critical=(("price", "3"),), refuted="it is old")
    assert run.state.end.ending is None


def test_a_conflict_cuts_off_what_is_still_under_way() -> None:
    run = agreeing()
    run.returns("look", critical=(("price", "3"),))
    run.returns("fetch")
    run.proposes(wants("look", 2), wants("fetch", 2))
    run.returns("look", critical=(("price", "4"),))
    assert (run.state.end.ending, run.state.commands.open) == (Ending.SOURCE_CONFLICT, {})
    lawful(run)


# What is unsafe.


def test_a_condition_that_stops_ends_the_run_as_unsafe() -> None:
    boundary = Boundary(conditions=(Condition("seven", "args.n == 7", Then.STOP, "nobody looks at seven"),))
    run = Run(manifest_of(boundary=boundary))
    run.proposes(wants("look", 1), wants("look", 7))
    assert (run.state.end.ending, run.state.end.message) == (
        Ending.UNSAFE_DETECTION,
        "look: condition seven: nobody looks at seven",
    )
    assert run.last(rulings.ToolCallRefused).code == Refusal.UNSAFE
    assert run.all(CallTool) == []
    lawful(run)


def test_a_secret_in_the_arguments_ends_the_run_as_unsafe() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look", exposed=True)
    assert (run.state.end.ending, run.state.end.error) == (Ending.UNSAFE_DETECTION, ErrorCode.TOOL_EXECUTION_FAILED)
    assert run.state.end.message == "it broke"
    lawful(run)


def test_a_secret_in_an_answer_ends_the_run_as_unsafe_and_no_call_of_it_is_made() -> None:
    for calls in ((), (wants("look"),)):
        run = Run()
        answer = run.all(CallModel)[-1]
        run.take(arrivals.ModelAnswered(answer.id, "It is [exposed secret KEY].", calls=calls, exposed="KEY"))
        assert run.state.end.ending is Ending.UNSAFE_DETECTION
        assert run.state.end.message.startswith("SECRET_EXPOSED: model ")
        assert "the secret 'KEY'" in run.state.end.message
        assert run.all(CallTool) == []
        lawful(run)


def test_a_pause_only_puts_off_the_end_of_an_unsafe_run() -> None:
    run = Run()
    run.proposes(wants("look"), wants("fetch"))
    run.take(arrivals.PauseRequested("ada"))
    run.fails("look", exposed=True)
    run.returns("fetch")
    assert run.all(rulings.RunEnded) == []
    run.take(arrivals.ResumeRequested("ada"))
    assert run.state.end.ending is Ending.UNSAFE_DETECTION
    lawful(run)


# Tools that stand in for others.

UNAVAILABLE = ErrorCode.TOOL_UNAVAILABLE
TWIN = known("look", name="twin")


def with_twin(tool: ToolDefinition = TWIN, of: str = "look", **manifest: Any) -> Run:
    changed = tuple(replace(one, fallback=tool.name) if one.name == of else one for one in TOOLS)
    return Run(manifest_of(tools=(*changed, tool), **manifest))


def results(run: Run) -> list[tuple[str, str, object]]:
    told = [entry for entry in run.state.talk.context if isinstance(entry, Message) and entry.role is Role.TOOL]
    return [(message.tool_call_id, message.name, message.content) for message in told]


def test_an_equivalent_tool_is_called_where_one_is_unavailable_and_its_result_is_the_only_one() -> None:
    run = with_twin()
    run.proposes(wants("look", 4, call_id="first"))
    failed = run.open(CallTool)[0]
    run.fails("look", UNAVAILABLE)
    (instead,) = run.open(CallTool)
    assert run.now(FallbackChosen) == [FallbackChosen(failed.id, "twin")]
    assert (instead.tool, instead.call_id, instead.arguments) == ("twin", "first", failed.arguments)
    assert instead.key != failed.key
    assert (run.path()[-1], results(run)) == ("act", [])
    run.returns("twin", "seen")
    assert (run.path()[-1], results(run)) == ("think", [("first", "twin", "seen")])
    assert run.state.calls.made[failed.id].rung is Rung.OBSERVED
    assert run.used(Dimension.TOOL_CALLS) == 2
    lawful(run)


@pytest.mark.parametrize("code", [ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_TIMEOUT])
def test_a_tool_that_failed_otherwise_is_not_replaced(code: ErrorCode) -> None:
    run = with_twin()
    run.proposes(wants("look"))
    run.fails("look", code)
    assert (run.all(FallbackChosen), results(run)) == ([], [("call", "look", f"{code}: it broke")])


def test_where_no_equivalent_is_named_the_failure_is_told() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look", UNAVAILABLE)
    assert (run.all(FallbackChosen), run.path()[-1]) == ([], "think")


def test_an_equivalent_that_needs_a_person_is_not_called_although_the_first_was_approved() -> None:
    run = with_twin(known("write", name="twin"), of="write")
    run.proposes(wants("write"))
    run.approves()
    run.fails("write", UNAVAILABLE)
    assert (run.all(FallbackChosen), run.open(CallTool)) == ([], [])
    assert results(run) == [("call", "write", f"{UNAVAILABLE}: it broke")]
    lawful(run)


UNATTENDED = Boundary(approval_effects=(), budget=Budget(side_effects=5))


def test_an_equivalent_of_a_bound_call_is_called_in_nobodys_name() -> None:
    run = with_twin(known("write", name="twin"), of="write", boundary=UNATTENDED)
    run.proposes(bound(wants("write")))
    run.fails("write", UNAVAILABLE)
    assert [(call.tool, call.approved_by) for call in run.open(CallTool)] == [("twin", "")]


def test_a_call_that_a_person_had_to_approve_lends_its_approval_to_no_other() -> None:
    run = with_twin(known("write", name="twin"), of="write", boundary=UNATTENDED)
    run.proposes(replace(wants("write"), provenance=Provenance.UNBOUND, objection="PROVENANCE_UNBOUND"))
    run.approves()
    run.fails("write", UNAVAILABLE)
    assert run.open(CallTool) == []


def test_what_the_gate_found_about_another_call_under_the_same_id_does_not_count() -> None:
    run = with_twin(known("write", name="twin"), of="write", boundary=UNATTENDED)
    run.proposes(bound(wants("look")), replace(wants("write"), provenance=Provenance.UNBOUND, objection="NOT_ASKED"))
    run.approves()
    run.fails("write", UNAVAILABLE)
    assert [call.tool for call in run.open(CallTool)] == ["look"]


@pytest.mark.parametrize(
    "boundary",
    [
        Boundary(allowed_tools=("look",)),
        Boundary(budget=Budget(tool_calls=1)),
        Boundary(rates=(Rate("twin", 0, 1000),)),
    ],
    ids=["not allowed", "no budget", "rate"],
)
def test_an_equivalent_that_may_not_be_called_is_not(boundary: Boundary) -> None:
    run = with_twin(boundary=boundary)
    run.proposes(wants("look"))
    run.fails("look", UNAVAILABLE)
    assert (run.all(FallbackChosen), len(results(run))) == ([], 1)


def test_a_paused_run_calls_no_equivalent() -> None:
    run = with_twin()
    run.proposes(wants("look"))
    run.take(arrivals.PauseRequested("ada"))
    run.fails("look", UNAVAILABLE)
    assert (run.all(FallbackChosen), len(results(run))) == ([], 1)
    lawful(run)


def test_an_exposed_secret_is_not_handed_to_an_equivalent() -> None:
    run = with_twin()
    run.proposes(wants("look"))
    run.fails("look", UNAVAILABLE, exposed=True)
    assert (run.state.end.ending, run.all(FallbackChosen)) == (Ending.UNSAFE_DETECTION, [])


def test_two_tools_that_stand_in_for_each_other_do_not_go_on_for_ever() -> None:
    run = with_twin(replace(TWIN, fallback="look"))
    run.proposes(wants("look"))
    for _ in range(4):
        run.fails("", UNAVAILABLE)
    assert (run.path()[-1], run.open(CallTool), len(results(run))) == ("think", [], 1)
    lawful(run)


def test_an_equivalent_that_is_unavailable_too_is_what_the_model_hears() -> None:
    run = with_twin()
    run.proposes(wants("look"))
    run.fails("look", UNAVAILABLE)
    run.fails("twin", UNAVAILABLE)
    assert results(run) == [("call", "twin", f"{UNAVAILABLE}: it broke")]
    lawful(run)


def test_an_auditing_boundary_notes_what_it_would_have_said_of_the_equivalent() -> None:
    run = with_twin(boundary=Boundary(mode=BoundaryMode.AUDIT, allowed_tools=("look",)))
    run.proposes(wants("look"))
    run.fails("look", UNAVAILABLE)
    assert [noted.tool for noted in run.now(rulings.CallNoted)] == ["twin"]
    assert [call.tool for call in run.open(CallTool)] == ["twin"]


def test_what_a_question_came_to_is_on_record() -> None:
    answers = []
    for act in (Run.approves, Run.rejects):
        run = doubted()
        act(run)
        answers.append(run.last(rulings.QuestionSettled).answer)
    assert answers == [Answer.APPROVED, Answer.REJECTED]
