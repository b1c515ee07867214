"""The tool policy matrix, row by row against the doctrine."""

import pytest

from remit.core.limits.tool_policy import (
    ASKING_CATEGORIES,
    POLICY,
    Asking,
    RequiredDeclaration,
    Risk,
    StateWrite,
    asks_by_category,
    gaps_of,
    risk_of,
    state_written,
)
from remit.core.limits.tool_trust import Trust
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace

REACHES = [Asking, RequiredDeclaration, Risk, StateWrite, ToolCategory]

# Of each category: the risk of reading and of changing as the doctrine has them; whether changes ask a person always,
# never, or only where they destroy something; and what they write.
NEVER, ALWAYS, DESTROYING = Asking.NEVER, Asking.FOR_CHANGES, Asking.FOR_DESTRUCTION
ROWS = {
    ToolCategory.READ_ONLY_LOOKUP: ({Risk.NONE, Risk.LOW}, Risk.HIGH, ALWAYS, StateWrite.OTHER),
    ToolCategory.RETRIEVAL: ({Risk.NONE}, Risk.HIGH, ALWAYS, StateWrite.OTHER),
    ToolCategory.LIVE_API: ({Risk.LOW, Risk.MODERATE}, Risk.HIGH, ALWAYS, StateWrite.OTHER),
    ToolCategory.SANDBOX: ({Risk.LOW}, Risk.MODERATE, DESTROYING, StateWrite.FILES),
    ToolCategory.FILE_SYSTEM: ({Risk.LOW, Risk.MODERATE}, Risk.MODERATE, DESTROYING, StateWrite.FILES),
    ToolCategory.DATABASE: ({Risk.NONE}, Risk.HIGH, ALWAYS, StateWrite.RECORDS),
    ToolCategory.EMAIL_CALENDAR: ({Risk.LOW}, Risk.HIGH, ALWAYS, StateWrite.MESSAGES),
    ToolCategory.PAYMENT: ({Risk.MODERATE, Risk.HIGH}, Risk.HIGH, ALWAYS, StateWrite.MONEY),
    ToolCategory.INFRASTRUCTURE: ({Risk.LOW}, Risk.HIGH, ALWAYS, StateWrite.INFRASTRUCTURE),
    ToolCategory.REVIEW_QUEUE: ({Risk.LOW}, Risk.LOW, NEVER, StateWrite.OTHER),
}
PARAMETERS = {"type": "object", "properties": {"target": {"type": "string"}}}


def tool(
    category: ToolCategory | None, effect: Effect = Effect.EXTERNAL, *, destructive: bool = False
) -> ToolDefinition:
    return ToolDefinition("act", "Acts.", PARAMETERS, effect=effect, category=category, destructive=destructive)


def test_there_is_a_row_for_each_of_the_ten_categories() -> None:
    assert set(POLICY) == set(ToolCategory) == set(ROWS)
    assert len(POLICY) == 10
    assert all(row.allowed and row.scope and row.checks for row in POLICY.values())


@pytest.mark.parametrize("category", list(ToolCategory))
def test_the_risk_of_a_call_is_that_of_its_row(category: ToolCategory) -> None:
    reading, changing, _, _ = ROWS[category]
    assert risk_of(tool(category, Effect.READ)) in reading
    assert risk_of(tool(category)) is changing


@pytest.mark.parametrize("category", list(ToolCategory))
def test_a_change_asks_a_person_where_the_table_says_so(category: ToolCategory) -> None:
    asks = ROWS[category][2]
    assert asks_by_category(tool(category)) is (asks is ALWAYS)
    assert asks_by_category(tool(category, destructive=True)) is (asks is not NEVER)
    assert (category in ASKING_CATEGORIES) is (asks is not NEVER)


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.READ])
@pytest.mark.parametrize("category", [*ToolCategory, None])
def test_reading_never_asks_by_category_and_writes_nothing(category: ToolCategory | None, effect: Effect) -> None:
    assert not asks_by_category(tool(category, effect))
    assert state_written(tool(category, effect)) is None


@pytest.mark.parametrize("category", list(ToolCategory))
def test_a_change_writes_what_its_row_says(category: ToolCategory) -> None:
    assert state_written(tool(category, Effect.WRITE)) is ROWS[category][3]


def test_a_tool_without_a_category_is_taken_at_the_worst_of_its_effect_and_demands_nothing() -> None:
    assert risk_of(tool(None)) is Risk.HIGH
    assert risk_of(tool(None, Effect.READ)) is Risk.LOW
    assert state_written(tool(None)) is StateWrite.OTHER
    assert not asks_by_category(tool(None))
    assert gaps_of(tool(None)) == ()


@pytest.mark.parametrize("effect", [Effect.READ, Effect.EXTERNAL])
@pytest.mark.parametrize("category", list(ToolCategory))
def test_a_tool_that_declares_nothing_leaves_every_demand_of_its_row_open(
    category: ToolCategory, effect: Effect
) -> None:
    row = POLICY[category]
    assert gaps_of(tool(category, effect)) == (row.changing_demands if effect.is_mutating else row.reading_demands)


def test_a_tool_that_declares_everything_leaves_no_gap_in_any_category() -> None:
    full = replace(
        tool(None),
        result={"type": "object", "required": ["id"]},
        control_args=(("target", "id:account"),),
        permissions=("account.write",),
        rollback="call it again with the opposite amount",
        trust=Trust(fields=(("id", "id:account"),)),
    )
    for category in ToolCategory:
        for effect in Effect:
            assert gaps_of(replace(full, category=category, effect=effect)) == ()


@pytest.mark.parametrize(
    ("demand", "change"),
    [
        (RequiredDeclaration.RESULT_SCHEMA, {"result": {"type": "integer"}}),
        (RequiredDeclaration.VERIFIER, {"verifier": "confirms"}),
        (RequiredDeclaration.VERIFIER, {"result": {"type": "integer"}}),
        (RequiredDeclaration.CONTROL_ARGS, {"control_args": (("target", "id"),)}),
        (RequiredDeclaration.CONTROL_ARGS, {"parameters": {"type": "object"}}),
        (RequiredDeclaration.TRUSTED_FIELDS, {"trust": Trust(fields=(("id", "id"),))}),
        (RequiredDeclaration.TRUSTED_FIELDS, {"result": {"type": "integer"}}),
        (RequiredDeclaration.ROLLBACK, {"rollback": "restore the backup"}),
        (RequiredDeclaration.PERMISSIONS, {"permissions": ("vault.open",)}),
    ],
)
def test_a_demand_is_met_by_what_it_asks_for(demand: RequiredDeclaration, change: dict[str, object]) -> None:
    asking = [
        tool(category, effect)
        for category, row in POLICY.items()
        for effect, demands in ((Effect.READ, row.reading_demands), (Effect.WRITE, row.changing_demands))
        if demand in demands
    ]
    assert asking
    for one in asking:
        assert demand in gaps_of(one)
        assert demand not in gaps_of(replace(one, **change))
