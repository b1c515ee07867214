"""What a report says that runs cost is what they used: to the unit, in every grouping, over every tree, whatever happened."""

from functools import cache

import pytest

from remit.core.journal.storage import RunEntry
from remit.core.limits.budget import COUNTERS, FIELDS, Dimension
from remit.core.record import replace
from remit.observe.cost.charges import RunCost, run_cost, totalled
from remit.observe.cost.cost_report import CostBook, CostReport, Grouping, Prices, cost_microusd, trees_of
from remit.observe.reading import reading_of
from remit.observe.views.explain import explain
from remit.orchestrate.loop.durability import run_listing
from remit.testing.runs import SimulatedRun
from tests.simulation.scenarios import played_world

REACHES = [Grouping]

SEEDS = 150
CHUNK = 25
PRICES = Prices(3, 1_000, 7, 2_000_000)


@cache
def runs(seed: int) -> dict[str, SimulatedRun]:
    """Every run of a world: children, forks, lost and cancelled ones."""
    world = played_world(seed)
    return {run_id: world.run(run_id) for run_id in world.run_ids()}


def entries(seed: int) -> list[RunEntry]:
    """The runs of a world as an index lists them."""
    found = []
    for run in runs(seed).values():
        assert run.state.manifest is not None
        listing = run_listing(run.state.manifest, run.turns[0].at_ms)
        found.append(RunEntry(run.run_id, listing, len(run.turns), run.ending or ""))
    return found


def report(seed: int, by: Grouping, wanted: tuple[str, ...] = ()) -> CostReport:
    """What the runs of a world cost."""
    ledger = CostBook(by, PRICES)
    for tree in trees_of(entries(seed), wanted):
        for entry in tree:
            ledger.add(entry, runs(seed)[entry.run_id].turns, tree[-1])
    return ledger.report()


def counted(amounts: dict[int, int]) -> dict[str, int]:
    """The counters that are not 0, by name."""
    return {FIELDS[d]: amounts[d] for d in COUNTERS if amounts.get(d)}


def used_by(run: SimulatedRun) -> dict[str, int]:
    """What a run has used, as its own state says; what it holds when it has ended belongs to calls in doubt."""
    held = run.state.reserved if run.ending else [0] * len(FIELDS)
    return counted({d: used + held[d] for d, used in enumerate(run.state.used)})


def whole(cost: RunCost) -> dict[int, int]:
    """Everything that the journal of a run charges, what it copied included."""
    return totalled(expense.amounts for expense in (*cost.copied, *cost.expenses))


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_charges_of_a_run_add_up_to_what_its_state_says_it_used(first: int) -> None:
    for seed in range(first, first + CHUNK):
        for run in runs(seed).values():
            assert counted(whole(run_cost(run.turns))) == used_by(run), (seed, run.run_id)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_clock_and_the_depth_are_those_of_the_explanation(first: int) -> None:
    for seed in range(first, first + CHUNK):
        for run in runs(seed).values():
            said = {spent.dimension: spent.used for spent in explain(run.state, reading_of(run.turns)).spent}
            found = whole(run_cost(run.turns))
            for dimension in (Dimension.WALL_CLOCK_MS, Dimension.DEPTH):
                name = FIELDS[dimension]
                assert found.get(dimension, 0) == said.get(name, 0), (seed, run.run_id, name)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_tree_costs_what_its_root_used_and_what_people_released_beneath_it(first: int) -> None:
    for seed in range(first, first + CHUNK):
        for tree in trees_of(entries(seed)):
            root = runs(seed)[tree[-1].run_id]
            costs = {entry.run_id: run_cost(runs(seed)[entry.run_id].turns) for entry in tree}
            expected = costs[root.run_id].used
            for parent in costs.values():
                settled = {expense.child_id: dict(expense.covered) for expense in parent.expenses if expense.child_id}
                beneath = [e.run_id for e in tree if e.listing.parent_id == parent.run_id]
                for child_id in beneath:
                    for dimension, amount in costs[child_id].used.items():
                        # Nothing, unless its parent was charged less than it spent: a person let it spend more, or
                        # the parent has not settled it yet.
                        over = amount - settled.get(child_id, {}).get(dimension, 0)
                        expected[dimension] = expected.get(dimension, 0) + max(over, 0)
            (row,) = [row for row in report(seed, Grouping.RUN).rows if row.name == root.run_id]
            assert counted(dict(row.used)) == counted(expected), (seed, root.run_id)


def test_a_tree_whose_children_were_all_settled_within_their_leases_costs_exactly_what_its_root_used() -> None:
    exact = 0
    for seed in range(SEEDS):
        for tree in trees_of(entries(seed)):
            root = runs(seed)[tree[-1].run_id]
            released = any(
                sum(runs(seed)[e.run_id].state.spending.caps) > sum(_caps(runs(seed)[e.run_id])) for e in tree[:-1]
            )
            if len(tree) == 1 or root.ending is None or released or _is_fork(root):
                continue
            (row,) = [row for row in report(seed, Grouping.RUN).rows if row.name == root.run_id]
            if counted(dict(row.used)) == used_by(root):
                exact += 1
            else:
                late = [e for e in tree[:-1] if runs(seed)[e.run_id].ending is None]
                assert late, (seed, root.run_id)
    assert exact >= 20


def _caps(run: SimulatedRun) -> tuple[int, ...]:
    assert run.state.manifest is not None
    return run.state.manifest.caps


def _is_fork(run: SimulatedRun) -> bool:
    return run.state.manifest is not None and run.state.manifest.forked_from is not None


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_grouping_adds_up_to_the_same_total(first: int) -> None:
    for seed in range(first, first + CHUNK):
        totals = {by: report(seed, by) for by in Grouping}
        for by, found in totals.items():
            assert replace(found.total, runs=0) == replace(totals[Grouping.RUN].total, runs=0), (seed, by)
            summed = totalled(row.used for row in found.rows)
            assert summed == dict(found.total.used), (seed, by)
            assert sum(row.cost_microusd for row in found.rows) == found.total.cost_microusd
            assert sum(row.gpu_ms for row in found.rows) == found.total.gpu_ms


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_money_is_what_the_used_amounts_cost_at_their_prices(first: int) -> None:
    for seed in range(first, first + CHUNK):
        for row in report(seed, Grouping.EACH_RUN).rows:
            assert row.cost_microusd == cost_microusd(row.used, 0, PRICES), (seed, row.name)


def test_no_expense_of_any_run_is_below_nothing() -> None:
    for seed in range(SEEDS):
        for row in (*report(seed, Grouping.EACH_RUN).rows, *report(seed, Grouping.NODE).rows):
            assert all(amount > 0 for _, amount in row.used), (seed, row)


def test_the_worlds_hold_children_forks_and_everything_else_that_is_hard_to_count() -> None:
    found = [run for seed in range(SEEDS) for run in runs(seed).values()]
    costs = [run_cost(run.turns) for run in found]
    assert sum(bool(cost.copied) for cost in costs) >= 3
    assert sum(any(expense.child_id for expense in cost.expenses) for cost in costs) >= 20
    assert sum(any(expense.tool for expense in cost.expenses) for cost in costs) >= 50
