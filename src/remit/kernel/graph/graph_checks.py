"""The checks a graph must pass before it may run: the six of the doctrine, and that it is well formed at all.

Rule 1: every check looks at the whole graph and reports everything it finds; the first problem hides no other.
Rule 2: a problem carries a path a reader can follow: from the start to the place, or once around the cycle.
Rule 3: a message names the place, what is wrong with it, and the way out.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice

from remit.core.failure import RequestRejected
from remit.core.limits.budget import LEASABLE
from remit.core.record import Record
from remit.core.run.lifecycle import AgentRole, LifecycleState
from remit.core.schema.json_schema import compile_schema
from remit.core.schema.json_text import kept_value
from remit.core.work.graph import (
    BY_REGISTRY,
    BY_RESULT,
    CHILD_KINDS,
    EXIT_ENDINGS,
    MODEL_KINDS,
    OUTCOMES,
    REQUIRED_RULES,
    REQUIRED_WRITES,
    UNIVERSAL_OUTCOMES,
    Ask,
    Edge,
    EndingClass,
    Node,
    NodeKind,
    NodeOutcome,
    ToolRules,
)
from remit.core.work.values import ValueKind
from remit.kernel.graph.edge_conditions import parse_guard
from remit.kernel.graph.expressions import GuardRefused
from remit.kernel.graph.graph_walk import GraphLayout, Moves, cycles, endless_moves, reach, reversed_moves

# A message shows a long path by its ends; the problem itself carries all of it.
_NAMES_SHOWN_MAX = 8
# What a library says about a schema may be as long as the schema.
_PROBLEM_CHARS_MAX = 300
# More than a person mends in one sitting; a broken graph of many nodes must not report itself as often.
PROBLEMS_PER_CHECK_MAX = 100
# Looking a member up in its enum, or asking it for a property, takes longer than the check it is needed for.
_TERMINAL, _TOOL, _MAP = NodeKind.TERMINAL, NodeKind.TOOL, NodeKind.MAP
_VALUE_KINDS = frozenset(ValueKind)
# What a step of a plan can be.
_FED = (
    NodeKind.TOOL,
    NodeKind.RETRIEVE,
    NodeKind.RERANK,
    NodeKind.VALIDATE,
    NodeKind.HUMAN,
    NodeKind.CHILD,
    NodeKind.DECIDE,
)
# A graph may go on without what failed and call that a partial success; these three are never one.
_NEVER_SUCCESS = UNIVERSAL_OUTCOMES - {NodeOutcome.FAILED}
_LAST_STATES = frozenset(state for state in LifecycleState if state.is_terminal)
# Per kind what its edges may name: one of its outcomes, or none. From a terminal no edge leads at all.
_NAMEABLE = {kind: frozenset({"", *outcomes} if kind != _TERMINAL else ()) for kind, outcomes in OUTCOMES.items()}


class GraphFault(StrEnum):
    """The faults of a graph, under the number of the check that finds them."""

    # 0: the graph is well formed
    MALFORMED = "GRAPH_MALFORMED"
    NODE_REPEATED = "GRAPH_NODE_REPEATED"
    NODE_UNREACHABLE = "GRAPH_NODE_UNREACHABLE"
    START_UNKNOWN = "GRAPH_START_UNKNOWN"
    LIFECYCLE_MISPLACED = "GRAPH_LIFECYCLE_MISPLACED"
    MAP_WITHOUT_CHILDREN = "GRAPH_MAP_WITHOUT_CHILDREN"
    LEASE_UNKNOWN = "GRAPH_LEASE_UNKNOWN"
    ENDING_MISPLACED = "GRAPH_ENDING_MISPLACED"
    ASK_MISPLACED = "GRAPH_ASK_MISPLACED"
    ASK_CONTRADICTORY = "GRAPH_ASK_CONTRADICTORY"
    ASK_SCHEMA_INVALID = "GRAPH_ASK_SCHEMA_INVALID"
    FEED_UNKNOWN = "GRAPH_FEED_UNKNOWN"
    BALLOT_UNKNOWN = "GRAPH_BALLOT_UNKNOWN"
    INNER_MISPLACED = "GRAPH_INNER_MISPLACED"
    INNER_REFUSED = "GRAPH_INNER_REFUSED"
    # 1: every node that is not a terminal has a way out
    WAY_OUT_MISSING = "GRAPH_WAY_OUT_MISSING"
    LAST_EDGE_CONDITIONAL = "GRAPH_LAST_EDGE_CONDITIONAL"
    TERMINAL_OUT_OF_REACH = "GRAPH_TERMINAL_OUT_OF_REACH"
    # 2: every cycle has a bound and an exit
    CYCLE_WITHOUT_BOUND = "GRAPH_CYCLE_WITHOUT_BOUND"
    CYCLE_WITHOUT_EXIT = "GRAPH_CYCLE_WITHOUT_EXIT"
    # 3: every edge has a guard that parses and type-checks
    EDGE_NODE_UNKNOWN = "GRAPH_EDGE_NODE_UNKNOWN"
    EDGE_FROM_TERMINAL = "GRAPH_EDGE_FROM_TERMINAL"
    EDGE_SHADOWED = "GRAPH_EDGE_SHADOWED"
    OUTCOME_UNKNOWN = "GRAPH_OUTCOME_UNKNOWN"
    GUARD_REFUSED = "GRAPH_GUARD_REFUSED"
    EXIT_REPEATED = "GRAPH_EXIT_REPEATED"
    # 4: every tool node has its five rules
    TOOL_RULE_MISSING = "GRAPH_TOOL_RULE_MISSING"
    TOOL_RULE_UNKNOWN = "GRAPH_TOOL_RULE_UNKNOWN"
    # 5: all five endings reach a terminal of their class
    EXIT_MISSING = "GRAPH_EXIT_MISSING"
    ENDING_OUT_OF_REACH = "GRAPH_ENDING_OUT_OF_REACH"
    SUCCESS_UNEARNED = "GRAPH_SUCCESS_UNEARNED"
    # 6: every terminal has a class and writes what it must
    ENDING_MISSING = "GRAPH_ENDING_MISSING"
    WRITE_MISSING = "GRAPH_WRITE_MISSING"


class GraphProblem(Record, frozen=True):
    """One thing wrong with a graph: the check that found it, a stable code, words, and a path to it."""

    check: int
    code: GraphFault
    message: str
    path: tuple[str, ...] = ()


Problems = Iterator[GraphProblem]


def is_well_formed(layout: GraphLayout) -> Problems:
    """0: names are unique, the start exists, everything can be reached, and each kind has what it needs."""
    graph = layout.graph
    if graph.start not in layout.index:
        names = _listed(layout.index)
        yield GraphProblem(0, GraphFault.START_UNKNOWN, f"start {graph.start!r} is not a node; the nodes are {names}")
    for position, node in enumerate(graph.nodes):
        if layout.index[node.name] != position:
            message = f"node {node.name!r} is declared twice; rename one of them"
            yield GraphProblem(0, GraphFault.NODE_REPEATED, message)
        elif layout.reached_from[position] < 0 and graph.start in layout.index:
            message = f"node {node.name!r} cannot be reached from {graph.start!r}; lead an edge to it or remove it"
            yield GraphProblem(0, GraphFault.NODE_UNREACHABLE, message, (node.name,))
        if (node.kind is _TERMINAL) != (node.lifecycle in _LAST_STATES):
            yield _misplaced_lifecycle(node, position, layout)
        if node.kind is _MAP and not node.children:
            message = f"map {node.name!r} starts children=0 runs, so it would never join; set children to at least 1"
            yield GraphProblem(0, GraphFault.MAP_WITHOUT_CHILDREN, message, layout.path_to(position))
        if node.lease:
            yield from _unfit_leases(node, position, layout)
        if node.kind is not _TERMINAL and (node.ending is not None or node.writes):
            message = f"node {node.name!r} is a {node.kind} with an ending or writes, which only terminals have"
            yield GraphProblem(0, GraphFault.ENDING_MISPLACED, message, layout.path_to(position))
        if node.ask is not None:
            yield from _unfit_ask(node, node.ask, position, layout)
        for fault, message in _unfit_step(node, layout):
            yield GraphProblem(0, fault, message, layout.path_to(position))


def _misplaced_lifecycle(node: Node, position: int, layout: GraphLayout) -> GraphProblem:
    message = (
        f"node {node.name!r} is a {node.kind} with lifecycle {node.lifecycle}; "
        "COMPLETE, ERROR and CANCELLED are for terminals, and terminals have one of them"
    )
    return GraphProblem(0, GraphFault.LIFECYCLE_MISPLACED, message, layout.path_to(position))


def _unfit_leases(node: Node, position: int, layout: GraphLayout) -> Problems:
    for dimension, amount in node.lease:
        if dimension not in LEASABLE or amount < 1:
            message = f"node {node.name!r} leases {dimension}={amount}; a lease is at least 1 of {', '.join(LEASABLE)}"
            yield GraphProblem(0, GraphFault.LEASE_UNKNOWN, message, layout.path_to(position))


def _unfit_ask(node: Node, ask: Ask, position: int, layout: GraphLayout) -> Problems:
    path = layout.path_to(position)
    if node.kind not in MODEL_KINDS:
        message = f"node {node.name!r} is a {node.kind} that asks a model something; move ask to a model node"
        yield GraphProblem(0, GraphFault.ASK_MISPLACED, message, path)
    if node.kind is not NodeKind.CHILD and (ask.filters or ask.role is not AgentRole.GENERAL):
        message = f"node {node.name!r} is a {node.kind} with filters or a role of its own; only a child has them"
        yield GraphProblem(0, GraphFault.ASK_MISPLACED, message, path)
    if ask.must_call and (ask.schema or ask.grammar or ask.tools == ()):
        message = f"node {node.name!r} demands a call, and also a shaped answer or no tools; ask for one of them"
        yield GraphProblem(0, GraphFault.ASK_CONTRADICTORY, message, path)
    if ask.schema and (problem := _schema_problem(ask.schema)):
        message = f"node {node.name!r} asks for a schema that cannot be used: {problem}"
        yield GraphProblem(0, GraphFault.ASK_SCHEMA_INVALID, message, path)


def _unfit_step(node: Node, layout: GraphLayout) -> Iterator[tuple[GraphFault, str]]:
    """What is wrong with what a node is fed, with its vote, or with the place of its inner graph."""
    feed, ballot = node.feed, node.ballot
    if feed is not None:
        if node.kind not in _FED:
            yield (
                GraphFault.FEED_UNKNOWN,
                f"node {node.name!r} is a {node.kind} with a feed; only {_listed(_FED)} have one",
            )
        for field, kind in (("takes", feed.takes), ("gives", feed.gives), ("kind", feed.kind)):
            if kind and kind not in _VALUE_KINDS:
                message = f"node {node.name!r} has feed.{field}={kind[:80]!r}, which is not one of {_listed(ValueKind)}"
                yield GraphFault.FEED_UNKNOWN, message
        source = layout.index.get(feed.source) if feed.source else None
        if feed.source and (source is None or layout.nodes[source].feed is None):
            message = f"node {node.name!r} is fed by {feed.source[:80]!r}, which is no node with an output"
            yield GraphFault.FEED_UNKNOWN, message
        if node.kind in CHILD_KINDS and not feed.gives:
            yield GraphFault.FEED_UNKNOWN, f"node {node.name!r} does not say what its child gives; set feed.gives"
    if ballot is not None:
        source = layout.index.get(ballot.source)
        if node.kind is not NodeKind.DECIDE or not node.code or ballot.replicas < 1:
            message = f"node {node.name!r} holds a vote; that takes a decide node with code and replicas of at least 1"
            yield GraphFault.BALLOT_UNKNOWN, message
        if source is None or layout.nodes[source].kind not in CHILD_KINDS:
            message = f"node {node.name!r} counts the children of {ballot.source[:80]!r}, which is no child or map node"
            yield GraphFault.BALLOT_UNKNOWN, message
        elif (started := _children_started(layout.nodes[source])) != ballot.replicas:
            # Children of an earlier round would vote in a later one.
            message = (
                f"node {node.name!r} counts {ballot.replicas} replicas and {ballot.source!r} starts {started or 'any number'}; "
                "its visits_max times its children must be that many"
            )
            yield GraphFault.BALLOT_UNKNOWN, message
    if (node.inner is not None or node.model) and node.kind not in CHILD_KINDS:
        message = (
            f"node {node.name!r} is a {node.kind} with an inner graph or a model, which only child and map nodes have"
        )
        yield GraphFault.INNER_MISPLACED, message


def _children_started(node: Node) -> int:
    """How many children a node starts in a whole run, 0 without a bound."""
    return node.visits_max * (node.children if node.kind is _MAP else 1)


def _schema_problem(text: str) -> str:
    try:
        schema = kept_value(text)
        if not isinstance(schema, dict):
            return "it is no JSON object"
        compile_schema(schema)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"[:_PROBLEM_CHARS_MAX]
    except RequestRejected as refused:
        return refused.message[:_PROBLEM_CHARS_MAX]
    return ""


def every_node_has_a_way_out(layout: GraphLayout) -> Problems:
    """1: each node that is not a terminal has edges, the last of them unconditional, and a terminal ahead."""
    stuck = _out_of_reach_of_terminals(layout)
    if stuck:
        message = f"from {_listed(layout.nodes[i].name for i in stuck)} no terminal can be reached; lead an edge to one"
        yield GraphProblem(1, GraphFault.TERMINAL_OUT_OF_REACH, message, layout.path_to(stuck[0]))
    for position, node in enumerate(layout.nodes):
        if node.kind is _TERMINAL or layout.index[node.name] != position:
            continue
        edges = layout.edges[position]
        if not edges:
            message = f"node {node.name!r} has no outgoing edge; lead one to the node that comes next"
            yield GraphProblem(1, GraphFault.WAY_OUT_MISSING, message, layout.path_to(position))
        elif edges[-1].outcome or edges[-1].condition:
            message = (
                f"the last edge of node {node.name!r}, {_shown(edges[-1])}, is not unconditional; "
                "add one without outcome and condition for what no other edge takes"
            )
            yield GraphProblem(1, GraphFault.LAST_EDGE_CONDITIONAL, message, layout.path_to(position))


def _out_of_reach_of_terminals(layout: GraphLayout) -> list[int]:
    terminals = {position for position, node in enumerate(layout.nodes) if node.kind is _TERMINAL}
    # Nearly every node has an exit that leads straight to a terminal; for those nothing needs to be walked.
    if all(position in terminals or not terminals.isdisjoint(to) for position, to in enumerate(layout.moves)):
        return []
    has_terminal_ahead = reach(reversed_moves(layout.moves), tuple(terminals))
    return [position for position, before in enumerate(has_terminal_ahead) if before < 0]


def every_cycle_has_a_bound_and_an_exit(layout: GraphLayout) -> Problems:
    """2: the moves that no `visits_max` stops form no cycle."""
    for cycle in cycles(endless_moves(layout)):
        path = tuple(layout.nodes[i].name for i in cycle)
        bounded = [layout.nodes[i] for i in cycle if layout.nodes[i].visits_max]
        if not bounded:
            message = f"cycle {_route(path)} has no bound; give one of its nodes visits_max, for example {path[-2]!r}"
            yield GraphProblem(2, GraphFault.CYCLE_WITHOUT_BOUND, message, path)
        else:
            message = (
                f"cycle {_route(path)} goes on when {bounded[0].name!r} is exhausted at "
                f"visits_max={bounded[0].visits_max}; lead its outcome 'exhausted' out of the cycle"
            )
            yield GraphProblem(2, GraphFault.CYCLE_WITHOUT_EXIT, message, path)


def every_edge_has_a_sound_guard(layout: GraphLayout) -> Problems:
    """3: each edge joins known nodes, names an outcome its source can have, and its condition is a BOOL."""
    index, nodes = layout.index, layout.nodes
    taken: set[tuple[int, str]] = set()
    closed: set[int] = set()
    for edge in layout.graph.edges:
        source, outcome = index.get(edge.source), edge.outcome
        if source is None or edge.target not in index:
            yield _unknown_node(edge, layout)
        if source is None:
            continue
        if outcome not in _NAMEABLE[nodes[source].kind]:
            yield _unfit_outcome(edge, source, layout)
        if edge.condition:
            yield from _unsound_condition(edge, source, layout)
        # An edge is never reached once an earlier one takes its outcome for sure.
        if (source, outcome) in taken or (source in closed and outcome not in UNIVERSAL_OUTCOMES):
            message = f"edge {_shown(edge)} is never taken, since an unconditional one comes before it; move it up"
            yield GraphProblem(3, GraphFault.EDGE_SHADOWED, message, layout.path_to(source))
        if not edge.condition:
            taken.add((source, outcome))
            if not outcome:
                closed.add(source)
    yield from _unsound_exits(layout)


def _unknown_node(edge: Edge, layout: GraphLayout) -> GraphProblem:
    unknown = [name for name in (edge.source, edge.target) if name not in layout.index]
    path = () if edge.source in unknown else layout.path_to(layout.index[edge.source])
    message = f"edge {_shown(edge)} names {_listed(unknown)}, which is not a node; declare it or correct the edge"
    return GraphProblem(3, GraphFault.EDGE_NODE_UNKNOWN, message, path)


def _unfit_outcome(edge: Edge, source: int, layout: GraphLayout) -> GraphProblem:
    kind = layout.nodes[source].kind
    if kind is _TERMINAL:
        message = f"edge {_shown(edge)} leaves a terminal, where every run is over; remove it"
        return GraphProblem(3, GraphFault.EDGE_FROM_TERMINAL, message, layout.path_to(source))
    message = f"edge {_shown(edge)} waits for {edge.outcome!r}; a {kind} node has {_listed(sorted(OUTCOMES[kind]))}"
    return GraphProblem(3, GraphFault.OUTCOME_UNKNOWN, message, layout.path_to(source))


def _unsound_condition(edge: Edge, source: int, layout: GraphLayout) -> Problems:
    try:
        parse_guard(edge.condition)
    except GuardRefused as refused:
        message = f"edge {_shown(edge)}: {refused.fault}: {refused.message}"
        yield GraphProblem(3, GraphFault.GUARD_REFUSED, message, layout.path_to(source))


def _unsound_exits(layout: GraphLayout) -> Problems:
    named: set[str] = set()
    for outcome, target in layout.graph.exits:
        if outcome not in UNIVERSAL_OUTCOMES:
            message = f"exit {outcome!r} -> {target!r} is for none of {_listed(EXIT_ENDINGS)}; use edges for others"
            yield GraphProblem(3, GraphFault.OUTCOME_UNKNOWN, message)
        if target not in layout.index:
            message = f"exit {outcome!r} leads to {target!r}, which is not a node; declare it or correct the exit"
            yield GraphProblem(3, GraphFault.EDGE_NODE_UNKNOWN, message)
        if outcome in named:
            message = f"exit {outcome!r} is given twice, and {target!r} would never be reached by it; remove one"
            yield GraphProblem(3, GraphFault.EXIT_REPEATED, message)
        named.add(outcome)


def every_tool_node_has_its_rules(layout: GraphLayout) -> Problems:
    """4: each tool node has a permission, a schema, a budget, a timeout and a verification."""
    for position, node in enumerate(layout.nodes):
        if node.kind is _TOOL:
            rules = node.rules or ToolRules()
            missing = [rule for rule in REQUIRED_RULES if not getattr(rules, rule)]
            if missing:
                message = f"tool node {node.name!r} has no {_listed(missing)}; all five rules must be given"
                yield GraphProblem(4, GraphFault.TOOL_RULE_MISSING, message, layout.path_to(position))
            for rule, value, known in _unknown_rules(rules):
                message = f"tool node {node.name!r} has {rule}={value!r}, which is not one of {_listed(known)}"
                yield GraphProblem(4, GraphFault.TOOL_RULE_UNKNOWN, message, layout.path_to(position))


def _unknown_rules(rules: ToolRules) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    known = (("schema", (BY_REGISTRY,)), ("budget", LEASABLE), ("verification", (BY_RESULT,)))
    return ((rule, value, names) for rule, names in known if (value := getattr(rules, rule)) and value not in names)


def every_ending_reaches_its_terminal(layout: GraphLayout) -> Problems:
    """5: success is reached by edges; failure, cancellation, escalation and exhaustion through their exits."""
    start = layout.index.get(layout.graph.start)
    begin = () if start is None else (layout.graph.start,)
    if EndingClass.SUCCESS not in _endings_from(start, layout.targets, layout):
        message = f"no edges lead from {layout.graph.start!r} to a terminal of class success; add one"
        yield GraphProblem(5, GraphFault.ENDING_OUT_OF_REACH, message, begin)
    for outcome, ending in EXIT_ENDINGS.items():
        target = layout.exits.get(outcome)
        if target is None:
            message = f"no exit for {outcome.value!r}; name the node it leads to from wherever a run stands"
            yield GraphProblem(5, GraphFault.EXIT_MISSING, message, begin)
        elif ending not in _endings_from(target, layout.moves, layout):
            name = layout.nodes[target].name
            message = f"exit {outcome.value!r} leads to {name!r}, from where no terminal of class {ending} is reached"
            yield GraphProblem(5, GraphFault.ENDING_OUT_OF_REACH, message, layout.path_to(target))
    for edge in layout.graph.edges:
        target = layout.index.get(edge.target)
        is_success = target is not None and layout.nodes[target].ending is EndingClass.SUCCESS
        if is_success and edge.outcome in _NEVER_SUCCESS and edge.source in layout.index:
            path = (*layout.path_to(layout.index[edge.source]), edge.target)
            message = f"edge {_shown(edge)} would end as a success what {edge.outcome}; lead it elsewhere"
            if path[0] == layout.graph.start:  # Whatever cannot be reached has been reported as that.
                yield GraphProblem(5, GraphFault.SUCCESS_UNEARNED, message, path)


def _endings_from(start: int | None, moves: Moves, layout: GraphLayout) -> set[EndingClass | None]:
    if start is None:
        return set()
    # Nearly every exit leads straight to its terminal; then nothing needs to be walked.
    if layout.nodes[start].kind is _TERMINAL:
        return {layout.nodes[start].ending}
    reached = reach(moves, (start,))
    return {node.ending for node, before in zip(layout.nodes, reached, strict=True) if before >= 0}


def every_terminal_leaves_a_record(layout: GraphLayout) -> Problems:
    """6: each terminal has an ending class and writes trace, status, release and final state."""
    for position, node in enumerate(layout.nodes):
        if node.kind is not _TERMINAL:
            continue
        if node.ending is None:
            message = f"terminal {node.name!r} has no ending; give it one of {_listed(EndingClass)}"
            yield GraphProblem(6, GraphFault.ENDING_MISSING, message, layout.path_to(position))
        missing = [write.value for write in REQUIRED_WRITES if write not in node.writes]
        if missing:
            message = f"terminal {node.name!r} does not write {_listed(missing)}; a terminal writes all four"
            yield GraphProblem(6, GraphFault.WRITE_MISSING, message, layout.path_to(position))


CHECKS: tuple[Callable[[GraphLayout], Problems], ...] = (
    is_well_formed,
    every_node_has_a_way_out,
    every_cycle_has_a_bound_and_an_exit,
    every_edge_has_a_sound_guard,
    every_tool_node_has_its_rules,
    every_ending_reaches_its_terminal,
    every_terminal_leaves_a_record,
)


def find_problems(layout: GraphLayout) -> tuple[GraphProblem, ...]:
    """The problems of a graph, in the order of the checks that found them."""
    return tuple(problem for check in CHECKS for problem in islice(check(layout), PROBLEMS_PER_CHECK_MAX))


def _shown(edge: Edge) -> str:
    on = f" on {edge.outcome!r}" if edge.outcome else ""
    when = f" when {edge.condition!r}" if edge.condition else ""
    return f"{edge.source!r} -> {edge.target!r}{on}{when}"


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = [f"and {len(listed) - _NAMES_SHOWN_MAX} more"] if len(listed) > _NAMES_SHOWN_MAX else []
    return ", ".join([*map(str, listed[:_NAMES_SHOWN_MAX]), *more])


def _route(path: tuple[str, ...]) -> str:
    shown = path if len(path) <= _NAMES_SHOWN_MAX else (*path[:4], "...", *path[-3:])
    return " -> ".join(shown)
