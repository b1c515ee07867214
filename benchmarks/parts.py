"""Parts of the kernel that stand alone: compiling a large graph, evaluating a guard, authorizing a call."""

import asyncio
from itertools import count

from benchmarks.measure import Effort, Figure, compare
from benchmarks.stage import Stage
from benchmarks.turns import picked
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.proposed_call import ProposedCall
from remit.core.record import replace
from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind, NodeOutcome, ToolRules
from remit.kernel.authority.authorize import authorize
from remit.kernel.authority.verdict import ALLOWED, Verdict
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.graph.condition_view import view_of
from remit.kernel.graph.edge_conditions import parse_guard
from remit.kernel.graph.expressions import condition_holds
from remit.kernel.tally import Tally

GUARD = "outcome == 'answered' && visits < 3 && left_tool_calls > 0"
# Compiled graphs and parsed guards are kept by the process, so each graph is new and has guards that no other has.
SEEDS = count(1)

_RULES = ToolRules("boundary", "registry", "tool_calls", 30_000, "result_schema")


def measure_parts(effort: Effort) -> list[Figure]:
    """The three, each against the same work without its checks."""
    tally, call = judged_call(effort)
    return [*measure_compile(effort), *measure_guard(tally, effort), measure_authorize(tally, call, effort)]


def measure_compile(effort: Effort) -> list[Figure]:
    """A graph of a thousand nodes, checked and made ready, against walking over its nodes and edges once.

    Without conditions, and with one for each stage that was never seen before.
    """
    graph = staged_graph(0, effort.graph_stages, is_guarded=False)

    def walk() -> None:
        index = {node.name: position for position, node in enumerate(graph.nodes)}
        ways: list[list[int]] = [[] for _ in graph.nodes]
        for edge in graph.edges:
            ways[index[edge.source]].append(index[edge.target])

    def plain() -> None:
        compile_graph(replace(graph, name=f"staged {next(SEEDS)}"))

    def guarded() -> None:
        compile_graph(staged_graph(next(SEEDS), effort.graph_stages))

    name, floor = f"compile a graph of {len(graph.nodes):,} nodes", "one walk over nodes and edges"
    return [
        compare(name, plain, floor, walk, operations=1, effort=effort),
        compare(f"the same, {effort.graph_stages} new conditions", guarded, floor, walk, operations=1, effort=effort),
    ]


def staged_graph(seed: int, stages: int, *, is_guarded: bool = True) -> Graph:
    """Stages of thinking, acting and checking, one after the other, with guards that are this graph's own."""
    nodes = [Node("prepare", NodeKind.RETRIEVE), Node("order", NodeKind.RERANK, code="order")]
    edges = [Edge("prepare", "order"), Edge("order", "think 0")]
    for stage in range(stages):
        think, act, check = f"think {stage}", f"act {stage}", f"check {stage}"
        nodes += [
            Node(think, NodeKind.MODEL),
            Node(act, NodeKind.TOOL, visits_max=20, rules=_RULES),
            Node(check, NodeKind.VALIDATE, visits_max=3),
        ]
        after = f"think {stage + 1}" if stage + 1 < stages else "done"
        edges += [
            Edge(think, act, NodeOutcome.CALLED_TOOLS),
            Edge(think, check),
            Edge(act, think, condition=f"left_tool_calls > {seed * stages + stage}")
            if is_guarded
            else Edge(act, think, NodeOutcome.SETTLED),
            Edge(act, check),
            Edge(check, after, NodeOutcome.PASSED),
            Edge(check, think),
        ]
    return Graph(f"staged {seed}", "prepare", (*nodes, *TERMINALS), tuple(edges), EXITS)


def measure_guard(tally: Tally, effort: Effort) -> list[Figure]:
    """A guard of three comparisons against the same in Python, and the view it looks at against an empty dict."""
    program = parse_guard(GUARD)
    view = view_of(tally, "answered", program.names)

    def compare_in_python() -> bool:
        return view["outcome"] == "answered" and view["visits"] < 3 and view["left_tool_calls"] > 0  # type: ignore[operator]

    return [
        compare(
            "evaluate a guard",
            lambda: condition_holds(program, view),
            "the same in Python",
            compare_in_python,
            operations=1,
            effort=effort,
        ),
        compare(
            "view for guards",
            lambda: view_of(tally, "answered", program.names),
            "copying the finished view",
            lambda: dict(view),
            operations=1,
            effort=effort,
        ),
    ]


def measure_authorize(tally: Tally, call: ProposedCall, effort: Effort) -> Figure:
    """A call that every check left for its tool allows, against as many checks that look at nothing."""
    assert authorize(call, tally) is ALLOWED
    # Found out with the first call of a tool.
    empty = (agree,) * len(tally.state.derived.checks[call.tool])
    return compare(
        "authorize a call",
        lambda: authorize(call, tally),
        f"{len(empty)} empty checks",
        lambda: authorize(call, tally, empty),
        operations=1,
        effort=effort,
    )


def agree(call: ProposedCall, tally: Tally) -> Verdict:
    """Object to nothing."""
    return ALLOWED


def judged_call(effort: Effort) -> tuple[Tally, ProposedCall]:
    """A call from the middle of a run, and the tally with which it was judged."""
    stage = Stage()

    async def play() -> list[bytes]:
        await stage.play(effort.loops)
        return list(await stage.written())

    met = picked(asyncio.run(play()))
    state, turn = next(pair for pair in met[len(met) // 2 :] if isinstance(pair[1].arrival, ModelAnswered))
    assert isinstance(turn.arrival, ModelAnswered)
    return Tally(state, turn.at_ms), turn.arrival.calls[0]
