"""Joining: when the node a run stands at has everything it waited for, and what came of it.

Rule 1: a node is left only when nothing it waits for is open.
Rule 2: failures beside each other are judged together, when the last of them has come back; so no call is cut off
        because its neighbour failed.
Rule 3: nor is one cut off because a person released no budget for its neighbour, or said no once too often; the run ends
        after it.
"""

from remit.core.failure import Ending, ErrorCode
from remit.core.limits.budget import Dimension
from remit.core.record import Text
from remit.core.work.graph import JoinRule, Node, NodeKind, NodeOutcome, StepInput
from remit.core.work.values import ValueKind
from remit.kernel.children import fail_as
from remit.kernel.graph.plan_steps import conclude_call, conclude_step, finish
from remit.kernel.results.acceptance import conclude_answer
from remit.kernel.results.endings import head_for, stop_for_denials
from remit.kernel.tally import Tally

_RETRIES = int(Dimension.RETRIES)
_TOOL, _HOST = NodeKind.TOOL, NodeKind.HOST
_SETTLED, _STOPPED = NodeOutcome.SETTLED, NodeOutcome.STOPPED


def join_outcome(tally: Tally, content: Text = "") -> str | None:
    """The outcome of the node, or None while it still waits. `content` is what a tool has just returned."""
    if tally.blocking:
        return None
    node = tally.graph.nodes[tally.node]
    if node.kind is _HOST:
        return None  # The agent that makes the calls elsewhere says when it is done.
    if node.kind is _TOOL and (unreleased := tally.unreleased or tally.state.people.unreleased):
        return head_for(tally, Ending.BUDGET_EXHAUSTED, message=unreleased)
    if (node.kind is _TOOL or tally.child is not None) and (denied := stop_for_denials(tally)) is not None:
        return denied
    if node.feed is not None:
        return _conclude(tally, node, node.feed, content)
    if node.kind is _TOOL:
        has_failures = tally.state.counts.failures_in_a_row or tally.failures_in_a_row
        return (_stop_for_failures(tally) if has_failures else None) or (_STOPPED if tally.stopped else _SETTLED)
    if node.kind is NodeKind.VALIDATE:
        return conclude_answer(tally, node)
    return _join_children(tally, node)


def _conclude(tally: Tally, node: Node, feed: StepInput, content: Text) -> str:
    """What a step of a plan came to."""
    if node.kind is _TOOL:
        return conclude_call(tally, node, content)
    if node.kind is NodeKind.VALIDATE:
        return conclude_step(tally, node)
    outcome = _join_children(tally, node)
    if outcome == NodeOutcome.JOINED and tally.child is not None:
        finish(tally, node, ValueKind(feed.gives), tally.child.text, tally.child.command_id)
    return outcome


def _stop_for_failures(tally: Tally) -> str | None:
    retries_max = tally.state.spending.caps[_RETRIES]
    for tool, streak in {**tally.state.counts.failures_in_a_row, **tally.failures_in_a_row}.items():
        if streak is not None and streak.times > retries_max:
            unavailable = streak.code == ErrorCode.TOOL_UNAVAILABLE
            ending = Ending.UNAVAILABLE_DEP if unavailable else Ending.REPEATED_FAILURE
            message = f"tool {tool} failed {streak.times} times in a row, retries_max={retries_max}"
            return head_for(tally, ending, ErrorCode(streak.code), message)
    return None


def _join_children(tally: Tally, node: Node) -> str:
    failed = tally.state.children.failed + tally.children_failed
    answered = max(node.children, 1) - failed
    enough = {
        JoinRule.ALL: failed == 0,
        JoinRule.ANY: answered > 0,
        JoinRule.QUORUM: answered * 2 > max(node.children, 1),
    }
    if enough[node.join]:
        return NodeOutcome.JOINED
    if node.inner is not None and node.kind is NodeKind.CHILD and tally.child is not None:
        return fail_as(tally, tally.child)
    message = f"{failed} of {max(node.children, 1)} children of node {node.name} failed and it joins {node.join}"
    return head_for(tally, Ending.REPEATED_FAILURE, ErrorCode.ORCHESTRATION_NO_CONSENSUS, message)
