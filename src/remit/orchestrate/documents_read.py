"""What doors read for people who write graphs, boundaries and goals: whether it may run, and what it allows."""

from pathlib import Path

from remit.core.boundary import Boundary
from remit.core.boundary_reports import BoundaryChecked, BoundaryShown, Difference
from remit.core.goal import Goal
from remit.core.graph import Graph
from remit.core.record import Record
from remit.core.tools import ToolDefinition
from remit.kernel.draw import draw_mermaid
from remit.kernel.graph import compile_graph


class GraphShown(Record):
    """A graph that may run, and how it looks."""

    name: str
    version: str
    nodes: int
    edges: int
    mermaid: str


def check_graph(path: Path) -> GraphShown:
    """The graph in a file; raises RequestRejected with every problem when it may not run."""
    # Only those who read a graph pay for YAML.
    from remit.orchestrate.graph_file import read_graph

    compiled = compile_graph(read_graph(path))
    graph = compiled.graph
    return GraphShown(graph.name, compiled.version, len(graph.nodes), len(graph.edges), draw_mermaid(compiled))


def boundary_at(said: object) -> Boundary:
    """The boundary that is handed over, that has this name, or that stands in this file."""
    # Only those who read a boundary pay for YAML.
    from remit.orchestrate.boundary_file import boundary_at

    return boundary_at(said)


def goal_at(said: object) -> Goal | None:
    """The goal that is handed over, that a mapping describes, or that stands in this file; None for none."""
    # Only those who have a goal pay for what reads it.
    from remit.orchestrate.goal_file import goal_at

    return goal_at(said)


def check_boundary(
    boundary: Boundary,
    tools: tuple[ToolDefinition, ...] = (),
    graph: Graph | None = None,
    keyless: tuple[str, ...] = (),
) -> BoundaryChecked:
    """What a boundary does to these tools, and the tier of a graph against the highest it allows."""
    from remit.orchestrate.boundary_report import checked

    return checked(boundary, tools, graph, keyless)


def show_boundary(boundary: Boundary) -> BoundaryShown:
    """A boundary in words, by its six dimensions, and as its file says it."""
    from remit.orchestrate.boundary_report import described

    return described(boundary)


def compare_boundaries(first: Boundary, second: Boundary) -> tuple[Difference, ...]:
    """What the second boundary allows more than the first, and what less."""
    from remit.orchestrate.boundary_diff import differences

    return differences(first, second)
