"""The clock on the wall of this machine."""

import time

_NS_PER_MS = 1_000_000


def wall_clock_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // _NS_PER_MS


class WallClock:
    """Tells the time of the operating system, which may jump."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return wall_clock_ms()
