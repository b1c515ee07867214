"""What a run asks of a person: one open question, with all that its answerer should see.

Rule 1: it is a view of the question that stands in the journal; nothing is decided by it.
"""

from enum import StrEnum

from remit.core.failure import Ending
from remit.core.limits.authority import ValueOrigin
from remit.core.limits.escalation import Gravity
from remit.core.record import JsonObject, Record


class What(StrEnum):
    """The kinds of things that people are asked for."""

    APPROVAL = "approval"
    QUESTION = "question"
    OUTCOME = "outcome"
    RELEASE = "release"
    REVIEW = "review"
    ENDING = "ending"


class Approval(Record):
    """One open question, as an inbox shows it. Without a tool it is a question in words."""

    id: str
    run_id: str
    purpose: What
    ending: Ending
    expires_at_ms: int
    tool: str = ""
    effect: str = ""
    arguments: JsonObject = {}
    question: str = ""
    reasons: tuple[str, ...] = ()
    # What is allowed once, beyond the caps of the budget.
    releases: tuple[tuple[str, int], ...] = ()
    tool_version: str = ""
    boundary_version: str = ""
    # The call that is in doubt, when a person is asked what became of it.
    about: str = ""
    # The name of the first of the questions that were asked together; they are one packet.
    group: str = ""
    # The content hash that an answer may name; empty where there is no packet.
    packet: str = ""
    call_id: str = ""
    # Why the gate objects, where each value comes from, and what the run had read by then.
    objection: str = ""
    origins: tuple[ValueOrigin, ...] = ()
    labels: tuple[str, ...] = ()
    # How far the call reaches, the way back, what would run, and what is left of the budget.
    blast_radius: str = ""
    rollback: str = ""
    # What the category of the tool demands that it declares, and it does not.
    gaps: tuple[str, ...] = ()
    source: str = ""
    left: tuple[tuple[str, int], ...] = ()
    # Who has approved it so far, and how many different people must.
    approved_by: tuple[str, ...] = ()
    approvals_needed: int = 1
    # To whom it goes, how grave it is, since when it is open, and how many kept silent before.
    queue: str = ""
    severity: Gravity = Gravity.HIGH
    trigger: str = ""
    asked_at_ms: int = 0
    silences: int = 0
    options: tuple[str, ...] = ()
    # Whether it waits for room in its queue, which is full.
    is_outside: bool = False
    # Who alone answers its queue, and who alone may release what it releases; empty where every person may.
    answered_by: tuple[str, ...] = ()
    released_by: tuple[str, ...] = ()
    # The answer that a reviewer is asked to let stand, in full.
    answer: str = ""
    # The order that the call equals, where a person is asked all the same.
    order: str = ""
