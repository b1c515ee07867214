"""Stops of the clock: how long the clock of a run stands because a child waits for a person, and how much of it was waiting.

Rule 1: a parent learns that a child waits and, when the child has ended, for how long it did; not when it went on.
Rule 2: of a standstill only so much counts as waiting as one child says it waited, or as the run itself waited meanwhile,
        the longer of the two: they may have waited at the same time, so nothing is added up. Never more than the standstill.
Rule 3: a child may have waited before its parent knew. What the clock had stood for by then is not counted again.
Rule 4: a child that does not say how long it waited may have waited all the time.
"""

from typing import NamedTuple

# A child does not say how long it waited: it was lost or cut off, or its end was written down without that figure.
UNTOLD = -1


class Standstill(NamedTuple):
    """A standstill that began at a moment, with what is known of the waiting in it so far."""

    since_ms: int
    # How long the run itself asked a person or was paused in it, and since when it does; -1 while it does not.
    own_ms: int = 0
    own_since_ms: int = -1
    # The longest that a child says it waited.
    told_ms: int = 0


def standstill_after_turn(standstill: Standstill | None, at_ms: int, own: int) -> Standstill:
    """The standstill after a turn, a new one if there was none; `own` counts the run's own reasons to wait from now on."""
    if standstill is None:
        return Standstill(at_ms, own_since_ms=at_ms if own else -1)
    if (standstill.own_since_ms >= 0) == (own > 0):
        return standstill
    if own:
        return standstill._replace(own_since_ms=at_ms)
    return standstill._replace(own_ms=standstill.own_ms + at_ms - standstill.own_since_ms, own_since_ms=-1)


def standstill_after_child(standstill: Standstill, stood_ms: int) -> Standstill:
    """The standstill, now that a child has ended that waited in it for so long."""
    is_untold = UNTOLD in (standstill.told_ms, stood_ms)
    return standstill._replace(told_ms=UNTOLD if is_untold else max(standstill.told_ms, stood_ms))


def proven_ms(standstill: Standstill, at_ms: int) -> int:
    """How much of a standstill that ends now was surely waiting."""
    own_ms = standstill.own_ms + (at_ms - standstill.own_since_ms if standstill.own_since_ms >= 0 else 0)
    return min(at_ms - standstill.since_ms, max(own_ms, standstill.told_ms))


def waited_ms(standstill: Standstill, at_ms: int) -> int:
    """How much of a standstill that ends now counts as waiting."""
    return at_ms - standstill.since_ms if standstill.told_ms == UNTOLD else proven_ms(standstill, at_ms)
