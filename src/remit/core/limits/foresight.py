"""Foresight: what like runs needed from a point on, so that a run which cannot finish is stopped before it has spent all.

Rule 1: like runs have the same graph, boundary and task class, and the same tools, model and length of request; only
        those that succeeded are counted.
Rule 2: the lower bound is the least that any of them still needed when it was about to ask its model after the same
        number of answers, and it holds only at that point. It is computed; no model has a say in it. Where fewer than
        RUNS_MIN of them came that far, it is unknown and stops no run.
Rule 3: the upper bound is the most that any of them needed; a plan or a model may only widen it, and no run is stopped
        by it either: it is shown.
Rule 4: only counters are foreseen: the wall clock and gauges are limits of the moment.
"""

from remit.core.limits.budget import Charges
from remit.core.record import Record

# Nothing is foreseen beyond so many answers: few runs come so far, and what a run pins of others stays small.
MILESTONES_MAX = 32
# Of runs that are alike, the next success is cheaper than all of n with a chance of one in n + 1: less than one in twenty.
RUNS_MIN = 20


class Milestone(Record):
    """What was still needed after so many answers: at least, and at most."""

    least: Charges = ()
    most: Charges = ()


class Foresight(Record):
    """What like runs needed: one milestone for each number of answers from 0, as far as enough of them came."""

    runs: int
    milestones: tuple[Milestone, ...]


def milestone_after(foresight: Foresight, answers: int) -> Milestone | None:
    """What is known of a run after so many answers of its model; None where too few like it came so far."""
    if foresight.runs < RUNS_MIN or answers >= len(foresight.milestones):
        return None
    return foresight.milestones[answers]


def needed_after(foresight: Foresight, answers: int) -> Charges:
    """The least that a run still needs after so many answers of its model; nothing where that is unknown."""
    milestone = milestone_after(foresight, answers)
    return () if milestone is None else milestone.least
