"""Judges: child runs that say whether an answer means what it should."""

import pytest

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal import arrivals
from remit.core.journal.commands import CallModel, StartChild
from remit.core.journal.rulings import CheckFailed, GroundingViolated, ValidatorHeard
from remit.core.limits.budget import Budget, Dimension
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import Node, NodeKind
from remit.kernel.results.acceptance import GOAL_INVALID, check_goal
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import Run, in_line, manifest_of

KIND = Criterion("kind", judge="Is it kind?")
TRUE = Criterion("true", judge="Is it true?")


def judged(*criteria: Criterion, budget: Budget = Budget()) -> Run:
    """A chat that has answered and now waits for its judges."""
    run = Run(manifest_of(goal=Goal("be good", criteria), budget=budget))
    run.says("Wait.")
    return run


def verdict(run: Run, *problems: str, ending: Ending = Ending.SUCCESS) -> None:
    judge = run.open(StartChild)[0]
    run.take(arrivals.ChildEnded(judge.id, ending, "{}", tokens_bound=9, problems=problems))


def test_every_question_starts_a_judge_with_the_answer_and_a_share_of_what_is_left() -> None:
    run = judged(KIND, TRUE)
    judges = run.open(StartChild)
    assert [(judge.kind, judge.node, judge.prompt) for judge in judges] == [
        ("judge:kind", "check", "Wait."),
        ("judge:true", "check", "Wait."),
    ]
    assert run.state.spending.left[Dimension.OUTPUT_TOKENS] >= dict(judges[0].lease)[int(Dimension.OUTPUT_TOKENS)]


def test_an_answer_passes_when_no_judge_objects() -> None:
    run = judged(KIND, TRUE)
    verdict(run)
    assert len(run.open(StartChild)) == 1
    verdict(run)
    assert run.state.end.ending is Ending.SUCCESS
    assert (run.state.result.checks_passed, run.state.result.checks_failed) == (2, 0)


def test_an_objection_goes_back_to_the_model_as_a_correction_and_no_other_word_of_the_judge() -> None:
    run = judged(KIND)
    before = len(run.state.talk.context)
    verdict(run, "it is curt")
    assert run.last(CheckFailed).problems == ("it is curt",)
    assert len(run.state.talk.context) == before + 1
    assert len(run.open(CallModel)) == 1
    assert run.state == fold_journal(run.journal)


def test_objections_of_the_last_attempt_fail_the_run_as_a_question_of_meaning() -> None:
    run = judged(KIND)
    for _ in range(2):
        verdict(run, "it is curt")
        run.says("Wait.")
    verdict(run, "it is curt")
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_SEMANTIC_FAILED)
    # Nothing was claimed to have happened; it was only not kind.
    assert run.all(GroundingViolated) == []


def test_an_answer_that_was_mended_is_judged_anew() -> None:
    run = judged(KIND)
    verdict(run, "it is curt")
    run.says("Wait, please.")
    verdict(run)
    assert run.state.end.ending is Ending.SUCCESS
    assert (run.state.result.checks_passed, run.state.result.checks_failed) == (1, 0)


def test_a_judge_that_was_lost_has_objected() -> None:
    run = judged(KIND)
    run.take(arrivals.ChildLost(run.open(StartChild)[0].id))
    assert run.last(CheckFailed).problems == ("criterion kind was not judged",)


def test_a_judge_that_only_warns_is_heard_and_holds_nothing_up() -> None:
    run = judged(Criterion("kind", judge="Is it kind?", only_warns=True))
    verdict(run, "it is curt")
    assert run.state.end.ending is Ending.SUCCESS
    assert run.state.result.warnings == ["it is curt"]
    assert run.last(ValidatorHeard).problems == ()


def test_judges_that_the_budget_does_not_allow_end_the_run() -> None:
    run = judged(KIND, TRUE, budget=Budget(child_runs=1))
    assert run.all(StartChild) == []
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED


def test_a_judge_that_spent_more_than_its_share_stops_the_run() -> None:
    run = judged(KIND)
    judge = run.open(StartChild)[0]
    over = dict(judge.lease)[int(Dimension.OUTPUT_TOKENS)] + 1
    run.take(arrivals.ChildEnded(judge.id, Ending.SUCCESS, "{}", ((int(Dimension.OUTPUT_TOKENS), over),)))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED


def test_a_run_that_passes_no_validate_node_cannot_get_around_its_judge() -> None:
    graph = in_line(Node("think", NodeKind.MODEL))
    run = Run(manifest_of(graph=graph, goal=Goal("be good", (KIND,))))
    run.says("Wait.")
    assert (run.state.end.ending, run.state.end.message) == (Ending.VALIDATION_FAIL, "criterion kind was not judged")


@pytest.mark.parametrize("criterion", [Criterion("none"), Criterion("two", guard="turns > 0", judge="Is it?")])
def test_a_criterion_has_one_way_of_being_verified(criterion: Criterion) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_goal(Goal("be good", (criterion,)))
    assert refused.value.code == GOAL_INVALID


def test_what_a_validator_calls_final_is_not_asked_for_again() -> None:
    run = Run(manifest_of(goal=Goal("be good", (Criterion("kept", validator="rules"),))))
    run.says("Wait.")
    (command,) = (c for c in run.state.commands.open.values() if getattr(c, "name", "") == "rules")
    run.take(arrivals.CodeReturned(command.id, problems=("no",), is_final=True))
    assert run.state.end.ending is Ending.VALIDATION_FAIL


def test_a_judge_that_ran_out_of_budget_ends_the_run_as_that_and_not_as_a_bad_answer() -> None:
    run = judged(KIND)
    verdict(run, "criterion kind was not judged", ending=Ending.BUDGET_EXHAUSTED)
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
