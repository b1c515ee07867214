"""Delegates: tools that are no functions, with a lease instead of an effect."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.budget import Budget
from remit.core.limits.tools import TOOL_INVALID, Effect
from remit.tool.delegate import TOOL_DELEGATES, delegate
from remit.tool.registry import Registry


def test_a_delegate_takes_a_task_and_declares_its_lease_and_no_effect() -> None:
    definition = delegate("research", description="Find out.", lease={"tool_calls": 3, "steps": 9}).definition
    assert (definition.name, definition.description, definition.delegates) == ("research", "Find out.", True)
    assert (definition.effect, definition.lease) == (Effect.NONE, (("tool_calls", 3), ("steps", 9)))
    assert definition.parameters["required"] == ["task"]
    assert definition.result == {}
    assert definition.version


def test_a_delegate_says_which_permissions_it_hands_on() -> None:
    granted = delegate("reader", description="", lease={"steps": 9}, grants=["email.read"]).definition.grants
    assert granted == ("email.read",)
    assert delegate("helper", description="", lease={"steps": 9}).definition.grants is None


def test_a_lease_may_be_given_as_a_budget_whose_counters_count() -> None:
    lease = delegate("research", description="", lease=Budget(tool_calls=3, wall_clock_ms=9, depth=1)).definition.lease
    assert lease == (("tool_calls", 3),)


@pytest.mark.parametrize("lease", [{"depth": 1}, {"wishes": 3}, {"steps": -1}])
def test_a_lease_of_something_that_cannot_be_counted_is_refused(lease: dict[str, int]) -> None:
    with pytest.raises(RequestRejected) as refused:
        delegate("research", description="", lease=lease)
    assert refused.value.code == TOOL_INVALID


def test_a_delegate_cannot_be_called_as_a_function() -> None:
    with pytest.raises(RequestRejected) as refused:
        delegate("research", description="", lease={})("find out")
    assert refused.value.code == TOOL_DELEGATES


def test_a_registry_pins_a_delegate_but_knows_of_no_file_to_load_it_from() -> None:
    registry = Registry([delegate("research", description="", lease={})])
    assert [definition.name for definition in registry.definitions] == ["research"]
    assert registry.sources == ()
