"""Walking a graph: moves, paths and cycles."""

from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind
from remit.kernel.graph.graph_walk import cycles, endless_moves, lay_out, reach, reversed_moves


def chain(count: int) -> Graph:
    nodes = tuple(Node(f"n{i}", NodeKind.MODEL) for i in range(count))
    edges = tuple(Edge(f"n{i}", f"n{i + 1}" if i + 1 < count else "done") for i in range(count))
    return Graph("chain", "n0", (*nodes, *TERMINALS), edges, EXITS)


def test_the_path_to_a_node_is_the_shortest_one() -> None:
    edges = (Edge("a", "b", "answered"), Edge("a", "c"), Edge("b", "d"), Edge("c", "d"), Edge("d", "b"))
    layout = lay_out(Graph("diamond", "a", tuple(Node(n, NodeKind.MODEL) for n in "abcd"), edges))
    assert layout.path_to(0) == ("a",)
    assert layout.path_to(3) == ("a", "b", "d")


def test_a_path_of_ten_thousand_nodes_is_no_deeper_than_one_of_ten() -> None:
    layout = lay_out(chain(9_000))
    assert len(layout.path_to(8_999)) == 9_000
    assert list(cycles(endless_moves(layout))) == []


def test_the_conditions_asked_for_an_outcome_end_at_the_first_sure_edge() -> None:
    named, unnamed = Edge("a", "b", "answered", "repaired"), Edge("a", "a", "", "visits > 1")
    sure, late = Edge("a", "b", "answered"), Edge("a", "a", "", "visits > 2")
    edges = (named, unnamed, sure, late, Edge("a", "b"))
    layout = lay_out(Graph("asking", "a", (Node("a", NodeKind.MODEL), Node("b", NodeKind.MODEL)), edges))
    assert layout.tried(0, "answered") == [(named, 1), (unnamed, 0)]
    assert layout.tried(0, "called_tools") == [(unnamed, 0), (late, 0)]


def test_a_condition_is_asked_for_a_universal_outcome_only_by_an_edge_that_names_it() -> None:
    named = Edge("a", "a", "failed", "repaired")
    edges = (Edge("a", "a", "", "visits > 1"), named, Edge("a", "a"))
    layout = lay_out(Graph("asking", "a", (Node("a", NodeKind.MODEL),), edges))
    assert layout.tried(0, "failed") == [(named, 0)]
    assert layout.tried(0, "escalated") == []


def test_an_exit_is_no_move_where_an_edge_takes_its_outcome_for_sure() -> None:
    nodes = (Node("a", NodeKind.MODEL), Node("b", NodeKind.MODEL))
    edges = (Edge("a", "b", "failed"), Edge("a", "b"), Edge("b", "a", "failed", "repaired"), Edge("b", "a"))
    layout = lay_out(Graph("pair", "a", nodes, edges, (("failed", "b"),)))
    assert layout.moves == [[1, 1], [0, 0, 1]]


def test_a_node_whose_bound_is_used_up_is_left_by_exhaustion_only() -> None:
    nodes = (Node("a", NodeKind.MODEL, visits_max=1), *TERMINALS)
    layout = lay_out(Graph("bounded", "a", nodes, (Edge("a", "a", "answered"), Edge("a", "done")), EXITS))
    assert endless_moves(layout)[0] == [layout.index["exhausted"]]


def test_exhaustion_follows_its_own_edges_before_the_exit() -> None:
    nodes = (Node("a", NodeKind.MODEL, visits_max=1), Node("b", NodeKind.MODEL, visits_max=1), *TERMINALS)
    edges = (
        Edge("a", "b", "exhausted", "repaired"),
        Edge("a", "b"),
        Edge("b", "a", "exhausted", "repaired"),
        Edge("b", "done", "exhausted"),
        Edge("b", "a"),
    )
    layout = lay_out(Graph("bounded", "a", nodes, edges, EXITS))
    assert endless_moves(layout)[:2] == [[1, layout.index["exhausted"]], [0, layout.index["done"]]]


def test_a_used_up_node_without_an_exit_leads_nowhere() -> None:
    layout = lay_out(Graph("bounded", "a", (Node("a", NodeKind.MODEL, visits_max=1),), (Edge("a", "a"),)))
    assert endless_moves(layout) == [[]]


def test_reach_and_its_reverse_agree() -> None:
    moves = [[1], [2], [], [2]]
    assert reach(moves, (0,)) == [0, 0, 1, -1]
    assert reach(reversed_moves(moves), (2,)) == [1, 2, 2, 2]


def test_one_cycle_is_found_in_each_knot() -> None:
    assert list(cycles([[1], [2, 0], [3], [2], [4], []])) == [[0, 1, 0], [2, 3, 2], [4, 4]]
    assert list(cycles([[1, 2], [3], [3], []])) == []


def test_a_knot_is_found_through_a_node_that_was_seen_before() -> None:
    assert list(cycles([[1, 2], [3], [3], [4], [0]])) == [[0, 1, 3, 4, 0]]
