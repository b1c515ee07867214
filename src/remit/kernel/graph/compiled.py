"""Compiling a graph: prove that it may run, then make its next step one look-up.

Rule 1: a graph that breaks a check is refused as a whole, with every problem and a path to each.
Rule 2: a compiled graph never changes; equal graphs have equal versions.
Rule 3: a condition is evaluated only when the outcome leaves more than one way open.
Rule 4: a condition that cannot be decided objects; no edge is taken and the caller refuses to go on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec

from remit.core.failure import InvariantBroken, RemitError, RequestRejected
from remit.core.record import JsonObject, once_a_record
from remit.core.schema.json_text import kept_value
from remit.core.work.graph import OWN_OUTCOMES, Edge, EndingClass, Graph, Node, NodeKind, graph_version
from remit.kernel.graph.edge_conditions import parse_guard
from remit.kernel.graph.expressions import Program, condition_holds
from remit.kernel.graph.graph_checks import GraphFault, GraphProblem, find_problems
from remit.kernel.graph.graph_walk import GraphLayout, lay_out
from remit.kernel.results.notices import tokens_bound

# A plan whose steps vote among plans is three; who nests deeper has lost sight of what it costs.
INNER_DEPTH_MAX = 4
# A deployment runs a handful of graphs; a thousand nodes take about a megabyte.
_GRAPHS_KEPT_MAX = 64

# Looking a member up in its enum takes longer than what is done with it for each node.
_TERMINAL, _SUCCESS = NodeKind.TERMINAL, EndingClass.SUCCESS

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Graph).decode

# What a condition may look at: the values of the names it asks for.
View: TypeAlias = Callable[[tuple[str, ...]], Mapping[str, object]]


class Choice(NamedTuple):
    """The ways open to one outcome of a node: guarded edges to try in order, and where to go when none holds."""

    tried: tuple[tuple[Edge, Program, int], ...]
    otherwise: int


class GraphRefused(RequestRejected):
    """A graph that may not run, and everything that is wrong with it."""

    def __init__(self, name: str, problems: tuple[GraphProblem, ...]) -> None:
        lines = "".join(f"\n  check {problem.check}: {problem.code}: {problem.message}" for problem in problems)
        super().__init__(
            "GRAPH_REFUSED",
            f"graph {name!r} has {len(problems)} problem(s):{lines}",
            {"problems": msgspec.to_builtins(problems)},
        )
        self.problems = problems


class GuardUndecided(RemitError):
    """The condition of an edge has no value for this run; the caller must refuse to go on."""

    def __init__(self, edge: Edge) -> None:
        super().__init__(
            "GUARD_UNDECIDED",
            f"condition {edge.condition!r} of edge {edge.source!r} -> {edge.target!r} cannot be decided",
        )
        self.edge = edge


@dataclass(frozen=True, slots=True, eq=False)
class CompiledGraph:
    """A graph that passed every check, with its tables."""

    graph: Graph
    version: str
    index: Mapping[str, int]
    nodes: tuple[Node, ...]
    start: int
    # Per node, by outcome: the target, where no condition has to be asked.
    sure: tuple[dict[str, int], ...]
    # Per node, by outcome: the ways to choose from, where one has to be.
    choices: tuple[dict[str, Choice], ...]
    # By node, where it asks its model for something: the schema of the answer, and the bound on the instruction's tokens.
    schemas: Mapping[int, JsonObject]
    instruction_tokens: Mapping[int, int]

    def __eq__(self, other: object) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        # Two processes, or one that compiled it twice, run the same graph.
        return isinstance(other, CompiledGraph) and self.version == other.version

    def __hash__(self) -> int:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return int(self.version[:15], 16)

    def next_node(self, node_index: int, outcome: str, view: View) -> int:
        """Where a run goes from this node with this outcome. The view is asked only for what a condition needs."""
        target = self.sure[node_index].get(outcome)
        if target is not None:
            return target
        return self._choose(node_index, outcome, view)

    def has_edge_for(self, node_index: int, outcome: str) -> bool:
        """Whether an edge of this node names this outcome; else its unconditional edge or an exit takes it."""
        name = self.nodes[node_index].name
        return any(edge.outcome == outcome and edge.source == name for edge in self.graph.edges)

    def targets(self, node_index: int) -> set[int]:
        """Every node that some outcome of this one leads to."""
        found = set(self.sure[node_index].values())
        for choice in self.choices[node_index].values():
            found.update((target for _, _, target in choice.tried), (choice.otherwise,))
        return found

    def _choose(self, node_index: int, outcome: str, view: View) -> int:
        choice = self.choices[node_index].get(outcome)
        if choice is None:
            node = self.nodes[node_index]
            raise InvariantBroken("GRAPH_OUTCOME_UNKNOWN", f"{node.kind} node {node.name!r} has no outcome {outcome!r}")
        for edge, program, target in choice.tried:
            verdict = condition_holds(program, view(program.names))
            if verdict is None:
                raise GuardUndecided(edge)
            if verdict:
                return target
        return choice.otherwise


@once_a_record(_GRAPHS_KEPT_MAX)
def compile_graph(graph: Graph) -> CompiledGraph:
    """Check a graph and make it ready to run, or raise GraphRefused."""
    try:
        data = _encode(graph)
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise _malformed(graph, error) from None
    try:
        return _compile(data)
    except msgspec.MsgspecError as error:
        raise _malformed(graph, error) from None


def _malformed(graph: Graph, error: Exception) -> GraphRefused:
    problem = GraphProblem(0, GraphFault.MALFORMED, f"the record does not fit its types: {error}")
    return GraphRefused(str(graph.name), (problem,))


# A pure memo: equal graphs compile to equal tables, and every run of a pattern brings the same graph. It is read back
# from its bytes, so that every field has its declared type: constructors take lists and plain texts as they come.
@lru_cache(maxsize=_GRAPHS_KEPT_MAX)
def _compile(data: bytes) -> CompiledGraph:
    graph = _decode(data)
    layout = lay_out(graph)
    problems = (*find_problems(layout), *_inner_problems(layout))
    if problems:
        raise GraphRefused(graph.name, problems)
    sure = _sure_targets(layout)
    choices = [_take_choices(i, sure[i], layout) if i in layout.asking else {} for i in range(len(sure))]
    return CompiledGraph(
        graph=graph,
        version=graph_version(graph),
        index=MappingProxyType(layout.index),
        nodes=layout.nodes,
        start=layout.index[graph.start],
        # Before the first node, which is number -1, nothing is sure.
        sure=(*sure, {}),
        choices=tuple(choices),
        schemas=MappingProxyType(
            {i: kept_value(node.ask.schema) for i, node in enumerate(layout.nodes) if node.ask and node.ask.schema}
        ),
        instruction_tokens=MappingProxyType(
            {i: tokens_bound(node.ask.instruction) for i, node in enumerate(layout.nodes) if node.ask}
        ),
    )


def _inner_problems(layout: GraphLayout) -> Iterator[GraphProblem]:
    """Why a graph may not run within this one. It is compiled like any other, and so are those within it."""
    for position, node in enumerate(layout.nodes):
        if node.inner is None:
            continue
        path = layout.path_to(position)
        if depth_of(node.inner) > INNER_DEPTH_MAX:
            message = f"node {node.name!r} has graphs within graphs beyond inner_depth_max={INNER_DEPTH_MAX}"
            yield GraphProblem(0, GraphFault.INNER_REFUSED, message, path)
            continue
        try:
            compile_graph(node.inner)
        except GraphRefused as refused:
            message = f"node {node.name!r} has an inner graph that may not run: {refused.message}"
            yield GraphProblem(0, GraphFault.INNER_REFUSED, message, path)


def depth_of(graph: Graph) -> int:
    """How many graphs deep a graph is: 1 without any inner one. Counting stops beyond what is allowed."""
    depth, level = 0, [graph]
    while level and depth <= INNER_DEPTH_MAX + 1:
        depth += 1
        level = [node.inner for inside in level for node in inside.nodes if node.inner is not None]
    return depth


def _sure_targets(layout: GraphLayout) -> list[dict[str, int]]:
    """Per node, by outcome: where a run goes when no condition says otherwise."""
    tables: list[dict[str, int]] = []
    for node, sure in zip(layout.nodes, layout.sure, strict=True):
        if node.kind is _TERMINAL:
            tables.append(dict(layout.exits) if node.ending is _SUCCESS else {})
            continue
        table = dict(layout.exits)
        # The checks have shown that every node has a sure edge for the outcomes that no edge names.
        for outcome in OWN_OUTCOMES[node.kind]:
            table[outcome] = sure[""]
        table.update(sure)
        del table[""]
        tables.append(table)
    return tables


def _take_choices(position: int, sure: dict[str, int], layout: GraphLayout) -> dict[str, Choice]:
    """The ways to choose from, by outcome. They are taken out of what was thought sure."""
    own: tuple[str, ...] = OWN_OUTCOMES[layout.nodes[position].kind]
    # Own outcomes that no edge names all ask the same conditions, so those are looked through once.
    tried = dict.fromkeys(own, layout.tried(position, ""))
    for outcome in dict.fromkeys(edge.outcome for edge in layout.edges[position] if edge.outcome):
        tried[outcome] = layout.tried(position, outcome)
    return {outcome: Choice(_programs(ways), sure.pop(outcome)) for outcome, ways in tried.items() if ways}


def _programs(ways: list[tuple[Edge, int]]) -> tuple[tuple[Edge, Program, int], ...]:
    return tuple([(edge, parse_guard(edge.condition), target) for edge, target in ways])
