"""Verdicts: a decision that explains itself: each argument with what bound it, the plan, and what would make it pass.

Rule 1: a verdict is a frozen record of plain values; equal runs give equal verdicts.
Rule 2: `ask` can be answered by a person; `refuse` cannot be approved as it stands.
Rule 3: values are shown cut to VALUE_SHOWN_CHARS_MAX; the bytes that were judged are named by their hash.
"""

from enum import StrEnum
from typing import Any

from remit.core.record import JsonObject, Record
from remit.core.work.orders import OrderUsed, told_order
from remit.provenance.origins.labels import OriginPlace

VALUE_SHOWN_CHARS_MAX = 200
# The name under which silence says no; no person has it.
SILENCE = ""


class Decision(StrEnum):
    """Let it happen, hold it for a person, or turn it away."""

    ALLOW = "allow"
    ASK = "ask"
    REFUSE = "refuse"


class Objection(StrEnum):
    """Why a call does not pass unattended."""

    PROVENANCE_UNBOUND = "PROVENANCE_UNBOUND"
    RECORD_AMBIGUOUS = "RECORD_AMBIGUOUS"
    NOT_ASKED = "NOT_ASKED"
    QUOTA = "QUOTA"
    REPEAT = "REPEAT"
    PAYLOAD_REFERENCE = "PAYLOAD_REFERENCE"
    PRIVATE_FLOW = "PRIVATE_FLOW"
    KIND_MISMATCH = "KIND_MISMATCH"
    TRIPPED = "TRIPPED"
    UNDECLARED = "UNDECLARED"
    BEYOND_ORDERS = "BEYOND_ORDERS"


FIXES = {
    Objection.PROVENANCE_UNBOUND: "name the value in the request, declare the field that supplies it, or approve the call",
    Objection.RECORD_AMBIGUOUS: "name the record so that only one fits, look it up by the user's words, or approve the call",
    Objection.NOT_ASKED: "ask for it in the request, declare the words it is asked with in `asks`, or approve the call",
    Objection.QUOTA: "say how often (both, each, a number) in the request, or approve the call",
    Objection.REPEAT: "say that it shall happen again (twice, each), declare `repeat`, or approve the call",
    Objection.PAYLOAD_REFERENCE: "leave the reference out, give it in the request, or approve the call",
    Objection.PRIVATE_FLOW: "send the user's own words, ask for what was read in the request, or approve the call",
    Objection.KIND_MISMATCH: "use a value of the kind that the argument declares, or approve the call",
    Objection.TRIPPED: "answer the call that is held; until then no effect happens unattended",
    Objection.UNDECLARED: "declare the tool, its parameters and what steers it, and pass only those; or approve the call",
    Objection.BEYOND_ORDERS: "call it as it was ordered, add an order to the request, or approve the call",
}

# What each objection says to the person who is asked.
MEANINGS = {
    Objection.PROVENANCE_UNBOUND: "nothing that can be trusted supplies a value",
    Objection.RECORD_AMBIGUOUS: "a value is a record's, and the request does not say that it is this one",
    Objection.NOT_ASKED: "the request does not ask for it",
    Objection.QUOTA: "the request asks for it less often",
    Objection.REPEAT: "it happened on this target already",
    Objection.PAYLOAD_REFERENCE: "a link, address or account number in its text has no source",
    Objection.PRIVATE_FLOW: "something private was read that nobody asked for, and would leave",
    Objection.KIND_MISMATCH: "a value is known as something else",
    Objection.TRIPPED: "another call of this run is held, and comes first",
    Objection.UNDECLARED: "the tool or an argument is not declared",
    Objection.BEYOND_ORDERS: "it is none of the orders that were given",
}


class Argument(Record):
    """One value of a call: what bound it and where that stands, or the objection to it, with a note where it needs one."""

    path: str
    value: Any
    bound_by: str = ""
    span: tuple[int, int] | None = None
    origin: OriginPlace | None = None
    also_seen: tuple[int, ...] = ()
    candidates: int = 0
    code: Objection | None = None
    kind: str = ""
    note: str = ""


class PlanShown(Record):
    """How often the words ask for the tool, how often it was used, and which words ask."""

    asked: int
    used: int
    words: tuple[str, ...]


class GateVerdict(Record):
    """The decision on one call, and everything it rests on. `arguments` is set when handles were replaced."""

    call_id: str
    tool: str
    decision: Decision
    code: Objection | None = None
    reasons: tuple[str, ...] = ()
    args: tuple[Argument, ...] = ()
    plan: PlanShown | None = None
    labels: tuple[str, ...] = ()
    rules: str = ""
    digest: str = ""
    fix: str = ""
    approved_by: str = ""
    arguments: JsonObject | None = None
    # The call reads, and where its values come from is not asked.
    is_free: bool = False
    # The confirmed order that the call equals.
    order: OrderUsed | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether the call may happen now."""
        return self.decision is Decision.ALLOW


def verdict_json(verdict: GateVerdict) -> JsonObject:
    """A verdict as plain JSON values, in the form the protocol shows it."""
    shown: JsonObject = {
        "decision": verdict.decision.value,
        "code": verdict.code.value if verdict.code else "",
        "reasons": list(verdict.reasons),
        "args": [_argument_json(argument) for argument in verdict.args],
        "labels": list(verdict.labels),
        "rules": verdict.rules,
        "digest": verdict.digest,
        "fix": verdict.fix,
    }
    if verdict.plan is not None:
        shown["plan"] = {"asked": verdict.plan.asked, "used": verdict.plan.used, "words": list(verdict.plan.words)}
    if verdict.order is not None:
        shown["order"] = told_order(verdict.order)
    if verdict.approved_by:
        shown["approved_by"] = verdict.approved_by
    if verdict.arguments is not None:
        shown["arguments"] = verdict.arguments
    return shown


def _argument_json(argument: Argument) -> JsonObject:
    shown: JsonObject = {"path": argument.path, "value": shown_value(argument.value), "bound_by": argument.bound_by}
    if argument.span is not None:
        shown["span"] = list(argument.span)
    if (origin := argument.origin) is not None:
        shown["origin"] = {
            "observation": origin.observation,
            "record": origin.record,
            "field": origin.field,
            "kind": origin.kind,
        }
    if argument.also_seen:
        shown["also_seen"] = list(argument.also_seen)
    if argument.candidates:
        shown["candidates"] = argument.candidates
    if argument.code is not None:
        shown["code"] = argument.code.value
    return shown


def shown_value(value: Any) -> Any:
    """A value as it is shown: texts cut, everything else whole."""
    return value[:VALUE_SHOWN_CHARS_MAX] if isinstance(value, str) else value
