"""The routing table of escalations, row by row against the doctrine."""

import pytest

from remit.core.failure import ENDINGS, Ending, EscalationRoute
from remit.core.limits.authority import Stakes
from remit.core.limits.escalation import (
    QUEUES,
    SEVERITY_RANK,
    TRIGGER_OF,
    TRIGGERS,
    Gravity,
    Trigger,
    escalation_of,
    trigger_of_call,
)
from remit.core.limits.tool_trust import Reads, Trust
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace

REACHES = [Gravity, Trigger, EscalationRoute]

LOW, MODERATE, HIGH = Gravity.LOW, Gravity.MODERATE, Gravity.HIGH

# Severity and receiver; of a range the doctrine gives, the row takes an end.
ROWS = {
    Trigger.HIGH_IMPACT_MUTATION: ({HIGH}, "operator"),
    Trigger.FINANCIAL_COMMITMENT: ({HIGH}, "procurement"),
    Trigger.EXTERNAL_COMMUNICATION: ({MODERATE, HIGH}, "user"),
    Trigger.MISSING_INPUT: ({LOW}, "user"),
    Trigger.AMBIGUOUS_GOAL: ({LOW, MODERATE}, "user"),
    Trigger.LOW_CONFIDENCE: ({MODERATE}, "review"),
    Trigger.TOOL_FAILURE: ({MODERATE}, "operator"),
    Trigger.BUDGET_LIMIT: ({MODERATE, HIGH}, "budget"),
    Trigger.OUTAGE: ({MODERATE, HIGH}, "sre"),
    Trigger.SECURITY_BREACH: ({HIGH}, "security"),
    Trigger.REPEATED_DENIAL: ({MODERATE, HIGH}, "compliance"),
}


def tool(category: ToolCategory | None) -> ToolDefinition:
    return ToolDefinition("act", "Acts.", {"type": "object"}, category=category)


def test_there_is_a_row_for_each_state_of_failure_or_risk() -> None:
    assert set(TRIGGERS) == set(Trigger) == set(ROWS)


@pytest.mark.parametrize("trigger", list(Trigger))
def test_a_row_is_as_grave_as_the_doctrine_has_it_and_goes_to_the_same_people(trigger: Trigger) -> None:
    severities, queue = ROWS[trigger]
    row = TRIGGERS[trigger]
    assert row.severity in severities
    assert row.queue == queue
    assert row.recovery


def test_a_breach_and_a_second_denial_fail_closed_and_an_outage_degrades() -> None:
    assert TRIGGERS[Trigger.SECURITY_BREACH].route is EscalationRoute.FAIL_CLOSED
    assert TRIGGERS[Trigger.REPEATED_DENIAL].route is EscalationRoute.FAIL_CLOSED
    assert TRIGGERS[Trigger.OUTAGE].route is EscalationRoute.DEGRADED_MODE


def test_every_way_out_of_the_loop_is_taken_by_some_state() -> None:
    assert {row.route for row in TRIGGERS.values()} == set(EscalationRoute)


def test_the_queues_are_those_of_the_table_each_once() -> None:
    assert set(QUEUES) == {row.queue for row in TRIGGERS.values()}
    assert len(QUEUES) == len(set(QUEUES))


def test_severities_are_ranked_from_low_to_high() -> None:
    assert sorted(Gravity, key=SEVERITY_RANK.__getitem__) == [LOW, MODERATE, HIGH]


@pytest.mark.parametrize("ending", list(Ending))
def test_an_ending_hands_something_on_exactly_where_it_names_a_route(ending: Ending) -> None:
    assert (ending in TRIGGER_OF) is (ENDINGS[ending].route is not None)


@pytest.mark.parametrize(
    ("category", "trigger"),
    [
        (ToolCategory.PAYMENT, Trigger.FINANCIAL_COMMITMENT),
        (ToolCategory.EMAIL_CALENDAR, Trigger.EXTERNAL_COMMUNICATION),
        (ToolCategory.DATABASE, Trigger.HIGH_IMPACT_MUTATION),
        (None, Trigger.HIGH_IMPACT_MUTATION),
    ],
)
def test_why_a_person_is_asked_about_a_call_depends_on_the_category(
    category: ToolCategory | None, trigger: Trigger
) -> None:
    assert trigger_of_call(tool(category)) is trigger


def test_a_boundary_may_send_a_state_to_another_queue_and_changes_nothing_else() -> None:
    usual = escalation_of(Trigger.FINANCIAL_COMMITMENT)
    queues = (("outage", "night"), ("financial_commitment", "finance"))
    other = escalation_of(Trigger.FINANCIAL_COMMITMENT, queues)
    assert (usual.queue, other.queue) == ("procurement", "finance")
    assert (usual.trigger, usual.severity, usual.route) == (other.trigger, other.severity, other.route)
    assert escalation_of(Trigger.BUDGET_LIMIT, queues).queue == "budget"


@pytest.mark.req("4.37")
@pytest.mark.parametrize("category", [None, *ToolCategory])
def test_a_read_of_secrets_is_handed_on_to_security_whatever_the_tool_is_for(category: ToolCategory | None) -> None:
    reads = replace(tool(category), effect=Effect.READ, trust=Trust(reads=Reads.SECRET))
    handed = escalation_of(trigger_of_call(reads))
    assert (handed.trigger, handed.severity, handed.queue) == (Trigger.SECURITY_BREACH, HIGH, "security")
    assert trigger_of_call(replace(reads, trust=Trust(reads=Reads.PRIVATE))) is not Trigger.SECURITY_BREACH


def test_money_that_a_tool_moves_is_a_financial_commitment_whatever_its_category() -> None:
    moves = replace(tool(ToolCategory.LIVE_API), trust=Trust(stakes=Stakes.MONEY))
    assert trigger_of_call(moves) is Trigger.FINANCIAL_COMMITMENT
    assert trigger_of_call(replace(moves, effect=Effect.READ)) is Trigger.EXTERNAL_COMMUNICATION
