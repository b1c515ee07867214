"""What a run needs of a process that goes on with it: the code, the models and the tools that its manifest names.

Rule 1: a run is taken up with everything that it names, or it stays as it is: what is missing would end it for good.
Rule 2: graphs within graphs count as well, since a child works with what its parent works with.
Rule 3: what the house has itself is never missing: its votes, the arguments of a step's tool, orders, tools that delegate.
"""

from collections.abc import Iterator

from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolChoiceMode
from remit.core.run.manifest import Manifest
from remit.core.work.graph import CHILD_KINDS, Graph, Node, NodeKind
from remit.core.work.orders import LIST, LOOK_UP, TAKE
from remit.kernel.state import RunState, pinned
from remit.orchestrate.patterns.plan_graph import CALL_MARK
from remit.orchestrate.patterns.planned_graph import PLANNER
from remit.orchestrate.patterns.redundant_graph import VOTE_MARK
from remit.orchestrate.patterns.voters import STRATEGIES
from remit.orchestrate.setup.kit import Kit

RUN_PARTS_MISSING = "RUN_PARTS_MISSING"


def check_needs(state: RunState, kit: Kit) -> None:
    """Refuse to go on with a run that needs something which is not in this kit; an ended one needs nothing."""
    if state.end.ending is not None:
        return
    missing = missing_parts(pinned(state), kit)
    if missing:
        message = (
            f"run {state.run_id} needs what is not here: {', '.join(missing)}; "
            "resume it from the program that started it, or with the same parts"
        )
        raise RequestRejected(RUN_PARTS_MISSING, message, {"run_id": state.run_id, "missing": list(missing)})


def missing_parts(manifest: Manifest, kit: Kit) -> tuple[str, ...]:
    """The parts that a manifest names and a kit lacks, each as a person would call it, and each once."""
    return tuple(dict.fromkeys((*_missing_in(manifest, kit), *_missing_for_goal(manifest, kit))))


def _missing_in(manifest: Manifest, kit: Kit) -> Iterator[str]:
    first = manifest.models[0].name if manifest.models else ""
    yield from _missing_below(manifest.graph, first, kit)
    yield from (f"filter {name!r}" for name in manifest.filters if name not in kit.every_filter)
    if any(_offers_all(node) for node in manifest.graph.nodes):
        yield from (f"tool {tool!r}" for tool in _offered(manifest) if tool not in kit.tools)


def _missing_below(graph: Graph, model: str, kit: Kit) -> Iterator[str]:
    """What the nodes of a graph lack whose runs ask this model first, and the graphs within it."""
    for node in graph.nodes:
        if _is_code_missing(node.code, kit):
            yield f"code {node.code!r}"
        wanted = () if node.ask is None else node.ask.filters
        yield from (f"filter {name!r}" for name in wanted if name not in kit.every_filter)
        asked = node.model or model
        if (node.kind is NodeKind.MODEL or _is_chat(node)) and asked and asked not in kit.engines:
            yield f"model {asked!r}"
        if node.inner is not None:
            yield from _missing_below(node.inner, asked, kit)
        yield from (f"tool {tool!r}" for tool in _named_tools(node) if tool not in kit.tools)


def _is_code_missing(name: str, kit: Kit) -> bool:
    if not name or name in kit.code or name in (LOOK_UP, LIST, TAKE) or name.startswith(CALL_MARK):
        return False
    if name == PLANNER:
        return kit.planner is None
    return not (name.startswith(VOTE_MARK) and name.removeprefix(VOTE_MARK) in STRATEGIES)


def _named_tools(node: Node) -> Iterator[str]:
    """The tools that a node names itself: the one that it calls, and those that it offers."""
    if node.code.startswith(CALL_MARK):
        yield node.code.removeprefix(CALL_MARK)
    if node.ask is not None:
        yield from node.ask.tools or ()


def _is_chat(node: Node) -> bool:
    """Whether a node starts children that run no graph of their own."""
    return node.kind in CHILD_KINDS and node.inner is None


def _offers_all(node: Node) -> bool:
    """Whether a model is offered all tools of the run here."""
    return _is_chat(node) or (node.kind is NodeKind.MODEL and (node.ask is None or node.ask.tools is None))


def _offered(manifest: Manifest) -> Iterator[str]:
    request = manifest.request
    if request.tool_choice.mode is ToolChoiceMode.NONE:
        return
    for tool in manifest.tools:
        if not tool.delegates and (not request.tools or tool.name in request.tools):
            yield tool.name


def _missing_for_goal(manifest: Manifest, kit: Kit) -> Iterator[str]:
    goal = manifest.goal
    if goal is None:
        return
    for criterion in goal.criteria:
        if criterion.validator and criterion.validator not in kit.code:
            yield f"code {criterion.validator!r}"
    if goal.judge_model and goal.judge_model not in kit.engines:
        yield f"model {goal.judge_model!r}"
