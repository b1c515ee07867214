"""Verdicts of the guard: what the kernel decided on a call and what the gate found about it, as the protocol shows them.

Rule 1: the decision, its code and its reasons are the kernel's, read off the turn that it took; values, plan and labels are
        the gate's.
Rule 2: what a boundary that only audits would have objected to is shown beside an `allow`, never instead of it.
Rule 3: every code has a text in FIXES that says what would make the call pass; a new check brings its text.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal.arrivals import CallProposed
from remit.core.journal.commands import AskHuman
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import CallNoted, ToolCallRefused
from remit.core.journal.turn import Turn
from remit.core.record import JsonObject
from remit.kernel.authority.verdict import Judgement
from remit.orchestrate.facts.gate_facts import RESULT_LOST
from remit.provenance.gate import Gate
from remit.provenance.gate_verdict import FIXES as GATE_FIXES
from remit.provenance.gate_verdict import GateVerdict as Finding
from remit.provenance.gate_verdict import verdict_json

CALL_ID_HELD = "CALL_ID_HELD"
RUN_STOPPED = "RUN_STOPPED"

_ASK = "approve the call, or leave it"

FIXES: Mapping[str, str] = MappingProxyType(
    {
        **{objection.value: fix for objection, fix in GATE_FIXES.items()},
        ErrorCode.TOOL_NOT_FOUND.value: "declare the tool when the run starts, or call one that is declared",
        ErrorCode.CONSTRAINT_SCHEMA_INVALID.value: "repair the arguments so that they fit the tool's parameters",
        Refusal.PERMISSION_DENIED.value: "give the boundary the tool, the right or the permission, or do without",
        Refusal.BUDGET_EXHAUSTED.value: "start a run with a larger cap, or end this one",
        Refusal.REPEATED_CALL.value: "use the result that is there, or change the arguments",
        Refusal.APPROVAL_REJECTED.value: "propose something else; a person said no to exactly this call",
        Refusal.APPROVAL_EXPIRED.value: "propose something else; it was not approved in time, which is a no",
        Refusal.DEPTH_EXCEEDED.value: "do it in this run, or raise the depth of the budget",
        Refusal.NOT_OFFERED.value: "call a tool that the request offers",
        Refusal.RATE_LIMITED.value: "wait until the time that the reason names has passed, or raise the rate",
        Refusal.LEAST_TOOL.value: "call the cheaper tool first; where it does not do, this one may be called",
        Refusal.CONDITION_HELD.value: "propose a call that the condition does not hold of, or change the boundary",
        Refusal.FILTERED.value: "change what the filter objects to, or do without",
        Refusal.UNSAFE.value: "end the run and have a person look at it; a condition of the boundary has stopped it",
        Ending.CONFIRM_REQUIRED.value: _ASK,
        RESULT_LOST: f"{_ASK}; to go on unattended, start a new run and report its results",
        CALL_ID_HELD: "give each call an id of its own, or answer the one that is held, or report what came of the one under way",
        RUN_STOPPED: "end the run; a condition of the boundary has stopped it, and no call of it is made any more",
    }
)


def shown_verdict(turn: Turn, finding: Finding | None, gate: Gate) -> JsonObject:
    """The verdict on the call that was proposed with a turn, for the host that proposed it."""
    assert isinstance(turn.arrival, CallProposed), "only a proposed call has a verdict"
    call = turn.arrival.call
    said = _said(Judgement.ALLOW, "", [])
    noted: list[JsonObject] = []
    for decision in turn.decisions:
        if isinstance(decision, AskHuman) and decision.packet is not None:
            code = call.objection if call.provenance is Provenance.UNBOUND else ""
            told = [reason for reason in decision.packet.reasons if reason not in call.reasons]
            said = _said(Judgement.ASK, code or Ending.CONFIRM_REQUIRED, [*_objections(call, finding), *told])
            if decision.packet.approvals_needed > 1:
                said["approvals_needed"] = decision.packet.approvals_needed
        elif isinstance(decision, ToolCallRefused):
            said = _refusal(decision, call, finding)
        elif isinstance(decision, CallNoted):
            code = decision.code or Ending.CONFIRM_REQUIRED.value
            noted.append({"decision": decision.judgement, "code": code, "reason": decision.reason})
    if noted:
        said["noted"] = noted
        said["reasons"] += [one["reason"] for one in noted]
    return {**found_json(finding, gate), **said}


def found_json(finding: Finding | None, gate: Gate) -> JsonObject:
    """What the gate says of a call; of one that it was not asked about, what it says of the run."""
    if finding is not None:
        return verdict_json(finding)
    shown: JsonObject = {"decision": "", "code": "", "reasons": [], "args": []}
    return {**shown, "labels": list(gate.grounds.labels), "rules": gate.rules, "fix": ""}


def shown_refusal(code: str, reasons: Iterable[str]) -> JsonObject:
    """The call may not be made, and no person is asked."""
    return _said(Judgement.REFUSE, code, reasons)


def _refusal(ruling: ToolCallRefused, call: ProposedCall, finding: Finding | None) -> JsonObject:
    if ruling.code in (Refusal.APPROVAL_REJECTED, Refusal.APPROVAL_EXPIRED):
        # The kernel knows who said no; where it does not, the gate says why first and what to do next.
        is_named = call.provenance is not Provenance.REFUSED or ruling.reason != "; ".join(call.reasons)
        return shown_refusal(ruling.code, [ruling.reason] if is_named else call.reasons[:1])
    if ruling.code == Refusal.UNSAFE:
        return {**shown_refusal(ruling.code, [ruling.reason]), "stop": True}
    # What would have been asked, and cannot be any more, was objected to before.
    is_unasked = ruling.code == Refusal.BUDGET_EXHAUSTED and call.provenance is Provenance.UNBOUND
    return shown_refusal(ruling.code, [*(_objections(call, finding) if is_unasked else ()), ruling.reason])


def _objections(call: ProposedCall, finding: Finding | None) -> list[str]:
    """What the gate objects to. Where a text was lost, it had nothing to object to, and the call says why it is held."""
    if call.provenance is not Provenance.UNBOUND:
        return []
    if finding is not None and finding.reasons:
        return list(finding.reasons)
    return list(call.reasons[:1])


def _said(judgement: Judgement, code: str, reasons: Iterable[str]) -> JsonObject:
    return {"decision": judgement.value, "code": str(code), "reasons": list(reasons), "fix": FIXES.get(code, "")}
