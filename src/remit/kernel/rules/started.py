"""A run starts: its deadline is set and the first node entered, unless its goal is out of reach whatever it does."""

from remit.core.failure import Ending, RequestRejected
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.commands import SetTimer, TimerPurpose
from remit.core.journal.rulings import RunAccepted
from remit.core.run.manifest import MANIFEST_INVALID
from remit.core.work.graph import NodeKind
from remit.kernel.authority.conditions import check_conditions
from remit.kernel.budget.exhaustion import check_exhaustion
from remit.kernel.results.acceptance import check_goal
from remit.kernel.results.endings import head_for
from remit.kernel.results.feasible import impossible_from_the_start
from remit.kernel.tally import Tally

# The outcome under which the start node is entered; no edge names it.
STARTED = "started"


def on_started(tally: Tally, arrival: RunStarted) -> str:
    """Accept the run until its deadline, or raise RequestRejected when its goal, boundary or host could not be judged by."""
    if tally.manifest.goal is not None:
        check_goal(tally.manifest.goal)
    if (tally.manifest.host is None) is any(node.kind is NodeKind.HOST for node in tally.graph.nodes):
        message = (
            f"run {tally.state.run_id!r} has a host or a node for one, and not both; only a guard begins such runs"
        )
        raise RequestRejected(MANIFEST_INVALID, message)
    boundary = tally.manifest.boundary
    if boundary.conditions:
        check_conditions(boundary)
    if boundary.exhaustion:
        check_exhaustion(boundary)
    deadline = tally.state.clock.deadline_at_ms
    tally.rule(RunAccepted(deadline))
    tally.issue(SetTimer(tally.next_id(), deadline, TimerPurpose.DEADLINE))
    if why := impossible_from_the_start(tally.manifest):
        return head_for(tally, Ending.IMPOSSIBLE, message=why)
    return STARTED
