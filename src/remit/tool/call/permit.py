"""Permits: leave to begin a call, which goes stale.

Rule 1: a process that stood still between the leave and the call (SIGSTOP, a sleeping machine) does not make the call: others
        may have taken it for gone meanwhile. Both clocks are looked at, since either may stand still with the process.
"""

from time import monotonic, time

# Less than half of what any run waits before it believes that a call which was claimed did not happen.
PERMIT_S = 2.0


class Permit:
    """Leave to begin one call, counted from the moment before it was asked for."""

    __slots__ = ("_monotonic_s", "_wall_s")

    def __init__(self) -> None:
        self._monotonic_s, self._wall_s = monotonic(), time()

    @property
    def age_s(self) -> float:
        """How long ago the leave was asked for, by the clock that went further."""
        return max(monotonic() - self._monotonic_s, time() - self._wall_s)

    @property
    def is_fresh(self) -> bool:
        """Whether the call may begin now."""
        return self.age_s < PERMIT_S
