"""The 48 scenarios of AgentGovBench, a yardstick of other people: each is played, and every expectation is held against
what the records of the house say."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from remit.core.boundary import Whose
from remit.core.principal import Scope
from tests.governance.audit import CHECKS, Row, rows_of
from tests.governance.play import played
from tests.vectors import PROJECT, vectors

REACHES = [Whose, Scope]
BENCH = vectors("agentgovbench.json.gz")
SCENARIOS = {one["id"]: one for one in BENCH["scenarios"]}
GUIDE = (PROJECT / "docs" / "governance.md").read_text()
# What runs without a policy has to say so, which no expectation asks for.
FAIL_OPEN = ("fail_mode_discipline.02_fail_open_honored", "fail_mode_discipline.05_no_audit_without_governance")


async def _played(scenario: dict[str, Any]) -> tuple[list[str], list[Row]]:
    """Why expectations of a scenario do not hold, and what the records say."""
    setup = scenario["setup"]
    setup = BENCH["fixtures"][setup["use_fixture"]] if "use_fixture" in setup else setup
    # Copied: scenarios change policies.
    copied = vectors_copy(setup)
    async with played(copied, scenario["actions"]) as deployment:
        rows = await rows_of(deployment)
        found = [
            (one["kind"], CHECKS[one["kind"]](deployment, rows, one.get("params", {}))) for one in scenario["expected"]
        ]
    return [f"{kind}: {why}" for kind, why in found if why], rows


def vectors_copy(value: Any) -> Any:
    """The same, to be changed."""
    if isinstance(value, dict):
        return {key: vectors_copy(one) for key, one in value.items()}
    return [vectors_copy(one) for one in value] if isinstance(value, list) else value


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
