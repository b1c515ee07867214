"""Trees of three levels and more, fifty children beside each other, on tight budgets, in all weathers."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pytest

from remit.core.journal.arrivals import ChildEnded, ChildLost
from remit.core.journal.commands import StartChild
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest, lineage_of
from remit.core.work.graph import Graph
from remit.kernel import children, decide
from remit.kernel.authority import authorize
from remit.kernel.authority.verdict import ALLOWED
from remit.kernel.budget import spend
from remit.kernel.results.doubt import LOST
from remit.kernel.results.notices import CHILD_LOST, tokens_bound
from remit.kernel.rules import child, human, model
from remit.kernel.state import pinned
from remit.kernel.tally import Tally
from remit.orchestrate.loop import offspring
from remit.testing import hands, pattern_hands
from remit.testing.runs import LawBroken
from tests.simulation.laws.every_law import LAWS, keep_the_law
from tests.simulation.tree_scenarios import CHILDREN, hurried_scenario, tree_scenario

# A tree is a hundred runs and more, each under every law: one for every so many worlds of the other simulations.
SEEDS = max(int(os.environ.get("REMIT_SIMULATION_SEEDS", "200")) // 150, 2)
CHUNK = 3
# Trees in a hurry are small.
HURRIED = 50 * SEEDS
# A mutant that survives this many smaller trees is one the law would miss in practice.
TREES, CHILDREN_OF_MUTANTS = 100, 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_tree_of_a_stormy_world_keeps_the_law(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        keep_the_law(tree_scenario(seed))


@pytest.mark.slow
def test_every_tree_in_a_hurry_keeps_the_law() -> None:
    for seed in range(HURRIED):
        keep_the_law(hurried_scenario(seed))


@pytest.mark.slow
def test_a_tree_has_fifty_children_at_once_and_three_levels() -> None:
    world = tree_scenario(11)
    root = world.run(world.run_ids()[0])
    at_once = max(sum(isinstance(decision, StartChild) for decision in turn.decisions) for turn in root.turns)
    assert at_once == CHILDREN == 50
    assert max(len(lineage_of(pinned(world.run(run_id).state))) for run_id in world.run_ids()) >= 2


def _instead(module: object, name: str, replacement: object) -> Any:
    return mock.patch.object(module, name, replacement)


def _doubles_the_lease(
    parent: Manifest, command: StartChild, graph: Graph, request: SystemRequest | None = None
) -> Manifest:
    lease = tuple((dimension, 2 * amount) for dimension, amount in command.lease)
    return offspring.child_manifest(parent, replace(command, lease=lease), graph, request)


def _forgives_the_lost(tally: Tally, arrival: ChildLost) -> str | None:
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, StartChild)
    tally.child = children.child_trace(tally.state, arrival)
    return child._settle_child(tally, command, (), failed=LOST, bound=tokens_bound(CHILD_LOST))


def _forgives_the_failed(tally: Tally, arrival: ChildEnded) -> str | None:
    return child.on_child_ended(tally, replace(arrival, spent=()) if arrival.error or arrival.message else arrival)


def _no_limit() -> tuple[Any, ...]:
    places = (spend, model, authorize, human, child)
    return tuple(_instead(place, "lacking", lambda tally, charges: None) for place in places)


# What is broken, and how.
MUTANTS: Mapping[str, tuple[Any, ...]] = {
    "a child may spend twice its lease": (_instead(pattern_hands, "child_manifest", _doubles_the_lease),),
    "leases need not fit": _no_limit(),
    "what children spent is charged to nobody": (_instead(hands, "spent_by", lambda state: ()),),
    "a lost child has cost nothing": (_instead(decide, "RULES", {**decide.RULES, ChildLost: _forgives_the_lost}),),
    "a failed child has cost nothing": (_instead(decide, "RULES", {**decide.RULES, ChildEnded: _forgives_the_failed}),),
    "children go as deep as they like": (
        _instead(authorize, "_shallow", lambda tool, manifest: ALLOWED),
        _instead(
            authorize,
            "STANDING",
            {**authorize.STANDING, authorize.is_within_depth: lambda tool, manifest: ALLOWED},
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_law_of_the_tree_finds_the_mutant(mutant: str) -> None:
    with ExitStack() as stack:
        for patch in MUTANTS[mutant]:
            stack.enter_context(patch)
        found = next((broken for seed in range(TREES) if (broken := _broken(seed)) is not None), None)
    assert found is not None, f"{TREES} trees did not notice that {mutant}"
    assert f"seed {found.seed}" in str(found)
    assert _broken(found.seed) is None, "the seed must be healthy without the mutant"


def _broken(seed: int) -> LawBroken | None:
    """How the law of the tree is broken with this seed."""
    law = "no_tree_is_overshot"
    try:
        keep_the_law(tree_scenario(seed, children=CHILDREN_OF_MUTANTS), {law: LAWS[law]})
    except LawBroken as broken:
        return broken if broken.law == law else None
    return None
