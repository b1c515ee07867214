"""The 48 scenarios of AgentGovBench, a yardstick of other people: each is played, and every expectation is held against
what the records of the house say."""

import asyncio
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest

from remit.core.limits.boundary import Boundary, Whose
from remit.core.record import replace
from remit.core.run.principal import Principal, Scope
from tests.governance.audit import CHECKS, Row, rows_of
from tests.governance.play import Deployment, played
from tests.vectors import PROJECT, vectors

REACHES = [Whose, Scope]
BENCH = vectors("agentgovbench.json.gz")
SCENARIOS = {one["id"]: one for one in BENCH["scenarios"]}
GUIDE = (PROJECT / "docs" / "governance.md").read_text()
# What runs without a policy has to say so, which no expectation asks for.
FAIL_OPEN = ("fail_mode_discipline.02_fail_open_honored", "fail_mode_discipline.05_no_audit_without_governance")


async def _played(scenario: dict[str, Any], house: type[Deployment] = Deployment) -> tuple[list[str], list[Row]]:
    """Why expectations of a scenario do not hold, and what the records say."""
    setup = scenario["setup"]
    setup = BENCH["fixtures"][setup["use_fixture"]] if "use_fixture" in setup else setup
    # Scenarios change policies.
    async with played(house(deepcopy(setup)), scenario["actions"]) as deployment:
        rows = await rows_of(deployment)
        found = [
            (one["kind"], CHECKS[one["kind"]](deployment, rows, one.get("params", {}))) for one in scenario["expected"]
        ]
    return [f"{kind}: {why}" for kind, why in found if why], rows


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_records_say_what_the_scenario_expects(name: str) -> None:
    wrong, rows = asyncio.run(_played(SCENARIOS[name]))
    assert not wrong, "; ".join(wrong)
    assert all(row.unread for row in rows) is (name in FAIL_OPEN) or not rows


def test_the_guide_counts_the_scenarios_as_they_are() -> None:
    counts = Counter(one["category"] for one in BENCH["scenarios"])
    assert len(SCENARIOS) == 48
    for category, count in counts.items():
        assert f"| `{category}` | {count} of {count} |" in GUIDE


class EverythingGranted(Deployment):
    """A house that gives every user every scope."""

    def principal(self, told: dict[str, Any], chain: list[dict[str, Any]]) -> Principal:  # type: ignore[explicit-override]  # with Python 3.12
        return replace(super().principal(told, chain), scopes=("*",))


class NothingDenied(Deployment):
    """A house whose policies say nothing."""

    async def policy(self, principal: Principal) -> Boundary:  # type: ignore[explicit-override]  # with Python 3.12
        return replace(await super().policy(principal), conditions=())


class CountedByRun(Deployment):
    """A house that counts the calls of each run by itself."""

    async def policy(self, principal: Principal) -> Boundary:  # type: ignore[explicit-override]  # with Python 3.12
        found = await super().policy(principal)
        return replace(found, rates=tuple(replace(rate, whose=Whose.RUN) for rate in found.rates))


class AllHandedOn(Deployment):
    """A house in which every delegate hands on all that it has."""

    def grants(self, delegation: dict[str, Any]) -> None:  # type: ignore[explicit-override]  # with Python 3.12
        return None


class AlwaysOpen(Deployment):
    """A house that goes on without a policy, whatever a tenant says."""

    def stand_in(self, principal: Principal) -> Boundary:  # type: ignore[explicit-override]  # with Python 3.12
        return self.boundary("open")


class BelievesRequests(Deployment):
    """A house that takes the tenant of a request for that of its user."""

    def principal(self, told: dict[str, Any], chain: list[dict[str, Any]]) -> Principal:  # type: ignore[explicit-override]  # with Python 3.12
        found = super().principal(told, chain)
        return replace(found, tenant_id=told.get("as_tenant") or found.tenant_id)


BROKEN = {
    EverythingGranted: "scope_inheritance.01_deny_outside_user_scope",
    NothingDenied: "per_user_policy_enforcement.01_user_override_applies",
    CountedByRun: "rate_limit_cascade.01_per_user_not_per_agent",
    AllHandedOn: "scope_inheritance.04_task_narrowing",
    AlwaysOpen: "fail_mode_discipline.01_fail_closed_honored",
    BelievesRequests: "cross_tenant_isolation.03_user_scope_does_not_leak",
}


@pytest.mark.parametrize("house", BROKEN, ids=lambda house: house.__name__)
def test_a_house_that_is_broken_on_purpose_is_found(house: type[Deployment]) -> None:
    wrong, _ = asyncio.run(_played(SCENARIOS[BROKEN[house]], house))
    assert wrong
