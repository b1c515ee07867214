"""Escalation: what makes authority leave the loop, how grave that is, by which route, and who receives it.

Rule 1: the table has a row for each state of failure or risk; an ending or a question has one trigger.
Rule 2: authority goes to a queue, by name; a boundary may name another queue for a trigger.
Rule 3: escalation is no failure: it hands a decision to a safer authority, and says to whom.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from remit.core.failure import Ending, EscalationRoute
from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import ToolCategory, ToolDefinition
from remit.core.record import Record


class Gravity(StrEnum):
    """How grave a state is."""

    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"


SEVERITY_RANK: Mapping[Gravity, int] = MappingProxyType({Gravity.LOW: 0, Gravity.MODERATE: 1, Gravity.HIGH: 2})


class Trigger(StrEnum):
    """The eleven states of failure or risk that hand authority on."""

    HIGH_IMPACT_MUTATION = "high_impact_mutation"
    FINANCIAL_COMMITMENT = "financial_commitment"
    EXTERNAL_COMMUNICATION = "external_communication"
    MISSING_INPUT = "missing_input"
    AMBIGUOUS_GOAL = "ambiguous_goal"
    LOW_CONFIDENCE = "low_confidence"
    TOOL_FAILURE = "tool_failure"
    BUDGET_LIMIT = "budget_limit"
    OUTAGE = "outage"
    SECURITY_BREACH = "security_breach"
    REPEATED_DENIAL = "repeated_denial"


class TriggerRow(Record):
    """One row of the routing table. Where the table gives a range, `grave` is its upper end."""

    severity: Gravity
    route: EscalationRoute
    queue: str
    recovery: str
    grave: Gravity = Gravity.HIGH


_LOW, _MODERATE, _HIGH = Gravity.LOW, Gravity.MODERATE, Gravity.HIGH
_FAIL_CLOSED, _APPROVAL = EscalationRoute.FAIL_CLOSED, EscalationRoute.HUMAN_APPROVAL
_ASK, _REVIEW, _DEGRADED = EscalationRoute.ASK_USER, EscalationRoute.REVIEW_QUEUE, EscalationRoute.DEGRADED_MODE

TRIGGERS: Mapping[Trigger, TriggerRow] = MappingProxyType(
    {
        Trigger.HIGH_IMPACT_MUTATION: TriggerRow(
            _HIGH, _APPROVAL, "operator", "suspend and show the call, its reach and the way back"
        ),
        Trigger.FINANCIAL_COMMITMENT: TriggerRow(
            _HIGH, _APPROVAL, "procurement", "freeze until budget and chain of approval are confirmed"
        ),
        Trigger.EXTERNAL_COMMUNICATION: TriggerRow(
            _MODERATE, _APPROVAL, "user", "keep it a draft until it is approved"
        ),
        Trigger.MISSING_INPUT: TriggerRow(_LOW, _ASK, "user", "pause and ask for what is missing", _LOW),
        Trigger.AMBIGUOUS_GOAL: TriggerRow(_LOW, _ASK, "user", "show the readings and wait for a choice", _MODERATE),
        Trigger.LOW_CONFIDENCE: TriggerRow(
            _MODERATE, _REVIEW, "review", "hand the state to a stronger verifier", _MODERATE
        ),
        Trigger.TOOL_FAILURE: TriggerRow(
            _MODERATE, _DEGRADED, "operator", "try again within the budget, use an equivalent, or degrade", _MODERATE
        ),
        Trigger.BUDGET_LIMIT: TriggerRow(_MODERATE, _APPROVAL, "budget", "freeze until more budget is released"),
        Trigger.OUTAGE: TriggerRow(_MODERATE, _DEGRADED, "sre", "use a fallback, or report that it is unavailable"),
        Trigger.SECURITY_BREACH: TriggerRow(_HIGH, _FAIL_CLOSED, "security", "stop the run and keep its trace"),
        Trigger.REPEATED_DENIAL: TriggerRow(
            _MODERATE, _FAIL_CLOSED, "compliance", "block further attempts and look for an injection"
        ),
    }
)

# Queues that the table names; a boundary may name others.
QUEUES: tuple[str, ...] = tuple(dict.fromkeys(row.queue for row in TRIGGERS.values()))

# What an ending, or a wait under its code, hands on. The codes left out hand nothing on: the caller has the answer.
TRIGGER_OF: Mapping[Ending, Trigger] = MappingProxyType(
    {
        Ending.MISSING_INFO: Trigger.MISSING_INPUT,
        Ending.AMBIGUOUS_INTENT: Trigger.AMBIGUOUS_GOAL,
        Ending.CONFIRM_REQUIRED: Trigger.HIGH_IMPACT_MUTATION,
        Ending.REVIEW_REQUIRED: Trigger.LOW_CONFIDENCE,
        Ending.LOW_CONFIDENCE: Trigger.LOW_CONFIDENCE,
        Ending.SOURCE_CONFLICT: Trigger.LOW_CONFIDENCE,
        Ending.VALIDATION_FAIL: Trigger.LOW_CONFIDENCE,
        Ending.BUDGET_EXHAUSTED: Trigger.BUDGET_LIMIT,
        Ending.REPEATED_FAILURE: Trigger.TOOL_FAILURE,
        Ending.UNAVAILABLE_DEP: Trigger.OUTAGE,
        Ending.PERMISSION_DENIED: Trigger.REPEATED_DENIAL,
        Ending.UNSAFE_DETECTION: Trigger.SECURITY_BREACH,
    }
)


class Escalation(Record):
    """Authority handed on: why, how gravely, by which route, and to which queue."""

    trigger: Trigger
    severity: Gravity
    route: EscalationRoute
    queue: str


def trigger_of_call(tool: ToolDefinition) -> Trigger:
    """Why a person is asked about a call of this tool. One that only reads is asked about for what it may reveal.

    A secret that is read is a matter of security, whatever the tool is for; so is money that a tool of no category moves
    one of money.
    """
    if tool.trust.reads is Reads.SECRET and not tool.effect.is_mutating:
        return Trigger.SECURITY_BREACH
    if tool.category is ToolCategory.PAYMENT or (tool.effect.is_mutating and tool.trust.stakes is Stakes.MONEY):
        return Trigger.FINANCIAL_COMMITMENT
    if tool.category is ToolCategory.EMAIL_CALENDAR or not tool.effect.is_mutating:
        return Trigger.EXTERNAL_COMMUNICATION
    return Trigger.HIGH_IMPACT_MUTATION


def escalation_of(trigger: Trigger, queues: tuple[tuple[str, str], ...] = (), *, is_grave: bool = False) -> Escalation:
    """What a trigger hands on, to the queue that the boundary names for it, else to that of the table."""
    row = TRIGGERS[trigger]
    queue = next((queue for name, queue in queues if name == trigger), row.queue)
    return Escalation(trigger, row.grave if is_grave else row.severity, row.route, queue)
