"""Named code of the user, retrieval included: a command like any other, and its result an arrival."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import CallCode, Retrieve
from remit.core.run.manifest import CODE_TIMEOUT_MS
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import Node, NodeKind
from tests.unit.kernel.builders import Run, in_line, manifest_of


def test_a_run_that_has_nothing_to_look_with_retrieves_nothing() -> None:
    run = Run()
    assert run.all(Retrieve) == []
    assert run.path() == ["prepare", "think"]


def test_a_run_looks_for_evidence_before_it_thinks() -> None:
    run = Run(manifest_of(retrieves_context=True))
    assert run.path() == ["prepare"]
    assert run.open(Retrieve)[0].timeout_ms == CODE_TIMEOUT_MS
    run.take(arrivals.ContextFound(run.open(Retrieve)[0].id, "evidence", 15))
    assert run.path() == ["prepare", "think"]


def test_missing_context_degrades_an_exchange_and_never_fails_it() -> None:
    run = Run(manifest_of(retrieves_context=True))
    run.take(arrivals.ContextFailed(run.open(Retrieve)[0].id, "no index"))
    run.says("I do not know, but")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.parametrize("kind", [NodeKind.DECIDE, NodeKind.RERANK])
def test_a_node_runs_the_code_it_names(kind: NodeKind) -> None:
    run = Run(manifest_of(graph=in_line(Node("sort", kind, code="by_date"))))
    command = run.open(CallCode)[0]
    assert (command.name, command.input, command.timeout_ms) == ("by_date", "", CODE_TIMEOUT_MS)
    run.validates()
    assert run.path() == ["sort", "done"]
    assert run.all(rulings.ValidatorHeard) == []


@pytest.mark.parametrize("kind", [NodeKind.DECIDE, NodeKind.RERANK])
def test_a_node_that_names_no_code_only_has_edges_to_choose_from(kind: NodeKind) -> None:
    assert Run(manifest_of(graph=in_line(Node("sort", kind)))).path() == ["sort", "done"]


def test_code_that_fails_fails_its_node() -> None:
    run = Run(manifest_of(graph=in_line(Node("sort", NodeKind.DECIDE, code="by_date"))))
    run.take(arrivals.CodeFailed(run.open(CallCode)[0].id, "KeyError"))
    assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_EXECUTION_FAILED)
    assert run.state.end.message == "code by_date failed: KeyError"


def checked(*, code: str = "", goal: Goal | None = None) -> Run:
    graph = in_line(Node("think", NodeKind.MODEL), Node("check", NodeKind.VALIDATE, code=code, visits_max=1))
    run = Run(manifest_of(graph=graph, goal=goal))
    run.says("hello")
    return run


def test_a_check_hears_its_own_validator_and_those_of_the_goal() -> None:
    run = checked(code="own", goal=Goal("be kind", (Criterion("kind", validator="kind"),)))
    assert [(command.name, command.input) for command in run.open(CallCode)] == [("own", "hello"), ("kind", "hello")]


def test_a_check_hears_its_own_validator_without_any_goal() -> None:
    assert [command.name for command in checked(code="own").open(CallCode)] == ["own"]


def test_a_check_without_validators_judges_at_once() -> None:
    assert checked().path() == ["think", "check", "done"]


def test_a_validator_that_is_satisfied_lets_the_answer_pass() -> None:
    run = checked(code="own")
    command = run.open(CallCode)[0]
    run.validates()
    assert run.now(rulings.ValidatorHeard) == [rulings.ValidatorHeard(command.id, "own")]
    assert run.state.end.ending is Ending.SUCCESS


def test_a_validator_that_objects_fails_the_answer() -> None:
    run = checked(code="own")
    run.validates("too loud")
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_RULE_FAILED)
    assert run.state.end.message == "too loud"


def test_a_validator_that_fails_did_not_agree() -> None:
    run = checked(code="own")
    run.take(arrivals.CodeFailed(run.open(CallCode)[0].id, "KeyError"))
    assert (run.state.end.ending, run.state.end.message) == (Ending.VALIDATION_FAIL, "validator own failed")
