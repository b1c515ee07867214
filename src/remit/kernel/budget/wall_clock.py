"""The wall clock of a run: a deadline that stands still while a person is waited for.

Rule 1: time comes with the arrival; the kernel has no clock.
Rule 2: while a question is open or the run is paused, the deadline moves along with the time.
Rule 3: it also moves while a child waits for a person. A parent learns only later when the child went on, so when the
        child has ended, the deadline is moved back by the time that the child did not wait.
Rule 4: a run past its deadline issues nothing more.
Rule 5: a child has the time of its run as it stands when the child begins. A halt, a pause, a crash or a fork may lie
        between the command and that moment, and the deadline that stands in the command is then not the run's any more.
"""

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.commands import SetTimer, TimerPurpose
from remit.core.limits.budget import Dimension
from remit.kernel.results.endings import head_for
from remit.kernel.state import RunState
from remit.kernel.tally import Tally


def deadline_at_ms(tally: Tally) -> int:
    """The moment the run must stop, as it stands now."""
    return tally.state.clock.deadline_at_ms + tally.standing_ms + tally.extended_ms


def deadline_beneath(state: RunState, at_ms: int, timeout_ms: int = 0) -> int:
    """The moment a child that begins now must stop: its run's deadline as it stands now, or its node's own time from now."""
    standing_ms = at_ms - state.clock.standing_since_ms if state.clock.is_standing else 0
    deadline = state.clock.deadline_at_ms + standing_ms
    return min(deadline, at_ms + timeout_ms) if timeout_ms else deadline


def waited_by(state: RunState) -> int:
    """How long an ended run waited for people, as far as it knows; its parent moves its own deadline by that."""
    return state.clock.stood_ms - state.clock.supposed_ms


def is_past_deadline(tally: Tally) -> bool:
    """Whether the time is up. Never while the clock stands still, even where the run waits for more time."""
    return tally.at_ms >= deadline_at_ms(tally) and not tally.is_frozen


def stop_for_time(tally: Tally) -> str:
    """Name the outcome that ends the run because its time is up."""
    cap = tally.state.spending.caps[Dimension.WALL_CLOCK_MS]
    message = f"the deadline at {deadline_at_ms(tally)} ms has passed, wall_clock_ms_max={cap}"
    return head_for(tally, Ending.TIMEOUT, ErrorCode.CANCELLED_TIMEOUT, message)


def wind_up(tally: Tally) -> None:
    """Set the deadline's timer again when a clock that stood still starts to run and it was not set meanwhile."""
    if tally.is_standing:
        return
    timers = (command for command in tally.state.commands.open.values() if isinstance(command, SetTimer))
    if all(timer.purpose is not TimerPurpose.DEADLINE for timer in timers):
        tally.issue(SetTimer(tally.next_id(), deadline_at_ms(tally), TimerPurpose.DEADLINE))
