"""Compiling: what a compiled graph is, and where it leads."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec
import pytest

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.work.graph import (
    EXITS,
    OUTCOMES,
    TERMINALS,
    UNIVERSAL_OUTCOMES,
    Edge,
    Graph,
    Node,
    NodeKind,
    NodeOutcome,
    graph_version,
)
from remit.kernel.graph.compiled import GraphRefused, GuardUndecided, _compile, compile_graph
from remit.kernel.graph.graph_checks import GraphFault

REACHES = [NodeKind, NodeOutcome]


def nobody_looks(names: tuple[str, ...]) -> NoReturn:
    raise AssertionError("the view was asked for although no condition needs it")


def sees(**view: object) -> Any:
    return lambda names: view


def routed(*edges: Edge) -> Graph:
    """One model node with these edges, and two more to lead to."""
    nodes = (Node("think", NodeKind.MODEL), Node("left", NodeKind.MODEL), Node("right", NodeKind.MODEL))
    ends = (Edge("left", "done"), Edge("right", "done"))
    return Graph("routed", "think", (*nodes, *TERMINALS), (*edges, *ends), EXITS)


BRANCHING = routed(
    Edge("think", "left", "answered", "visits > 2"),
    Edge("think", "right", "answered", "repaired"),
    Edge("think", "left", "failed", "left_retries > 0"),
    Edge("think", "done"),
)


def next_name(graph: Graph, outcome: str, view: Any) -> str:
    compiled = compile_graph(graph)
    return compiled.nodes[compiled.next_node(compiled.start, outcome, view)].name


def test_a_compiled_graph_knows_its_nodes_by_name_and_its_version() -> None:
    compiled = compile_graph(BRANCHING)
    assert compiled.graph == BRANCHING
    assert compiled.version == graph_version(BRANCHING)
    assert [compiled.index[node.name] for node in compiled.nodes] == list(range(len(compiled.nodes)))
    assert compiled.nodes[compiled.start].name == "think"


def test_a_compiled_graph_cannot_be_changed() -> None:
    compiled = compile_graph(BRANCHING)
    with pytest.raises(dataclasses.FrozenInstanceError):
        compiled.version = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        compiled.index["think"] = 5  # type: ignore[index]


def test_equal_graphs_are_compiled_once() -> None:
    again = msgspec.json.decode(msgspec.json.encode(BRANCHING), type=Graph)
    assert compile_graph(again) is compile_graph(BRANCHING)


def test_a_graph_that_is_compiled_again_equals_itself_and_no_other() -> None:
    first = compile_graph(BRANCHING)
    _compile.cache_clear()
    again = compile_graph(msgspec.json.decode(msgspec.json.encode(BRANCHING), type=Graph))
    assert again is not first
    assert {again, first} == {first}
    assert again != compile_graph(msgspec.structs.replace(BRANCHING, name="another"))


def test_an_edge_that_names_the_outcome_takes_it() -> None:
    graph = routed(Edge("think", "left", "called_tools"), Edge("think", "right"))
    assert next_name(graph, "called_tools", nobody_looks) == "left"
    assert next_name(graph, NodeOutcome.CALLED_TOOLS, nobody_looks) == "left"
    assert next_name(graph, "answered", nobody_looks) == "right"


@pytest.mark.parametrize(
    ("visits", "repaired", "expected"),
    [(3, True, "left"), (3, False, "left"), (1, True, "right"), (1, False, "done")],
)
def test_the_first_true_edge_in_declared_order_wins(visits: int, repaired: bool, expected: str) -> None:
    assert next_name(BRANCHING, "answered", sees(visits=visits, repaired=repaired)) == expected


def test_the_view_is_asked_only_for_the_names_of_the_conditions_tried() -> None:
    asked: list[tuple[str, ...]] = []

    def view(names: tuple[str, ...]) -> Mapping[str, object]:
        asked.append(names)
        return {"visits": 3, "repaired": True}

    assert next_name(BRANCHING, "called_tools", view) == "done"
    assert asked == []
    assert next_name(BRANCHING, "answered", view) == "left"
    assert asked == [("visits",)]


@pytest.mark.parametrize("outcome", sorted(UNIVERSAL_OUTCOMES))
def test_an_unconditional_edge_never_catches_a_universal_outcome(outcome: str) -> None:
    graph = routed(Edge("think", "left", "called_tools"), Edge("think", "right"))
    assert next_name(graph, outcome, nobody_looks) == outcome


@pytest.mark.parametrize(("retries", "expected"), [(1, "left"), (0, "failed")])
def test_a_universal_outcome_takes_its_own_edge_before_the_exit(retries: int, expected: str) -> None:
    assert next_name(BRANCHING, "failed", sees(left_retries=retries)) == expected


def test_an_own_edge_without_a_condition_takes_a_universal_outcome_for_sure() -> None:
    graph = routed(Edge("think", "left", "failed"), Edge("think", "right", "called_tools"), Edge("think", "done"))
    assert next_name(graph, "failed", nobody_looks) == "left"


@pytest.mark.parametrize("view", [{}, {"visits": "many"}, {"visits": None}])
def test_a_condition_that_cannot_be_decided_takes_no_edge(view: dict[str, object]) -> None:
    with pytest.raises(GuardUndecided) as caught:
        next_name(BRANCHING, "answered", sees(**view))
    assert caught.value.edge == BRANCHING.edges[0]
    assert caught.value.code == "GUARD_UNDECIDED"


def test_a_success_that_was_not_earned_leaves_its_terminal_by_an_exit() -> None:
    compiled = compile_graph(BRANCHING)
    target = compiled.next_node(compiled.index["done"], "escalated", nobody_looks)
    assert compiled.nodes[target].name == "escalated"


def test_any_other_terminal_is_never_left() -> None:
    compiled = compile_graph(BRANCHING)
    with pytest.raises(InvariantBroken):
        compiled.next_node(compiled.index["failed"], "escalated", nobody_looks)


def test_an_outcome_the_node_cannot_have_is_a_bug_of_the_caller() -> None:
    with pytest.raises(InvariantBroken) as caught:
        next_name(BRANCHING, "approved", nobody_looks)
    assert "model node 'think' has no outcome 'approved'" in caught.value.message


@pytest.mark.parametrize("kind", [kind for kind in NodeKind if kind not in {NodeKind.TERMINAL, NodeKind.TOOL}])
def test_every_outcome_of_every_kind_leads_somewhere(kind: NodeKind) -> None:
    node = Node("here", kind, children=2)
    graph = Graph("one", "here", (node, *TERMINALS), (Edge("here", "done"),), EXITS)
    for outcome in OUTCOMES[kind]:
        expected = outcome.value if outcome in UNIVERSAL_OUTCOMES else "done"
        assert next_name(graph, outcome, nobody_looks) == expected


@pytest.mark.req("4.19")
def test_a_refusal_is_a_rejected_request_that_carries_every_problem() -> None:
    with pytest.raises(GraphRefused) as caught:
        compile_graph(Graph("lost", "here", (Node("here", NodeKind.MODEL),), ()))
    refused = caught.value
    assert isinstance(refused, RequestRejected)
    assert refused.code == "GRAPH_REFUSED"
    assert refused.details["problems"] == msgspec.to_builtins(refused.problems)
    assert all(problem.message in refused.message for problem in refused.problems)


@pytest.mark.parametrize(
    "field",
    [
        {"exits": {"failed": "failed"}},
        {"nodes": (Node("think", NodeKind.MODEL, visits_max="many"),)},  # type: ignore[arg-type]
        {"nodes": (Node("think", NodeKind.MODEL, visits_max=-1),)},
        {"nodes": (Node("think", NodeKind.MODEL, visits_max=2**70),)},
        {"nodes": (Node("think", "modle"),)},  # type: ignore[arg-type]
        {"nodes": (Node("think", NodeKind.MODEL, code=object()),)},  # type: ignore[arg-type]
        {"start": "\ud800"},
        {"name": ""},
    ],
)
def test_a_graph_whose_fields_do_not_fit_their_types_is_refused(field: dict[str, Any]) -> None:
    with pytest.raises(GraphRefused) as caught:
        compile_graph(msgspec.structs.replace(BRANCHING, **field))
    assert [(problem.check, problem.code) for problem in caught.value.problems] == [(0, GraphFault.MALFORMED)]


def test_plain_texts_may_stand_for_the_words_of_a_graph() -> None:
    plain = Node("think", "model")  # type: ignore[arg-type]
    graph = Graph("plain", "think", (plain, *TERMINALS), (Edge("think", "done"),), EXITS)
    assert compile_graph(graph).nodes[0].kind is NodeKind.MODEL


def test_lists_may_stand_for_tuples() -> None:
    listed = Graph("lists", "think", [Node("think", NodeKind.MODEL), *TERMINALS], [Edge("think", "done")], list(EXITS))  # type: ignore[arg-type]
    tupled = Graph("lists", "think", (Node("think", NodeKind.MODEL), *TERMINALS), (Edge("think", "done"),), EXITS)
    assert compile_graph(listed) is compile_graph(tupled)


def test_a_thousand_nodes_in_a_row_and_a_cycle_of_a_thousand_compile() -> None:
    nodes = [Node(f"n{i}", NodeKind.MODEL) for i in range(1000)]
    edges = tuple(Edge(f"n{i}", f"n{i + 1}") for i in range(999))
    row = Graph("row", "n0", (*nodes, *TERMINALS), (*edges, Edge("n999", "done")), EXITS)
    assert compile_graph(row).start == 0
    nodes[500] = Node("n500", NodeKind.MODEL, visits_max=3)
    back = (Edge("n999", "n0", "called_tools"), Edge("n999", "done"))
    assert compile_graph(Graph("ring", "n0", (*nodes, *TERMINALS), (*edges, *back), EXITS)).start == 0
