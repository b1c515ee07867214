"""The commands about graph files."""

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK

GraphFile: TypeAlias = Annotated[Path, Parameter(name="FILE", help="A YAML file with a graph.")]


def check(
    file: GraphFile, /, *, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]
) -> int:
    """Check a graph file: may it run, and if not, why."""
    from remit.orchestrate.drafts import check_graph

    shown = check_graph(file)
    if terminal.is_json:
        terminal.values({"name": shown.name, "version": shown.version, "nodes": shown.nodes, "edges": shown.edges})
    else:
        counts = f"{shown.nodes} nodes and {shown.edges} edges"
        terminal.line(f"graph {shown.name} may run: {counts}, version {shown.version}")
    return EXIT_OK


def draw(
    file: GraphFile, /, *, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]
) -> int:
    """Draw a graph file as Mermaid text."""
    from remit.orchestrate.drafts import check_graph

    shown = check_graph(file)
    if terminal.is_json:
        terminal.values({"name": shown.name, "version": shown.version, "mermaid": shown.mermaid})
    else:
        terminal.text(shown.mermaid)
    return EXIT_OK
