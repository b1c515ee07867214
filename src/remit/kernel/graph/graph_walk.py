"""Walking a graph: which moves a run could make, how a node is reached, and which moves could repeat for ever.

Rule 1: a move counts as possible whatever its condition says; conditions are judged by guards, not here.
Rule 2: every walk is linear in nodes and edges, and none recurses, so no graph is too deep for it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remit.core.work.graph import UNIVERSAL_OUTCOMES, Edge, EndingClass, Graph, Node, NodeKind, NodeOutcome

Moves = Sequence[Sequence[int]]

# Looking a member up in its enum takes longer than most of what is done here for each node.
_TERMINAL, _SUCCESS, _EXHAUSTED = NodeKind.TERMINAL, EndingClass.SUCCESS, NodeOutcome.EXHAUSTED


@dataclass(frozen=True, slots=True, eq=False)
class GraphLayout:
    """A graph with its names resolved. What cannot be resolved is left out here and reported by the checks."""

    graph: Graph
    index: dict[str, int]
    # Per node its edges, in declared order, and beside them the nodes they lead to.
    edges: list[list[Edge]]
    targets: list[list[int]]
    # Per node, by outcome: where the first edge without a condition leads.
    sure: list[dict[str, int]]
    # The nodes of which some edge has a condition.
    asking: set[int]
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

    def tried(self, node: int, outcome: str) -> list[tuple[Edge, int]]:
        """The edges whose conditions are asked for this outcome, in order, with the nodes they lead to."""
        # An edge that names no outcome stands open for every one that is not universal.
        open_for = (outcome,) if outcome in UNIVERSAL_OUTCOMES else (outcome, "")
        tried: list[tuple[Edge, int]] = []
        for edge, target in zip(self.edges[node], self.targets[node], strict=True):
            if edge.outcome in open_for:
                if not edge.condition:
                    break
                tried.append((edge, target))
        return tried

    def path_to(self, node: int) -> tuple[str, ...]:
        """The names from the start to this node; a node that nothing leads to stands alone."""
        path = [node]
        while (before := self.reached_from[node]) not in (-1, node):
            path.append(before)
            node = before
        return tuple(self.nodes[step].name for step in reversed(path))


def lay_out(graph: Graph) -> GraphLayout:
    """Resolve the names of a graph and find out what can be reached."""
    index: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        index.setdefault(node.name, position)
    edges: list[list[Edge]] = [[] for _ in graph.nodes]
    targets: list[list[int]] = [[] for _ in graph.nodes]
    sure: list[dict[str, int]] = [{} for _ in graph.nodes]
    asking: set[int] = set()
    for edge in graph.edges:
        source, target = index.get(edge.source), index.get(edge.target)
        if source is not None and target is not None:
            edges[source].append(edge)
            targets[source].append(target)
            if edge.condition:
                asking.add(source)
            else:
                sure[source].setdefault(edge.outcome, target)
    exits = {
        outcome: index[target]
        for outcome, target in reversed(graph.exits)
        if outcome in UNIVERSAL_OUTCOMES and target in index
    }
    ends = list(exits.values())
    moves = [_moves_from(*each, exits, ends) for each in zip(graph.nodes, targets, sure, strict=True)]
    start = index.get(graph.start, -1)
    reached_from = reach(moves, (start,) if start >= 0 else ())
    return GraphLayout(
        graph=graph,
        index=index,
        edges=edges,
        targets=targets,
        sure=sure,
        asking=asking,
        exits=exits,
        moves=moves,
        reached_from=reached_from,
    )


def _moves_from(
    node: Node, targets: list[int], sure: dict[str, int], exits: dict[str, int], ends: list[int]
) -> list[int]:
    if node.kind is _TERMINAL:
        # Only a success can turn out not to be earned; then the run goes on by an exit.
        return ends if node.ending is _SUCCESS else []
    if sure.keys().isdisjoint(exits):
        return targets + ends
    return targets + [target for outcome, target in exits.items() if outcome not in sure]


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
    """The moves walked backwards."""
    backwards: list[list[int]] = [[] for _ in moves]
    for node, targets in enumerate(moves):
        for target in targets:
            backwards[target].append(node)
    return backwards


def endless_moves(layout: GraphLayout) -> Moves:
    """The moves that no bound stops.

    A node without a bound can be left by every move it has, for ever. One with a bound counts as used up, and exhaustion
    must lead on from there. A run enters bounded nodes only so often, and between two of those it makes these moves; so
    when they form no cycle every run ends, whether exhaustion is taken at the used-up node or at the one before it.
    """
    moves = list(layout.moves)
    exit_target = layout.exits.get(_EXHAUSTED)
    for position, node in enumerate(layout.nodes):
        if node.visits_max and node.kind is not _TERMINAL:
            tried = layout.tried(position, _EXHAUSTED) if position in layout.asking else ()
            otherwise = layout.sure[position].get(_EXHAUSTED, exit_target)
            moves[position] = [target for _, target in tried] + ([] if otherwise is None else [otherwise])
    return moves


def cycles(moves: Moves) -> Iterator[list[int]]:
    """One concrete cycle for every knot of moves that could repeat for ever; its first node comes again at its end."""
    knot_of = _knots(moves)
    sizes = Counter(knot_of)
    seen: set[int] = set()
    for node, knot in enumerate(knot_of):
        # A node that is alone in its knot makes a cycle only by a move to itself.
        if knot not in seen and (sizes[knot] > 1 or node in moves[node]):
            seen.add(knot)
            yield _cycle_from(node, moves, knot_of)


def _knots(moves: Moves) -> list[int]:
    """Per node a node that names its strongly connected component (Tarjan's algorithm, with a stack of our own)."""
    closed = len(moves) + 1
    order = [0] * len(moves)  # When a node was first seen, from 1; later than all others once its knot is known.
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
                seen = order[target]
                if not seen:
                    clock += 1
                    order[target] = low[target] = clock
                    open_nodes.append(target)
                    stack.append((target, iter(moves[target])))
                    break
                if seen < low[node]:
                    low[node] = seen
            else:
                stack.pop()
                if stack and low[node] < low[stack[-1][0]]:
                    low[stack[-1][0]] = low[node]
                if low[node] == order[node]:
                    while order[node] != closed:
                        member = open_nodes.pop()
                        knot_of[member], order[member] = node, closed
    return knot_of


def _cycle_from(node: int, moves: Moves, knot_of: list[int]) -> list[int]:
    """Follow moves inside the node's knot, where there always is one, until a node comes again."""
    path: list[int] = []
    position: dict[int, int] = {}
    while node not in position:
        position[node] = len(path)
        path.append(node)
        node = next(target for target in moves[node] if knot_of[target] == knot_of[node])
    return [*path[position[node] :], node]
