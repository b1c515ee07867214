"""The records of a graph."""

import msgspec
import pytest

from remit.core.run.lifecycle import LifecycleState, LoopState
from remit.core.work.graph import (
    EXIT_ENDINGS,
    EXITS,
    OUTCOMES,
    TERMINALS,
    UNIVERSAL_OUTCOMES,
    Edge,
    EndingClass,
    Graph,
    Node,
    NodeKind,
    NodeOutcome,
    TerminalWrite,
    graph_version,
    terminal,
)


def small_graph(name: str = "small") -> Graph:
    return Graph(name, "think", (Node("think", NodeKind.MODEL), *TERMINALS), (Edge("think", "done"),), EXITS)


@pytest.mark.parametrize(
    ("kind", "lifecycle", "loop_state"),
    [
        (NodeKind.RETRIEVE, LifecycleState.PREPARE, LoopState.EXPLORING),
        (NodeKind.RERANK, LifecycleState.PREPARE, LoopState.EXPLORING),
        (NodeKind.MODEL, LifecycleState.EXECUTE, LoopState.EXECUTING),
        (NodeKind.MAP, LifecycleState.EXECUTE, LoopState.EXECUTING),
        (NodeKind.VALIDATE, LifecycleState.VALIDATE, LoopState.REVIEWING),
        (NodeKind.TERMINAL, LifecycleState.ERROR, LoopState.FAILED),
    ],
)
def test_a_node_that_names_no_labels_takes_those_of_its_kind(
    kind: NodeKind, lifecycle: LifecycleState, loop_state: LoopState
) -> None:
    node = Node("here", kind)
    assert (node.lifecycle, node.loop_state) == (lifecycle, loop_state)


def test_a_loop_state_follows_from_the_lifecycle_that_was_given() -> None:
    assert Node("here", NodeKind.MODEL, LifecycleState.PLAN).loop_state is LoopState.PLANNING


def test_labels_that_were_given_are_kept() -> None:
    node = Node("here", NodeKind.MODEL, LifecycleState.PLAN, LoopState.ARCHITECTING)
    assert (node.lifecycle, node.loop_state) == (LifecycleState.PLAN, LoopState.ARCHITECTING)


@pytest.mark.parametrize(
    ("ending", "lifecycle"),
    [
        (EndingClass.SUCCESS, LifecycleState.COMPLETE),
        (EndingClass.FAILURE, LifecycleState.ERROR),
        (EndingClass.CANCELLATION, LifecycleState.CANCELLED),
        (EndingClass.ESCALATION, LifecycleState.ERROR),
        (EndingClass.EXHAUSTION, LifecycleState.ERROR),
    ],
)
def test_a_terminal_writes_everything_and_shows_how_it_ended(ending: EndingClass, lifecycle: LifecycleState) -> None:
    node = terminal("end", ending)
    assert node.writes == tuple(TerminalWrite)
    assert node.lifecycle is lifecycle


def test_the_usual_terminals_cover_every_ending_and_the_usual_exits_lead_to_them() -> None:
    assert [node.ending for node in TERMINALS] == list(EndingClass)
    ending_of = {node.name: node.ending for node in TERMINALS}
    assert {outcome: ending_of[target] for outcome, target in EXITS} == EXIT_ENDINGS


def test_the_universal_outcomes_can_befall_every_kind() -> None:
    assert set(OUTCOMES) == set(NodeKind)
    assert all(outcomes >= UNIVERSAL_OUTCOMES for outcomes in OUTCOMES.values())


def test_every_outcome_belongs_to_some_kind() -> None:
    assert frozenset[NodeOutcome]().union(*OUTCOMES.values()) == set(NodeOutcome)


def test_a_graph_survives_being_written_and_read() -> None:
    graph = small_graph()
    assert msgspec.json.decode(msgspec.json.encode(graph), type=Graph) == graph
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(graph), type=Graph) == graph


def test_equal_graphs_have_equal_hashes_and_versions() -> None:
    assert hash(small_graph()) == hash(small_graph())
    assert graph_version(small_graph()) == graph_version(small_graph())
    assert graph_version(small_graph()) != graph_version(small_graph("other"))


def test_labels_filled_in_and_labels_given_make_the_same_version() -> None:
    given = Node("think", NodeKind.MODEL, LifecycleState.EXECUTE, LoopState.EXECUTING)
    graph = msgspec.structs.replace(small_graph(), nodes=(given, *TERMINALS))
    assert graph_version(graph) == graph_version(small_graph())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "modle"),
        ("lifecycle", "RUN"),
        ("visits_max", -1),
        ("visits_max", "3"),
        ("name", ""),
        ("name", "n" * 101),
        ("lease", [["tool_calls", 2**53]]),
    ],
)
def test_a_node_with_a_value_outside_its_type_does_not_decode(field: str, value: object) -> None:
    data = msgspec.json.encode({"name": "think", "kind": "model", field: value})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(data, type=Node)
