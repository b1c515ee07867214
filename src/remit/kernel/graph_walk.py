"""Walking a graph: which moves a run could make, how a node is reached, and which moves could repeat for ever.

Rule 1: a move counts as possible whatever its condition says; conditions are judged by guards, not here.
Rule 2: every walk is linear in nodes and edges, and none recurses, so no graph is too deep for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remit.core.graph import UNIVERSAL_OUTCOMES, Edge, EndingClass, Graph, Node, NodeKind, NodeOutcome

Moves = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A graph with its names resolved. What cannot be resolved is left out here and reported by the checks."""

    graph: Graph
    index: dict[str, int]
    # Per node its edges, in declared order, with the index of their target.
    ways: list[list[tuple[Edge, int]]]
    # Where the universal outcomes lead when no edge takes them.
    exits: dict[str, int]
    # Per node every node that a run standing there could stand at next.
    moves: Moves
    # Per node the node it is first reached from, itself for the start, -1 when nothing leads to it.
    reached_from: list[int]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes in declared order."""
        return self.graph.nodes

    def path_to(self, node: int) -> tuple[str, ...]:
        """The names from the start to this node; a node that nothing leads to stands alone."""
        path = [node]
        while (before := self.reached_from[node]) not in (-1, node):
            path.append(before)
            node = before
        return tuple(self.nodes[step].name for step in reversed(path))


def lay_out(graph: Graph) -> Layout:
    """Resolve the names of a graph and find out what can be reached."""
    index: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        index.setdefault(node.name, position)
    ways: list[list[tuple[Edge, int]]] = [[] for _ in graph.nodes]
    for edge in graph.edges:
        if edge.source in index and edge.target in index:
            ways[index[edge.source]].append((edge, index[edge.target]))
    exits = {
        outcome: index[target]
        for outcome, target in reversed(graph.exits)
        if outcome in UNIVERSAL_OUTCOMES and target in index
    }
    moves = [_moves_from(node, ways[position], exits) for position, node in enumerate(graph.nodes)]
    start = index.get(graph.start, -1)
    return Layout(graph, index, ways, exits, moves, reach(moves, (start,) if start >= 0 else ()))


def takes(edge: Edge, outcome: str) -> bool:
    """Whether the edge stands open for this outcome, its condition aside."""
    return edge.outcome == outcome or (not edge.outcome and outcome not in UNIVERSAL_OUTCOMES)


def ways_for(ways: Sequence[tuple[Edge, int]], outcome: str, exits: dict[str, int]) -> list[tuple[Edge | None, int]]:
    """The ways a run could go with this outcome, in order: edges up to the first sure one, else the exit (None)."""
    open_ways: list[tuple[Edge | None, int]] = []
    for edge, target in ways:
        if takes(edge, outcome):
            open_ways.append((edge, target))
            if not edge.condition:
                return open_ways
    if outcome in exits:
        open_ways.append((None, exits[outcome]))
    return open_ways


def reach(moves: Moves, starts: Sequence[int]) -> list[int]:
    """Per node the node it is first reached from, breadth first: itself for a start, -1 when out of reach."""
    reached_from = [-1] * len(moves)
    for start in starts:
        reached_from[start] = start
    queue = list(starts)
    for node in queue:
        for target in moves[node]:
            if reached_from[target] < 0:
                reached_from[target] = node
                queue.append(target)
    return reached_from


def reversed_moves(moves: Moves) -> Moves:
    """The same moves, walked backwards."""
    backwards: list[list[int]] = [[] for _ in moves]
    for node, targets in enumerate(moves):
        for target in targets:
            backwards[target].append(node)
    return backwards


def endless_moves(layout: Layout) -> Moves:
    """The moves that no bound stops.

    A node without a bound can be left by every move it has, for ever. One with a bound counts as used up, and exhaustion
    must lead on from there. A run enters bounded nodes only so often, and between two of those it makes these moves; so
    when they form no cycle every run ends, whether exhaustion is taken at the used-up node or at the one before it.
    """
    moves: list[Sequence[int]] = []
    for position, node in enumerate(layout.nodes):
        if node.visits_max and node.kind is not NodeKind.TERMINAL:
            ways = ways_for(layout.ways[position], NodeOutcome.EXHAUSTED, layout.exits)
            moves.append([target for _, target in ways])
        else:
            moves.append(layout.moves[position])
    return moves


def cycles(moves: Moves) -> Iterator[list[int]]:
    """One concrete cycle for every knot of moves that could repeat for ever; its first node comes again at its end."""
    knot_of = _knots(moves)
    seen: set[int] = set()
    for node, knot in enumerate(knot_of):
        if knot in seen:
            continue
        cycle = _cycle_from(node, moves, knot_of)
        if cycle:
            seen.add(knot)
            yield cycle


def _moves_from(node: Node, ways: Sequence[tuple[Edge, int]], exits: dict[str, int]) -> list[int]:
    if node.kind is NodeKind.TERMINAL:
        # Only a success can turn out not to be earned; then the run goes on by an exit.
        return list(exits.values()) if node.ending is EndingClass.SUCCESS else []
    sure = {edge.outcome for edge, _ in ways if not edge.condition}
    targets = [target for _, target in ways]
    return targets + [target for outcome, target in exits.items() if outcome not in sure]


def _knots(moves: Moves) -> list[int]:
    """Per node the number of its strongly connected component (Tarjan's algorithm, with a stack of our own)."""
    order = [0] * len(moves)  # When a node was first seen, from 1.
    low = [0] * len(moves)  # The earliest node still open that it leads to.
    knot_of = [-1] * len(moves)
    open_nodes: list[int] = []
    clock = 0
    for root in range(len(moves)):
        if order[root]:
            continue
        clock += 1
        order[root] = low[root] = clock
        open_nodes.append(root)
        stack = [(root, iter(moves[root]))]
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if not order[target]:
                    clock += 1
                    order[target] = low[target] = clock
                    open_nodes.append(target)
                    stack.append((target, iter(moves[target])))
                    break
                if knot_of[target] < 0 and order[target] < low[node]:
                    low[node] = order[target]
            else:
                stack.pop()
                if stack and low[node] < low[stack[-1][0]]:
                    low[stack[-1][0]] = low[node]
                if low[node] == order[node]:
                    _close_knot(node, open_nodes, knot_of)
    return knot_of


def _close_knot(root: int, open_nodes: list[int], knot_of: list[int]) -> None:
    while True:
        node = open_nodes.pop()
        knot_of[node] = root
        if node == root:
            return


def _cycle_from(node: int, moves: Moves, knot_of: list[int]) -> list[int]:
    """Follow moves inside the node's knot until a node comes again; empty when the knot is a single straight node."""
    path: list[int] = []
    position: dict[int, int] = {}
    while node not in position:
        position[node] = len(path)
        path.append(node)
        inside = next((target for target in moves[node] if knot_of[target] == knot_of[node]), -1)
        if inside < 0:
            return []
        node = inside
    return [*path[position[node] :], node]
