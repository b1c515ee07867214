"""Which graph a request runs: the one of its mode, with what the caller's terms say about it.

Rule 1: what a graph could never finish for want of child runs or steps is refused before the run begins.
"""

from dataclasses import replace as replace_parts

from remit.core.failure import RequestRejected
from remit.core.limits.budget import Dimension, assign
from remit.core.limits.tools import ToolChoiceMode
from remit.core.record import replace
from remit.core.run.contract import Mode, SystemRequest
from remit.core.work.graph import Ballot, EndingClass, Graph, Node, NodeKind
from remit.core.work.plan import ExecutionPlan
from remit.orchestrate.patterns.chat_graph import chat_for
from remit.orchestrate.patterns.plan_graph import plan_graph
from remit.orchestrate.patterns.planned_graph import last_words, planned_first, planned_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_for
from remit.orchestrate.patterns.structured_graph import structured_for, type_heard
from remit.orchestrate.setup.kit import Kit, Terms

CHILD_RUNS_TOO_FEW = "CHILD_RUNS_TOO_FEW"
STEPS_TOO_FEW = "STEPS_TOO_FEW"


def graph_for(request: SystemRequest, kit: Kit, terms: Terms, plan: ExecutionPlan | None) -> Graph:
    """The graph of a request's mode."""
    if request.mode is not Mode.PLAN and kit.planner is not None:
        return planned_first(graph_for(request, replace_parts(kit, planner=None), terms, plan), kit.planner, request)
    match request.mode:
        case Mode.CHAT:
            return chat_for(request, terms.reasks_max)
        case Mode.STRUCTURED:
            offers = bool(kit.tools.definitions) and request.tool_choice.mode is not ToolChoiceMode.NONE
            return structured_for(request, terms.reasks_max, has_tools=offers, heard=type_heard(kit.code))
        case Mode.REDUNDANT:
            return redundant_for(request, _as_the_engine_may(terms.redundancy, kit), type_heard(kit.code))
        case Mode.PLAN:
            if plan is not None:
                return plan_graph(plan, terms.policy, kit.handlers, last_words(request), kit.code)
            assert kit.planner is not None, "a request of mode plan without a plan and a planner was refused"
            return planned_graph(kit.planner, terms.policy, kit.handlers, request)


def _as_the_engine_may(redundancy: Redundancy, kit: Kit) -> Redundancy:
    """Replicas beside each other only where the model can be asked several things at once."""
    at_once = min((engine.model_info().calls_at_once for engine in kit.engines.values()), default=1)
    return redundancy if at_once > 1 else replace(redundancy, is_parallel=False)


def check_graph_fits(graph: Graph, terms: Terms) -> None:
    """Refuse a graph whose votes and steps need more child runs or steps than the run has."""
    caps = assign(terms.boundary.budget, terms.budget)
    needed, allowed = child_runs_needed(graph), caps[Dimension.CHILD_RUNS]
    if needed > allowed:
        message = (
            f"graph {graph.name!r} starts at least {needed} child runs, and child_runs_max={allowed}; ask for fewer "
            f"replicas or steps, or give a boundary that allows more: Boundary(budget=Budget(child_runs={needed}))"
        )
        raise RequestRejected(CHILD_RUNS_TOO_FEW, message, {"needed": needed, "allowed": allowed})
    if not needed:
        return  # A graph without children stops where its steps are spent, and what it has done so far is there.
    needed, allowed = steps_needed(graph), caps[Dimension.STEPS]
    if needed > allowed:
        message = (
            f"graph {graph.name!r} takes at least {needed} steps with those of its children, and steps_max={allowed}; "
            f"ask for fewer replicas or steps, or give a boundary that allows more: Boundary(budget=Budget(steps={needed}))"
        )
        raise RequestRejected(STEPS_TOO_FEW, message, {"needed": needed, "allowed": allowed})


def steps_needed(graph: Graph) -> int:
    """How many steps a vote or a plan takes at least, where nothing fails and nothing is repaired."""
    needed = _shortest_way(graph)
    for node in graph.nodes:
        if node.inner is not None:
            needed += _times(graph, node) * steps_needed(node.inner)
        if node.ballot is not None and node.ballot.replicas > 1 and _source(graph, node.ballot).kind is NodeKind.CHILD:
            # One after the other: every further replica comes back here.
            needed += 2 * (node.ballot.replicas - 1)
    return needed


def _shortest_way(graph: Graph) -> int:
    """How many nodes lie on the shortest way from the start to a success."""
    ends = {node.name for node in graph.nodes if node.ending is EndingClass.SUCCESS}
    onward: dict[str, list[str]] = {}
    for edge in graph.edges:
        onward.setdefault(edge.source, []).append(edge.target)
    reached, fringe, length = {graph.start}, [graph.start], 0
    while fringe and ends.isdisjoint(fringe):
        fringe = [name for name in dict.fromkeys(t for at in fringe for t in onward.get(at, ())) if name not in reached]
        reached.update(fringe)
        length += 1
    return length


def _source(graph: Graph, ballot: Ballot) -> Node:
    return next(node for node in graph.nodes if node.name == ballot.source)


def _times(graph: Graph, node: Node) -> int:
    """How many children of this node a run starts at least."""
    replicas = (other.ballot.replicas for other in graph.nodes if other.ballot and other.ballot.source == node.name)
    return next(replicas, max(node.children, 1))


def child_runs_needed(graph: Graph) -> int:
    """How many child runs a vote or a plan starts at least, those of its children included."""
    parents = (node for node in graph.nodes if node.inner is not None)
    return sum(_times(graph, node) * (1 + child_runs_needed(node.inner)) for node in parents if node.inner is not None)
