"""The books of a tree: what counts as spent, by whom, and what is found when it is too much."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.commands import CallModel
from remit.core.limits.budget import Dimension
from remit.core.record import replace
from remit.core.run.usage import TokenUsage
from remit.kernel.state import pinned
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import Breaks, Model, in_turn, proposes, says
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.trees import Branch, OwnBooks, above_the_gauges, overshot, tree_of
from tests.simulation.scenarios import tools
from tests.unit.kernel.builders import Run, manifest_of

DELEGATES = in_turn(proposes("ask_child", {"n": 1}), says("done"))
ANSWERS = in_turn(says("done"))


def world_of(model: Model) -> SimulatedWorld:
    """A world in which one run was played to its end."""
    world = SimulatedWorld(model=model, tools=tools())
    assert world.finish(manifest_of()).ending is not None
    return world


def tree_in(world: SimulatedWorld) -> Branch:
    """The tree of a world with its root."""
    known = world.run_ids()
    return tree_of(world.run("run"), lambda run_id: world.run(run_id) if run_id in known else None)


def given(tree: Branch, dimension: Dimension, amount: int) -> Branch:
    """The same tree, with another cap of its root."""
    caps = list(tree.given)
    caps[dimension] = amount
    return tree._replace(given=tuple(caps))


def capped(run: SimulatedRun, dimension: Dimension, cap: int) -> SimulatedRun:
    """The same run, as if it had been given another cap."""
    caps = list(pinned(run.state).caps)
    caps[dimension] = cap
    run.state.manifest = replace(pinned(run.state), caps=tuple(caps))
    return run


def reserved(run: SimulatedRun, dimension: Dimension) -> int:
    return dict(run.all(CallModel)[0].reserved)[dimension]


@pytest.fixture
def family() -> SimulatedWorld:
    """A run that asked a child, which asked one itself."""
    return world_of(DELEGATES)


def test_what_a_root_was_charged_is_what_its_tree_spent(family: SimulatedWorld) -> None:
    assert list(tree_in(family).spent) == family.run("run").state.used


def test_what_people_released_may_be_spent_and_what_the_world_took_is_nobodys_fault(family: SimulatedWorld) -> None:
    tree = given(tree_in(family), Dimension.STEPS, 0)
    spent = tree.spent[Dimension.STEPS]
    amounts = tuple(spent if dimension is Dimension.STEPS else 0 for dimension in Dimension)
    assert list(overshot(tree)) != []
    assert list(overshot(tree._replace(released=amounts))) == []
    assert list(overshot(tree._replace(beyond=amounts))) == []


def test_a_model_that_is_shown_or_asked_more_than_the_root_allows_is_found() -> None:
    world = SimulatedWorld(model=lambda messages, chance: Breaks())
    world.finish(manifest_of())
    tree = tree_in(world)
    assert list(above_the_gauges(tree)) == []
    capped(tree.run, Dimension.CONTEXT_TOKENS, 1)
    capped(tree.run, Dimension.RETRIES, 0)
    found = list(above_the_gauges(tree))
    assert any("tokens of 1" in what for what in found)
    assert any("is at attempt 2 with 0 retries" in what for what in found)


def test_a_model_costs_what_it_reports_and_all_when_it_reports_nothing() -> None:
    reported = OwnBooks(world_of(ANSWERS).run("run")).spent
    assert (reported[Dimension.INPUT_TOKENS], reported[Dimension.OUTPUT_TOKENS]) == (8, 4)
    assert reported[Dimension.INFERENCE_COST_MICROUSD] == 16
    silent = world_of(in_turn(says("done", usage=TokenUsage()))).run("run")
    assert OwnBooks(silent).spent[Dimension.OUTPUT_TOKENS] == reserved(silent, Dimension.OUTPUT_TOKENS)


def test_what_a_model_used_beyond_its_reservation_is_kept_apart() -> None:
    greedy = world_of(in_turn(says("done", usage=TokenUsage(10**7, 0, 1)))).run("run")
    books = OwnBooks(greedy)
    assert books.spent[Dimension.INPUT_TOKENS] == 10**7
    assert books.beyond[Dimension.INPUT_TOKENS] == 10**7 - reserved(greedy, Dimension.INPUT_TOKENS)
    assert books.beyond[Dimension.OUTPUT_TOKENS] == 0


@pytest.mark.parametrize(("was_cut", "tokens", "share"), [(True, 0, 1), (False, 0, 0), (False, 5, 0)])
def test_a_model_call_that_failed_costs_what_it_may_have_cost(was_cut: bool, tokens: int, share: int) -> None:
    run = Run()
    (command,) = run.open(CallModel)
    code = ErrorCode.INFERENCE_CONTEXT_EXCEEDED
    run.take(ModelFailed(command.id, code, usage=TokenUsage(tokens), was_cut=was_cut))
    expected = share * dict(command.reserved)[Dimension.INPUT_TOKENS] + tokens
    assert OwnBooks(SimulatedRun("run", run.journal)).spent[Dimension.INPUT_TOKENS] == expected


def test_a_call_that_is_still_open_counts_as_all_that_was_reserved() -> None:
    run = Run()
    (command,) = run.open(CallModel)
    spent = OwnBooks(SimulatedRun("run", run.journal)).spent
    assert spent[Dimension.OUTPUT_TOKENS] == dict(command.reserved)[Dimension.OUTPUT_TOKENS]
    assert run.state.end.ending is not Ending.SUCCESS
