"""Scenarios are made of a seed, differ widely, and always compile."""

from random import Random

import pytest

from remit.core.failure import Ending
from remit.core.work.graph import JoinRule
from remit.kernel.graph.compiled import compile_graph
from remit.testing.scripts import Breaks, Reply
from tests.simulation.authority_scenarios import governed_tools
from tests.simulation.scenarios import (
    TOOLS,
    hostile_model,
    played_world,
    random_manifest,
    random_person,
    research_graph,
    review_graph,
    tools,
)

REACHES = [Reply]

# Enough to meet every kind of answer, cap, goal and graph that the chance has to give.
SEEDS = 300


def test_every_tool_has_a_service_behind_it() -> None:
    assert set(tools()) == {tool.name for tool in governed_tools(TOOLS)} > {tool.name for tool in TOOLS}


@pytest.mark.req("1.20")
def test_a_manifest_is_made_of_its_seed_alone() -> None:
    for seed in range(20):
        assert random_manifest(Random(seed), "run") == random_manifest(Random(seed), "run")


def test_manifests_differ_in_caps_goals_tools_and_graphs() -> None:
    manifests = [random_manifest(Random(seed), "run") for seed in range(SEEDS)]
    assert {manifest.graph.name for manifest in manifests} == {"chat", "hasty", "research", "review"}
    assert {manifest.goal is None for manifest in manifests} == {True, False}
    assert {manifest.boundary.allowed_tools is None for manifest in manifests} == {True, False}
    assert {0 in manifest.caps[:3] for manifest in manifests} == {True, False}
    assert {manifest.models[0].price is None for manifest in manifests} == {True, False}


def test_every_graph_of_the_scenarios_compiles() -> None:
    joins = {node.join for seed in range(20) for node in research_graph(Random(seed)).nodes if node.name == "fan"}
    assert joins == set(JoinRule)
    assert compile_graph(research_graph(Random(0))).nodes
    assert compile_graph(review_graph()).nodes


def test_a_hostile_model_answers_breaks_and_proposes() -> None:
    answers = [hostile_model([], Random(seed)) for seed in range(SEEDS)]
    said = [answer for answer in answers if not isinstance(answer, Breaks)]
    assert len(said) < len(answers)
    assert {bool(answer.content) for answer in said} == {bool(answer.tool_calls) for answer in said} == {True, False}


def test_a_random_person_does_everything_a_person_can_do() -> None:
    assert {random_person(Random(seed)) for seed in range(SEEDS)} == set(Reply)


def test_scenarios_end_in_many_ways() -> None:
    endings = {played_world(seed).run(f"run{seed}").ending for seed in range(24)}
    assert len(endings & set(Ending)) >= 5
