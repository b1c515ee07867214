"""Whether the confirmation of an order stands for what the boundary wants a person to approve."""

import pytest

from remit.core.journal.proposed_call import ProposedCall, order_of
from remit.core.limits.authority import Authority, StandsFor, ValueOrigin
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.record import replace
from remit.core.run.manifest import Manifest
from remit.core.work.orders import OrderUsed
from remit.kernel.authority.authorize import authorize
from remit.kernel.authority.verdict import ALLOWED
from tests.unit.kernel.builders import Run, bound, known, manifest_of, wants

REACHES = [StandsFor]
PAY = known("pay", category=ToolCategory.PAYMENT)
BY_ADA, BY_CALLER = OrderUsed(1, 2, "ada", 1000), OrderUsed(1, 2)


def ordered(order: OrderUsed) -> ProposedCall:
    return replace(bound(wants("pay")), origins=(ValueOrigin("n", "1", order=order),))


def manifest(
    stands_for: StandsFor, *, four_eyes: bool = False, self_approval: bool = False, effects: int = 9
) -> Manifest:
    boundary = Boundary(
        approval_effects=(Effect.EXTERNAL, Effect.WRITE),
        authority=Authority(stands_for=stands_for),
        four_eyes=(ToolCategory.PAYMENT,) if four_eyes else (),
        self_approval=self_approval,
        budget=Budget(side_effects=effects),
    )
    made = manifest_of(boundary=boundary, tools=(PAY,))
    return replace(made, started_by="bob")


def passes(order: OrderUsed, pinned: Manifest) -> bool:
    return authorize(ordered(order), Run(pinned).tally()) is ALLOWED


@pytest.mark.parametrize(
    ("order", "stands_for", "four_eyes", "is_enough"),
    [
        (BY_ADA, StandsFor.NOTHING, False, False),
        (BY_ADA, StandsFor.APPROVAL, False, True),
        (BY_ADA, StandsFor.APPROVAL, True, False),
        (BY_ADA, StandsFor.FOUR_EYES, True, True),
        (BY_CALLER, StandsFor.APPROVAL, False, False),
        (BY_CALLER, StandsFor.FOUR_EYES, True, False),
    ],
)
def test_a_confirmation_stands_for_what_the_boundary_says_and_for_no_more(
    order: OrderUsed, stands_for: StandsFor, four_eyes: bool, is_enough: bool
) -> None:
    assert passes(order, manifest(stands_for, four_eyes=four_eyes)) is is_enough


def test_the_callers_own_orders_stand_for_an_approval_where_the_caller_may_approve() -> None:
    assert passes(BY_CALLER, manifest(StandsFor.APPROVAL, self_approval=True))
    assert not passes(BY_CALLER, manifest(StandsFor.FOUR_EYES, four_eyes=True, self_approval=True))


def test_a_cap_of_no_effects_and_a_call_that_no_order_equals_still_ask() -> None:
    assert not passes(BY_ADA, manifest(StandsFor.FOUR_EYES, effects=0))
    assert order_of(wants("pay")) is None
    assert authorize(bound(wants("pay")), Run(manifest(StandsFor.FOUR_EYES)).tally()) is not ALLOWED
    untraced = replace(
        manifest(StandsFor.FOUR_EYES), boundary=Boundary(approval_effects=(Effect.EXTERNAL, Effect.WRITE))
    )
    assert not passes(BY_ADA, untraced)
