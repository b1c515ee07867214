"""Drawing: deterministic, complete, and deaf to whatever names contain."""

import re

import pytest

from remit.core.graph import EXITS, TERMINALS, Edge, Graph, JoinRule, Node, NodeKind, ToolRules
from remit.kernel.draw import draw_mermaid
from remit.kernel.graph import compile_graph

RULES = ToolRules("boundary", "registry", "tool_calls", 1000, "result_schema")

REACHES = [JoinRule]

# Every line of a drawing is one of these; a name that broke out of its quotes would make another.
LINE = re.compile(
    r"""flowchart\ TD
    |\ \ begin\(\(start\)\)
    |\ \ begin\ -->\ n\d+
    |\ \ anywhere\(\("any\ node"\)\)
    |\ \ anywhere\ -\.\ "[a-z]+"\ \.->\ n\d+
    |\ \ n\d+[\[({>/\\]{1,2}"[^"<>`|\[\]{}()]*(?:<br/>[^"<>`|\[\]{}()]*)+"[\])}/\\]{1,2}
    |\ \ n\d+\ -->(?:\|"[^"<>`|\[\]{}()]+"\|)?\ n\d+""",
    re.VERBOSE,
)


def graph_of(name: str, condition: str = "repaired") -> Graph:
    nodes = (Node(name, NodeKind.MODEL, visits_max=4), *TERMINALS)
    edges = (Edge(name, "failed", "answered", condition), Edge(name, "done"))
    return Graph("drawn", name, nodes, edges, EXITS)


def test_a_drawing_shows_nodes_edges_bounds_and_exits() -> None:
    assert draw_mermaid(compile_graph(graph_of("think"))) == (
        "flowchart TD\n"
        "  begin((start))\n"
        '  n0["think<br/>model, EXECUTE<br/>visits_max 4"]\n'
        '  n1(["done<br/>success"])\n'
        '  n2(["failed<br/>failure"])\n'
        '  n3(["cancelled<br/>cancellation"])\n'
        '  n4(["escalated<br/>escalation"])\n'
        '  n5(["exhausted<br/>exhaustion"])\n'
        "  begin --> n0\n"
        '  n0 -->|"answered if repaired"| n2\n'
        "  n0 --> n1\n"
        '  anywhere(("any node"))\n'
        '  anywhere -. "failed" .-> n2\n'
        '  anywhere -. "cancelled" .-> n3\n'
        '  anywhere -. "escalated" .-> n4\n'
        '  anywhere -. "exhausted" .-> n5\n'
    )


@pytest.mark.parametrize(
    "name",
    [
        'end"]\n  n9["gone',
        "<script>alert(1)</script>",
        "%%{init: {}}%%",
        "`markdown`",
        "a;b|c#quot;",
        "click n0 call x()",
        "end",
        "\u202eright to left",
        "line\nbreak\ttab",
    ],
)
def test_no_name_breaks_out_of_its_label(name: str) -> None:
    drawing = draw_mermaid(compile_graph(graph_of(name, condition='last_tool == "|" || last_tool == "]"')))
    assert all(LINE.fullmatch(line) for line in drawing.splitlines())
    assert len(drawing.splitlines()) == len(draw_mermaid(compile_graph(graph_of("plain"))).splitlines())


def test_a_character_that_could_be_syntax_is_written_as_its_code() -> None:
    assert "a#34;b#35;c" in draw_mermaid(compile_graph(graph_of('a"b#c')))


@pytest.mark.parametrize("kind", [kind for kind in NodeKind if kind is not NodeKind.TERMINAL])
def test_every_kind_has_a_shape(kind: NodeKind) -> None:
    node = Node("here", kind, rules=RULES, children=3, join=JoinRule.QUORUM)
    graph = Graph("one", "here", (node, *TERMINALS), (Edge("here", "done"),), EXITS)
    drawing = draw_mermaid(compile_graph(graph))
    assert all(LINE.fullmatch(line) for line in drawing.splitlines())
    assert f"here<br/>{kind}" in drawing


@pytest.mark.parametrize("join", JoinRule)
def test_a_map_shows_its_children_and_how_they_join(join: JoinRule) -> None:
    node = Node("vote", NodeKind.MAP, children=3, join=join)
    graph = Graph("one", "vote", (node, *TERMINALS), (Edge("vote", "done"),), EXITS)
    assert f"map of 3, join {join}, EXECUTE" in draw_mermaid(compile_graph(graph))
