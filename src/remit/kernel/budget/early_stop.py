"""Early stop: end a run that can no longer come to its end within its budget, before it has spent all of it.

Rule 1: the lower bound is computed: what the goal still requires, what every way through the graph still takes, and what
        the cheapest like run still needed after as many answers. No model has a say in it.
Rule 2: the run is stopped when less is left of any dimension than the lower bound; what was left is what was saved.
        A dimension that the boundary can widen, compress or make do without stops no run early.
"""

from collections import deque
from collections.abc import Iterable

from remit.core.failure import Ending
from remit.core.journal.rulings import StoppedEarly
from remit.core.limits.boundary import Exhaustion
from remit.core.limits.budget import FIELDS, Charges, Dimension
from remit.core.limits.foresight import needed_after
from remit.core.run.manifest import Manifest
from remit.core.work.goal import Goal
from remit.core.work.graph import EndingClass, NodeKind
from remit.kernel.budget.exhaustion import policy_of
from remit.kernel.graph.compiled import CompiledGraph
from remit.kernel.results.endings import has_outcome, head_for
from remit.kernel.results.proven_effects import times_committed
from remit.kernel.tally import Tally

# Looking a member up in its enum takes longer than comparing it, and every node that is entered comes by here.
_MODEL = NodeKind.MODEL
# What a stop saves, where it is told: what models and tools would have cost.
_SAVED = (
    Dimension.INPUT_TOKENS,
    Dimension.OUTPUT_TOKENS,
    Dimension.TOOL_CALLS,
    Dimension.EXTERNAL_API_CALLS,
    Dimension.INFERENCE_COST_MICROUSD,
)


def floors_of(graph: CompiledGraph, manifest: Manifest) -> tuple[Charges | None, ...] | None:
    """What is still needed at least from each node on; None where nothing is foreseen for this run, or at this node.

    Only of a plan does the graph tell more than its steps: a chat may answer at any time. Like runs are compared where
    they were about to ask their model: a run that has an answer needs no more of that.
    """
    has_goal = manifest.goal is not None and bool(manifest.goal.required_actions)
    if not manifest.boundary.stops_early or not (has_goal or manifest.plan or manifest.foresight):
        return None
    if manifest.plan is None:
        return tuple([() if has_goal or node.kind is _MODEL else None for node in graph.nodes])
    calls = _least(graph, [node.kind is NodeKind.TOOL and node.feed is not None for node in graph.nodes])
    children = _least(graph, [node.kind is NodeKind.CHILD for node in graph.nodes])
    pairs = zip(calls, children, strict=True)
    return tuple(_charges(tool_calls, child_runs) for tool_calls, child_runs in pairs)


def _charges(tool_calls: int, child_runs: int) -> Charges:
    amounts = ((int(Dimension.TOOL_CALLS), tool_calls), (int(Dimension.CHILD_RUNS), child_runs))
    return tuple((dimension, amount) for dimension, amount in amounts if amount)


def _least(graph: CompiledGraph, counted: list[bool]) -> list[int]:
    """From each node on, itself included: how many of the counted nodes every way to a success passes at least."""
    sources: list[set[int]] = [set() for _ in graph.nodes]
    for index in range(len(graph.nodes)):
        for target in graph.targets(index):
            sources[target].add(index)
    far = len(graph.nodes) + 1
    least = [far] * len(graph.nodes)
    goals = [index for index, node in enumerate(graph.nodes) if node.ending is EndingClass.SUCCESS]
    for index in goals:
        least[index] = 0
    waiting = deque(goals)
    while waiting:
        target = waiting.popleft()
        for source in sources[target]:
            cost = least[target] + counted[source]
            if cost < least[source]:
                least[source] = cost
                # What costs nothing more comes first, so that every node is settled at its least.
                (waiting.append if counted[source] else waiting.appendleft)(source)
    return [0 if amount == far else amount for amount in least]


def stop_early(tally: Tally, target: int) -> str | None:
    """The outcome that ends the run because it cannot finish with what is left, or None."""
    assert tally.state.derived.floors is not None, "only a run for which something is foreseen comes here"
    floor = tally.state.derived.floors[target]
    # A run at its last words finishes with them.
    if floor is None or tally.is_wrapping:
        return None
    for dimension, needed in _needed(tally, target, floor).items():
        left = tally.left[dimension]
        if left < needed and policy_of(tally.manifest.boundary, dimension) is Exhaustion.STOP:
            saved = tuple((int(d), tally.left[d]) for d in _SAVED if tally.left[d] > 0)
            tally.rule(StoppedEarly(dimension, max(left, 0), needed, saved))
            name = FIELDS[dimension]
            message = f"stopped early: {name} has {max(left, 0)} left and at least {needed} are still needed"
            return head_for(tally, Ending.BUDGET_EXHAUSTED, message=message)
    return None


def _needed(tally: Tally, target: int, floor: Charges) -> dict[int, int]:
    """The lower bound per dimension: the largest of what the graph, the goal and like runs say."""
    needed, manifest = dict(floor), tally.manifest
    if manifest.foresight is not None and tally.graph.nodes[target].kind is _MODEL:
        _raise(needed, needed_after(manifest.foresight, tally.state.counts.iterations + tally.answers))
    if manifest.goal is not None:
        _raise(needed, _required(tally, manifest.goal).items())
    return needed


def _raise(needed: dict[int, int], least: Iterable[tuple[int, int]]) -> None:
    """Let at least so much be needed."""
    for dimension, amount in least:
        if amount > needed.get(dimension, 0):
            needed[dimension] = amount


def _required(tally: Tally, goal: Goal) -> dict[int, int]:
    """What the required actions that are not yet done take at least; calls under way have their part already."""
    needed: dict[int, int] = {}
    state = tally.state
    for action in goal.required_actions:
        under_way = sum(name == action.tool for name, _ in tally.repeats)
        calls = [command for command in state.commands.open.values() if getattr(command, "tool", "") == action.tool]
        under_way += sum(not has_outcome(tally, call.id) for call in calls)
        times = action.times_min - times_committed(tally, action.tool) - under_way
        for dimension, amount in state.derived.charges.get(action.tool, ()) if times > 0 else ():
            # Of what a person may lift call by call, having none is no reason to stop.
            if tally.manifest.caps[dimension]:
                needed[dimension] = needed.get(dimension, 0) + times * amount
    return needed
