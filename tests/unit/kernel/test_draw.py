"""Drawing: deterministic, complete, and deaf to whatever names contain."""

import re

import pytest

from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, JoinRule, Node, NodeKind, ToolRules, schema_text
from remit.core.work.plan import ExecutionPlan, PlanPolicy, Step
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.graph.draw import draw_mermaid
from remit.orchestrate.patterns.handlers import InferHandler
from remit.orchestrate.patterns.plan_graph import Handlers, plan_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph

RULES = ToolRules("boundary", "registry", "tool_calls", 1000, "result_schema")

REACHES = [JoinRule]

# Every line of a drawing is one of these; a name that broke out of its quotes would make another. What stands in a node
# is set in, and named after the node.
LINE = re.compile(
    r"""flowchart\ TD
    |(?:\ \ )+(?:n\d+_)*begin\(\(start\)\)
    |(?:\ \ )+(?:n\d+_)*begin\ -->\ (?:n\d+_)*n\d+
    |(?:\ \ )+subgraph\ (?:n\d+_)*n\d+\["[^"<>`|\[\]{}()]*(?:<br/>[^"<>`|\[\]{}()]*)+"\]
    |(?:\ \ )+end
    |(?:\ \ )+(?:n\d+_)*n\d+\ -\.\ "feeds"\ \.->\ (?:n\d+_)*n\d+
    |\ \ anywhere\(\("any\ node"\)\)
    |\ \ anywhere\ -\.\ "[a-z]+"\ \.->\ n\d+
    |(?:\ \ )+(?:n\d+_)*n\d+[\[({>/\\]{1,2}"[^"<>`|\[\]{}()]*(?:<br/>[^"<>`|\[\]{}()]*)+"[\])}/\\]{1,2}
    |(?:\ \ )+(?:n\d+_)*n\d+\ -->(?:\|"[^"<>`|\[\]{}()]+"\|)?\ (?:n\d+_)*n\d+""",
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


# Graphs in graphs, votes and feeds.

SCHEMA = schema_text({"type": "object"})


def test_a_graph_inside_a_node_is_a_box_with_its_way_to_success() -> None:
    drawn = draw_mermaid(compile_graph(redundant_graph(SCHEMA, "", Redundancy(early_stop=True)))).splitlines()
    begins, ends = (
        drawn.index('  subgraph n1["replica<br/>child, EXECUTE<br/>runs structured<br/>visits_max 3"]'),
        drawn.index("  end"),
    )
    box = drawn[begins + 1 : ends]
    assert box[0] == "    n1_begin((start))"
    assert any(line.startswith('    n1_n0["produce') for line in box)
    assert "    n1_begin --> n1_n0" in box
    assert not any("cancellation" in line or "anywhere" in line for line in box), "exits are drawn outside"
    assert '  n2 -->|"undecided"| n1' in drawn, "an edge leads to the box as to any node"


def test_a_vote_says_who_counts_among_how_many_and_whether_it_may_end_early() -> None:
    settled = draw_mermaid(compile_graph(redundant_graph(SCHEMA, "", Redundancy(early_stop=True))))
    assert "vote#58;majority among 3 of replica, may end early<br/>" in settled
    assert "vote#58;unanimity among 5 of replica<br/>" in draw_mermaid(
        compile_graph(redundant_graph(SCHEMA, "", Redundancy(5, "unanimity")))
    )


def test_a_plan_shows_the_type_of_each_step_and_who_feeds_whom() -> None:
    steps = (
        Step("one", "custom", "x"),
        Step("two", "custom"),
        Step("three", "custom", source="one"),
        Step("ask", "infer"),
    )
    work: Handlers = {"custom": str, "infer": InferHandler(ScriptedEngine([{"text": "x"}]))}
    graph = plan_graph(ExecutionPlan(steps), PlanPolicy(require_linear=False), work)
    drawn = draw_mermaid(compile_graph(graph))
    assert '  n2{"one<br/>decide, EXECUTE<br/>step of type custom<br/>visits_max 1"}' in drawn
    assert '  n2 -. "feeds" .-> n4' in drawn
    assert drawn.count("feeds") == 1, "a step that leads to the next one needs no second line"
    assert "step of type infer, takes messages, gives text<br/>runs chat<br/>" in drawn
    assert all(LINE.fullmatch(line) for line in drawn.splitlines())


def test_hostile_names_inside_a_box_are_no_syntax_either() -> None:
    hostile = 'end"]\n  end\n  n9["gone'
    inner = graph_of(hostile)
    outer = Node("outer", NodeKind.CHILD, inner=inner, lease=(("steps", 5),))
    graph = Graph(hostile, "outer", (outer, *TERMINALS), (Edge("outer", "done"),), EXITS)
    drawn = draw_mermaid(compile_graph(graph)).splitlines()
    assert all(LINE.fullmatch(line) for line in drawn)
    assert drawn.count("  end") == 1


def test_boxes_stand_in_boxes() -> None:
    vote = redundant_graph(SCHEMA, "", Redundancy())
    outer = Node("outer", NodeKind.CHILD, inner=vote, lease=(("steps", 50), ("child_runs", 3)))
    graph = Graph("nested", "outer", (outer, *TERMINALS), (Edge("outer", "done"),), EXITS)
    drawn = draw_mermaid(compile_graph(graph))
    assert "      n0_n1_begin --> n0_n1_n0" in drawn
    assert all(LINE.fullmatch(line) for line in drawn.splitlines())
