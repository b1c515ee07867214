"""docs/boundaries.md and the example file say what the code says."""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import pytest

from remit.core.limits.boundary import Boundary, BoundaryMode, DecisionRight, Exhaustion, Then
from remit.core.limits.budget import FIELDS
from remit.core.limits.escalation import TRIGGERS
from remit.core.limits.profiles import GUARDED, KNOWN, PROFILES, STANDARD
from remit.core.limits.tier import TIERS
from remit.core.limits.tool_policy import StateWrite
from remit.kernel.authority.conditions import CONDITION_NAMES
from remit.kernel.authority.intake import INTAKE_NAMES
from remit.orchestrate.boundaries.boundary_file import SHAPE, BoundaryKey, read_boundary
from remit.orchestrate.boundaries.boundary_words import said_cap
from tests.text_files import from_text

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "boundaries.md").read_text(encoding="utf-8")
REFUNDS = ROOT / "examples" / "boundaries" / "refunds.yaml"

# The dimensions whose caps differ between the profiles of the doctrine.
CAPS = [
    "steps",
    "tool_calls",
    "external_api_calls",
    "input_tokens",
    "output_tokens",
    "wall_clock_ms",
    "inference_cost_microusd",
    "retries",
    "reflection_passes",
    "context_tokens",
    "memory_writes",
    "side_effects",
]


def rows(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


def listed(items: Sequence[str] | None) -> str:
    return "all" if items is None else ", ".join(map(code, items)) or "none"


def condition_names() -> str:
    entries = [(name, entry) for name, entry in CONDITION_NAMES.items() if not name.startswith("left_")]
    return rows((code(name), code(kind), meaning) for name, (kind, meaning, _) in entries)


def profile_rows() -> Iterator[Sequence[str]]:
    for one in (STANDARD, GUARDED, *PROFILES.values()):
        stops = [condition.name for condition in one.conditions if condition.then is Then.STOP]
        asks = [condition.name for condition in one.conditions if condition.then is Then.ASK]
        yield (
            code(one.name),
            f"{one.tier_max}",
            one.reads_max,
            listed(one.writes),
            listed(one.decisions),
            listed(one.permissions),
            listed(asks),
            listed(stops),
        )


def cap_rows() -> Iterator[Sequence[str]]:
    for name in CAPS:
        caps = [(getattr(one.budget, name), name) for one in PROFILES.values()]
        yield (code(name), *(said_cap(field, amount) for amount, field in caps))


def keys() -> list[str]:
    found: list[str] = []
    for name, entry in SHAPE.items():
        found += [name] if isinstance(entry, BoundaryKey) else [f"{name}.{key}" for key in entry]
    return found


def test_the_guide_names_everything_that_a_condition_may_ask_about() -> None:
    assert condition_names() in GUIDE
    assert {name for name in CONDITION_NAMES if name.startswith("left_")} == {f"left_{field}" for field in FIELDS}


def test_the_guide_names_everything_that_intake_may_ask_about() -> None:
    named = rows((code(name), code(kind), meaning) for name, (kind, meaning, _) in INTAKE_NAMES.items())
    assert named in GUIDE


def test_the_guide_shows_the_boundaries_of_the_house_as_they_are() -> None:
    assert rows(profile_rows()) in GUIDE
    assert rows(cap_rows()) in GUIDE


def test_the_guide_describes_every_key_of_a_file_and_none_that_is_not_there() -> None:
    table = GUIDE.partition("## The file")[2].partition("\n## ")[0]
    described = re.findall(r"^\| `([a-z_.]+)`", table, re.MULTILINE)
    caps = [f"budget.{name}" for name in FIELDS if name not in ("wall_clock_ms", "inference_cost_microusd")]
    assert set(described) - {"extends", "budget.CAP"} == set(keys()) - set(caps)
    assert all(name in GUIDE for name in FIELDS)


@pytest.mark.parametrize("kind", [BoundaryMode, Then, StateWrite, DecisionRight, Exhaustion])
def test_the_guide_names_every_choice(kind: type[StrEnum]) -> None:
    assert [member for member in kind if f"`{member}`" not in GUIDE] == []


def test_the_guide_names_every_trigger_and_who_receives_it() -> None:
    assert rows((code(trigger), row.severity, code(row.queue)) for trigger, row in TRIGGERS.items()) in GUIDE


def test_the_guide_names_every_tier() -> None:
    lines = [(f"{tier.value}", row.title, row.control, row.path, row.use) for tier, row in TIERS.items()]
    assert rows(lines) in GUIDE


def test_every_boundary_in_the_guide_can_be_used() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        assert from_text(read_boundary, block, "the guide").name not in KNOWN


def test_the_example_keeps_the_conditions_of_the_profile_it_extends_and_adds_two() -> None:
    refunds = read_boundary(REFUNDS)
    support = PROFILES["customer_support"]
    assert refunds.conditions[: len(support.conditions)] == support.conditions
    assert [one.name for one in refunds.conditions[len(support.conditions) :]] == ["large_refund", "at_night"]
    assert isinstance(refunds, Boundary)
    assert refunds.budget.inference_cost_microusd == 500_000


def test_the_python_of_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    said: dict[str, object] = {}
    exec("\n".join(blocks), said)  # the guide's own words
    careful = said["careful"]
    assert isinstance(careful, Boundary)
    assert careful.permissions == ()
