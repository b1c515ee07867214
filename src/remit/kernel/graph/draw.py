"""Drawing a compiled graph as Mermaid text.

Rule 1: the same graph gives the same text, byte for byte.
Rule 2: names and conditions are data. Whatever they contain, it shows as text and never becomes syntax.
Rule 3: a graph inside a node is a box with its way to success in it. Its exits are left out: they end the child, and
        what then becomes of the node is drawn outside.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from remit.core.work.graph import Edge, EndingClass, Graph, Node, NodeKind
from remit.kernel.graph.compiled import CompiledGraph

# The shape of each kind: what stands before and after its label.
_SHAPES: Mapping[NodeKind, tuple[str, str]] = MappingProxyType(
    {
        NodeKind.MODEL: ("[", "]"),
        NodeKind.TOOL: ("[[", "]]"),
        NodeKind.RETRIEVE: ("[(", ")]"),
        NodeKind.RERANK: ("[/", "/]"),
        NodeKind.VALIDATE: ("{{", "}}"),
        NodeKind.HUMAN: (">", "]"),
        NodeKind.CHILD: ("(", ")"),
        NodeKind.MAP: ("[\\", "\\]"),
        NodeKind.DECIDE: ("{", "}"),
        NodeKind.TERMINAL: ("([", "])"),
        NodeKind.HOST: ("[/", "\\]"),
    }
)

# Everything else is written as a character code: a closed list of harmless characters cannot have a gap.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-., ")


def draw_mermaid(compiled: CompiledGraph) -> str:
    """A flowchart of the graph, for documents and terminals."""
    graph = compiled.graph
    lines = ["flowchart TD", *_parts(graph, "", "  "), *_exits(graph)]
    return "\n".join(lines) + "\n"


def _parts(graph: Graph, prefix: str, indent: str) -> Iterator[str]:
    """The nodes and edges of a graph; the names of what stands in a node begin with the name of that node."""
    places = {node.name: f"{prefix}n{position}" for position, node in enumerate(graph.nodes)}
    joined = {graph.start, *(name for edge in graph.edges for name in (edge.source, edge.target))}
    # A terminal that only exits lead to has no place in a box.
    shown = [node for node in graph.nodes if not prefix or node.name in joined]
    yield f"{indent}{prefix}begin((start))"
    for node in shown:
        yield from _node(node, places[node.name], indent)
    yield f"{indent}{prefix}begin --> {places[graph.start]}"
    for edge in graph.edges:
        says = _guard(edge)
        label = f'|"{says}"|' if says else ""
        yield f"{indent}{places[edge.source]} -->{label} {places[edge.target]}"
    yield from _feeds(graph, places, indent)


def _node(node: Node, place: str, indent: str) -> Iterator[str]:
    if node.inner is None:
        before, after = _SHAPES[node.kind]
        yield f'{indent}{place}{before}"{_label(node)}"{after}'
        return
    yield f'{indent}subgraph {place}["{_label(node)}"]'
    yield from _parts(node.inner, f"{place}_", f"{indent}  ")
    yield f"{indent}end"


def _feeds(graph: Graph, places: Mapping[str, str], indent: str) -> Iterator[str]:
    """Where steps of a plan take their input from, unless that is the step that leads to them."""
    led = {(edge.source, edge.target) for edge in graph.edges}
    for node in graph.nodes:
        source = "" if node.feed is None else node.feed.source
        if source in places and (source, node.name) not in led:
            yield f'{indent}{places[source]} -. "feeds" .-> {places[node.name]}'


def _exits(graph: Graph) -> Iterator[str]:
    places = {node.name: f"n{position}" for position, node in enumerate(graph.nodes)}
    yield '  anywhere(("any node"))'
    for outcome, target in graph.exits:
        yield f'  anywhere -. "{_text(outcome)}" .-> {places[target]}'


def _label(node: Node) -> str:
    lines = [_text(node.name), _text(_subtitle(node))]
    if node.ballot is not None:
        early = ", may end early" if node.ballot.early_stop else ""
        lines.append(_text(f"{node.code or 'vote'} among {node.ballot.replicas} of {node.ballot.source}{early}"))
    if node.feed is not None and node.feed.step_type:
        gives = f", gives {node.feed.gives}" if node.feed.gives else ""
        takes = f", takes {node.feed.takes}" if node.feed.takes else ""
        lines.append(_text(f"step of type {node.feed.step_type}{takes}{gives}"))
    if node.inner is not None:
        lines.append(_text(f"runs {node.inner.name}"))
    if node.visits_max:
        lines.append(f"visits_max {node.visits_max}")
    return "<br/>".join(lines)


def _subtitle(node: Node) -> str:
    if node.kind is NodeKind.TERMINAL:
        return (node.ending or EndingClass.FAILURE).value
    if node.kind is NodeKind.MAP:
        return f"{node.kind} of {node.children}, join {node.join}, {node.lifecycle}"
    return f"{node.kind}, {node.lifecycle}"


def _guard(edge: Edge) -> str:
    parts = [edge.outcome, f"if {edge.condition}" if edge.condition else ""]
    return _text(" ".join(part for part in parts if part))


def _text(text: str) -> str:
    return "".join(char if char in _PLAIN else f"#{ord(char)};" for char in text)
