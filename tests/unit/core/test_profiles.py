"""The boundaries of the house, row by row against the doctrine's tables of profiles and budgets."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import Boundary, DecisionRight, Exhaustion, Then
from remit.core.limits.budget import FIELDS, Dimension, assign
from remit.core.limits.escalation import Trigger
from remit.core.limits.profiles import (
    BOUNDARY_UNKNOWN,
    GUARDED,
    KNOWN,
    PROFILES,
    STANDARD,
    boundary_named,
    declared_boundary,
)
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory
from remit.kernel.authority.conditions import check_conditions
from remit.kernel.budget.exhaustion import check_exhaustion

NAMES = ["research_assistant", "coding_assistant", "customer_support", "procurement", "incident_sre"]

# Columns: research, coding, incident.
CAPS = {
    "steps": (15, 30, 10),
    "tool_calls": (30, 50, 15),
    "external_api_calls": (5, 10, 2),
    "input_tokens": (200_000, 400_000, 100_000),
    "output_tokens": (30_000, 60_000, 15_000),
    "wall_clock_ms": (300_000, 600_000, 120_000),
    "inference_cost_microusd": (2_000_000, 5_000_000, 1_000_000),
    "retries": (3, 5, 2),
    "reflection_passes": (1, 2, 1),
    "context_tokens": (100_000, 200_000, 50_000),
    "memory_writes": (2, 5, 0),
    "side_effects": (0, 2, 0),
}

# What ends a run at once.
STOPS = {
    "research_assistant": {
        "unauthorized_access",
        "secret_exposure",
        "source_policy_conflict",
        "ungrounded_claim",
    },
    "coding_assistant": {
        "unauthorized_access",
        "secret_exposure",
        "production_impact",
        "failing_tests_after_mutation",
    },
    "customer_support": {
        "unauthorized_access",
        "secret_exposure",
        "identity_mismatch",
        "identity_mismatch_in_result",
        "payment_change",
        "policy_exception",
        "regulated_category",
        "regulated_category_in_result",
    },
    "procurement": {
        "unauthorized_access",
        "secret_exposure",
        "budget_breach",
        "missing_approval_chain",
        "vendor_risk_conflict",
        "contract_ambiguity",
    },
    "incident_sre": {
        "unauthorized_access",
        "security_incident",
        "security_incident_in_result",
        "destructive_action",
        "uncertain_blast_radius",
        "missing_operator_approval",
    },
}


def test_five_profiles_are_built_in_and_named_for_their_work() -> None:
    assert list(PROFILES) == NAMES
    assert [profile.name for profile in PROFILES.values()] == NAMES
    assert list(KNOWN) == ["standard", "guarded", *NAMES]


@pytest.mark.req("4.27")
@pytest.mark.parametrize(("name", "column"), [("research_assistant", 0), ("coding_assistant", 1), ("incident_sre", 2)])
def test_the_caps_are_those_of_the_doctrine(name: str, column: int) -> None:
    budget = PROFILES[name].budget
    assert {field: getattr(budget, field) for field in CAPS} == {field: row[column] for field, row in CAPS.items()}


def test_support_and_procurement_take_the_research_caps_and_change_nothing() -> None:
    research = assign(PROFILES["research_assistant"].budget)
    for name in ("customer_support", "procurement"):
        caps = list(assign(PROFILES[name].budget))
        assert (caps[Dimension.EXTERNAL_API_CALLS], caps[Dimension.MEMORY_WRITES]) == (10, 0)
        assert caps[Dimension.SIDE_EFFECTS] == 0
        caps[Dimension.EXTERNAL_API_CALLS] = research[Dimension.EXTERNAL_API_CALLS]
        caps[Dimension.MEMORY_WRITES] = research[Dimension.MEMORY_WRITES]
        assert tuple(caps) == research


@pytest.mark.parametrize(("name", "conditions"), STOPS.items())
def test_each_profile_stops_a_run_where_the_doctrine_fails_closed(name: str, conditions: set[str]) -> None:
    assert {one.name for one in PROFILES[name].conditions if one.then is Then.STOP} == conditions


@pytest.mark.parametrize("name", list(KNOWN))
def test_every_condition_of_the_house_can_be_decided_and_says_why(name: str) -> None:
    check_conditions(KNOWN[name])
    assert all(one.message for one in KNOWN[name].conditions)
    assert len({one.name for one in KNOWN[name].conditions}) == len(KNOWN[name].conditions)


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_asks_about_every_change_and_traces_where_values_come_from(name: str) -> None:
    profile = PROFILES[name]
    # Local drafts are a coder's trade; whatever leaves the machine is for a person there, too.
    asked = (Effect.EXTERNAL,) if name == "coding_assistant" else (Effect.WRITE, Effect.EXTERNAL)
    assert profile.approval_effects == asked
    assert profile.authority == Authority()
    assert profile.tier_max < STANDARD.tier_max


def test_research_asks_about_paid_look_ups_and_sensitive_sources() -> None:
    profile = PROFILES["research_assistant"]
    assert [one.name for one in profile.conditions if one.then is Then.ASK] == ["paid_lookup"]
    assert profile.reads_max is Reads.PRIVATE


def test_coding_writes_its_workspace_and_moves_no_money() -> None:
    assert PROFILES["coding_assistant"].writes == (StateWrite.FILES, StateWrite.OTHER, StateWrite.INFRASTRUCTURE)


def test_procurement_wants_two_people_for_money_and_hands_it_to_its_own_queue() -> None:
    profile = PROFILES["procurement"]
    assert profile.four_eyes == (ToolCategory.PAYMENT,)
    assert profile.queues == ((Trigger.HIGH_IMPACT_MUTATION, "procurement"),)
    assert profile.decisions == (DecisionRight.CHOOSE_TOOLS, DecisionRight.ASK_PEOPLE)


def test_an_incident_goes_to_those_on_call_and_to_the_operators_when_nobody_answers() -> None:
    profile = PROFILES["incident_sre"]
    assert (dict(profile.queues)[Trigger.HIGH_IMPACT_MUTATION], profile.on_silence) == ("sre", ("operator",))
    assert profile.decisions is not None
    assert DecisionRight.DELEGATE not in profile.decisions


def test_long_work_is_wrapped_up_and_compressed_before_it_is_lost() -> None:
    for name in ("research_assistant", "coding_assistant"):
        spent = dict(PROFILES[name].exhaustion)
        assert (spent["output_tokens"], spent["context_tokens"]) == (Exhaustion.WRAP_UP, Exhaustion.COMPRESS)
        assert set(spent) <= set(FIELDS)


@pytest.mark.req("4.29")
def test_every_profile_leaves_more_steps_time_calls_and_words_to_a_person() -> None:
    for profile in PROFILES.values():
        spent = dict(profile.exhaustion)
        assert {spent[name] for name in ("steps", "wall_clock_ms", "tool_calls", "input_tokens")} == {Exhaustion.ASK}
        check_exhaustion(profile)


def test_the_guarded_boundary_leaves_the_judging_to_provenance_and_stops_a_lost_loop() -> None:
    assert (GUARDED.approval_effects, GUARDED.approval_categories) == ((), ())
    assert GUARDED.authority == Authority()
    assert (GUARDED.budget.tool_calls, GUARDED.budget.external_api_calls) == (1_000, 1_000)
    assert (GUARDED.budget.side_effects, GUARDED.budget.human_reviews) == (200, 100)


def test_a_boundary_is_found_by_its_name_or_refused_with_the_names_there_are() -> None:
    assert boundary_named("standard") is STANDARD
    assert boundary_named("procurement") is PROFILES["procurement"]
    assert Boundary() == STANDARD
    with pytest.raises(RequestRejected, match="use one of standard, guarded, research_assistant") as caught:
        boundary_named("x" * 1000)
    assert (caught.value.code, caught.value.details) == (BOUNDARY_UNKNOWN, {"boundary": "x" * 80})


@pytest.mark.parametrize("tier", [0, 8, -1])
def test_a_boundary_with_a_tier_that_is_none_is_refused_by_its_field(tier: int) -> None:
    with pytest.raises(RequestRejected, match=rf"BOUNDARY_INVALID.*boundary\.tier_max={tier} cannot be used"):
        declared_boundary(Boundary(tier_max=tier))
    assert declared_boundary(GUARDED) is GUARDED
