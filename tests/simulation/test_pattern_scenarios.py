"""Scenarios of votes and plans: what is drawn is sound, and everything is drawn sooner or later."""

from random import Random

import pytest

from remit.core.failure import Ending
from remit.core.journal import arrivals, rulings
from remit.core.run.contract import Mode
from remit.core.work.graph import NodeKind
from remit.core.work.plan import ExecutionPlan, Step
from remit.core.work.values import ValueKind
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.state import pinned
from remit.testing.scripts import Breaks, in_turn, says
from tests.simulation import pattern_scenarios
from tests.simulation.laws.every_law import keep_the_law
from tests.simulation.pattern_scenarios import fickle, plan_request, random_plan, random_vote, vote_request
from tests.simulation.scenarios import PATTERN_EVERY, RESULT, TOOLS, scenario

DRAWS = range(300)


def test_every_vote_that_is_drawn_may_run_in_every_way() -> None:
    ways = set()
    for seed in DRAWS:
        graph = random_vote(Random(seed), RESULT)
        nodes = {node.name: node for node in compile_graph(graph).nodes}
        ballot = nodes["vote"].ballot
        assert ballot is not None
        ways.add((nodes["replica"].kind, ballot.early_stop, bool(nodes["replica"].timeout_ms)))
    assert {(kind, is_early) for kind, is_early, _ in ways} == {
        (NodeKind.MAP, False),
        (NodeKind.CHILD, False),
        (NodeKind.CHILD, True),
    }
    assert {is_hurried for _, _, is_hurried in ways} == {True, False}


def test_every_plan_that_is_drawn_may_run_and_every_type_of_step_is() -> None:
    types = set()
    for seed in DRAWS:
        graph = random_plan(Random(seed), RESULT, TOOLS)
        compile_graph(graph)
        types |= {node.feed.step_type for node in graph.nodes if node.feed is not None}
    assert types == {"infer", "tool", "validate", "shape", "retrieve", "rerank", "vote"}


def test_after_too_many_plans_that_are_refused_a_short_one_will_do() -> None:
    impossible = ExecutionPlan((Step("a", "rerank", "no candidates"),))
    steps = pattern_scenarios._steps
    pattern_scenarios._steps = lambda chance, schema, tools: impossible.steps
    try:
        graph = random_plan(Random(0), RESULT, TOOLS)
    finally:
        pattern_scenarios._steps = steps
    assert [node.name for node in graph.nodes if node.feed is not None] == ["only"]


def test_a_fickle_model_answers_breaks_or_does_what_another_would() -> None:
    model, chance = fickle(in_turn(says("another"))), Random(0)
    said = [model((), chance) for _ in DRAWS]
    texts = {answer.content for answer in said if not isinstance(answer, Breaks)}
    assert {"another", '{"ok": true}', '{"ok": false}', "not what was asked"} <= texts
    assert any(isinstance(answer, Breaks) for answer in said)


def test_votes_and_plans_are_asked_as_their_doors_ask() -> None:
    assert (vote_request(RESULT).mode, vote_request(RESULT).output.schema) == (Mode.REDUNDANT, RESULT)
    assert plan_request().mode is Mode.PLAN


@pytest.mark.slow
def test_every_third_world_plays_a_vote_or_a_plan_and_keeps_the_law() -> None:
    played, seen = set(), set[object]()
    for seed in range(PATTERN_EVERY - 1, 300, PATTERN_EVERY):
        world = scenario(seed)
        keep_the_law(world)
        run = world.run(f"run{seed}")
        played.add(pinned(run.state).graph.name)
        seen.add(run.ending)
        seen |= {type(record) for turn in run.turns for record in (turn.arrival, *turn.decisions)}
        seen |= {finished.kind for finished in run.all(rulings.StepFinished)}
    assert played == {"plan", "redundant"}
    assert seen >= {rulings.VoteCounted, rulings.StepFinished, rulings.CheckFailed, arrivals.ChildLost}
    assert seen >= {arrivals.ApprovalGiven, arrivals.CodeFailed, Ending.SUCCESS, Ending.IMPOSSIBLE}
    assert seen >= {
        Ending.UNAVAILABLE_DEP,
        Ending.BUDGET_EXHAUSTED,
        Ending.VALIDATION_FAIL,
        ValueKind.TEXT,
        ValueKind.RESULT,
    }
