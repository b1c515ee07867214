import pytest

from remit.core.boundary import (
    BOUNDARY_UNKNOWN,
    PROFILES,
    STANDARD,
    Boundary,
    boundary_named,
    boundary_version,
    narrow,
)
from remit.core.budget import Budget, Dimension, assign
from remit.core.failure import RequestRejected
from remit.core.tools import Effect


def test_a_boundary_asks_a_person_about_every_change_unless_it_says_otherwise() -> None:
    assert STANDARD.approval_effects == (Effect.WRITE, Effect.EXTERNAL)
    assert STANDARD.allowed_tools is None
    assert STANDARD.permissions == ()


def test_equal_boundaries_have_equal_versions_and_others_differ() -> None:
    assert boundary_version(Boundary(name="a")) == boundary_version(Boundary(name="a"))
    assert boundary_version(Boundary(name="a")) != boundary_version(Boundary(name="a", permissions=("vault.open",)))


def test_a_child_keeps_what_it_does_not_narrow() -> None:
    parent = Boundary("p", ("look",), (Effect.EXTERNAL,), ("vault.open",), Budget(steps=5), 1000)
    child = narrow(parent, tools=None, budget=Budget())
    kept = ("name", "allowed_tools", "approval_effects", "permissions", "approval_wait_ms_max")
    assert [getattr(child, field) for field in kept] == [getattr(parent, field) for field in kept]
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


def test_five_profiles_are_built_in_and_named_for_their_work() -> None:
    names = ["research_assistant", "coding_assistant", "customer_support", "procurement", "incident_sre"]
    assert list(PROFILES) == names
    assert [profile.name for profile in PROFILES.values()] == names


def test_support_and_procurement_take_the_research_caps_and_change_nothing() -> None:
    research = assign(PROFILES["research_assistant"].budget)
    for name in ("customer_support", "procurement"):
        caps = list(assign(PROFILES[name].budget))
        assert (caps[Dimension.EXTERNAL_API_CALLS], caps[Dimension.MEMORY_WRITES]) == (10, 0)
        caps[Dimension.EXTERNAL_API_CALLS] = research[Dimension.EXTERNAL_API_CALLS]
        caps[Dimension.MEMORY_WRITES] = research[Dimension.MEMORY_WRITES]
        assert tuple(caps) == research


@pytest.mark.parametrize(("name", "effects"), [("coding_assistant", 2), ("incident_sre", 0), ("research_assistant", 0)])
def test_only_the_coding_profile_may_change_anything(name: str, effects: int) -> None:
    assert PROFILES[name].budget.side_effects == effects


def test_a_boundary_is_found_by_its_name_or_refused_with_the_names_there_are() -> None:
    assert boundary_named("standard") is STANDARD
    assert boundary_named("procurement") is PROFILES["procurement"]
    with pytest.raises(RequestRejected, match="use one of standard, research_assistant") as caught:
        boundary_named("x" * 1000)
    assert (caught.value.code, caught.value.details) == (BOUNDARY_UNKNOWN, {"boundary": "x" * 80})
