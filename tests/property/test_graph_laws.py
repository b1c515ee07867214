"""Laws of graphs: a refusal shows a real path, and a graph that compiles lets every run end."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from remit.core.journal.canonical import INTEGER_MAX, canonical_hash
from remit.core.work.graph import (
    EXITS,
    OUTCOMES,
    OWN_OUTCOMES,
    TERMINALS,
    UNIVERSAL_OUTCOMES,
    Edge,
    EndingClass,
    Graph,
    Node,
    NodeKind,
    NodeOutcome,
    ToolRules,
    graph_version,
)
from remit.kernel.graph.compiled import CompiledGraph, GraphRefused, GuardUndecided, compile_graph
from remit.kernel.graph.draw import draw_mermaid
from remit.kernel.graph.edge_conditions import GUARD_VIEW, parse_guard
from remit.kernel.graph.expressions import GuardType, condition_holds
from remit.kernel.graph.graph_checks import GraphProblem
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.setup.graph_file import read_graph
from tests.depth import examples
from tests.text_files import from_text

RULES = ToolRules("boundary", "registry", "tool_calls", 1000, "result_schema")
KINDS = [kind for kind in NodeKind if kind is not NodeKind.TERMINAL]
NAMES = [f"n{i}" for i in range(6)]
ENDS = [node.name for node in TERMINALS]
# The last two are wrong: one has no value, the other is no condition at all.
CONDITIONS = ["", "", "repaired", "visits > 1", "visits / (visits - visits) == 1", "visits +"]

# A success that was not earned leads by an exit to work that nearly always leads to the same success.
UNEARNED = Graph(
    "unearned",
    "mend",
    (Node("mend", NodeKind.MODEL), *TERMINALS),
    (
        *(Edge("mend", end, "answered", "visits > 1000") for _, end in EXITS),
        *(Edge("mend", "failed", outcome) for outcome, _ in EXITS),
        Edge("mend", "done"),
    ),
    tuple((outcome, "mend") for outcome, _ in EXITS),
)

bounds = st.sampled_from([0, 0, 1, 3])
targets = st.sampled_from([*NAMES, *ENDS])


@st.composite
def wild_graphs(draw: st.DrawFn) -> Graph:
    """Anything that has the form of a graph; nearly all of these are refused, for every reason there is."""
    names = draw(st.lists(st.sampled_from([*NAMES, *ENDS]), max_size=7))
    nodes = [
        Node(
            name,
            draw(st.sampled_from(NodeKind)),
            visits_max=draw(bounds),
            rules=draw(st.sampled_from([None, RULES])),
            ending=draw(st.sampled_from([None, *EndingClass])),
        )
        for name in names
    ]
    outcomes = st.sampled_from(["", "", *NodeOutcome, "unheard_of"])
    edge = st.builds(Edge, targets, targets, outcomes, st.sampled_from(CONDITIONS))
    exits = draw(st.lists(st.tuples(st.sampled_from([*UNIVERSAL_OUTCOMES, "answered"]), targets), max_size=5))
    terminals = draw(st.sampled_from([(), TERMINALS, TERMINALS]))
    return Graph("wild", draw(targets), (*nodes, *terminals), tuple(draw(st.lists(edge, max_size=10))), tuple(exits))


@st.composite
def tame_graphs(draw: st.DrawFn) -> Graph:
    """Graphs with everything in place but their cycles, which are left to chance; many of these compile."""
    count = draw(st.integers(1, len(NAMES)))
    here = NAMES[:count]
    nodes = [Node(n, draw(st.sampled_from(KINDS)), visits_max=draw(bounds), rules=RULES, children=2) for n in here]
    everywhere = [*here, *ENDS]
    edges: list[Edge] = []
    for position, node in enumerate(nodes):
        # A conditional edge to the next node keeps everything reachable.
        onward = here[position + 1] if position + 1 < count else "done"
        edges.append(Edge(node.name, onward, draw(st.sampled_from(["", *OWN_OUTCOMES[node.kind]])), "repaired"))
        named = draw(st.lists(st.sampled_from(sorted(OUTCOMES[node.kind])), unique=True, max_size=3))
        for outcome in named:
            condition = draw(st.sampled_from(CONDITIONS[:-1]))
            # What befalls any node never leads straight to a success; that is refused, and tested elsewhere.
            targets = [*here, *ENDS[1:]] if outcome in UNIVERSAL_OUTCOMES else everywhere
            edges.append(Edge(node.name, draw(st.sampled_from(targets)), outcome, condition))
        edges.append(Edge(node.name, draw(st.sampled_from(everywhere))))
    exits = tuple((outcome, draw(st.sampled_from([end, end, end, *here]))) for outcome, end in EXITS)
    return Graph("tame", here[0], (*nodes, *TERMINALS), tuple(edges), exits)


graphs = wild_graphs() | tame_graphs()


def compiled_or_problems(graph: Graph) -> CompiledGraph | tuple[GraphProblem, ...]:
    try:
        return compile_graph(graph)
    except GraphRefused as refused:
        return refused.problems


def is_move(graph: Graph, source: str, target: str) -> bool:
    by_edge = any((edge.source, edge.target) == (source, target) for edge in graph.edges)
    return by_edge or any(exit_target == target for _, exit_target in graph.exits)


def could_repeat(graph: Graph, source: str, target: str) -> bool:
    """Whether this move is still possible when every bound is used up."""
    node = next(node for node in graph.nodes if node.name == source)
    if not node.visits_max or node.kind is NodeKind.TERMINAL:
        return True
    own = [e for e in graph.edges if e.source == source and e.outcome == NodeOutcome.EXHAUSTED]
    return target in {e.target for e in own} | {t for outcome, t in graph.exits if outcome == NodeOutcome.EXHAUSTED}


@pytest.mark.req("4.19")
@given(graphs)
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_a_refusal_shows_paths_that_exist_in_the_graph(graph: Graph) -> None:
    result = compiled_or_problems(graph)
    if isinstance(result, CompiledGraph):
        return
    names = {node.name for node in graph.nodes}
    for problem in result:
        assert 0 <= problem.check <= 6
        assert set(problem.path) <= names
        assert all(is_move(graph, a, b) for a, b in zip(problem.path, problem.path[1:], strict=False))
        if problem.check == 2:
            assert problem.path[0] == problem.path[-1]
            assert all(could_repeat(graph, a, b) for a, b in zip(problem.path, problem.path[1:], strict=False))
        elif len(problem.path) > 1:
            assert problem.path[0] == graph.start


class Walker:
    """One run in which chance decides every outcome and every view."""

    def __init__(self, compiled: CompiledGraph, random: Random) -> None:
        self.compiled = compiled
        self.random = random
        self.visits = [0] * len(compiled.nodes)
        # Between two visits to bounded nodes no node comes twice.
        self.moves_left = (sum(node.visits_max for node in compiled.nodes) + 1) * (len(compiled.nodes) + 1)

    def is_used_up(self, at: int) -> bool:
        node = self.compiled.nodes[at]
        return node.kind is not NodeKind.TERMINAL and 0 < node.visits_max <= self.visits[at]

    def is_over(self, at: int) -> bool:
        """A success is nearly never earned here, so that runs go on as long as they can."""
        node = self.compiled.nodes[at]
        return node.kind is NodeKind.TERMINAL and (
            node.ending is not EndingClass.SUCCESS or self.random.random() < 0.02
        )

    def move(self, at: int, outcome: str) -> int:
        self.moves_left -= 1
        assert self.moves_left >= 0, "a run that does not end"
        return self.compiled.next_node(at, outcome, partial(shown, self.random, self.visits[at]))

    def walk(self, *, exhausted_before: bool) -> None:
        """Exhaustion is taken at the node before the one that is used up, as the kernel does, or at that node itself."""
        at = self.compiled.start
        while not self.is_over(at):
            self.visits[at] += 1
            target = self.move(at, self.random.choice(sorted(OUTCOMES[self.compiled.nodes[at].kind])))
            if exhausted_before and self.is_used_up(target):
                target = self.move(at, NodeOutcome.EXHAUSTED)
                if self.is_used_up(target):
                    return  # Exhausted on the way to its own exit: the kernel ends the run here.
            while self.is_used_up(target):
                target = self.move(target, NodeOutcome.EXHAUSTED)
            at = target


def shown(random: Random, visits: int, names: tuple[str, ...]) -> dict[str, Any]:
    plain = {GuardType.STRING: "", GuardType.INT: visits, GuardType.BOOL: random.random() < 0.5}
    return {name: plain[GUARD_VIEW[name]] for name in names}


@pytest.mark.req("4.19")
@given(tame_graphs(), st.integers(0, 2**32))
@example(chat_graph(), 0)
@example(UNEARNED, 0)
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_every_run_of_a_graph_that_compiles_ends(graph: Graph, seed: int) -> None:
    compiled = compiled_or_problems(graph)
    if isinstance(compiled, CompiledGraph):
        random = Random(seed)
        for exhausted_before in (True, False) * 5:
            with suppress(GuardUndecided):
                Walker(compiled, random).walk(exhausted_before=exhausted_before)


@given(tame_graphs())
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
def test_bounds_on_every_node_with_exhaustion_leading_out_settle_every_cycle(graph: Graph) -> None:
    bounded = msgspec.structs.replace(
        graph,
        nodes=tuple(
            n if n.kind is NodeKind.TERMINAL else msgspec.structs.replace(n, visits_max=1) for n in graph.nodes
        ),
        edges=tuple(edge for edge in graph.edges if edge.outcome != NodeOutcome.EXHAUSTED),
        exits=EXITS,
    )
    assert isinstance(compile_graph(bounded), CompiledGraph)


def friendly(graph: Graph) -> str:
    """The graph as a file would spell it; JSON is YAML."""
    nodes: dict[str, dict[str, Any]] = {}
    for node in graph.nodes:
        fields = msgspec.to_builtins(node)
        name = fields.pop("name")
        if "lease" in fields:
            fields["lease"] = dict(fields["lease"])
        keys = {"target": "to", "outcome": "outcome", "condition": "when"}
        own = [msgspec.to_builtins(edge) for edge in graph.edges if edge.source == node.name]
        fields["edges"] = [{keys[k]: v for k, v in edge.items() if k in keys} for edge in own]
        nodes[name] = fields
    return json.dumps({"name": graph.name, "start": graph.start, "nodes": nodes, "exits": dict(graph.exits)})


@given(tame_graphs())
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_a_version_survives_every_way_of_writing_and_reading_a_graph(graph: Graph) -> None:
    version = graph_version(graph)
    assert graph_version(msgspec.json.decode(msgspec.json.encode(graph), type=Graph)) == version
    assert graph_version(msgspec.msgpack.decode(msgspec.msgpack.encode(graph), type=Graph)) == version
    assert graph_version(from_text(read_graph, friendly(graph), "file")) == version


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(tame_graphs(), texts, texts, st.integers(0, 10**9))
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_a_version_is_the_hash_of_the_canonical_form(graph: Graph, name: str, prompt: str, bound: int) -> None:
    odd = Node(name, NodeKind.CHILD, visits_max=bound, prompt=prompt, lease=(("steps", INTEGER_MAX), (prompt, bound)))
    graph = msgspec.structs.replace(graph, name=name, nodes=(odd, *graph.nodes))
    assert graph_version(graph) == canonical_hash(msgspec.to_builtins(graph)).hex()


@st.composite
def conditions(draw: st.DrawFn, levels: int = 3) -> str:
    """Conditions with any names of the view, their texts and comments full of others."""
    if levels and draw(st.booleans()):
        glue = draw(st.sampled_from([" && ", "||", " ? false : ", "==", "\n!= "]))
        return f"({draw(conditions(levels - 1))}){glue}({draw(conditions(levels - 1))})"
    name, other = draw(st.sampled_from(sorted(GUARD_VIEW))), draw(st.sampled_from(sorted(GUARD_VIEW)))
    written = {
        GuardType.STRING: [f'{name}=="{other}"', f'"{other}"in[{name},"b"]', f'{name}.contains("a") // {other}\n'],
        GuardType.INT: [f"{name}>1", f"1>{name}%3", f"[1,2]==[{name},2]", f"-{name}<0x1", f"4/{name}==2"],
        GuardType.BOOL: [name, f"!{name}", f"(.{name})"],
    }
    return draw(st.sampled_from(written[GUARD_VIEW[name]]))


@given(conditions(), st.integers(0, 3), st.booleans())
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_a_condition_needs_no_other_names_than_its_program_says(source: str, number: int, truth: bool) -> None:
    program = parse_guard(source)
    plain = {GuardType.STRING: "a", GuardType.INT: number, GuardType.BOOL: truth}
    view = {name: plain[kind] for name, kind in GUARD_VIEW.items()}
    assert condition_holds(program, {name: view[name] for name in program.names}) is condition_holds(program, view)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100))
@settings(max_examples=examples(100))
def test_no_name_changes_the_lines_of_a_drawing(name: str) -> None:
    if name in ENDS:
        return
    graph = Graph(name, name, (Node(name, NodeKind.MODEL), *TERMINALS), (Edge(name, "done"),), EXITS)
    plain = Graph("p", "p", (Node("p", NodeKind.MODEL), *TERMINALS), (Edge("p", "done"),), EXITS)
    lines, expected = draw_mermaid(compile_graph(graph)).split("\n"), draw_mermaid(compile_graph(plain)).split("\n")
    assert [line for line in lines if not line.startswith('  n0["')] == [
        line for line in expected if not line.startswith('  n0["')
    ]
    [label] = [line for line in lines if line.startswith('  n0["')]
    assert label.isascii()
    assert label.count('"') == 2


ELSEWHERE = """
import sys, msgspec
from remit.core.work.graph import Graph
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.graph.draw import draw_mermaid
from hashlib import sha256
for graph in msgspec.json.decode(sys.stdin.buffer.read(), type=list[Graph]):
    compiled = compile_graph(graph)
    print(compiled.version, sha256(draw_mermaid(compiled).encode()).hexdigest())
"""


@pytest.mark.slow
def test_versions_and_drawings_are_equal_in_every_process() -> None:
    batch = [chat_graph(rounds, repairs) for rounds in (1, 20) for repairs in (0, 2)]
    data = msgspec.json.encode(batch)
    printed = {
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            input=data,
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1
    versions = [line.split()[0] for line in printed.pop().decode().splitlines()]
    assert versions == [compile_graph(graph).version for graph in batch]
