"""The record of a boundary: its defaults, its version, and how it is narrowed."""

import pytest

from remit.core.limits.boundary import (
    APPROVAL_WAIT_MS_MAX,
    TIER_MAX,
    WRAP_UP_TOKENS,
    Boundary,
    BoundaryMode,
    Condition,
    DecisionRight,
    Exhaustion,
    Then,
    boundary_version,
    narrow,
)
from remit.core.limits.budget import Budget, assign
from remit.core.limits.profiles import STANDARD
from remit.core.limits.tool_policy import ASKING_CATEGORIES, StateWrite
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect
from remit.core.record import replace

REACHES = [BoundaryMode, DecisionRight, Exhaustion, Then]


def test_a_boundary_asks_a_person_about_every_change_unless_it_says_otherwise() -> None:
    assert STANDARD.approval_effects == (Effect.WRITE, Effect.EXTERNAL)
    assert STANDARD.approval_categories == ASKING_CATEGORIES
    assert STANDARD.allowed_tools is None
    assert STANDARD.permissions == ()
    assert STANDARD.mode is BoundaryMode.ENFORCE


def test_a_boundary_that_says_nothing_traces_nothing_and_limits_no_dimension_but_the_budget() -> None:
    said = Boundary()
    assert (said.authority, said.writes, said.decisions) == (None, None, None)
    assert (said.reads_max, said.tier_max) == (Reads.SECRET, TIER_MAX)
    assert (said.four_eyes, said.rates, said.conditions, said.queues, said.on_silence) == ((), (), (), (), ())
    assert (said.exhaustion, said.wrap_up_tokens, said.stops_early) == ((), WRAP_UP_TOKENS, True)
    assert said.approval_wait_ms_max == APPROVAL_WAIT_MS_MAX == 24 * 60 * 60 * 1000


def test_a_condition_leaves_the_call_to_a_person_unless_it_says_otherwise() -> None:
    assert Condition("large", "args.amount > 100").then is Then.ASK


def test_equal_boundaries_have_equal_versions_and_others_differ() -> None:
    assert boundary_version(Boundary(name="a")) == boundary_version(Boundary(name="a"))
    assert boundary_version(Boundary(name="a")) != boundary_version(Boundary(name="a", permissions=("vault.open",)))


@pytest.mark.parametrize(
    "change",
    [
        {"mode": BoundaryMode.AUDIT},
        {"conditions": (Condition("c", "changes"),)},
        {"conditions": (Condition("c", "changes", Then.STOP),)},
        {"conditions": (Condition("c", "changes", Then.REFUSE),)},
        {"decisions": (DecisionRight.DELEGATE,)},
        {"decisions": (DecisionRight.MAKE_PLANS,)},
        {"writes": (StateWrite.FILES,)},
        {"exhaustion": (("steps", Exhaustion.ASK),)},
        {"exhaustion": (("steps", Exhaustion.DOWNGRADE),)},
        {"stops_early": False},
        {"queues": (("outage", "night"),)},
    ],
)
def test_every_dimension_counts_in_the_version(change: dict[str, object]) -> None:
    assert boundary_version(replace(STANDARD, **change)) != boundary_version(STANDARD)


def test_a_child_keeps_what_it_does_not_narrow() -> None:
    parent = Boundary(
        "p",
        ("look",),
        (Effect.EXTERNAL,),
        ("vault.open",),
        Budget(steps=5),
        1000,
        conditions=(Condition("c", "changes"),),
        writes=(StateWrite.FILES,),
        decisions=(DecisionRight.CHOOSE_TOOLS,),
    )
    child = narrow(parent, tools=None, budget=Budget())
    assert replace(child, budget=parent.budget) == parent
    assert assign(child.budget) == assign(parent.budget)


@pytest.mark.parametrize(
    ("allowed", "tools", "left"),
    [
        (None, ("look", "pay"), ("look", "pay")),
        (("look", "write"), ("pay", "look"), ("look",)),
        (("look",), (), ()),
        (("look",), None, ("look",)),
    ],
)
def test_a_child_may_call_only_what_its_parent_may(
    allowed: tuple[str, ...] | None, tools: tuple[str, ...] | None, left: tuple[str, ...]
) -> None:
    assert narrow(Boundary(allowed_tools=allowed), tools=tools, budget=Budget()).allowed_tools == left


def test_a_child_may_spend_no_more_than_either_allows() -> None:
    child = narrow(Boundary(budget=Budget(tool_calls=5, steps=2)), tools=None, budget=Budget(tool_calls=9, steps=1))
    assert (child.budget.tool_calls, child.budget.steps) == (5, 1)
