"""The code and the children of plans and votes, as a simulated world plays them."""

from random import Random

import pytest

from remit.core.failure import Ending
from remit.core.journal import arrivals
from remit.core.journal.commands import CallCode, StartChild
from remit.core.record import Text
from remit.core.run.messages import Role
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import Edge, NodeOutcome
from remit.core.work.values import ValueKind
from remit.kernel.results.notices import correction
from remit.orchestrate.executors.reports import CodeProposed
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.orchestrate.patterns.step_values import read_value
from remit.testing.pattern_hands import is_of_a_pattern, manifest_of_child, said_by_code
from tests.unit.kernel.builders import manifest_of, wants
from tests.unit.kernel.plans import (
    GIVEN,
    SCHEMA,
    PlanRun,
    child_step,
    code_step,
    plan_of,
    tool_step,
    validate_step,
    vote_of,
)

SEEDS = range(200)


def text_of(text: Text) -> str:
    assert isinstance(text, str)
    return text


def said(run: PlanRun, *, seed: int = 0, trouble: float = 0.0) -> object:
    (command,) = run.open(CallCode)
    return said_by_code(run.state, command, text_of, Random(seed), trouble)


def counting(*texts: str, **redundancy: bool) -> PlanRun:
    run = PlanRun(vote_of(3, **redundancy))
    for text in texts:
        run.answers(text)
    return run


@pytest.mark.parametrize(
    ("name", "is_ours"), [("vote:majority", True), ("step:x", True), ("call:look", True), ("polite", False)]
)
def test_code_of_a_pattern_is_known_by_its_mark(name: str, is_ours: bool) -> None:
    assert is_of_a_pattern(CallCode("1.0", name, "", 1000)) is is_ours


def test_a_vote_is_counted_as_the_shipped_strategy_counts_it() -> None:
    returned = said(counting("a", "b", "b"))
    assert isinstance(returned, arrivals.CodeReturned)
    assert returned.election == arrivals.Election(1, 2, 666_667)


def test_an_early_vote_that_may_still_change_says_so() -> None:
    returned = said(counting("a", "b", early_stop=True))
    assert isinstance(returned, arrivals.CodeReturned)
    assert returned.election is not None
    assert not returned.election.is_settled


def test_a_vote_without_a_consensus_names_no_winner() -> None:
    run = PlanRun(manifest_of(graph=redundant_graph(SCHEMA, "", Redundancy(3, "unanimity"))))
    for text in "abc":
        run.answers(text)
    returned = said(run)
    assert isinstance(returned, arrivals.CodeReturned)
    assert (returned.election, bool(returned.problems)) == (None, True)


def test_a_vote_performed_again_after_its_run_has_moved_on_says_nothing() -> None:
    run = counting("a", "a", "a")
    (command,) = run.open(CallCode)
    run.elects(0, 3, 1_000_000)
    assert said_by_code(run.state, command, text_of, Random(0), 0.0) == arrivals.CodeReturned(command.id)


def test_in_trouble_code_fails_or_says_what_cannot_be() -> None:
    run = counting("a", "a", "a")
    found = [said(run, seed=seed, trouble=0.5) for seed in SEEDS]
    assert any(isinstance(report, arrivals.CodeFailed) for report in found)
    elections = [report.election for report in found if isinstance(report, arrivals.CodeReturned)]
    assert any(election is not None and not 0 <= election.winner < 3 for election in elections)


def test_the_arguments_of_a_tool_step_become_a_call() -> None:
    report = said(PlanRun(manifest_of(graph=plan_of(*tool_step("act")))))
    assert isinstance(report, CodeProposed)
    assert [(call.name, call.arguments) for call in report.calls] == [("look", {"n": 1})]


def test_the_users_own_code_gives_every_kind_and_one_that_nobody_knows() -> None:
    run = PlanRun(manifest_of(graph=plan_of(code_step("a"))))
    found = [said(run, seed=seed) for seed in SEEDS]
    kinds = {report.kind for report in found if isinstance(report, arrivals.CodeReturned)}
    assert kinds == {"text", "object", "json", "candidates", "riddle"}


def test_evidence_can_be_read_as_candidates() -> None:
    found = said_by_code(PlanRun().state, CallCode("1.0", "step:retrieve", "", 1000), text_of, Random(0), 0.0)
    assert isinstance(found, arrivals.CodeReturned)
    assert read_value(ValueKind.CANDIDATES, text_of(found.value)).candidates


def test_a_validate_step_agrees_objects_or_objects_for_good() -> None:
    run = PlanRun(manifest_of(graph=plan_of(code_step("a"), validate_step("v", "a"))))
    run.gives("words")
    found = [said(run, seed=seed) for seed in SEEDS]
    opinions = {(bool(r.problems), r.is_final) for r in found if isinstance(r, arrivals.CodeReturned)}
    assert opinions == {(False, False), (True, False), (True, True)}


class TestChildren:
    def test_a_replica_is_asked_what_its_parent_was(self) -> None:
        run = PlanRun(vote_of())
        manifest = manifest_of_child(run.state, run.open(StartChild)[0], text_of)
        assert [message.content for message in manifest.request.messages] == ["please"]
        assert manifest.graph.name == "structured"

    def test_a_step_is_asked_about_what_it_is_fed(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a"))))
        manifest = manifest_of_child(run.state, run.open(StartChild)[0], text_of)
        assert GIVEN.value in [message.content for message in manifest.request.messages]

    def test_a_step_that_is_repaired_is_told_what_was_wrong(self) -> None:
        edges = (Edge("v", "a", NodeOutcome.REPAIRABLE),)
        graph = plan_of(child_step("a", visits_max=2), validate_step("v", "a", visits_max=2), edges=edges)
        run = PlanRun(manifest_of(graph=graph))
        run.answers("bad")
        run.validates("too short")
        manifest = manifest_of_child(run.state, run.open(StartChild)[0], text_of)
        assert manifest.request.messages[-1] == correction(("too short",))

    def test_a_child_that_a_model_asked_for_chats_about_its_task(self) -> None:
        run = PlanRun()
        run.proposes(wants("ask_child"))
        manifest = manifest_of_child(run.state, run.open(StartChild)[0], text_of)
        assert (manifest.graph.name, manifest.request.messages[0].content) == ("chat", '{"n":1}')

    def test_a_judge_is_shown_the_answer(self) -> None:
        run = PlanRun(manifest_of(goal=Goal("be kind", (Criterion("kind", judge="Is it kind?"),))))
        run.says("hello")
        manifest = manifest_of_child(run.state, run.open(StartChild)[0], text_of)
        assert "hello" in str(manifest.request.messages[-1].content)
        assert manifest.request.messages[0].role is Role.SYSTEM

    def test_a_parent_hears_how_its_child_failed(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a"))))
        run.ends(Ending.IMPOSSIBLE, message="because")
        assert run.state.end.message.endswith("because")
