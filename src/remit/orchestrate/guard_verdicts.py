"""Verdicts of the guard: what the kernel decided on a call and what the gate found about it, as the protocol shows them.

Rule 1: the decision, its code and its reasons are the kernel's; values, plan and labels are the gate's.
Rule 2: what a boundary that only audits would have objected to is shown beside an `allow`, never instead of it.
"""

from collections.abc import Iterable

from remit.core.arrivals import ProposedCall, Provenance
from remit.core.events import Decision
from remit.core.failure import Ending
from remit.core.record import JsonObject
from remit.core.rulings import CallNoted
from remit.kernel.verdicts import Judgement, Verdict
from remit.orchestrate.guard_fixes import FIXES
from remit.provenance.gate import Gate
from remit.provenance.verdicts import Verdict as Finding
from remit.provenance.verdicts import verdict_json


def found_json(finding: Finding | None, gate: Gate) -> JsonObject:
    """What the gate says of a call; of one that it was not asked about, what it says of the run."""
    if finding is not None:
        return verdict_json(finding)
    shown: JsonObject = {"decision": "", "code": "", "reasons": [], "args": []}
    return {**shown, "labels": list(gate.evidence.labels), "rules": gate.rules, "fix": ""}


def allowed() -> JsonObject:
    """The call may be made."""
    return {"decision": Judgement.ALLOW.value, "code": "", "reasons": [], "fix": ""}


def refused(code: str, reasons: Iterable[str]) -> JsonObject:
    """The call may not be made, and nobody is asked."""
    return _said(Judgement.REFUSE, code, reasons)


def asked(call: ProposedCall, verdict: Verdict, demand: Verdict, finding: Finding | None) -> JsonObject:
    """A person decides: what the gate objects to comes first, then what the boundary demands."""
    reasons = [] if call.provenance is not Provenance.UNBOUND else _objections(call, finding)
    if demand.reason and demand.reason not in reasons:
        reasons.append(demand.reason)
    return _said(Judgement.ASK, verdict.code or Ending.CONFIRM_REQUIRED, reasons or [verdict.reason])


def _objections(call: ProposedCall, finding: Finding | None) -> list[str]:
    """What the gate objects to. Where a text was lost, it had nothing to object to, and the call says why it is held."""
    if finding is not None and finding.reasons:
        return list(finding.reasons)
    return list(call.reasons[:1])


def noted_json(decisions: Iterable[Decision]) -> list[JsonObject]:
    """What a boundary that only audits would have done about the call."""
    return [
        {"decision": one.judgement, "code": one.code or Ending.CONFIRM_REQUIRED.value, "reason": one.reason}
        for one in decisions
        if isinstance(one, CallNoted)
    ]


def _said(judgement: Judgement, code: str, reasons: Iterable[str]) -> JsonObject:
    return {"decision": judgement.value, "code": str(code), "reasons": list(reasons), "fix": FIXES.get(code, "")}
