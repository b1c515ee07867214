"""Timers: which of a run's moments comes next, and what follows when it has come.

Rule 1: timers stand in the run's state and nowhere else; a process that dies takes none of them along.
Rule 2: a timer is a promise not to be early.
Rule 3: a run moves by itself while a timer will move it; while the clock stands still, the deadline will not.
"""

from remit.core.journal.commands import SetTimer, TimerPurpose
from remit.core.limits.boundary import Exhaustion
from remit.core.limits.budget import Dimension
from remit.kernel.budget.exhaustion import policy_of
from remit.kernel.state import RunState, pinned

# An alarm rings this much late, so that a clock that counts whole milliseconds has reached the moment.
ALARM_SLACK_MS = 1


def timers_of(state: RunState) -> list[SetTimer]:
    """The open timers of a run, the next one first."""
    timers = [command for command in state.commands.open.values() if isinstance(command, SetTimer)]
    return sorted(timers, key=lambda timer: moment_of(state, timer))


def moment_of(state: RunState, timer: SetTimer) -> int:
    """When a timer is due: what it was set for, or the deadline where that has moved because people were waited for."""
    is_moved = timer.purpose is TimerPurpose.DEADLINE and not state.clock.is_standing
    return max(timer.due_at_ms, state.clock.deadline_at_ms) if is_moved else timer.due_at_ms


def moves_by_itself(state: RunState) -> bool:
    """Whether a timer will move the run: one to try again, or the deadline unless it stands still.

    A run whose calls are made elsewhere is moved by the process that makes them.
    """
    if state.manifest is not None and state.manifest.host is not None:
        return False
    purposes = {timer.purpose for timer in timers_of(state)}
    return TimerPurpose.RETRY in purposes or (TimerPurpose.DEADLINE in purposes and not state.clock.is_standing)


def cuts_off(state: RunState, timer: SetTimer, now_ms: int) -> bool:
    """Whether this timer ends the run, so that whatever is under way need not be waited for.

    Where a person may give the run more time, it is waited for: what it comes to may still be wanted.
    """
    is_over = not state.clock.is_standing and max(state.at_ms, now_ms) >= state.clock.deadline_at_ms
    return timer.purpose is TimerPurpose.DEADLINE and is_over and not _may_be_extended(state)


def _may_be_extended(state: RunState) -> bool:
    policy = policy_of(pinned(state).boundary, Dimension.WALL_CLOCK_MS)
    return policy is Exhaustion.ASK and state.spending.left[Dimension.HUMAN_REVIEWS] > 0
