"""The checks: each finds what it is there for, alone, and shows the way to it."""

from typing import Any

import msgspec
import pytest

from remit.core.record import replace
from remit.core.run.lifecycle import AgentRole, LifecycleState
from remit.core.work.graph import (
    EXITS,
    REQUIRED_RULES,
    TERMINALS,
    Ask,
    Ballot,
    Edge,
    EndingClass,
    Graph,
    Node,
    NodeKind,
    StepInput,
    TerminalWrite,
    ToolRules,
    terminal,
)
from remit.kernel.graph.compiled import INNER_DEPTH_MAX, GraphRefused, compile_graph
from remit.kernel.graph.graph_checks import CHECKS, PROBLEMS_PER_CHECK_MAX, GraphFault, GraphProblem
from remit.orchestrate.patterns.chat_graph import chat_graph

REACHES = [EndingClass, TerminalWrite]

RULES = ToolRules("boundary", "registry", "tool_calls", 1000, "result_schema")
THINK = Node("think", NodeKind.MODEL)
ACT = Node("act", NodeKind.TOOL, visits_max=3, rules=RULES)
CHECK = Node("check", NodeKind.VALIDATE, visits_max=2)
EDGES = (
    Edge("think", "act", "called_tools"),
    Edge("think", "check"),
    Edge("act", "think"),
    Edge("check", "done", "passed"),
    Edge("check", "think"),
)


REPLICA = Node("act", NodeKind.CHILD, visits_max=3)
# Where a decide node stands in the place of the check.
VOTED = (*EDGES[:3], Edge("check", "think", "undecided"), Edge("check", "done"))


def graph(
    *nodes: Node,
    edges: tuple[Edge, ...] = EDGES,
    exits: tuple[tuple[str, str], ...] = EXITS,
    terminals: tuple[Node, ...] = TERMINALS,
    start: str = "think",
) -> Graph:
    """A sound graph in which the given nodes replace those of the same name, or are added."""
    by_name = {node.name: node for node in (THINK, ACT, CHECK, *nodes, *terminals)}
    return Graph("sample", start, tuple(by_name.values()), edges, exits)


def voting(ballot: Ballot, *nodes: Node, replica: Node = REPLICA, code: str = "vote:majority") -> Graph:
    """A sound graph but for its vote, which stands in the place of the check."""
    vote = Node("check", NodeKind.DECIDE, visits_max=3, code=code, ballot=ballot)
    return graph(replica, vote, *nodes, edges=VOTED)


def nested(depth: int) -> Graph:
    """So many graphs, each within the next."""
    inner = None if depth == 1 else nested(depth - 1)
    child = Node("child", NodeKind.CHILD, inner=inner, visits_max=1)
    return Graph("nested", "child", (child, *TERMINALS), (Edge("child", "done"),), EXITS)


def problems_of(broken: Graph) -> tuple[GraphProblem, ...]:
    with pytest.raises(GraphRefused) as caught:
        compile_graph(broken)
    return caught.value.problems


def only_problem(broken: Graph) -> GraphProblem:
    problems = problems_of(broken)
    assert len(problems) == 1, problems
    return problems[0]


def changed(node: Node, **fields: Any) -> Node:
    return msgspec.structs.replace(node, **fields)


# Each row breaks exactly one check: the graph, the check's number, the fault, and the path that shows it.
BROKEN: dict[str, tuple[Graph, int, GraphFault, tuple[str, ...]]] = {
    "a start that is no node and has no problem of its own": (
        Graph("empty", "nowhere", TERMINALS, (), EXITS),
        0,
        GraphFault.START_UNKNOWN,
        (),
    ),
    "a tool node that asks a model": (
        graph(changed(ACT, ask=Ask("Be brief."))),
        0,
        GraphFault.ASK_MISPLACED,
        ("think", "act"),
    ),
    "a model node with filters of its own": (
        graph(changed(THINK, ask=Ask(filters=("look",)))),
        0,
        GraphFault.ASK_MISPLACED,
        ("think",),
    ),
    "a model node with a role of its own": (
        graph(changed(THINK, ask=Ask(role=AgentRole.REVIEWER))),
        0,
        GraphFault.ASK_MISPLACED,
        ("think",),
    ),
    "a feed of a kind that nobody knows": (
        graph(changed(CHECK, feed=StepInput("riddle", kind="text"))),
        0,
        GraphFault.FEED_UNKNOWN,
        ("think", "check"),
    ),
    "a step that is fed by a node without an output": (
        graph(changed(CHECK, feed=StepInput(source="think"))),
        0,
        GraphFault.FEED_UNKNOWN,
        ("think", "check"),
    ),
    "a step that is fed by nobody there is": (
        graph(changed(CHECK, feed=StepInput(source="nobody"))),
        0,
        GraphFault.FEED_UNKNOWN,
        ("think", "check"),
    ),
    "a model that is fed": (
        graph(changed(THINK, feed=StepInput(kind="text"))),
        0,
        GraphFault.FEED_UNKNOWN,
        ("think",),
    ),
    "a child of whom nobody knows what it gives": (
        graph(changed(ACT, kind=NodeKind.CHILD, rules=None, feed=StepInput(kind="text"))),
        0,
        GraphFault.FEED_UNKNOWN,
        ("think", "act"),
    ),
    "a vote that nobody counts": (
        voting(Ballot("act", 3), code=""),
        0,
        GraphFault.BALLOT_UNKNOWN,
        ("think", "check"),
    ),
    "a vote of nobody": (
        voting(Ballot("act", 0), changed(THINK, visits_max=9), replica=changed(REPLICA, visits_max=0)),
        0,
        GraphFault.BALLOT_UNKNOWN,
        ("think", "check"),
    ),
    "a vote among the calls of a tool": (
        graph(changed(CHECK, kind=NodeKind.DECIDE, code="vote:majority", ballot=Ballot("act", 3)), edges=VOTED),
        0,
        GraphFault.BALLOT_UNKNOWN,
        ("think", "check"),
    ),
    "a vote among the children of a node that is not there": (
        voting(Ballot("nobody", 3)),
        0,
        GraphFault.BALLOT_UNKNOWN,
        ("think", "check"),
    ),
    "a vote among fewer children than there will be": (
        voting(Ballot("act", 2)),
        0,
        GraphFault.BALLOT_UNKNOWN,
        ("think", "check"),
    ),
    "a vote among more children than there will be": (
        voting(Ballot("act", 4), replica=changed(REPLICA, kind=NodeKind.MAP, children=2, visits_max=1)),
        0,
        GraphFault.BALLOT_UNKNOWN,
        ("think", "check"),
    ),
    "a tool node with a graph within": (
        graph(changed(ACT, inner=chat_graph())),
        0,
        GraphFault.INNER_MISPLACED,
        ("think", "act"),
    ),
    "a model node that names a model": (
        graph(changed(THINK, model="another")),
        0,
        GraphFault.INNER_MISPLACED,
        ("think",),
    ),
    "an inner graph that may not run": (
        graph(changed(REPLICA, inner=Graph("inner", "nowhere", TERMINALS, (), EXITS))),
        0,
        GraphFault.INNER_REFUSED,
        ("think", "act"),
    ),
    "graphs within graphs beyond the limit": (
        graph(changed(REPLICA, inner=nested(INNER_DEPTH_MAX + 1))),
        0,
        GraphFault.INNER_REFUSED,
        ("think", "act"),
    ),
    "an ask for a call and for a shape": (
        graph(changed(THINK, ask=Ask(schema="{}", must_call=True))),
        0,
        GraphFault.ASK_CONTRADICTORY,
        ("think",),
    ),
    "an ask for a call of none": (
        graph(changed(THINK, ask=Ask(tools=(), must_call=True))),
        0,
        GraphFault.ASK_CONTRADICTORY,
        ("think",),
    ),
    "an ask for what is no schema": (
        graph(changed(THINK, ask=Ask(schema='{"type": "sentence"}'))),
        0,
        GraphFault.ASK_SCHEMA_INVALID,
        ("think",),
    ),
    "a node declared twice": (
        Graph("sample", "think", (THINK, ACT, CHECK, THINK, *TERMINALS), EDGES, EXITS),
        0,
        GraphFault.NODE_REPEATED,
        (),
    ),
    "a node nothing leads to": (
        graph(Node("island", NodeKind.MODEL), edges=(*EDGES, Edge("island", "done"))),
        0,
        GraphFault.NODE_UNREACHABLE,
        ("island",),
    ),
    "a node that ends nothing and says it does": (
        graph(changed(CHECK, lifecycle=LifecycleState.COMPLETE)),
        0,
        GraphFault.LIFECYCLE_MISPLACED,
        ("think", "check"),
    ),
    "a terminal that does not say it ends": (
        graph(terminals=(changed(TERMINALS[0], lifecycle=LifecycleState.EXECUTE), *TERMINALS[1:])),
        0,
        GraphFault.LIFECYCLE_MISPLACED,
        ("think", "check", "done"),
    ),
    "a map that starts nothing": (
        graph(Node("check", NodeKind.MAP, visits_max=2), edges=(*EDGES[:3], Edge("check", "done"))),
        0,
        GraphFault.MAP_WITHOUT_CHILDREN,
        ("think", "check"),
    ),
    "a lease of something that cannot be leased": (
        graph(changed(ACT, lease=(("context_tokens", 5),))),
        0,
        GraphFault.LEASE_UNKNOWN,
        ("think", "act"),
    ),
    "a lease of nothing": (
        graph(changed(ACT, lease=(("tool_calls", 0),))),
        0,
        GraphFault.LEASE_UNKNOWN,
        ("think", "act"),
    ),
    "a node without edges": (
        graph(Node("stray", NodeKind.MODEL), edges=(Edge("think", "stray", "", "left_steps < 3"), *EDGES)),
        1,
        GraphFault.WAY_OUT_MISSING,
        ("think", "stray"),
    ),
    "a last edge that waits for an outcome": (
        graph(edges=(*EDGES[:2], Edge("act", "think", "settled"), *EDGES[3:])),
        1,
        GraphFault.LAST_EDGE_CONDITIONAL,
        ("think", "act"),
    ),
    "a last edge with a condition": (
        graph(edges=(*EDGES[:2], Edge("act", "think", "", "visits < 9"), *EDGES[3:])),
        1,
        GraphFault.LAST_EDGE_CONDITIONAL,
        ("think", "act"),
    ),
    "a cycle without a bound": (
        graph(changed(ACT, visits_max=0)),
        2,
        GraphFault.CYCLE_WITHOUT_BOUND,
        ("think", "act", "think"),
    ),
    "a node that leads to itself without a bound": (
        graph(edges=(Edge("think", "think", "called_tools", "repaired"), *EDGES)),
        2,
        GraphFault.CYCLE_WITHOUT_BOUND,
        ("think", "think"),
    ),
    "a cycle whose bound leads back into it": (
        graph(edges=(*EDGES[:2], Edge("act", "think", "exhausted"), *EDGES[2:])),
        2,
        GraphFault.CYCLE_WITHOUT_EXIT,
        ("think", "act", "think"),
    ),
    "an exit to a node that fails into the same exit": (
        graph(
            Node("mend", NodeKind.MODEL),
            edges=(*EDGES, Edge("mend", "failed")),
            exits=(("failed", "mend"), *EXITS[1:]),
        ),
        2,
        GraphFault.CYCLE_WITHOUT_BOUND,
        ("mend", "mend"),
    ),
    "an unearned success that leads to itself": (
        graph(
            Node("mend", NodeKind.MODEL),
            edges=(*EDGES, Edge("mend", "failed", "failed"), Edge("mend", "done")),
            exits=(("failed", "mend"), *EXITS[1:]),
        ),
        2,
        GraphFault.CYCLE_WITHOUT_BOUND,
        ("mend", "done", "mend"),
    ),
    "an edge to a node that does not exist": (
        graph(edges=(Edge("think", "nowhere", "called_tools", "repaired"), *EDGES)),
        3,
        GraphFault.EDGE_NODE_UNKNOWN,
        ("think",),
    ),
    "an edge from a node that does not exist": (
        graph(edges=(*EDGES, Edge("nowhere", "done"))),
        3,
        GraphFault.EDGE_NODE_UNKNOWN,
        (),
    ),
    "an edge that leaves a terminal": (
        graph(edges=(*EDGES, Edge("failed", "done"))),
        3,
        GraphFault.EDGE_FROM_TERMINAL,
        ("think", "failed"),
    ),
    "an outcome the node cannot have": (
        graph(edges=(Edge("think", "check", "approved"), *EDGES)),
        3,
        GraphFault.OUTCOME_UNKNOWN,
        ("think",),
    ),
    "a condition that does not parse": (
        graph(edges=(Edge("think", "check", "", "visits >"), *EDGES)),
        3,
        GraphFault.GUARD_REFUSED,
        ("think",),
    ),
    "a condition that is no BOOL": (
        graph(edges=(*EDGES[:3], Edge("check", "done", "", "visits + 1"), *EDGES[3:])),
        3,
        GraphFault.GUARD_REFUSED,
        ("think", "check"),
    ),
    "an edge behind an unconditional one": (
        graph(edges=(*EDGES, Edge("check", "done"))),
        3,
        GraphFault.EDGE_SHADOWED,
        ("think", "check"),
    ),
    "an edge behind one that takes its outcome for sure": (
        graph(edges=(Edge("think", "check", "called_tools"), *EDGES)),
        3,
        GraphFault.EDGE_SHADOWED,
        ("think",),
    ),
    "an exit for an outcome that has edges": (
        graph(exits=(*EXITS, ("answered", "done"))),
        3,
        GraphFault.OUTCOME_UNKNOWN,
        (),
    ),
    "an exit given twice": (
        graph(exits=(*EXITS, ("failed", "done"))),
        3,
        GraphFault.EXIT_REPEATED,
        (),
    ),
    "an ending on a node that is no terminal": (
        graph(changed(ACT, ending=EndingClass.SUCCESS)),
        0,
        GraphFault.ENDING_MISPLACED,
        ("think", "act"),
    ),
    "a cancellation that would end as a success": (
        graph(edges=(Edge("think", "done", "cancelled"), *EDGES)),
        5,
        GraphFault.SUCCESS_UNEARNED,
        ("think", "done"),
    ),
    "a tool node without rules": (
        graph(changed(ACT, rules=None)),
        4,
        GraphFault.TOOL_RULE_MISSING,
        ("think", "act"),
    ),
    "a tool node without a timeout": (
        graph(changed(ACT, rules=msgspec.structs.replace(RULES, timeout_ms=0))),
        4,
        GraphFault.TOOL_RULE_MISSING,
        ("think", "act"),
    ),
    "no exit for cancellation": (
        graph(exits=tuple(e for e in EXITS if e[0] != "cancelled"), terminals=(*TERMINALS[:2], *TERMINALS[3:])),
        5,
        GraphFault.EXIT_MISSING,
        ("think",),
    ),
    "an exit that never reaches its ending": (
        graph(
            exits=(EXITS[0], ("cancelled", "failed"), *EXITS[2:]),
            terminals=(*TERMINALS[:2], *TERMINALS[3:]),
        ),
        5,
        GraphFault.ENDING_OUT_OF_REACH,
        ("think", "failed"),
    ),
    "no way to succeed": (
        graph(
            edges=(*EDGES[:3], Edge("check", "failed", "passed"), EDGES[4]),
            terminals=TERMINALS[1:],
        ),
        5,
        GraphFault.ENDING_OUT_OF_REACH,
        ("think",),
    ),
    "a terminal without an ending": (
        graph(
            Node("odd", NodeKind.TERMINAL, writes=tuple(TerminalWrite)),
            edges=(Edge("think", "odd", "", "repaired"), *EDGES),
        ),
        6,
        GraphFault.ENDING_MISSING,
        ("think", "odd"),
    ),
    "a terminal that does not release": (
        graph(
            terminals=(
                changed(TERMINALS[0], writes=(TerminalWrite.TRACE, TerminalWrite.STATUS, TerminalWrite.FINAL_STATE)),
                *TERMINALS[1:],
            )
        ),
        6,
        GraphFault.WRITE_MISSING,
        ("think", "check", "done"),
    ),
}
# These two faults never come alone: what causes them breaks another check as well.
NEVER_ALONE = {GraphFault.START_UNKNOWN, GraphFault.TERMINAL_OUT_OF_REACH}


def test_the_sound_graph_passes() -> None:
    assert compile_graph(graph()).start == 0


def test_a_lease_of_counters_passes() -> None:
    helper = Node("check", NodeKind.CHILD, visits_max=2, lease=(("tool_calls", 5), ("steps", 9)))
    edges = (*EDGES[:3], Edge("check", "done"))
    assert compile_graph(graph(helper, edges=edges)).start == 0


@pytest.mark.req("4.19")
@pytest.mark.parametrize("name", [name for name, row in BROKEN.items() if row[2] not in NEVER_ALONE])
def test_a_graph_with_one_fault_is_refused_for_exactly_that(name: str) -> None:
    broken, check, fault, path = BROKEN[name]
    problem = only_problem(broken)
    assert (problem.check, problem.code, problem.path) == (check, fault, path)


@pytest.mark.req("4.19")
def test_each_of_the_six_checks_has_a_graph_that_breaks_it_alone() -> None:
    assert len(CHECKS) == 7
    assert {row[1] for row in BROKEN.values()} == set(range(7))


@pytest.mark.req("4.19")
@pytest.mark.parametrize("write", TerminalWrite)
def test_a_terminal_that_leaves_out_one_write_is_told_which(write: TerminalWrite) -> None:
    done = changed(TERMINALS[0], writes=tuple(other for other in TerminalWrite if other is not write))
    problem = only_problem(graph(terminals=(done, *TERMINALS[1:])))
    assert (problem.check, problem.code) == (6, GraphFault.WRITE_MISSING)
    assert f"does not write {write};" in problem.message


@pytest.mark.req("4.19")
@pytest.mark.parametrize("rule", REQUIRED_RULES)
def test_a_tool_node_that_leaves_out_one_rule_is_told_which(rule: str) -> None:
    rules = msgspec.structs.replace(RULES, **{rule: 0 if rule == "timeout_ms" else ""})
    problem = only_problem(graph(changed(ACT, rules=rules)))
    assert (problem.check, problem.code) == (4, GraphFault.TOOL_RULE_MISSING)
    assert f"has no {rule};" in problem.message


@pytest.mark.req("4.19")
@pytest.mark.parametrize("ending", EndingClass)
def test_a_graph_in_which_one_ending_has_no_terminal_is_told_which(ending: EndingClass) -> None:
    [lost] = [node.name for node in TERMINALS if node.ending is ending]
    instead = "exhausted" if lost == "failed" else "failed"
    problem = only_problem(
        graph(
            edges=tuple(msgspec.structs.replace(e, target=instead) if e.target == lost else e for e in EDGES),
            exits=tuple((outcome, instead if target == lost else target) for outcome, target in EXITS),
            terminals=tuple(node for node in TERMINALS if node.ending is not ending),
        )
    )
    assert (problem.check, problem.code) == (5, GraphFault.ENDING_OUT_OF_REACH)
    assert f"of class {ending}" in problem.message


def test_every_fault_is_found_somewhere() -> None:
    found = {problem.code for row in BROKEN.values() for problem in problems_of(row[0])}
    found |= {problem.code for problem in problems_of(graph(changed(ACT, visits_max=-1)))}
    unknown = changed(ACT, rules=replace(RULES, budget="goodwill"))
    found |= {problem.code for problem in problems_of(graph(unknown))}
    found |= {problem.code for problem in problems_of(Graph("loop", "a", (Node("a", NodeKind.MODEL),), ()))}
    assert found == set(GraphFault)


def test_a_vote_says_how_many_children_it_counts_and_how_many_there_will_be() -> None:
    assert "counts 2 replicas and 'act' starts 3" in only_problem(voting(Ballot("act", 2))).message
    unbounded = voting(Ballot("act", 3), replica=changed(REPLICA, visits_max=0))
    assert "'act' starts any number" in problems_of(unbounded)[0].message


@pytest.mark.parametrize("replica", [REPLICA, changed(REPLICA, kind=NodeKind.MAP, children=3, visits_max=1)])
def test_a_vote_among_as_many_children_as_there_will_be_is_sound(replica: Node) -> None:
    assert compile_graph(voting(Ballot("act", 3), replica=replica)).nodes[2].ballot == Ballot("act", 3)


def test_graphs_may_be_nested_to_the_limit() -> None:
    assert compile_graph(graph(changed(REPLICA, inner=nested(INNER_DEPTH_MAX)))).nodes[1].inner is not None


def test_graphs_nested_too_deep_to_be_written_are_malformed() -> None:
    endless = nested(1)
    for _ in range(5000):
        child = replace(endless.nodes[0], inner=endless)
        endless = replace(endless, nodes=(child, *TERMINALS))
    assert only_problem(endless).code is GraphFault.MALFORMED


def test_what_is_wrong_with_an_inner_graph_is_told_in_its_own_words() -> None:
    broken = Graph("inner", "nowhere", TERMINALS, (), EXITS)
    assert "start 'nowhere' is not a node" in only_problem(graph(changed(REPLICA, inner=broken))).message


@pytest.mark.parametrize("schema", ["{", "[]", "[" * 5000, '{"pattern": "("}'])
def test_a_schema_that_cannot_be_used_is_named_with_its_node(schema: str) -> None:
    problem = only_problem(graph(changed(THINK, ask=Ask(schema=schema))))
    assert problem.code is GraphFault.ASK_SCHEMA_INVALID
    assert "'think'" in problem.message


def test_a_start_that_is_no_node_is_reported_without_blaming_the_nodes() -> None:
    codes = {problem.code for problem in problems_of(graph(start="thnik"))}
    assert GraphFault.START_UNKNOWN in codes
    assert GraphFault.NODE_UNREACHABLE not in codes


def test_nodes_from_which_nothing_ends_are_named_together() -> None:
    around = Graph(
        "around",
        "a",
        (Node("a", NodeKind.MODEL, visits_max=1), Node("b", NodeKind.MODEL)),
        (Edge("a", "b"), Edge("b", "a")),
    )
    [stuck] = [p for p in problems_of(around) if p.code is GraphFault.TERMINAL_OUT_OF_REACH]
    assert (stuck.check, stuck.path) == (1, ("a",))
    assert "from a, b " in stuck.message


def test_an_exit_to_a_node_that_does_not_exist_is_reported() -> None:
    problems = problems_of(graph(exits=(("failed", "nowhere"), *EXITS[1:]), terminals=(TERMINALS[0], *TERMINALS[2:])))
    assert [(p.check, p.code) for p in problems] == [
        (3, GraphFault.EDGE_NODE_UNKNOWN),
        (5, GraphFault.EXIT_MISSING),
    ]


def test_the_first_problem_hides_no_other() -> None:
    broken = graph(
        changed(ACT, visits_max=0, rules=None),
        edges=(Edge("think", "check", "", "visits >"), *EDGES),
        terminals=(changed(TERMINALS[0], writes=()), *TERMINALS[1:]),
    )
    assert [problem.check for problem in problems_of(broken)] == [2, 3, 4, 6]


def test_every_knot_of_cycles_is_reported_once() -> None:
    nodes = tuple(Node(name, NodeKind.MODEL) for name in "abcd")
    edges = (
        Edge("a", "b", "called_tools"),
        Edge("a", "c"),
        Edge("b", "a"),
        Edge("c", "d", "called_tools"),
        Edge("c", "done"),
        Edge("d", "c"),
    )
    problems = problems_of(Graph("knots", "a", (*nodes, *TERMINALS), edges, EXITS))
    assert [problem.path for problem in problems] == [("a", "b", "a"), ("c", "d", "c")]


def test_a_bound_on_a_terminal_bounds_nothing() -> None:
    done = changed(TERMINALS[0], visits_max=1)
    mend = Node("mend", NodeKind.MODEL)
    edges = (*EDGES, Edge("mend", "failed", "failed"), Edge("mend", "done"))
    exits = (("failed", "mend"), *EXITS[1:])
    assert only_problem(graph(mend, edges=edges, exits=exits, terminals=(done, *TERMINALS[1:]))).check == 2


def test_a_cycle_may_leave_by_exhaustion_alone() -> None:
    edges = (Edge("think", "done", "", "repaired"), Edge("think", "act"), Edge("act", "think"))
    nodes = (THINK, ACT, *TERMINALS)
    assert compile_graph(Graph("spin", "think", nodes, edges, EXITS)).nodes == nodes


def test_an_exit_may_pass_through_work_on_its_way_to_a_terminal() -> None:
    wrap_up = Node("wrap_up", NodeKind.MODEL, visits_max=1)
    edges = (*EDGES, Edge("wrap_up", "exhausted", "exhausted"), Edge("wrap_up", "done"))
    compiled = compile_graph(graph(wrap_up, edges=edges, exits=(*EXITS[:3], ("exhausted", "wrap_up"))))
    assert compiled.next_node(0, "exhausted", dict.fromkeys) == compiled.index["wrap_up"]


@pytest.mark.parametrize(
    "edge",
    [Edge("check", "escalated", "repairable", "visits > 1"), Edge("think", "partial", "failed")],
)
def test_an_edge_may_lead_to_a_terminal_of_any_class(edge: Edge) -> None:
    partial = terminal("partial", EndingClass.SUCCESS)
    extra = (edge, Edge("check", "partial", "repairable", "visits > 2"))
    assert compile_graph(graph(partial, edges=(*extra, *EDGES))).start == 0


def test_a_message_names_the_place_the_value_and_the_way_out() -> None:
    message = only_problem(graph(edges=(Edge("think", "check", "approved"), *EDGES))).message
    assert "'think' -> 'check' on 'approved'" in message
    assert "a model node has answered, called_tools" in message


def test_a_long_cycle_is_shown_by_its_ends_and_carried_whole() -> None:
    count = 50
    nodes = tuple(Node(f"n{i}", NodeKind.MODEL) for i in range(count))
    edges = tuple(Edge(f"n{i}", f"n{(i + 1) % count}") for i in range(count))
    [cycle] = [p for p in problems_of(Graph("ring", "n0", (*nodes, *TERMINALS), edges, EXITS)) if p.check == 2]
    assert len(cycle.path) == count + 1
    assert "n0 -> n1 -> n2 -> n3 -> ... -> n48 -> n49 -> n0" in cycle.message


def test_a_graph_with_nothing_right_does_not_report_itself_for_ever() -> None:
    nodes = tuple(Node(f"n{i}", NodeKind.TOOL) for i in range(500))
    problems = problems_of(Graph("wreck", "n0", nodes, ()))
    assert len(problems) <= PROBLEMS_PER_CHECK_MAX * len(CHECKS)
    assert {problem.check for problem in problems} == {0, 1, 4, 5}
    assert any("and 492 more" in problem.message for problem in problems)


@pytest.mark.parametrize(("rule", "value"), [("schema", "none"), ("budget", "goodwill"), ("verification", "hope")])
def test_a_tool_rule_that_nobody_could_keep_is_refused(rule: str, value: str) -> None:
    chat = chat_graph()
    rules = replace(RULES, **{rule: value})
    nodes = tuple(replace(node, rules=rules) if node.name == "act" else node for node in chat.nodes)
    with pytest.raises(GraphRefused) as refused:
        compile_graph(replace(chat, nodes=nodes))
    (problem,) = refused.value.problems
    assert (problem.check, problem.code) == (4, GraphFault.TOOL_RULE_UNKNOWN)
    assert problem.path == ("prepare", "think", "act")
    assert f"{rule}={value!r}" in problem.message


def test_an_edge_from_a_node_nobody_reaches_is_not_blamed_for_a_success() -> None:
    island = Node("island", NodeKind.MODEL)
    edges = (Edge("island", "done", "cancelled"), Edge("island", "done"))
    codes = {problem.code for problem in problems_of(graph(island, edges=(*EDGES, *edges)))}
    assert codes == {GraphFault.NODE_UNREACHABLE}
