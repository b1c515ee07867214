"""Tiers: the ladder of least autonomy."""

import pytest

from remit.core.limits.boundary import TIER_MAX, Boundary
from remit.core.limits.tier import TIERS, Tier

REACHES = [Tier]


def test_there_are_seven_tiers_from_no_choice_to_free_exploration() -> None:
    assert [tier.value for tier in Tier] == [1, 2, 3, 4, 5, 6, 7]
    assert Tier(TIER_MAX) is Tier.OPEN_ENDED_LOOP
    assert Boundary().tier_max == max(Tier)


@pytest.mark.parametrize("tier", Tier)
def test_every_tier_says_who_controls_it_which_way_it_takes_and_what_it_is_for(tier: Tier) -> None:
    row = TIERS[tier]
    assert all((row.title, row.control, row.path, row.use))


def test_no_two_tiers_read_alike() -> None:
    assert len({row.title for row in TIERS.values()}) == len({row.path for row in TIERS.values()}) == len(Tier)
