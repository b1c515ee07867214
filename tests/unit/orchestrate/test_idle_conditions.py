"""Which conditions no call of some tools could meet, and what is missing."""

import pytest

from remit.core.limits.boundary import Boundary, Condition
from remit.core.limits.profiles import (
    CODING_ASSISTANT,
    CUSTOMER_SUPPORT,
    INCIDENT_SRE,
    PROCUREMENT,
    PROFILES,
    RESEARCH_ASSISTANT,
)
from remit.core.limits.tool_trust import Trust
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.orchestrate.boundaries.tool_findings import boundary_findings, idle_conditions

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}}
LOOK = ToolDefinition("look", "", OBJECT, effect=Effect.READ, network=False)
ACT = ToolDefinition("act", "", OBJECT, effect=Effect.EXTERNAL)


def idle(boundary: Boundary, *tools: ToolDefinition) -> dict[str, str]:
    return {one.name: one.why for one in idle_conditions(boundary, tools)}


@pytest.mark.req("4.5")
@pytest.mark.parametrize(
    ("boundary", "condition", "tool", "why"),
    [
        (
            CODING_ASSISTANT,
            "failing_tests_after_mutation",
            replace(LOOK, flags=(("exit_code", "tests_failed"),)),
            "no tool declares a field of its result that raises the flag tests_failed",
        ),
        (
            CODING_ASSISTANT,
            "failing_tests_after_mutation",
            replace(LOOK, name="run_tests", category=ToolCategory.SANDBOX),
            "raises the flag tests_failed",
        ),
        (CODING_ASSISTANT, "production_impact", replace(ACT, concerns=("production",)), "the concern production"),
        (
            CUSTOMER_SUPPORT,
            "identity_mismatch",
            replace(LOOK, parameters={"type": "object", "properties": {"customerId": {}}}),
            "no tool has an argument of a kind in `identities`",
        ),
        (
            CUSTOMER_SUPPORT,
            "identity_mismatch_in_result",
            replace(LOOK, trust=Trust(fields=(("owner", "who:member"),))),
            "no tool declares a field of its result of a kind in `identities`",
        ),
        (CUSTOMER_SUPPORT, "payment_change", replace(LOOK, concerns=("payment_change",)), "the concern payment_change"),
        (CUSTOMER_SUPPORT, "regulated_category", replace(LOOK, flags=(("t", "regulated=x"),)), "the flag regulated"),
        (
            PROCUREMENT,
            "budget_breach",
            replace(ACT, control_args=(("n", "money"),)),
            "which of its arguments is `money`",
        ),
        (INCIDENT_SRE, "destructive_action", replace(ACT, destructive=True), "no tool makes destructive true"),
        (
            RESEARCH_ASSISTANT,
            "source_policy_conflict",
            replace(LOOK, network=True),
            "no tool makes network true",
        ),
    ],
)
def test_a_condition_that_no_tool_could_meet_says_what_is_missing(
    boundary: Boundary, condition: str, tool: ToolDefinition, why: str
) -> None:
    assert why in idle(boundary, LOOK, ACT)[condition]
    assert condition not in idle(boundary, LOOK, ACT, tool)


def test_a_flag_and_the_change_that_it_stops_may_be_of_two_tools() -> None:
    flagged = replace(LOOK, flags=(("risk", "vendor_risk"),))
    assert "vendor_risk_conflict" not in idle(PROCUREMENT, flagged, ACT)
    assert idle(PROCUREMENT, flagged)["vendor_risk_conflict"] == "no tool makes changes true"


def test_what_the_boundary_declares_of_a_tool_counts() -> None:
    own = replace(CUSTOMER_SUPPORT, name="own", concerns=(("payment_change", ("act",)),))
    assert "payment_change" not in idle(own, ACT)


def test_demands_that_no_single_tool_meets_together_are_named() -> None:
    boundary = Boundary("own", conditions=(Condition("both", '(destructive && (effect == "read"))'),))
    wipe = replace(ACT, destructive=True)
    assert idle(boundary, LOOK, wipe) == {"both": 'no single tool meets destructive && effect == "read"'}


@pytest.mark.parametrize(
    "when",
    [
        "true",
        "args.n > 3",
        'tool == "look" || tool == "other"',
        '!(tool == "x||y") && (denials > 1 || hour > 20)',
        'tool in ["look", "a && b"]',
        "secret_read && changes == false",
        '"secret_read" in flags',
        "(left_tool_calls < 3) && (reads == 'private')",
    ],
)
def test_what_only_a_run_shows_is_taken_as_possible(when: str) -> None:
    assert idle(Boundary("own", conditions=(Condition("c", when),)), LOOK) == {}


@pytest.mark.parametrize("when", ["secret_read", '"secret_read" in flags', 'tool == "other" && true'])
def test_a_run_that_reads_nothing_reads_no_secret(when: str) -> None:
    assert list(idle(Boundary("own", conditions=(Condition("c", when),)), replace(LOOK, effect=Effect.NONE))) == ["c"]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda one: one.name)
def test_a_check_names_them_and_without_tools_there_are_none(profile: Boundary) -> None:
    found = boundary_findings(profile, (LOOK,))
    assert {one.name for one in found.idle} == set(idle(profile, LOOK))
    assert found.idle
    assert boundary_findings(profile).idle == ()
