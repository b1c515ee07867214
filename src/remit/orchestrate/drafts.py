"""Drafts: graphs, boundaries, goals and shapes, read and looked at before any run.

Each function loads what it needs when it is called: only those who read a file pay for YAML.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from remit.core.limits.boundary import Boundary
from remit.core.limits.boundary_views import BoundaryChecked, BoundaryShown, Difference
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, Record
from remit.core.work.goal import Goal
from remit.core.work.graph import Graph
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.graph.draw import draw_mermaid

if TYPE_CHECKING:
    from remit.context.evidence_message import GivenEvidence
    from remit.orchestrate.constrain_lines import Constrainer


class GraphShown(Record):
    """A graph that may run, and how it looks."""

    name: str
    version: str
    nodes: int
    edges: int
    mermaid: str


def check_graph(path: Path) -> GraphShown:
    """The graph in a file; raises RequestRejected with every problem when it may not run."""
    from remit.orchestrate.setup.graph_file import read_graph

    compiled = compile_graph(read_graph(path))
    graph = compiled.graph
    return GraphShown(graph.name, compiled.version, len(graph.nodes), len(graph.edges), draw_mermaid(compiled))


def constrainer(
    schema: JsonObject | None = None, grammar: str | None = None, *, repair: bool = True, strict: bool = False
) -> "Constrainer":
    """The constraint stack alone, for texts that some model has said already."""
    from remit.orchestrate.constrain_lines import Constrainer

    return Constrainer(schema, grammar, repair=repair, strict=strict)


def boundary_at(said: object) -> Boundary:
    """The boundary that is handed over, that has this name, or that stands in this file."""
    from remit.orchestrate.boundaries.boundary_file import boundary_at

    return boundary_at(said)


def goal_at(said: object) -> Goal | None:
    """The goal that is handed over, that a mapping describes, or that stands in this file; None for none."""
    from remit.orchestrate.setup.goal_file import goal_at

    return goal_at(said)


def check_boundary(
    boundary: Boundary,
    tools: tuple[ToolDefinition, ...] = (),
    graph: Graph | None = None,
    keyless: tuple[str, ...] = (),
) -> BoundaryChecked:
    """What a boundary does to these tools, and the tier of a graph against the highest it allows."""
    from remit.orchestrate.boundaries.tool_findings import boundary_findings

    return boundary_findings(boundary, tools, graph, keyless)


def show_boundary(boundary: Boundary) -> BoundaryShown:
    """A boundary in words, by its six dimensions, and as its file says it."""
    from remit.orchestrate.boundaries.boundary_words import described_boundary

    return described_boundary(boundary)


def compare_boundaries(first: Boundary, second: Boundary) -> tuple[Difference, ...]:
    """What the second boundary allows more than the first, and what less."""
    from remit.orchestrate.boundaries.boundary_words import differences

    return differences(first, second)


def evidence_of(texts: Iterable[tuple[str, str]]) -> "GivenEvidence":
    """Evidence from named texts; raises RequestRejected where one is too long for a document."""
    from remit.context.evidence_message import GivenEvidence
    from remit.context.fts import DOCUMENT_ID_CHARS_MAX, Document, checked_metadata

    # The end of a long path tells more than its beginning.
    documents = [Document(name[-DOCUMENT_ID_CHARS_MAX:], text) for name, text in texts]
    for document in documents:
        checked_metadata(document)
    return GivenEvidence(documents)
