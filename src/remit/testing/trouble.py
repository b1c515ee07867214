"""Trouble: how often each thing goes wrong in a simulated world."""

from remit.core.record import Record, replace


class Faults(Record):
    """Chances between 0 and 1, per occasion. The default is a world where nothing goes wrong."""

    # The process dies between two awaits, with everything it had under way.
    crash: float = 0.0
    # A report is delivered a second time.
    duplicate: float = 0.0
    # A report takes long enough for others to overtake it.
    delay: float = 0.0
    # The clock jumps, forward or back.
    clock_jump: float = 0.0
    # A tool raises, runs out of time, is unavailable, or breaks its own schema.
    tool_failure: float = 0.0
    # Another runner takes a turn of the same run at the worst moment.
    rival: float = 0.0
    # A child never starts, or its ending is never heard of.
    lost_child: float = 0.0
    # A person sends a signal: cancel, pause, resume, feedback, or one that makes no sense.
    signal: float = 0.0


CALM = Faults()
STORM = Faults(
    crash=0.01,
    duplicate=0.1,
    delay=0.1,
    clock_jump=0.01,
    tool_failure=0.2,
    rival=0.05,
    lost_child=0.2,
    signal=0.05,
)

# Worlds where one kind of trouble is much more frequent than the others, so that what happens rarely happens often.
WEATHER: tuple[Faults, ...] = (
    CALM,
    STORM,
    STORM,
    STORM,
    replace(STORM, signal=0.3, clock_jump=0.0),
    replace(STORM, crash=0.06),
    replace(STORM, tool_failure=0.7, delay=0.4),
    replace(STORM, duplicate=0.6, rival=0.3),
    Faults(lost_child=0.5, delay=0.3),
)
