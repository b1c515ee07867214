"""Which graph a request runs, and whether the budget could pay for it."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.work.graph import Node, NodeKind
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.graph_choice import (
    CHILD_RUNS_TOO_FEW,
    STEPS_TOO_FEW,
    check_graph_fits,
    child_runs_needed,
    steps_needed,
)
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.orchestrate.setup.kit import Terms
from tests.unit.kernel.builders import in_line

VOTE = redundant_graph('{"type":"object"}', "", Redundancy(5))


def test_a_chat_needs_no_child_and_a_vote_one_for_each_replica() -> None:
    assert child_runs_needed(chat_graph()) == 0
    assert child_runs_needed(VOTE) == 5
    assert child_runs_needed(redundant_graph('{"type":"object"}', "", Redundancy(5, is_parallel=True))) == 5


def test_a_vote_within_a_step_counts_with_all_its_replicas() -> None:
    assert child_runs_needed(in_line(Node("classify", NodeKind.CHILD, inner=VOTE))) == 6


def test_a_graph_that_the_budget_cannot_pay_for_is_refused_before_it_begins() -> None:
    check_graph_fits(VOTE, Terms(budget=Budget(child_runs=5)))
    with pytest.raises(RequestRejected) as refused:
        check_graph_fits(VOTE, Terms(boundary=Boundary(budget=Budget(child_runs=4))))
    assert refused.value.code == CHILD_RUNS_TOO_FEW
    assert refused.value.details == {"needed": 5, "allowed": 4}


def test_the_steps_of_a_vote_count_its_way_back_for_every_replica_and_the_replicas_own() -> None:
    # Prepare, five times replica and vote, check; each replica produces and checks.
    assert steps_needed(VOTE) == 1 + 2 * 5 + 1 + 5 * 2
    assert steps_needed(redundant_graph('{"type":"object"}', "", Redundancy(5, is_parallel=True))) == 4 + 5 * 2
    assert steps_needed(chat_graph()) == 3


def test_a_vote_that_its_steps_could_not_feed_is_refused_and_a_chat_never_is() -> None:
    few = Terms(boundary=Boundary(budget=Budget(steps=21)))
    with pytest.raises(RequestRejected) as refused:
        check_graph_fits(VOTE, few)
    assert refused.value.code == STEPS_TOO_FEW
    assert "Boundary(budget=Budget(steps=22))" in refused.value.message
    check_graph_fits(chat_graph(), Terms(budget=Budget(steps=1)))


def test_the_standard_budget_feeds_as_many_replicas_as_it_has_child_runs() -> None:
    check_graph_fits(redundant_graph('{"type":"object"}', "", Redundancy(32)), Terms())
