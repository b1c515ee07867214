"""Which graph a request runs, and whether the budget could pay for it."""

import pytest

from remit.core.boundary import Boundary
from remit.core.budget import Budget
from remit.core.failure import RequestRejected
from remit.core.graph import Node, NodeKind
from remit.orchestrate.kit import Terms
from remit.orchestrate.patterns.chat import chat_graph
from remit.orchestrate.patterns.choosing import CHILD_RUNS_TOO_FEW, check_child_runs, child_runs_needed
from remit.orchestrate.patterns.redundant import Redundancy, redundant_graph
from tests.unit.kernel.builders import in_line

VOTE = redundant_graph('{"type":"object"}', "", Redundancy(5))


def test_a_chat_needs_no_child_and_a_vote_one_for_each_replica() -> None:
    assert child_runs_needed(chat_graph()) == 0
    assert child_runs_needed(VOTE) == 5
    assert child_runs_needed(redundant_graph('{"type":"object"}', "", Redundancy(5, is_parallel=True))) == 5


def test_a_vote_within_a_step_counts_with_all_its_replicas() -> None:
    assert child_runs_needed(in_line(Node("classify", NodeKind.CHILD, inner=VOTE))) == 6


def test_a_graph_that_the_budget_cannot_pay_for_is_refused_before_it_begins() -> None:
    check_child_runs(VOTE, Terms(budget=Budget(child_runs=5)))
    with pytest.raises(RequestRejected) as refused:
        check_child_runs(VOTE, Terms(boundary=Boundary(budget=Budget(child_runs=4))))
    assert refused.value.code == CHILD_RUNS_TOO_FEW
    assert refused.value.details == {"needed": 5, "allowed": 4}
