"""Starting runs beneath this one, each with a lease on this run's budget.

Rule 1: the lease is reserved in the parent's turn, so the sum of leases never exceeds what remains.
Rule 2: a child's run id follows from the command that starts it, so starting it twice starts it once.
Rule 3: a child that a model asked for is one level deeper; one that the graph declares is not.
Rule 4: a declared child whose node names no lease gets an equal share of what is left, and the parent keeps enough steps
        to come to its own end.
Rule 5: a child that failed fails its node as it did itself; only being cut off becomes a failure, where it was its own
        time that was up, or its own run that was cancelled.
"""

from collections.abc import Mapping
from types import MappingProxyType

from remit.core.failure import Ending, ErrorCode, denials_of
from remit.core.journal.arrivals import ChildEnded, ChildLost
from remit.core.journal.commands import StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.budget import COUNTERS, Charges, Dimension, lease_of
from remit.core.record import Text
from remit.core.run.lineage import derived_id
from remit.core.work.graph import Node, NodeKind
from remit.kernel.budget.wall_clock import deadline_at_ms, is_past_deadline, stop_for_time
from remit.kernel.graph.compiled import CompiledGraph
from remit.kernel.results.doubt import LOST
from remit.kernel.results.endings import head_for, times_denied, times_turned_away
from remit.kernel.results.notices import CHILD_LOST
from remit.kernel.state import RunState
from remit.kernel.tally import Tally
from remit.kernel.traces import ChildTrace

# How a node fails whose child was cut off; any other ending of a child is its node's, too.
_CUT_OFF: Mapping[str, tuple[Ending, ErrorCode]] = MappingProxyType(
    {
        Ending.TIMEOUT: (Ending.UNAVAILABLE_DEP, ErrorCode.INFERENCE_ENGINE_ERROR),
        Ending.USER_CANCEL: (Ending.UNAVAILABLE_DEP, ErrorCode.CANCELLED_SIGNAL),
        LOST: (Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_UNAVAILABLE),
    }
)


def child_trace(state: RunState, arrival: ChildEnded | ChildLost) -> ChildTrace:
    """The trace of a child that a node declared, now that it has ended; one that a call asked for names no node."""
    command = state.commands.open[arrival.command_id]
    assert isinstance(command, StartChild)
    if isinstance(arrival, ChildLost):
        return ChildTrace(command.id, command.node, LOST, message=CHILD_LOST, prompt=command.prompt)
    how = (arrival.ending, arrival.text, arrival.error, arrival.message, arrival.usage)
    return ChildTrace(command.id, command.node, *how, command.prompt)


def fail_as(tally: Tally, child: ChildTrace) -> str:
    """Fail the node as its child failed. One that ran until the run's own deadline ran out of the run's own time."""
    if child.ending == Ending.TIMEOUT and is_past_deadline(tally):
        return stop_for_time(tally)
    ending, error = _CUT_OFF.get(child.ending) or (Ending(child.ending), child.error)
    words = child.message or f"it ended as {child.ending}"
    return head_for(tally, ending, error, f"child {tally.state.children.runs[child.command_id]}: {words}")


def share_of(tally: Tally, node: Node) -> Charges:
    """The share that one child of this node may spend: what it leases, or an equal share of what is left."""
    if node.lease:
        return lease_of(node.lease)
    visits = tally.state.place.visits[tally.node] + tally.visits.count(tally.node)
    among = node.children if node.kind is NodeKind.MAP else max(node.visits_max - visits + 1, 1)
    ahead = _nodes_ahead(tally.graph, tally.node)
    # Coming back for another child takes a step here and one where the run goes in between.
    kept = {Dimension.STEPS: ahead + 2 * (among - 1), Dimension.CHILD_RUNS: among}
    shares = ((int(d), (tally.left[d] - kept.get(d, 0)) // among) for d in COUNTERS)
    return tuple((dimension, amount) for dimension, amount in shares if amount > 0)


def _nodes_ahead(graph: CompiledGraph, here: int) -> int:
    """How many other nodes a run may come to from here before it ends."""
    reached, fringe = {here}, [here]
    while fringe:
        targets = graph.targets(fringe.pop()) - reached
        reached |= targets
        fringe.extend(targets)
    return sum(graph.nodes[index].kind is not NodeKind.TERMINAL for index in reached) - 1


def child_charges(lease: Charges, call: Charges = ()) -> Charges:
    """The charges that starting a child reserves: its lease, one child run, and the call that asked for it, if one did."""
    amounts: dict[int, int] = {int(Dimension.CHILD_RUNS): 1}
    for dimension, amount in (*lease, *call):
        amounts[dimension] = amounts.get(dimension, 0) + amount
    return tuple(sorted(amounts.items()))


def start_delegate(tally: Tally, call: ProposedCall) -> None:
    """Start the child that an authorized call of a delegating tool asks for."""
    tool = tally.state.derived.tools[call.tool]
    start_child(
        tally,
        prompt=call.arguments,
        lease=lease_of(tool.lease),
        reserved=tally.state.derived.charges[call.tool],
        depth=tally.manifest.depth + 1,
        call=call,
    )


def start_child(
    tally: Tally,
    *,
    prompt: Text,
    lease: Charges,
    reserved: Charges,
    depth: int,
    call: ProposedCall | None = None,
    node: Node | None = None,
    kind: str = "",
    problems: tuple[str, ...] = (),
) -> None:
    """Order a child with its lease; it inherits this run's deadline, which may have stood still until now."""
    command_id = tally.next_id()
    deadline = deadline_at_ms(tally)
    if node is not None and node.timeout_ms:
        deadline = min(deadline, tally.at_ms + node.timeout_ms)
    tally.issue(
        StartChild(
            id=command_id,
            run_id=derived_id(tally.state.run_id, command_id),
            prompt=prompt,
            lease=lease,
            depth=depth,
            deadline_at_ms=deadline,
            reserved=reserved,
            call_id="" if call is None else call.call_id,
            tool="" if call is None else call.tool,
            arguments_hash=b"" if call is None else call.arguments_hash,
            node="" if node is None else node.name,
            kind=kind,
            problems=problems,
            denials=denials_of(times_denied(tally), times_turned_away(tally), tally.state.people.rejections),
        )
    )
