"""The time of this machine, and the ids of new runs: short enough to be read out, and in the order in which they began."""

import secrets
import time

from remit.core.run.lineage import ID_LETTERS, letters

# Forty-five bits of milliseconds last for a thousand years; thirty-five of chance keep two runs of one moment apart.
_TIME_LETTERS = 9
_CHANCE_LETTERS = ID_LETTERS - _TIME_LETTERS
_CHANCE_BITS = 5 * _CHANCE_LETTERS


def new_run_id() -> str:
    """A new id: ids of later runs sort behind those of earlier ones."""
    chance = secrets.randbits(_CHANCE_BITS)
    return letters(time.time_ns() // 1_000_000, _TIME_LETTERS) + letters(chance, _CHANCE_LETTERS)


_NS_PER_MS = 1_000_000


def wall_clock_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // _NS_PER_MS


class WallClock:
    """Tells the time of the operating system, which may jump."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return wall_clock_ms()
