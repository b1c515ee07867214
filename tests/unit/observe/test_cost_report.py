"""Reports: runs in trees, rows by what they stand for, what a success cost."""

import pytest

from remit.core.failure import Ending, RequestRejected
from remit.core.journal.arrivals import ChildEnded
from remit.core.journal.commands import StartChild
from remit.core.journal.storage import RunEntry, RunListing
from remit.core.limits.budget import Dimension
from remit.core.record import replace
from remit.core.run.lineage import derived_id
from remit.core.schema.strict_yaml import YamlFault
from remit.observe.cost.cost_report import (
    NO_PRICES,
    PRICE_MICROUSD_MAX,
    CostBook,
    CostReport,
    Grouping,
    Prices,
    cost_microusd,
    parse_prices,
    trees_of,
)
from remit.orchestrate.loop.offspring import spent_by
from tests.unit.kernel.builders import QUESTION, Run, manifest_of, wants


def entry(run_id: str, parent_id: str = "", ending: str = "", at_ms: int = 0) -> RunEntry:
    return RunEntry(run_id, RunListing(at_ms, parent_id=parent_id), 1, ending)


def ids(trees: list[list[RunEntry]]) -> list[list[str]]:
    return [[one.run_id for one in tree] for tree in trees]


FOREST = [entry("c"), entry("a.1.1", "a.1"), entry("a.2", "a"), entry("a.1", "a"), entry("a"), entry("b.1", "gone")]


def test_a_tree_has_its_root_last_and_what_is_beneath_a_run_before_it() -> None:
    assert ids(trees_of(FOREST)) == [["c"], ["a.1.1", "a.1", "a.2", "a"], ["b.1"]]


def test_a_run_that_is_wanted_is_the_root_of_its_own_tree() -> None:
    assert ids(trees_of(FOREST, ["a.1"])) == [["a.1.1", "a.1"]]


def test_a_run_that_is_wanted_twice_or_beneath_another_is_counted_once() -> None:
    assert ids(trees_of(FOREST, ["a.1.1", "a", "a", "c"])) == [["a.1.1", "a.1", "a.2", "a"], ["c"]]


def test_a_run_that_is_wanted_and_no_longer_listed_is_left_out() -> None:
    assert ids(trees_of(FOREST, ["gone", "c"])) == [["c"]]


def family(tenant: str = "") -> dict[str, Run]:
    """A run that looked something up and had a child look, too."""
    manifest = manifest_of(request=replace(QUESTION, tenant_id=tenant))
    parent, child = Run(replace(manifest, run_id="p")), Run(replace(manifest, run_id=derived_id("p", "1.3")))
    child.proposes(wants("look"))
    child.returns("look")
    child.says("found")
    parent.proposes(wants("look"), wants("ask_child", call_id="second"))
    (started,) = parent.open(StartChild)
    parent.returns("look")
    parent.take(ChildEnded(started.id, Ending.SUCCESS, "found", spent=spent_by(child.state)))
    parent.says("Done.")
    return {started.run_id: child, "p": parent}


def report(by: Grouping, runs: dict[str, Run], prices: Prices = NO_PRICES, ending: str = "SUCCESS") -> CostReport:
    ledger = CostBook(by, prices)
    (tree,) = trees_of([entry(run_id, "" if run_id == "p" else "p", ending) for run_id in reversed(runs)])
    for one in tree:
        ledger.add(one, runs[one.run_id].turns, tree[-1])
    return ledger.report()


def used(found: CostReport, name: str, dimension: Dimension) -> int:
    (row,) = [row for row in found.rows if row.name == name]
    return dict(row.used).get(int(dimension), 0)


def test_a_run_has_what_is_beneath_it_in_its_row() -> None:
    runs = family()
    found = report(Grouping.RUN, runs)
    assert [(row.name, row.runs) for row in found.rows] == [("p", 2)]
    for dimension in (Dimension.INPUT_TOKENS, Dimension.TOOL_CALLS, Dimension.STEPS, Dimension.CHILD_RUNS):
        assert used(found, "p", dimension) == runs["p"].used(dimension) > 0


def test_each_run_has_a_row_of_what_it_spent_itself() -> None:
    runs = family()
    (child_id, child), (_, parent) = runs.items()
    found = report(Grouping.EACH_RUN, runs)
    assert {row.name: row.runs for row in found.rows} == {"p": 1, child_id: 1}
    assert used(found, child_id, Dimension.TOOL_CALLS) == 1
    assert used(found, "p", Dimension.TOOL_CALLS) == 2
    assert used(found, child_id, Dimension.STEPS) == child.used(Dimension.STEPS)
    assert used(found, "p", Dimension.STEPS) == parent.used(Dimension.STEPS) - child.used(Dimension.STEPS)


def test_the_clock_is_that_of_the_root_alone() -> None:
    runs = family()
    found = report(Grouping.EACH_RUN, runs)
    child_id = next(iter(runs))
    assert used(found, child_id, Dimension.WALL_CLOCK_MS) == 0
    assert used(found, "p", Dimension.WALL_CLOCK_MS) == dict(found.total.used)[Dimension.WALL_CLOCK_MS] > 0


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (Grouping.TENANT, {"acme"}),
        (Grouping.NODE, {"prepare", "think", "act", "check"}),
        (Grouping.TOOL, {"", "look", "ask_child"}),
        (Grouping.MODEL, {"", "scripted"}),
    ],
)
def test_rows_stand_for_what_was_asked(by: Grouping, names: set[str]) -> None:
    found = report(by, family("acme"))
    assert {row.name for row in found.rows} == names
    assert found.by is by
    assert sum(row.cost_microusd for row in found.rows) == found.total.cost_microusd > 0


def test_the_dearest_row_comes_first_and_then_the_one_with_most_tokens() -> None:
    found = report(Grouping.TOOL, family(), Prices(tool_call_microusd=1_000_000))
    assert [row.name for row in found.rows] == ["look", "ask_child", ""]
    assert [row.cost_microusd for row in found.rows][:2] == [2_000_000, 1_000_000]


def test_a_success_costs_what_all_runs_cost() -> None:
    ledger, runs = CostBook(Grouping.RUN, Prices(tool_call_microusd=1)), family()
    for ending in ("SUCCESS", "PARTIAL_SUCCESS", "TIMEOUT", ""):
        root = entry("p", ending=ending)
        ledger.add(root, runs["p"].turns, root)
    found = ledger.report()
    assert (found.roots, found.succeeded, found.total.in_part) == (4, 1, 1)
    assert found.cost_per_success_microusd == found.total.cost_microusd


def test_the_cost_of_a_success_is_rounded_up() -> None:
    found = replace(report(Grouping.RUN, family()), succeeded=2)
    odd = replace(found, total=replace(found.total, cost_microusd=7))
    assert odd.cost_per_success_microusd == 4


def test_where_nothing_succeeded_nobody_knows_what_a_success_costs() -> None:
    found = report(Grouping.RUN, family(), ending="TIMEOUT")
    assert (found.succeeded, found.cost_per_success_microusd) == (0, None)


def test_a_child_that_its_parent_has_not_settled_is_counted_by_itself() -> None:
    runs = family()
    open_parent = Run(replace(manifest_of(), run_id="p"))
    child_id, child = next(iter(runs.items()))
    found = report(Grouping.RUN, {child_id: child, "p": open_parent})
    wanted = child.used(Dimension.INPUT_TOKENS) + open_parent.used(Dimension.INPUT_TOKENS)
    assert used(found, "p", Dimension.INPUT_TOKENS) == wanted
    # The next tree takes nothing away for it.
    assert found.total.runs == 2


def test_a_report_on_no_run_is_empty() -> None:
    found = CostBook(Grouping.RUN).report()
    assert (found.rows, found.roots, found.total.cost_microusd) == ((), 0, 0)


USED = {
    int(Dimension.INPUT_TOKENS): 1_000,
    int(Dimension.TOOL_CALLS): 3,
    int(Dimension.EXTERNAL_API_CALLS): 2,
    int(Dimension.INFERENCE_COST_MICROUSD): 450,
    int(Dimension.HUMAN_REVIEWS): 1,
}


def prices_of(text: str) -> Prices:
    return parse_prices(text, "prices.yaml")


def test_without_prices_the_cost_is_the_money_in_the_journal() -> None:
    assert cost_microusd(USED, 90_000, NO_PRICES) == 450


@pytest.mark.req("4.24")
@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (Prices(tool_call_microusd=10), 480),
        (Prices(external_api_call_microusd=10), 470),
        (Prices(human_review_microusd=10), 460),
        (Prices(gpu_second_microusd=10), 450 + 15),
        (Prices(1, 1, 1, 1), 450 + 3 + 2 + 2 + 1),
    ],
)
def test_what_has_a_price_is_paid_for_by_the_piece(prices: Prices, cost: int) -> None:
    assert cost_microusd(USED, 1_500, prices) == cost


def test_a_fraction_of_a_micro_dollar_is_rounded_up() -> None:
    assert cost_microusd((), 1, Prices(gpu_second_microusd=1)) == 1
    assert cost_microusd((), 1_000, Prices(gpu_second_microusd=1)) == 1
    assert cost_microusd((), 1_001, Prices(gpu_second_microusd=1)) == 2
    assert cost_microusd((), 0, Prices(gpu_second_microusd=1)) == 0


def test_a_file_names_some_prices_and_the_others_are_nothing() -> None:
    assert prices_of("human_review_microusd: 1_500_000\n") == Prices(human_review_microusd=1_500_000)
    assert prices_of("{}") == NO_PRICES


def test_a_file_may_be_json() -> None:
    text = '{"tool_call_microusd": 1, "external_api_call_microusd": 2, "gpu_second_microusd": 3}'
    assert prices_of(text) == Prices(1, 2, 3)


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("tool_cal: 1", YamlFault.KEY_UNKNOWN, "did you mean 'tool_call_microusd'?"),
        ("tool_call_microusd: -1", YamlFault.VALUE_INVALID, "is -1 and must be a whole number of micro-dollars"),
        ("tool_call_microusd: 0.5", YamlFault.VALUE_INVALID, "is 0.5"),
        ("tool_call_microusd: true", YamlFault.VALUE_INVALID, "is True"),
        ("tool_call_microusd: '7'", YamlFault.VALUE_INVALID, "is '7'"),
        ("tool_call_microusd: [1]", YamlFault.VALUE_INVALID, "is a list"),
        (f"tool_call_microusd: {PRICE_MICROUSD_MAX + 1}", YamlFault.VALUE_INVALID, str(PRICE_MICROUSD_MAX)),
        ("", YamlFault.VALUE_INVALID, "tool_call_microusd"),
        ("- 1", YamlFault.VALUE_INVALID, "must be a mapping"),
        ("a: 1\na: 2", YamlFault.KEY_REPEATED, "a"),
        ("a: [", YamlFault.NOT_YAML, "prices.yaml"),
    ],
)
def test_a_file_that_is_no_list_of_prices_is_refused_with_its_line(text: str, code: YamlFault, hint: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        prices_of(text)
    assert refused.value.code == code
    assert hint in refused.value.message
    assert "prices.yaml" in refused.value.message


def test_the_largest_price_there_may_be_is_taken() -> None:
    assert prices_of(f"tool_call_microusd: {PRICE_MICROUSD_MAX}") == Prices(PRICE_MICROUSD_MAX)
