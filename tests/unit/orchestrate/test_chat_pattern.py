"""The chat graph: the way of AgentLoop."""

from typing import NoReturn

import pytest

from remit.core.failure import RequestRejected
from remit.core.run.contract import ExecutionHints, SystemRequest
from remit.core.run.lifecycle import LIFECYCLE_TRANSITIONS, LifecycleState
from remit.core.run.messages import user_message
from remit.core.run.request_checks import ITERATIONS_MAX
from remit.kernel.graph.compiled import CompiledGraph, compile_graph
from remit.orchestrate.patterns.chat_graph import REPAIRS_MAX, chat_for, chat_graph


def nobody_looks(names: tuple[str, ...]) -> NoReturn:
    raise AssertionError("the chat graph has no conditions")


def walk(graph: CompiledGraph, *outcomes: str) -> list[str]:
    """The nodes a run stands at, bounds honoured: before a node that is used up it is exhausted where it stands."""
    at, path, visits = graph.start, [graph.nodes[graph.start].name], [0] * len(graph.nodes)
    for outcome in outcomes:
        visits[at] += 1
        target = graph.next_node(at, outcome, nobody_looks)
        if graph.nodes[target].visits_max and visits[target] >= graph.nodes[target].visits_max:
            target = graph.next_node(at, "exhausted", nobody_looks)
        at = target
        path.append(graph.nodes[at].name)
        if graph.nodes[at].ending is not None:
            break
    return path


@pytest.mark.req("0.21")
def test_a_chat_goes_from_init_through_prepare_execute_and_validate_to_complete() -> None:
    graph = compile_graph(chat_graph())
    path = walk(graph, "found", "answered", "passed")
    assert path == ["prepare", "think", "check", "done"]
    stations = [LifecycleState.INIT, *(graph.nodes[graph.index[name]].lifecycle for name in path)]
    assert stations == ["INIT", "PREPARE", "EXECUTE", "VALIDATE", "COMPLETE"]


@pytest.mark.req("0.21")
def test_every_move_of_the_chat_graph_is_a_move_of_the_lifecycle() -> None:
    graph = chat_graph()
    lifecycle = {node.name: node.lifecycle for node in graph.nodes}
    for edge in graph.edges:
        before, after = lifecycle[edge.source], lifecycle[edge.target]
        assert before is after or after in LIFECYCLE_TRANSITIONS[before], edge


@pytest.mark.req("0.21")
def test_tools_are_called_within_execute() -> None:
    graph = compile_graph(chat_graph())
    path = walk(graph, "found", "called_tools", "settled", "answered", "passed")
    assert path == ["prepare", "think", "act", "think", "check", "done"]
    assert {graph.nodes[graph.index[name]].lifecycle for name in ("think", "act")} == {LifecycleState.EXECUTE}


@pytest.mark.req("0.21")
def test_an_answer_that_can_be_repaired_goes_back_to_execute() -> None:
    path = walk(compile_graph(chat_graph()), "found", "answered", "repairable", "answered", "passed")
    assert path == ["prepare", "think", "check", "think", "check", "done"]


def test_a_chat_without_context_goes_on() -> None:
    assert walk(compile_graph(chat_graph()), "failed", "answered", "passed")[-1] == "done"


def test_refused_calls_go_back_to_the_model() -> None:
    assert walk(compile_graph(chat_graph()), "found", "called_tools", "refused")[-1] == "think"


def test_a_tool_that_ends_the_loop_is_checked_all_the_same() -> None:
    path = walk(compile_graph(chat_graph()), "found", "called_tools", "stopped", "passed")
    assert path[-3:] == ["act", "check", "done"]


def test_the_round_after_the_last_ends_in_exhaustion() -> None:
    path = walk(compile_graph(chat_graph(tool_rounds_max=2)), "found", *["called_tools", "settled"] * 3)
    assert path.count("act") == 2
    assert path[-1] == "exhausted"


def test_the_repair_after_the_last_ends_in_exhaustion() -> None:
    path = walk(compile_graph(chat_graph(repairs_max=1)), "found", *["answered", "repairable"] * 3)
    assert path.count("check") == 2
    assert path[-1] == "exhausted"


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "escalated", "exhausted"])
def test_trouble_while_thinking_ends_the_chat_in_its_own_way(outcome: str) -> None:
    assert walk(compile_graph(chat_graph()), "found", outcome)[-1] == outcome


def test_limits_at_their_ends_compile() -> None:
    assert compile_graph(chat_graph(1, 0)).start == 0
    assert compile_graph(chat_graph(ITERATIONS_MAX, REPAIRS_MAX)).start == 0


@pytest.mark.parametrize(("rounds", "repairs"), [(0, 2), (ITERATIONS_MAX + 1, 2), (20, -1), (20, REPAIRS_MAX + 1)])
def test_limits_that_would_unbind_the_loop_are_rejected(rounds: int, repairs: int) -> None:
    with pytest.raises(RequestRejected) as caught:
        chat_graph(rounds, repairs)
    assert caught.value.code == "CHAT_LIMIT_INVALID"


@pytest.mark.req("3.7")
def test_a_request_says_how_many_rounds_of_tools_its_chat_may_have() -> None:
    request = SystemRequest((user_message("please"),), hints=ExecutionHints(max_iterations=3))
    act = next(node for node in chat_for(request).nodes if node.name == "act")
    assert act.visits_max == 3


def test_runs_that_want_the_same_chat_share_one_graph() -> None:
    assert chat_graph(7) is chat_graph(7)
    assert chat_graph(7) is not chat_graph(8)
