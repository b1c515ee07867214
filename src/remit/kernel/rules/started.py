"""A run starts: its deadline is set and the first node entered, unless its goal is out of reach whatever it does."""

from remit.core.arrivals import RunStarted
from remit.core.commands import SetTimer, TimerPurpose
from remit.core.failure import Ending
from remit.core.rulings import RunAccepted
from remit.kernel.acceptance import check_goal
from remit.kernel.conditions import check_conditions
from remit.kernel.endings import head_for
from remit.kernel.exhaustion import check_exhaustion
from remit.kernel.feasible import impossible_from_the_start
from remit.kernel.tally import Tally

# The outcome under which the start node is entered; no edge names it.
STARTED = "started"


def on_started(tally: Tally, arrival: RunStarted) -> str:
    """Accept the run until its deadline, or raise RequestRejected when its goal or its boundary could not be judged."""
    if tally.manifest.goal is not None:
        check_goal(tally.manifest.goal)
    boundary = tally.manifest.boundary
    if boundary.conditions:
        check_conditions(boundary)
    if boundary.exhaustion:
        check_exhaustion(boundary)
    deadline = tally.state.deadline_at_ms
    tally.rule(RunAccepted(deadline))
    tally.order(SetTimer(tally.next_id(), deadline, TimerPurpose.DEADLINE))
    if why := impossible_from_the_start(tally.manifest):
        return head_for(tally, Ending.IMPOSSIBLE, message=why)
    return STARTED
