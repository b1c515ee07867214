"""Worlds of whole systems, made of a seed."""

from remit.core.record import replace
from remit.testing.shell_world import ShellWorld, Weather

CALM = Weather(processes=1)
BUSY = Weather(actions=20)
STORM = Weather(processes=2, actions=18, crash=0.003, leave=0.08, cancel=0.15, clock_jump=0.05, slow=0.01)
# Worlds where one kind of trouble is more frequent than the others.
WEATHERS: tuple[Weather, ...] = (
    BUSY,
    STORM,
    replace(STORM, crash=0.0, leave=0.0),
    replace(STORM, crash=0.01, leave=0.0),
    replace(STORM, crash=0.0, leave=0.3, processes=3),
    replace(STORM, crash=0.0, leave=0.0, cancel=0.6),
    replace(STORM, crash=0.001, leave=0.0, slow=0.1, turns_max=8),
    replace(BUSY, processes=3, actions=30, apart_s=0.1),
    replace(CALM, leave=0.0, cancel=0.3),
    # Leases that expire under living holders: their renewals are slower than they last, now and then.
    replace(STORM, lease_ms=3_000, slow=0.03),
    replace(STORM, crash=0.0, leave=0.0, processes=3, lease_ms=1_000, slow=0.1),
    # Runs of one tenant that do not all fit its quota; and everything halted now and then.
    replace(STORM, crash=0.01, processes=3, steps_quota=150),
    replace(STORM, processes=3, halt=0.2),
)


def shell_scenario(seed: int) -> ShellWorld:
    """The world of a seed, played."""
    return ShellWorld(seed, WEATHERS[seed % len(WEATHERS)]).play()
