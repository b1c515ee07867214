"""Which graph a request runs: the one of its mode, with what the caller's terms say about it.

Rule 1: what a graph could never finish for want of child runs is refused before the run begins.
"""

from remit.core.budget import Dimension, assign
from remit.core.contract import Mode, SystemRequest
from remit.core.failure import RequestRejected
from remit.core.graph import Graph, NodeKind
from remit.core.messages import Role
from remit.core.plan import ExecutionPlan
from remit.core.record import replace
from remit.core.tools import ToolChoiceMode
from remit.orchestrate.kit import Kit, Terms
from remit.orchestrate.patterns.chat import chat_for
from remit.orchestrate.patterns.plan import plan_graph
from remit.orchestrate.patterns.redundant import Redundancy, redundant_for
from remit.orchestrate.patterns.structured import structured_for

CHILD_RUNS_TOO_FEW = "CHILD_RUNS_TOO_FEW"


def graph_for(request: SystemRequest, kit: Kit, terms: Terms, plan: ExecutionPlan | None) -> Graph:
    """The graph of a request's mode."""
    match request.mode:
        case Mode.CHAT:
            return chat_for(request, terms.reasks_max)
        case Mode.STRUCTURED:
            offers = bool(kit.tools.definitions) and request.tool_choice.mode is not ToolChoiceMode.NONE
            return structured_for(request, terms.reasks_max, has_tools=offers)
        case Mode.REDUNDANT:
            return redundant_for(request, _as_the_engine_may(terms.redundancy, kit))
        case Mode.PLAN:
            assert plan is not None, "a request of mode plan has its plan by now"
            return plan_graph(plan, terms.policy, kit.handlers, _last_words(request))


def _last_words(request: SystemRequest) -> str:
    """What the user said last, as far as it came with the request."""
    said = [message.content for message in request.messages if message.role is Role.USER]
    return said[-1] if said and isinstance(said[-1], str) else ""


def _as_the_engine_may(redundancy: Redundancy, kit: Kit) -> Redundancy:
    """Replicas beside each other only where the model can be asked several things at once."""
    at_once = min((engine.model_info().calls_at_once for engine in kit.engines.values()), default=1)
    return redundancy if at_once > 1 else replace(redundancy, is_parallel=False)


def check_child_runs(graph: Graph, terms: Terms) -> None:
    """Refuse a graph whose votes and steps need more child runs than the run may start."""
    needed = child_runs_needed(graph)
    allowed = assign(terms.boundary.budget, terms.budget)[Dimension.CHILD_RUNS]
    if needed > allowed:
        message = (
            f"graph {graph.name!r} starts at least {needed} child runs, and child_runs_max={allowed}; ask for fewer "
            f"replicas or steps, or give a boundary that allows more: Boundary(budget=Budget(child_runs={needed}))"
        )
        raise RequestRejected(CHILD_RUNS_TOO_FEW, message, {"needed": needed, "allowed": allowed})


def child_runs_needed(graph: Graph) -> int:
    """How many child runs a vote or a plan starts at least, those of its children included."""
    replicas = {node.ballot.source: node.ballot.replicas for node in graph.nodes if node.ballot is not None}
    needed = 0
    for node in graph.nodes:
        if node.inner is None or node.kind not in (NodeKind.CHILD, NodeKind.MAP):
            continue
        times = replicas.get(node.name, max(node.children, 1))
        needed += times * (1 + child_runs_needed(node.inner))
    return needed
