"""One name, one figure: how far a run went in its gauges is told alike by every view of it, over all stored journals."""

import io
from pathlib import Path

import pytest

from remit.adapters.cli.screen.bars import budget_lines
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.journal.codec import decode_turn
from remit.core.limits.budget import FIELDS, GAUGES
from remit.observe.cost.charges import run_cost, totalled
from remit.observe.reading import reading_of
from remit.observe.views.explain import explain
from remit.observe.views.sentence import sentence
from remit.testing.runs import fold_journal
from scripts.make_golden import GOLDEN, read_journal

JOURNALS = sorted(GOLDEN.glob("v*/*.journal"))


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_view_of_a_run_tells_the_same_figure_of_a_gauge(path: Path) -> None:
    journal = read_journal(path)
    turns = [decode_turn(data) for data in journal]
    reading, cost = reading_of(turns), run_cost(turns)
    # Python, `explain`, `show` and `trace`.
    explained = explain(fold_journal(journal), reading)
    told = {spent.dimension: spent for spent in explained.spent if spent.dimension in {FIELDS[one] for one in GAUGES}}
    # `remit cost`, with what a fork copied.
    charged = totalled(one.amounts for one in (*cost.expenses, *cost.copied))
    figures = {FIELDS[gauge]: charged[gauge] for gauge in GAUGES if charged.get(gauge)}
    assert {name: spent.used for name, spent in told.items()} == figures
    assert {FIELDS[gauge]: amount for gauge, amount in reading.gauges().items() if amount} == figures
    bars = [
        "".join(text for text, _ in line)
        for line in budget_lines(Terminal(io.StringIO(), io.StringIO()), explained.spent)
    ]
    for name, spent in told.items():
        assert f"{spent.used:,} of {spent.cap - spent.released:,} {name}" in sentence(explained)
        assert any(bar.split()[:2] == [name, f"{spent.used:,}"] for bar in bars)


def test_the_stored_journals_reach_every_gauge() -> None:
    reached = [reading_of(map(decode_turn, read_journal(path))).gauges() for path in JOURNALS]
    assert {gauge for gauges in reached for gauge, amount in gauges.items() if amount} == set(GAUGES)
