"""The wall clock of a run: a deadline that stands still while a person is waited for.

Rule 1: time comes with the arrival; the kernel has no clock.
Rule 2: while a question is open or the run is paused, the deadline moves along with the time.
Rule 3: a run past its deadline orders nothing more.
"""

from remit.core.budget import Dimension
from remit.core.commands import SetTimer, TimerPurpose
from remit.core.failure import Ending, ErrorCode
from remit.kernel.endings import head_for
from remit.kernel.tally import Tally


def deadline_at_ms(tally: Tally) -> int:
    """The moment the run must stop, as it stands now."""
    state = tally.state
    return state.deadline_at_ms + (tally.at_ms - state.standing_since_ms if state.is_standing else 0)


def is_past_deadline(tally: Tally) -> bool:
    """Whether the time is up. It never is while the clock stands still."""
    return tally.at_ms >= deadline_at_ms(tally)


def stop_for_time(tally: Tally) -> str:
    """Name the outcome that ends the run because its time is up."""
    cap = tally.state.caps[Dimension.WALL_CLOCK_MS]
    message = f"the deadline at {deadline_at_ms(tally)} ms has passed, wall_clock_ms_max={cap}"
    return head_for(tally, Ending.TIMEOUT, ErrorCode.CANCELLED_TIMEOUT, message)


def wind_up(tally: Tally) -> None:
    """Set the deadline's timer again when a clock that stood still starts to run and nobody set it meanwhile."""
    if tally.is_standing:
        return
    timers = (command for command in tally.state.open.values() if isinstance(command, SetTimer))
    if all(timer.purpose is not TimerPurpose.DEADLINE for timer in timers):
        tally.order(SetTimer(tally.next_id(), deadline_at_ms(tally), TimerPurpose.DEADLINE))
