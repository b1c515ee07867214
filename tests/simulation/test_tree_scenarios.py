"""Scenarios of trees: what is drawn may run, keeps the law, and meets its edges."""

from random import Random

import pytest

from remit.core.failure import Ending
from remit.core.journal.commands import StartChild
from remit.core.journal.rulings import ChildHeld
from remit.core.limits.budget import Dimension
from remit.core.run.inference import ModelResult
from remit.kernel.graph.compiled import compile_graph
from remit.testing.scripts import Breaks
from remit.testing.trouble import CALM
from tests.simulation.laws.every_law import keep_the_law
from tests.simulation.tree_scenarios import eager_model, hurried_scenario, random_tree, tree_scenario, tree_tools

FEW = 4


def test_every_tree_that_is_drawn_may_run_and_all_its_children_start_in_one_turn() -> None:
    for seed in range(30):
        manifest = random_tree(Random(seed), "root", FEW)
        assert compile_graph(manifest.graph).start == 0
    world = tree_scenario(1, faults=CALM, children=FEW)
    first = world.run(world.run_ids()[0]).turns[0]
    assert sum(isinstance(decision, StartChild) for decision in first.decisions) == FEW


def test_small_trees_keep_the_law_and_many_of_their_runs_meet_an_edge() -> None:
    endings = []
    for seed in range(6):
        world = tree_scenario(seed, children=FEW)
        keep_the_law(world)
        endings += [world.run(run_id).ending for run_id in world.run_ids()]
    assert {Ending.SUCCESS, Ending.BUDGET_EXHAUSTED} <= set(endings)


@pytest.mark.slow
def test_trees_in_a_hurry_keep_the_law_and_run_out_of_time_though_people_were_waited_for() -> None:
    endings, stood = [], []
    for seed in range(20):
        world = hurried_scenario(seed)
        keep_the_law(world)
        runs = [world.run(run_id) for run_id in world.run_ids()]
        assert runs[0].state.spending.caps[Dimension.WALL_CLOCK_MS] < 20_000
        endings += [run.ending for run in runs]
        stood += [run.state.clock.stood_ms for run in runs if run.all(ChildHeld)]
    assert Ending.TIMEOUT in endings
    assert any(stood)


def test_one_seed_grows_the_same_tree_again() -> None:
    first, second = (tree_scenario(5, children=FEW) for _ in range(2))
    assert [first.run(run_id).journal for run_id in first.run_ids()] == [
        second.run(run_id).journal for run_id in second.run_ids()
    ]


def test_a_tree_that_is_given_too_little_starts_no_child() -> None:
    poor = (tree_scenario(seed, children=FEW) for seed in range(100) if _is_poor(seed))
    root = (world := next(poor)).run(world.run_ids()[0])
    assert root.ending is Ending.BUDGET_EXHAUSTED
    assert len(world.run_ids()) == 1


def _is_poor(seed: int) -> bool:
    chance = Random(f"tree {seed}")
    chance.choice(range(9))
    manifest = random_tree(chance, "root", FEW)
    lease = dict(manifest.graph.nodes[0].lease)
    return any(getattr(manifest.boundary.budget, name) < FEW * amount for name, amount in lease.items())


def test_the_model_answers_breaks_and_calls_every_tool_there_is() -> None:
    chance = Random(1)
    said = [eager_model((), chance) for _ in range(4_000)]
    answers = [one for one in said if isinstance(one, ModelResult)]
    assert {one.was_cut for one in said if isinstance(one, Breaks)} == {True, False}
    assert {call.name for one in answers for call in one.tool_calls} == {"pass_on", "split", "look", "fetch", "write"}
    assert any(not one.usage.total_tokens for one in answers)
    assert any(one.usage.total_tokens > 10**6 for one in answers)
    assert all(service({}) == '{"ok": true}' for service in tree_tools().values())


def test_a_tree_is_asked_for_in_every_way() -> None:
    drawn = [random_tree(Random(seed), "root", FEW) for seed in range(60)]
    assert {bool(manifest.boundary.exhaustion) for manifest in drawn} == {True, False}
    assert len({manifest.graph.nodes[0].join for manifest in drawn}) == 3
    assert {manifest.boundary.budget.depth for manifest in drawn} == {1, 2}
    assert all(pinned_depth == 0 for pinned_depth in (manifest.depth for manifest in drawn))
