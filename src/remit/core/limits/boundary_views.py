"""Boundaries as people and programs read them: what one says, what it does to tools, and how it differs from another.

Rule 1: these are for people and their programs; nothing is judged by them.
"""

from enum import StrEnum

from remit.core.limits.boundary import BoundaryMode
from remit.core.record import JsonObject, Record


class Stance(StrEnum):
    """What a boundary does to the calls of a tool, as far as the tool alone decides that."""

    REFUSES = "refuses"
    ASKS = "asks"
    # Mode audit objects, writes that down, and lets the call be made.
    RECORDS = "records"
    PASSES = "passes"


class ToolTrial(Record):
    """What the gate does to a call that was made up: what it tries, the request, the decision, its code and the reasons."""

    tries: str
    request: str
    decision: str
    code: str = ""
    reasons: tuple[str, ...] = ()


class ToolReport(Record):
    """What a boundary does to one tool and why, and what the tool leaves undeclared.

    `at_worst` are the declarations of the gate that it leaves at their worst; `gaps` is what its category demands besides.
    """

    tool: str
    stance: Stance
    why: str
    risk: str
    at_worst: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    # What could refuse a result of it; empty where nothing could. Of a tool that changes something, that is a gap of its own.
    verified_by: str = ""
    is_unverified: bool = False
    # What the row of its category wants to be checked, in words.
    checks: str = ""
    # Whether it changes something, takes no `idempotency_key`, and has no other way to settle a call in doubt.
    is_unrepeatable: bool = False
    # What the gate does to made-up calls of it, of what kind its arguments are, and what it could declare.
    trials: tuple[ToolTrial, ...] = ()
    kinds: tuple[str, ...] = ()
    patch: str = ""
    # What it declares and cannot be so.
    faults: tuple[str, ...] = ()


class TierReport(Record):
    """The tier of a graph under a boundary; code and objection say why that is too high, empty when it is not."""

    graph: str
    tier: int
    title: str
    tier_max: int
    code: str = ""
    objection: str = ""


class IdleCondition(Record):
    """A condition that none of the tools could meet, and the declaration that is missing."""

    name: str
    why: str


class BoundaryChecked(Record):
    """A boundary that is fine, its version, and what it does to tools and to a graph."""

    name: str
    version: str
    mode: BoundaryMode
    conditions: int
    tools: tuple[ToolReport, ...] = ()
    # Tools that the boundary names and that are not among those it was checked with.
    missing: tuple[str, ...] = ()
    tier: TierReport | None = None
    # Caps above 0 that it has from a profile and that nothing charges yet, as `memory_writes=2`.
    uncharged: tuple[str, ...] = ()
    # Conditions that no call of these tools could meet.
    idle: tuple[IdleCondition, ...] = ()


class BoundaryLine(Record):
    """One line of what a boundary says: the dimension, the key in its file, and the value in words."""

    dimension: str
    key: str
    says: str


class BoundaryShown(Record):
    """A boundary in words, and as its file says it."""

    name: str
    version: str
    mode: BoundaryMode
    lines: tuple[BoundaryLine, ...]
    said: JsonObject
    yaml: str


class Difference(Record):
    """What differs under one key: what the second boundary allows more, allows less, and says otherwise."""

    key: str
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
