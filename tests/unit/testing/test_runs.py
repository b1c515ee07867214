"""A finished run as tests look at it."""

import pytest

from remit.core.failure import Ending
from remit.core.journal.arrivals import ModelAnswered, RunStarted, ToolReturned
from remit.core.journal.commands import CallModel
from remit.core.journal.rulings import NodeEntered, RunEnded
from remit.testing.runs import LawBroken, SimulatedRun, fold_journal
from tests.unit.kernel.builders import Run


@pytest.fixture
def run() -> SimulatedRun:
    played = Run()
    played.says("done")
    return SimulatedRun("run", played.journal)


def test_a_run_is_folded_from_its_journal(run: SimulatedRun) -> None:
    assert run.state == fold_journal(run.journal)
    assert run.ending is Ending.SUCCESS


def test_all_records_of_a_kind_come_oldest_first(run: SimulatedRun) -> None:
    assert [entered.node for entered in run.all(NodeEntered)] == ["prepare", "think", "check", "done"]


def test_arrivals_rulings_and_commands_are_found_alike(run: SimulatedRun) -> None:
    assert len(run.all(RunStarted)) == len(run.all(ModelAnswered)) == len(run.all(CallModel)) == 1


def test_the_last_of_a_kind_is_the_latest(run: SimulatedRun) -> None:
    assert run.last(NodeEntered).node == "done"
    assert run.last(RunEnded).ending is Ending.SUCCESS


def test_the_last_of_a_kind_that_is_missing_says_so(run: SimulatedRun) -> None:
    with pytest.raises(AssertionError, match="run run has no ToolReturned"):
        run.last(ToolReturned)


def test_an_empty_journal_folds_to_nothing() -> None:
    assert fold_journal([]).seq == -1


def test_a_broken_law_says_how_to_see_it_again() -> None:
    broken = LawBroken("the_chain_holds", 7, "run", "turn 3 does not follow")
    assert (broken.law, broken.seed) == ("the_chain_holds", 7)
    assert str(broken) == "law the_chain_holds is broken: turn 3 does not follow (run run; repeat it with seed 7)"
