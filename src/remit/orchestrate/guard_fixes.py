"""Fixes: what would make a call pass that the guard did not let through, for every code that a verdict may have.

Rule 1: every code has words; whoever adds a check to the pipeline of a run adds its way out here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.orchestrate.gate_facts import RESULT_LOST
from remit.provenance.verdicts import FIXES as GATE_FIXES

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
        Refusal.APPROVAL_EXPIRED.value: "propose something else; nobody approved it in time, which is a no",
        Refusal.DEPTH_EXCEEDED.value: "do it in this run, or raise the depth of the budget",
        Refusal.NOT_OFFERED.value: "call a tool that the request offers",
        Refusal.RATE_LIMITED.value: "wait until the time that the reason names has passed, or raise the rate",
        Refusal.LEAST_TOOL.value: "call the cheaper tool first; where it does not do, this one may be called",
        Refusal.CONDITION_HELD.value: "propose a call that the condition does not hold of, or change the boundary",
        Refusal.FILTERED.value: "change what the filter objects to, or do without",
        Refusal.UNSAFE.value: "end the run and have a person look at it; a condition of the boundary has stopped it",
        Ending.CONFIRM_REQUIRED.value: _ASK,
        RESULT_LOST: f"{_ASK}; to go on unattended, start a new run and report its results",
        CALL_ID_HELD: "give each call an id of its own, or answer the one that is held",
        RUN_STOPPED: "end the run; a condition of the boundary has stopped it, and no call of it is made any more",
    }
)
