"""The boundary of a guarded run: by name, as an object with few keys, or with those of a file."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.authority import AUTHORITY_INVALID, Authority, PlanSource
from remit.core.limits.boundary import Condition
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import BOUNDARY_UNKNOWN, GUARDED, KNOWN
from remit.core.limits.tools import Effect
from remit.core.record import replace
from remit.orchestrate.guard.ground import GUARD_BOUNDARY_INVALID, boundary_of


def test_a_run_that_brings_no_boundary_is_guarded() -> None:
    assert boundary_of(None) == boundary_of({}) == replace(GUARDED, authority=Authority())


@pytest.mark.parametrize("name", list(KNOWN))
def test_a_boundary_of_the_house_is_known_by_name_and_brings_its_gate(name: str) -> None:
    known = KNOWN[name]
    assert boundary_of(name) == replace(known, authority=known.authority or Authority())


def test_an_object_says_how_a_run_differs_from_the_guarded_one() -> None:
    said = {
        "name": "mine",
        "allowed_tools": ["look"],
        "approval_effects": ["write"],
        "permissions": ["p"],
        "budget": {"tool_calls": 3},
        "approval_wait_ms_max": 5,
        "authority": {"plan": "model"},
    }
    assert boundary_of(said) == replace(
        GUARDED,
        name="mine",
        allowed_tools=("look",),
        approval_effects=(Effect.WRITE,),
        permissions=("p",),
        budget=replace(GUARDED.budget, tool_calls=3),
        approval_wait_ms_max=5,
        authority=Authority(plan=PlanSource.MODEL),
    )


def test_null_counts_as_absent() -> None:
    said = dict.fromkeys(("name", "allowed_tools", "approval_effects", "permissions", "budget", "authority"))
    assert boundary_of(said) == boundary_of(None)


def test_the_keys_of_a_file_may_be_used_as_well() -> None:
    said = {"tools": {"allowed": ["look"]}, "conditions": [{"name": "c", "when": "changes"}]}
    assert boundary_of(said).allowed_tools == ("look",)
    assert boundary_of(said).conditions == (Condition("c", "changes"),)
    assert boundary_of({"extends": "standard", "budget": {"steps": 2}}).budget == Budget(steps=2)


@pytest.mark.parametrize(
    ("said", "code", "key"),
    [
        ("nobody", BOUNDARY_UNKNOWN, ""),
        (5, GUARD_BOUNDARY_INVALID, "boundary"),
        ({"allowed_tools": "look"}, GUARD_BOUNDARY_INVALID, "allowed_tools"),
        ({"approval_wait_ms_max": -1}, GUARD_BOUNDARY_INVALID, "approval_wait_ms_max"),
        ({"permissions": [], "tools": {"permissions": []}}, GUARD_BOUNDARY_INVALID, "tools.permissions"),
        ({"conditions": [{"name": "c", "when": "moon"}]}, GUARD_BOUNDARY_INVALID, "conditions[0].when"),
        ({"authority": "off"}, AUTHORITY_INVALID, "authority"),
        ({"authority": {"tripwire": 5}}, AUTHORITY_INVALID, "tripwire"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_key(said: Any, code: str, key: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        boundary_of(said)
    assert (caught.value.code, caught.value.details.get("key", "")) == (code, key)
