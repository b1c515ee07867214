"""Which questions a grant that was given beforehand may answer."""

from typing import Any

import pytest

from remit.core.journal.proposed_call import Provenance
from remit.core.limits.authority import Authority, StandsFor
from remit.core.limits.boundary import Boundary, Condition, Then
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import ToolCategory
from remit.core.record import replace
from remit.core.run.manifest import EarlierEffect
from remit.kernel.authority.authorize import is_grantable
from tests.unit.kernel.builders import Run, known, manifest_of, wants

PAY = known("pay", category=ToolCategory.PAYMENT)
CALL = replace(wants("pay"), provenance=Provenance.UNBOUND, objection="NOT_ASKED")


def grantable(call: Any = CALL, tool: Any = PAY, *, earlier: bool = False, **boundary: Any) -> bool:
    manifest = manifest_of(boundary=Boundary(**boundary), tools=(tool,))
    if earlier:
        manifest = replace(manifest, earlier=(EarlierEffect("run", "pay", b"", 1, "done"),))
    return is_grantable(call, Run(manifest).tally())


def test_what_the_gate_or_the_boundary_asks_one_person_about_may_be_granted() -> None:
    assert grantable()
    assert grantable(authority=Authority())
    assert grantable(budget=Budget(side_effects=5))


@pytest.mark.parametrize(
    "why",
    [
        {"call": replace(CALL, objection="TRIPPED")},
        {"four_eyes": (ToolCategory.PAYMENT,)},
        {"earlier": True},
        {"conditions": (Condition("late", "true", Then.ASK),)},
        {"tool": replace(PAY, destructive=True)},
        {"tool": replace(PAY, destructive=True), "authority": Authority()},
    ],
)
def test_what_wants_a_person_who_looks_at_it_may_not(why: dict[str, Any]) -> None:
    assert not grantable(**why)


def test_what_destroys_may_be_where_a_confirmation_stands_for_that() -> None:
    assert grantable(tool=replace(PAY, destructive=True), authority=Authority(stands_for=StandsFor.APPROVAL))


def test_a_budget_that_is_spent_may_not() -> None:
    tally = Run(manifest_of(boundary=Boundary(budget=Budget(side_effects=1)), tools=(PAY,))).tally()
    assert is_grantable(CALL, tally)
    tally.left[Dimension.SIDE_EFFECTS] = 0
    assert not is_grantable(CALL, tally)
