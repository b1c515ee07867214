"""Which tier of autonomy a graph has, computed from its nodes, its edges and the tools that its models may choose.

Rule 1: a loop is where a model is asked again after tools that it chose; a loop through a repair alone is none.
Rule 2: a loop is supervised when no tool of it can change anything without a person; open when nothing in it is bounded,
        or when its model may have runs start runs at will.
Rule 3: a graph within a graph counts: the tier of a whole is the highest of its parts.
"""

from collections.abc import Iterator

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import TIER_MAX, Boundary, BoundaryMode
from remit.core.limits.profiles import STANDARD
from remit.core.limits.tier import TIERS, Tier
from remit.core.limits.tools import MUTATING, ToolDefinition
from remit.core.run.manifest import Manifest
from remit.core.work.graph import CHILD_KINDS, MODEL_KINDS, Edge, Graph, Node, NodeKind, NodeOutcome
from remit.kernel.authority.boundary_checks import needs_a_person

TIER_EXCEEDED = "TIER_EXCEEDED"
# The doctrine's limit of nested tasks; beyond it a loop has no bound that a person could follow.
DEPTH_BOUNDED = 2

_FIXED = (NodeKind.TOOL, NodeKind.DECIDE, NodeKind.HUMAN, NodeKind.RERANK)


def check_tier(manifest: Manifest) -> None:
    """Refuse a run whose graph is more autonomous than its boundary allows."""
    boundary = manifest.boundary
    if boundary.tier_max >= TIER_MAX:
        return  # Whatever it is, it is allowed.
    tier = tier_of(manifest.graph, manifest.tools, boundary)
    if tier > boundary.tier_max:
        allowed = TIERS[Tier(boundary.tier_max)].title
        message = (
            f"graph {manifest.graph.name} has tier {tier.value} ({TIERS[tier].title}), and boundary {boundary.name} "
            f"allows tier_max={boundary.tier_max} ({allowed}); bound its loop, let people approve, or raise the cap"
        )
        raise RequestRejected(TIER_EXCEEDED, message, {"tier": tier.value, "tier_max": boundary.tier_max})


def tier_of(graph: Graph, tools: tuple[ToolDefinition, ...], boundary: Boundary = STANDARD) -> Tier:
    """The tier of a graph whose models may choose among these tools under this boundary."""
    return max(_own_tier(graph, tools, boundary), *_inner_tiers(graph, tools, boundary), key=int)


def _inner_tiers(graph: Graph, tools: tuple[ToolDefinition, ...], boundary: Boundary) -> Iterator[Tier]:
    yield Tier.DIRECT_RESPONSE
    for node in graph.nodes:
        if node.kind in CHILD_KINDS and node.inner is not None:
            yield tier_of(node.inner, tools, boundary)
        elif node.kind in CHILD_KINDS:
            # A child without a graph of its own chats, with the tools of this run.
            yield _loop_tier(tools, boundary) if tools else Tier.DIRECT_RESPONSE


def _own_tier(graph: Graph, tools: tuple[ToolDefinition, ...], boundary: Boundary) -> Tier:
    nodes = {node.name: node for node in graph.nodes}
    loop = _loop_of_choice(graph, nodes) if tools else set()
    if loop:
        is_bounded = any(nodes[name].visits_max for name in loop)
        return _loop_tier(tools, boundary) if is_bounded else Tier.OPEN_ENDED_LOOP
    edges = [edge for edge in graph.edges if not _is_repair(edge, graph, nodes)]
    if any(edge.condition for edge in edges) or _has_cycle(edges, tools_chosen=bool(tools)):
        return Tier.CONDITIONAL_GRAPH
    if any(node.kind in _FIXED and _does_something(node, bool(tools)) for node in graph.nodes):
        return Tier.DETERMINISTIC_WORKFLOW
    asking = sum(node.kind in MODEL_KINDS for node in graph.nodes)
    return Tier.PROMPT_CHAIN if asking > 1 else Tier.DIRECT_RESPONSE


def _is_repair(edge: Edge, graph: Graph, nodes: dict[str, Node]) -> bool:
    """Whether only an answer that must be repaired goes this way: the edge says so, or the passed ones have another."""
    if edge.outcome or edge.condition:
        return edge.outcome == NodeOutcome.REPAIRABLE
    if nodes[edge.source].kind is not NodeKind.VALIDATE:
        return False
    own = (other for other in graph.edges if other.source == edge.source and not other.condition)
    return any(other.outcome == NodeOutcome.PASSED for other in own)


def _does_something(node: Node, has_tools: bool) -> bool:  # noqa: FBT001
    """Whether a node is more than a place that a run without tools never comes to."""
    return node.kind is not NodeKind.TOOL or has_tools or node.feed is not None


def _may_swarm(tools: tuple[ToolDefinition, ...], boundary: Boundary) -> bool:
    """Whether the model may have runs start runs, deeper than any pattern of the house needs."""
    depth = boundary.budget.depth
    return depth is not None and depth > DEPTH_BOUNDED and any(tool.delegates for tool in tools)


def _loop_tier(tools: tuple[ToolDefinition, ...], boundary: Boundary) -> Tier:
    """The tier of a bounded loop: supervised when every change is a person's to allow, open when it may swarm."""
    if _may_swarm(tools, boundary):
        return Tier.OPEN_ENDED_LOOP
    if boundary.mode is BoundaryMode.AUDIT:
        # A boundary that only records stops no run.
        return Tier.BOUNDED_LOOP if any(tool.effect in MUTATING for tool in tools) else Tier.SUPERVISED_LOOP
    side_effects = boundary.budget.side_effects
    is_frozen = not (side_effects if side_effects is not None else 0)
    changing = [tool for tool in tools if tool.effect in MUTATING]
    is_supervised = is_frozen or all(needs_a_person(tool, boundary) for tool in changing)
    return Tier.SUPERVISED_LOOP if is_supervised else Tier.BOUNDED_LOOP


def _loop_of_choice(graph: Graph, nodes: dict[str, Node]) -> set[str]:
    """The nodes of a cycle in which a model is asked and tools that it chose are called; empty where there is none."""
    ahead = _targets(graph.edges)
    for name, node in nodes.items():
        if node.kind is NodeKind.TOOL and node.feed is None:
            loop = {other for other in _reached(name, ahead) if name in _reached(other, ahead)} | {name}
            if any(nodes[other].kind is NodeKind.MODEL for other in loop):
                return loop
    return set()


def _has_cycle(edges: list[Edge], *, tools_chosen: bool) -> bool:
    followed = [edge for edge in edges if tools_chosen or edge.outcome != NodeOutcome.CALLED_TOOLS]
    ahead = _targets(followed)
    return any(name in _reached(name, ahead) for name in ahead)


def _targets(edges: tuple[Edge, ...] | list[Edge]) -> dict[str, set[str]]:
    ahead: dict[str, set[str]] = {}
    for edge in edges:
        ahead.setdefault(edge.source, set()).add(edge.target)
    return ahead


def _reached(name: str, ahead: dict[str, set[str]]) -> set[str]:
    """Every node that comes after this one along some edge."""
    found: set[str] = set()
    fringe = [name]
    while fringe:
        new = ahead.get(fringe.pop(), set()) - found
        found |= new
        fringe.extend(new)
    return found
