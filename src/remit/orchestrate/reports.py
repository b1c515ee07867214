"""Reports: what an executor says about the command it performed, before facts make an arrival of it.

Rule 1: a report is raw. It holds texts, not digests, and nobody has checked anything in it.
Rule 2: whatever an executor knows how to say as an arrival it may report as one; facts complete it.
"""

from typing import TypeAlias

from remit.core import arrivals
from remit.core.arrivals import Arrival, Happened
from remit.core.budget import Charges
from remit.core.failure import Ending, ErrorCode
from remit.core.inference import ModelResult
from remit.core.record import JsonObject, Record
from remit.core.signals import Signal, UserSignal
from remit.core.tools import ToolResult


class ModelSaid(Record):
    """A model call returned."""

    command_id: str
    result: ModelResult


class ToolSaid(Record):
    """A tool call returned. `refuted` is what the tool's own check found wrong."""

    command_id: str
    result: ToolResult
    refuted: str = ""
    duration_ms: int = 0


class ToolBroke(Record):
    """A tool call failed, was unavailable or ran out of time."""

    command_id: str
    code: ErrorCode
    error: str = ""
    duration_ms: int = 0


class ToolAccounted(Record):
    """A tool was asked what became of an earlier call."""

    command_id: str
    happened: Happened
    content: str = ""


class ChildSaid(Record):
    """A child run ended."""

    command_id: str
    ending: Ending
    text: str = ""
    spent: Charges = ()


class ContextSaid(Record):
    """Evidence was found."""

    command_id: str
    text: str


class PersonApproved(Record):
    """A person approved a held call, perhaps with arguments of their own."""

    command_id: str
    by: str
    arguments: JsonObject | None = None


class PersonSaid(Record):
    """A person answered a question (`command_id` names it) or gave feedback (`command_id` is empty)."""

    by: str
    text: str
    command_id: str = ""


Report: TypeAlias = (
    ModelSaid | ToolSaid | ToolBroke | ToolAccounted | ChildSaid | ContextSaid | PersonApproved | PersonSaid | Arrival
)


def report_of(signal: UserSignal) -> Report:
    """What a signal from outside reports to its run."""
    by, payload = signal.user_id, signal.payload
    match signal.type:
        case Signal.CANCEL:
            return arrivals.CancelRequested(by, str(payload.get("reason", "")))
        case Signal.PAUSE:
            return arrivals.PauseRequested(by)
        case Signal.RESUME:
            return arrivals.ResumeRequested(by)
        case Signal.APPROVE:
            return PersonApproved(str(payload["packet_id"]), by, payload.get("arguments"))
        case Signal.REJECT:
            return arrivals.ApprovalRefused(str(payload["packet_id"]), by, str(payload.get("reason", "")))
        case Signal.FEEDBACK:
            return PersonSaid(by, str(payload["text"]))
        case Signal.RETRY:
            return arrivals.RetryRequested(by)
