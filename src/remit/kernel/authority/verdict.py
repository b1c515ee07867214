"""Verdicts: what is said of one proposed call. A refusal is a value, never an exception.

Rule 1: a verdict is allow, refuse or ask; codes are an ErrorCode, a Refusal or an objection of the gate.
Rule 2: reasons are for people.
"""

from enum import StrEnum

from remit.core.failure import ErrorCode, Refusal
from remit.core.record import Record


class Judgement(StrEnum):
    """The outcomes of a check: allow, ask or refuse."""

    ALLOW = "allow"
    REFUSE = "refuse"
    ASK = "ask"


class Verdict(Record):
    """The judgement on one proposed call."""

    judgement: Judgement
    code: str = ""
    reason: str = ""
    dimension: int = -1


ALLOWED = Verdict(Judgement.ALLOW)


def refuse(code: ErrorCode | Refusal, reason: str) -> Verdict:
    """The call may not be made."""
    return Verdict(Judgement.REFUSE, code.value, reason)


def ask_person(reason: str, code: str = "") -> Verdict:
    """A person decides."""
    return Verdict(Judgement.ASK, code, reason)
