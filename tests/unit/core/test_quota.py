"""Quotas: periods of the calendar, what is left, and what may be said."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.failure import RequestRejected
from remit.core.limits.budget import COUNTERS, GAUGES, LEASABLE, STANDARD, Budget, Dimension, assign
from remit.core.limits.quota import (
    AMOUNT_MAX,
    NEVER_MS,
    Committed,
    Limit,
    Period,
    Quota,
    caps_under,
    check_quotas,
    counted_by_quota,
    has_room,
    left_of,
    period_end_ms,
    period_start_ms,
    quota_caps,
    quota_exhausted,
    standing,
)

REACHES = [Period]
TOKENS = int(Dimension.OUTPUT_TOKENS)
# Up to the year 2900.
MOMENTS = st.integers(0, 29_348_006_400_000)


def ms(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type, misc]


AT = ms(2024, 2, 29, 23, 59, 59) + 999


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [
        (Period.HOUR, ms(2024, 2, 29, 23), ms(2024, 3, 1)),
        (Period.DAY, ms(2024, 2, 29), ms(2024, 3, 1)),
        (Period.MONTH, ms(2024, 2, 1), ms(2024, 3, 1)),
        (Period.TOTAL, 0, NEVER_MS),
    ],
)
def test_a_moment_lies_in_one_period_of_the_calendar(period: Period, start: int, end: int) -> None:
    assert (period_start_ms(period, AT), period_end_ms(period, AT)) == (start, end)
    assert period_start_ms(period, start) == start


def test_december_is_followed_by_the_next_year() -> None:
    assert period_end_ms(Period.MONTH, ms(2024, 12, 31, 12)) == ms(2025, 1, 1)


@given(at_ms=MOMENTS, period=st.sampled_from(Period))
def test_periods_follow_each_other_without_a_gap(at_ms: int, period: Period) -> None:
    start, end = period_start_ms(period, at_ms), period_end_ms(period, at_ms)
    assert start <= at_ms < end
    assert period_end_ms(period, start) == end
    if period is not Period.TOTAL:
        assert period_start_ms(period, end) == end
        assert period_end_ms(period, start - 1 if start else start) in (start, end)


def test_every_cap_of_a_quota_is_a_limit_and_nothing_else_is() -> None:
    quotas = [Quota("a", Period.DAY, Budget(output_tokens=5, steps=0)), Quota("a", Period.TOTAL, Budget(tool_calls=7))]
    assert quota_caps(quotas, AT) == (
        Limit(Period.DAY, TOKENS, 5, ms(2024, 2, 29), ms(2024, 3, 1)),
        Limit(Period.DAY, int(Dimension.STEPS), 0, ms(2024, 2, 29), ms(2024, 3, 1)),
        Limit(Period.TOTAL, int(Dimension.TOOL_CALLS), 7, 0, NEVER_MS),
    )


LIMIT = Limit(Period.TOTAL, TOKENS, 100, 0, NEVER_MS)


def test_what_is_left_is_neither_spent_nor_reserved_and_never_below_zero() -> None:
    assert left_of(LIMIT, Committed(30, 50)) == 20
    assert left_of(LIMIT, Committed(90, 50)) == 0


def test_what_fits_exactly_fits_and_nothing_always_does() -> None:
    assert has_room(LIMIT, Committed(30, 50), ((TOKENS, 20),))
    assert not has_room(LIMIT, Committed(30, 50), ((TOKENS, 21),))
    assert has_room(LIMIT, Committed(200, 0), ((int(Dimension.STEPS), 1),))


def test_caps_are_lowered_to_what_the_narrowest_limit_leaves_and_never_raised() -> None:
    caps = assign(STANDARD)
    narrow = Limit(Period.DAY, TOKENS, 50, 0, 1)
    lowered = caps_under(caps, [LIMIT, narrow], [Committed(), Committed(10, 10)])
    assert lowered[TOKENS] == 30
    assert [cap for d, cap in enumerate(lowered) if d != TOKENS] == [cap for d, cap in enumerate(caps) if d != TOKENS]
    wide = Limit(Period.DAY, TOKENS, AMOUNT_MAX, 0, 1)
    assert caps_under(caps, [wide], [Committed()]) == caps


def test_only_counters_are_counted_and_no_amount_is_larger_than_any_quota() -> None:
    caps = [5] * len(Dimension)
    caps[TOKENS], caps[Dimension.STEPS], caps[Dimension.TOOL_CALLS] = AMOUNT_MAX + 1, 0, -3
    amounts = dict(counted_by_quota(caps))
    assert amounts[TOKENS] == AMOUNT_MAX
    assert set(amounts) == {int(d) for d in COUNTERS} - {int(Dimension.STEPS), int(Dimension.TOOL_CALLS)}


def test_a_refusal_names_tenant_dimension_quota_spent_reserved_and_when_it_renews() -> None:
    limit = Limit(Period.DAY, TOKENS, 100, ms(2024, 2, 29), ms(2024, 3, 1))
    error = quota_exhausted(standing("acme", limit, Committed(60, 40)), 1)
    assert error.code == "QUOTA_EXHAUSTED"
    assert error.details == {
        "tenant": "acme",
        "period": "day",
        "dimension": "output_tokens",
        "quota": 100,
        "spent": 60,
        "reserved": 40,
        "left": 0,
        "needed": 1,
        "renews_at": "2024-03-01T00:00:00Z",
    }
    assert "'acme' may spend output_tokens=100 this day: 60 spent, 40 reserved" in error.message
    assert "let its open runs end, or wait until it renews at 2024-03-01T00:00:00Z" in error.message


def test_a_quota_without_an_end_never_renews_and_spent_is_not_given_back() -> None:
    error = quota_exhausted(standing("", LIMIT, Committed(100)), 1)
    assert error.details["renews_at"] is None
    assert error.message.startswith("requests without a tenant may spend output_tokens=100 in all")
    assert error.message.endswith("; raise the quota")


def test_good_quotas_pass_and_a_period_may_be_said_as_a_text() -> None:
    said = Quota("a", "day", Budget(steps=0))  # type: ignore[arg-type]
    (quota,) = check_quotas([said])
    assert quota == Quota("a", Period.DAY, Budget(steps=0))
    assert quota.period is Period.DAY
    both = [Quota("*", Period.DAY, Budget(steps=1)), Quota("*", Period.MONTH, Budget(steps=1))]
    assert check_quotas(both) == tuple(both)


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        (Quota("", Period.DAY, Budget(steps=1)), "tenant '' is no name"),
        (Quota("x" * 257, Period.DAY, Budget(steps=1)), "is no name of 1 to 256 printable characters"),
        (Quota("a\n", Period.DAY, Budget(steps=1)), "printable"),
        (Quota("a*", Period.DAY, Budget(steps=1)), "stands for many names"),
        (Quota(7, Period.DAY, Budget(steps=1)), "tenant 7 is no name"),  # type: ignore[arg-type]
        (Quota("a", "year", Budget(steps=1)), "period 'year'; known are hour, day, month, total"),  # type: ignore[arg-type]
        (Quota("a", Period.DAY, Budget()), "caps nothing; name one of input_tokens"),
        (Quota("a", Period.DAY, Budget(steps=-1)), "steps=-1; give a whole number from 0 to"),
        (Quota("a", Period.DAY, Budget(steps=AMOUNT_MAX + 1)), f"from 0 to {AMOUNT_MAX}"),
        (Quota("a", Period.DAY, Budget(steps=True)), "steps=True"),
        (Quota("a", Period.DAY, Budget(steps=1.5)), "steps=1.5"),  # type: ignore[arg-type]
    ],
)
def test_a_quota_that_cannot_hold_is_refused_and_named(quota: Quota, said: str) -> None:
    with pytest.raises(RequestRejected, match="QUOTA_INVALID") as refused:
        check_quotas([quota])
    assert said in refused.value.message


@pytest.mark.parametrize("dimension", [*GAUGES, Dimension.WALL_CLOCK_MS])
def test_what_does_not_add_up_has_no_quota(dimension: Dimension) -> None:
    name = dimension.name.lower()
    assert name not in LEASABLE
    with pytest.raises(RequestRejected, match=f"quota of {name}, which does not add up"):
        check_quotas([Quota("a", Period.DAY, Budget(**{name: 1}))])


def test_a_tenant_has_one_quota_per_period() -> None:
    quota = Quota("a", Period.DAY, Budget(steps=1))
    with pytest.raises(RequestRejected, match="two quotas per day; keep one"):
        check_quotas([quota, Quota("b", Period.DAY, Budget(steps=1)), quota])


def test_a_quota_that_is_an_object_is_read_as_one_and_anything_else_is_refused_by_its_field() -> None:
    said = {"tenant": "acme", "period": "day", "caps": {"output_tokens": 5}}
    assert check_quotas([said]) == (Quota("acme", Period.DAY, Budget(output_tokens=5)),)  # type: ignore[list-item]
    for wrong in ("acme", 3, {**said, "caps": 7}, Quota("acme", Period.DAY, 7)):  # type: ignore[arg-type]
        with pytest.raises(RequestRejected, match="QUOTA_INVALID"):
            check_quotas([wrong])  # type: ignore[list-item]
