"""Drawing a compiled graph as Mermaid text.

Rule 1: the same graph gives the same text, byte for byte.
Rule 2: names and conditions are data. Whatever they contain, it shows as text and never becomes syntax.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from remit.core.graph import Edge, EndingClass, Node, NodeKind
from remit.kernel.graph import CompiledGraph

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
    }
)

# Everything else is written as a character code: a closed list of harmless characters cannot have a gap.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-., ")


def draw_mermaid(compiled: CompiledGraph) -> str:
    """A flowchart of the graph, for documents and terminals."""
    return "\n".join(["flowchart TD", *_nodes(compiled), *_edges(compiled), *_exits(compiled)]) + "\n"


def _nodes(compiled: CompiledGraph) -> Iterator[str]:
    yield "  begin((start))"
    for position, node in enumerate(compiled.nodes):
        before, after = _SHAPES[node.kind]
        yield f'  n{position}{before}"{_label(node)}"{after}'


def _edges(compiled: CompiledGraph) -> Iterator[str]:
    yield f"  begin --> n{compiled.start}"
    for edge in compiled.graph.edges:
        says = _guard(edge)
        label = f'|"{says}"|' if says else ""
        yield f"  n{compiled.index[edge.source]} -->{label} n{compiled.index[edge.target]}"


def _exits(compiled: CompiledGraph) -> Iterator[str]:
    yield '  anywhere(("any node"))'
    for outcome, target in compiled.graph.exits:
        yield f'  anywhere -. "{_text(outcome)}" .-> n{compiled.index[target]}'


def _label(node: Node) -> str:
    lines = [_text(node.name), _text(_subtitle(node))]
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
