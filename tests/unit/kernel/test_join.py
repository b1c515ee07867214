"""Joining: a node is left when nothing it waits for is open, and failures are judged together."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import CallTool, ReconcileTool
from remit.core.limits.budget import Budget
from remit.core.work.graph import JoinRule, Node, NodeKind
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

REACHES = [JoinRule]


def test_a_tool_node_is_left_when_every_call_has_its_outcome() -> None:
    run = Run()
    run.proposes(wants("look"), wants("fetch"))
    run.returns("fetch")
    assert run.path()[-1] == "act"
    run.returns("look")
    assert run.path()[-1] == "think"


def test_a_call_that_waits_for_a_person_keeps_the_node_while_reads_go_on() -> None:
    run = Run()
    run.proposes(wants("look"), wants("write"))
    run.returns("look")
    assert run.path()[-1] == "act"
    run.rejects()
    assert run.path()[-1] == "think"


def test_a_failure_that_may_be_repeated_is_told_to_the_model() -> None:
    run = Run(manifest_of(budget=Budget(retries=1)))
    run.proposes(wants("look"))
    run.fails("look")
    assert run.path()[-1] == "think"


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (ErrorCode.TOOL_EXECUTION_FAILED, Ending.REPEATED_FAILURE),
        (ErrorCode.TOOL_UNAVAILABLE, Ending.UNAVAILABLE_DEP),
    ],
)
def test_a_tool_that_fails_more_often_in_a_row_than_may_be_retried_ends_the_run(
    code: ErrorCode, ending: Ending
) -> None:
    run = Run(manifest_of(budget=Budget(retries=1)))
    for n in range(2):
        run.proposes(wants("look", n))
        run.fails("look", code)
    assert (run.state.end.ending, run.state.end.error) == (ending, code)
    assert run.state.end.message == "tool look failed 2 times in a row, retries_max=1"


def test_no_call_is_cut_off_because_its_neighbour_failed() -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.proposes(wants("look"), wants("fetch"))
    run.fails("look")
    assert run.path()[-1] == "act"
    run.returns("fetch")
    assert run.state.end.ending is Ending.REPEATED_FAILURE
    assert run.state.effects.committed == {"fetch": 1}


def test_a_call_known_not_to_have_happened_may_be_the_last_failure_in_a_row() -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.proposes(wants("pay"))
    run.approves()
    run.fails("pay", ErrorCode.TOOL_TIMEOUT)
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.NO))
    assert (run.state.end.ending, run.state.end.error) == (Ending.REPEATED_FAILURE, ErrorCode.TOOL_EXECUTION_FAILED)


@pytest.mark.req("3.22")
def test_a_tool_that_stops_the_loop_waits_for_its_neighbours() -> None:
    run = Run()
    run.proposes(wants("finish"), wants("look"))
    run.returns("finish", "that is all", stop_loop=True)
    assert run.open(CallTool) != []
    run.returns("look")
    assert run.path()[-2:] == ["check", "done"]
    assert run.state.result.answer == "that is all"


@pytest.mark.parametrize(
    ("join", "endings", "is_joined"),
    [
        (JoinRule.ALL, (Ending.SUCCESS, Ending.PARTIAL_SUCCESS, Ending.SUCCESS), True),
        (JoinRule.ALL, (Ending.SUCCESS, Ending.IMPOSSIBLE, Ending.SUCCESS), False),
        (JoinRule.ANY, (Ending.IMPOSSIBLE, Ending.SUCCESS, Ending.IMPOSSIBLE), True),
        (JoinRule.ANY, (Ending.IMPOSSIBLE, Ending.IMPOSSIBLE, Ending.IMPOSSIBLE), False),
        (JoinRule.QUORUM, (Ending.SUCCESS, Ending.IMPOSSIBLE, Ending.SUCCESS), True),
        (JoinRule.QUORUM, (Ending.IMPOSSIBLE, Ending.SUCCESS, Ending.IMPOSSIBLE), False),
    ],
)
def test_a_map_joins_as_its_rule_says(join: JoinRule, endings: tuple[Ending, ...], is_joined: bool) -> None:
    run = Run(manifest_of(graph=in_line(Node("fan", NodeKind.MAP, prompt="go", children=3, join=join))))
    for ending in endings:
        assert run.state.end.ending is None
        run.heard_from_child(ending)
    assert run.path()[-1] == ("done" if is_joined else "failed")


def test_half_is_no_quorum() -> None:
    run = Run(manifest_of(graph=in_line(Node("fan", NodeKind.MAP, prompt="go", children=2, join=JoinRule.QUORUM))))
    run.heard_from_child(Ending.SUCCESS)
    run.heard_from_child(Ending.IMPOSSIBLE)
    assert (run.state.end.ending, run.state.end.error) == (
        Ending.REPEATED_FAILURE,
        ErrorCode.ORCHESTRATION_NO_CONSENSUS,
    )
    assert run.state.end.message == "1 of 2 children of node fan failed and it joins quorum"


def test_a_single_child_that_failed_fails_its_node() -> None:
    run = Run(manifest_of(graph=in_line(Node("child", NodeKind.CHILD, prompt="go"))))
    run.heard_from_child(Ending.BUDGET_EXHAUSTED)
    assert run.state.end.message == "1 of 1 children of node child failed and it joins all"


def test_failures_beside_each_other_in_one_answer_count_once() -> None:
    run = Run(manifest_of(budget=Budget(retries=1)))
    run.proposes(*[wants("look", n, call_id=f"call{n}") for n in range(3)])
    for _ in range(3):
        run.fails("look")
    assert run.state.end.ending is None
    assert run.state.counts.failures_in_a_row["look"].times == 1
