"""A fact: one thing that a turn says of a step, as the reading of a run tells it."""

from enum import StrEnum

from remit.core.limits.budget import Charges
from remit.core.record import Record, Text
from remit.observe.steps import FAILED, PerformedStep, StepKind


class FactKind(StrEnum):
    """What a turn says of a step: the run began or moved; the step was ordered, has an outcome, was ruled on or is settled.

    A child is sent later than it was ordered where a halt or a fork lies between.
    """

    STARTED = "started"
    ENTERED = "entered"
    BEGUN = "begun"
    HEARD = "heard"
    COUNTED = "counted"
    DOUBTED = "doubted"
    RETRIED = "retried"
    HELD = "held"
    RELEASED = "released"
    SENT = "sent"
    SETTLED = "settled"
    NOTED = "noted"
    PAUSED = "paused"
    RESUMED = "resumed"
    ENDED = "ended"


class Fact(Record):
    """One thing that a turn says, and the step that it is about as it stands then."""

    kind: FactKind
    step: PerformedStep
    seq: int
    at_ms: int
    # What was charged as the step was settled.
    charged: Charges = ()
    # What a step of a plan gave, and of which kind that is; empty where it passed on what it was fed.
    gave: Text = ""
    value: str = ""
    # How many checks it passed, or which attempt follows.
    count: int = 0


def is_failed_call(fact: Fact) -> bool:
    """Whether a tool failed that was called, or was asked what became of a call."""
    is_call = fact.step.kind in (StepKind.TOOL, StepKind.INQUIRY)
    return fact.kind is FactKind.HEARD and is_call and fact.step.status == FAILED
