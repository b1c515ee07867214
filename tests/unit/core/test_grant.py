"""Standing grants: how they stand after each entry, and when nothing is left."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.grant import (
    NO_GRANTS,
    Grant,
    GrantDeed,
    GrantEntry,
    GrantStanding,
    check_grant,
    grants_after,
    told_grant,
)
from remit.core.record import replace
from remit.core.work.orders import Order

GRANT = Grant(Order(tool="pay"), until_ms=1000, times_max=2, amount_max=30)
STANDING = GrantStanding("g1", GRANT, "ada", 0)


def test_entries_give_draw_and_revoke() -> None:
    standing = grants_after(NO_GRANTS, GrantEntry(GrantDeed.GIVEN, grant=GRANT), by="ada", at_ms=5)
    drawn = GrantEntry(GrantDeed.DRAWN, "g1", packet_id="run/1", amount=10)
    standing = grants_after(standing, drawn, by="run", at_ms=6)
    assert (standing["g1"].draws, standing["g1"].spent) == ((("run/1", 10),), 10)
    standing = grants_after(standing, GrantEntry(GrantDeed.REVOKED, "g1"), by="bob", at_ms=7)
    assert standing["g1"].revoked_by == "bob"
    assert grants_after(standing, GrantEntry(GrantDeed.REVOKED, "g9"), by="bob", at_ms=8) is standing


@pytest.mark.parametrize(
    ("found", "amount", "at_ms", "why"),
    [
        (STANDING, 30, 999, ""),
        (STANDING, 31, 999, "exceed"),
        (STANDING, 1, 1000, "expired"),
        (replace(STANDING, revoked_by="bob"), 1, 0, "revoked by bob"),
        (replace(STANDING, draws=(("a", 1), ("b", 1))), 1, 0, "times_max=2"),
        (replace(STANDING, grant=replace(GRANT, amount_max=0)), 10**9, 0, ""),
        (replace(STANDING, grant=replace(GRANT, times_max=0), draws=(("a", 1),) * 9), 1, 0, ""),
    ],
)
def test_a_grant_says_why_nothing_is_left(found: GrantStanding, amount: int, at_ms: int, why: str) -> None:
    said = found.why_not(amount, at_ms)
    assert why in said
    assert bool(why) == bool(said)


def test_a_use_is_told_with_its_place() -> None:
    used = replace(STANDING, draws=(("a", 10), ("b", 5)))
    assert told_grant(used, "b") == "grant g1: 2 of 2, 15 of 30 spent, until 1970-01-01 00:00 UTC"
    often = replace(used, grant=replace(GRANT, times_max=0, amount_max=0))
    assert told_grant(often, "a") == "grant g1: use 1, until 1970-01-01 00:00 UTC"


def test_a_grant_until_a_moment_that_no_calendar_has_is_refused() -> None:
    with pytest.raises(RequestRejected, match="a moment within a year"):
        check_grant(replace(GRANT, until_ms=2**70), 0)
