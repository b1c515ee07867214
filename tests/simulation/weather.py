"""Weathers: how the worlds of whole systems go wrong, and which weather the world of a seed has."""

from remit.core.record import Record, replace


class Weather(Record):
    """How a world goes wrong. Chances are per occasion."""

    processes: int = 2
    actions: int = 14
    # How far apart actions are at most.
    apart_s: float = 1.0
    crash: float = 0.0
    leave: float = 0.0
    cancel: float = 0.0
    clock_jump: float = 0.0
    # How many turns of the loop the store takes at most, and how often it takes seconds.
    turns_max: int = 3
    slow: float = 0.0
    # How long a lease lasts that is not renewed; 0 where it lasts as long as its process.
    lease_ms: int = 0
    # What all runs may take steps together, 0 for any number; and how often everything is halted, and for how long at most.
    steps_quota: int = 0
    halt: float = 0.0
    halt_s: float = 3.0
    # How often a model or a tool takes long, and a model cannot be had.
    late: float = 0.1
    faults: float = 0.0
    # Whether processes are rung, by a bell that loses and doubles rings; how often a report is handed on twice; whether callers
    # are cut off after a number of callbacks, so that it happens while others are busy; and how far the clocks of processes
    # are apart at most.
    is_rung: bool = False
    double: float = 0.0
    cuts: bool = False
    apart_ms: int = 0


ALONE = Weather(processes=1)
_BUSY = Weather(actions=20)
_STORM = Weather(processes=2, actions=18, crash=0.003, leave=0.08, cancel=0.15, clock_jump=0.05, slow=0.01)
# Worlds where one kind of trouble is more frequent than the others.
WEATHERS: tuple[Weather, ...] = (
    _BUSY,
    _STORM,
    replace(_STORM, crash=0.0, leave=0.0),
    replace(_STORM, crash=0.01, leave=0.0),
    replace(_STORM, crash=0.0, leave=0.3, processes=3),
    replace(_STORM, crash=0.0, leave=0.0, cancel=0.6),
    replace(_STORM, crash=0.001, leave=0.0, slow=0.1, turns_max=8),
    replace(_BUSY, processes=3, actions=30, apart_s=0.1),
    replace(ALONE, leave=0.0, cancel=0.3),
    # Leases that expire under living holders: their renewals are slower than they last, now and then.
    replace(_STORM, lease_ms=3_000, slow=0.03),
    replace(_STORM, crash=0.0, leave=0.0, processes=3, lease_ms=1_000, slow=0.1),
    # Runs of one tenant that do not all fit its quota; and everything halted now and then.
    replace(_STORM, crash=0.01, processes=3, steps_quota=150),
    replace(_STORM, processes=3, halt=0.2),
    # Everything halted for long while calls are under way; and leases that are lost while they are.
    replace(_BUSY, processes=3, actions=30, halt=0.03, halt_s=60.0, late=0.5),
    replace(_BUSY, processes=3, lease_ms=400, slow=0.25, late=0.5),
)
# How many there were before small troubles: worlds that were kept then are played as they were.
EARLIER_WEATHERS = 13


def weather_of(seed: int) -> Weather:
    """The weather of a seed; every second round of weathers has small troubles as well."""
    weather = WEATHERS[seed % len(WEATHERS)]
    if seed // len(WEATHERS) % 2 == 0:
        return weather
    return replace(weather, is_rung=True, double=0.2, cuts=True, apart_ms=2_000, faults=0.1)
