"""Tenant quotas: what all runs of a tenant may spend together in a period, in whole numbers, one cap per dimension.

Rule 1: a quota names counters only. What is compared or runs down, as a context or a clock does, never adds up.
Rule 2: periods are those of the calendar in UTC. A run belongs to the period in which it began, whenever it ends.
Rule 3: what is left is the quota, less what ended runs spent, less all that open runs may spend; never below zero.
Rule 4: a tenant that is named has the quotas that name it; every other one, each by itself, has those of `*`. Requests
        that name no tenant count together as one.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from remit.core.clipped import SHOWN_CHARS_MAX, clipped
from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.limits.budget import COUNTERS, FIELDS, LEASABLE, UNCHARGED, Budget, Caps, Charges, uncharged_caps
from remit.core.record import MadeByHand, Record, replace
from remit.core.run.principal import tenant_problem
from remit.core.run.request_checks import ID_CHARS_MAX

QUOTA_INVALID = "QUOTA_INVALID"
QUOTA_EXHAUSTED = "QUOTA_EXHAUSTED"

# Whom a quota is for that names no tenant.
ANYONE = "*"
# No tenant spends a million millions of anything; sums of that many amounts still fit where they are kept.
AMOUNT_MAX = 10**12
# When a period ends that has no end: later than any clock, and the largest number that stores keep.
NEVER_MS = (1 << 63) - 1
# Every period consists of whole hours.
HOUR_MS = 3_600_000


class Period(StrEnum):
    """How long a quota lasts before it is new again."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"


# A month is as long as the calendar says, and what lasts for ever has no length.
_LENGTHS_MS = {Period.HOUR: HOUR_MS, Period.DAY: 24 * HOUR_MS}


class Quota(MadeByHand):
    """What a tenant, or each that no quota names (`*`), may spend in every such period."""

    tenant: str
    period: Period
    caps: Budget


class Limit(Record):
    """One cap of one quota at one moment: so much of a dimension from one full hour until before another."""

    period: Period
    dimension: int
    amount: int
    from_ms: int
    until_ms: int


class Committed(Record):
    """What counts against a limit: what ended runs spent, and what open ones may spend at most."""

    spent: int = 0
    reserved: int = 0


class Reservation(Record):
    """What a run that begins may spend, and the limits within which its tenant has to have room for it."""

    at_ms: int
    amounts: Charges
    limits: tuple[Limit, ...]


class Charge(Record):
    """What a run counts for its tenant: all that it may spend while it is open, what it spent once it has ended."""

    run_id: str
    tenant_id: str
    at_ms: int
    amounts: Charges
    is_open: bool = False


class QuotaStanding(Record):
    """How a tenant stands in one dimension of one quota. A quota without an end never renews."""

    tenant: str
    period: Period
    dimension: str
    quota: int
    spent: int
    reserved: int
    left: int
    renews_at_ms: int | None


def period_start_ms(period: Period, at_ms: int) -> int:
    """The first millisecond of the period in which a moment lies."""
    if period is Period.TOTAL:
        return 0
    if period is Period.MONTH:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
        return _ms(datetime(moment.year, moment.month, 1, tzinfo=UTC))
    return at_ms - at_ms % _LENGTHS_MS[period]


def period_end_ms(period: Period, at_ms: int) -> int:
    """The first millisecond of the period after the one in which a moment lies."""
    if period is Period.TOTAL:
        return NEVER_MS
    if period is Period.MONTH:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
        next_month = moment.month % 12 + 1
        return _ms(datetime(moment.year + (next_month == 1), next_month, 1, tzinfo=UTC))
    return period_start_ms(period, at_ms) + _LENGTHS_MS[period]


def quota_caps(quotas: Iterable[Quota], at_ms: int) -> tuple[Limit, ...]:
    """Every cap of these quotas, as it holds at a moment."""
    return tuple(
        Limit(
            quota.period,
            int(dimension),
            amount,
            period_start_ms(quota.period, at_ms),
            period_end_ms(quota.period, at_ms),
        )
        for quota in quotas
        for dimension in COUNTERS
        if (amount := getattr(quota.caps, FIELDS[dimension])) is not None
    )


def left_of(limit: Limit, committed: Committed) -> int:
    """The amount that a limit leaves to runs that begin."""
    return max(limit.amount - committed.spent - committed.reserved, 0)


def has_room(limit: Limit, committed: Committed, amounts: Charges) -> bool:
    """Whether these amounts fit. Nothing always fits, also where a quota was lowered below what is spent."""
    wanted = dict(amounts).get(limit.dimension, 0)
    return wanted <= left_of(limit, committed)


def caps_under(caps: Caps, limits: Sequence[Limit], committed: Sequence[Committed]) -> Caps:
    """The caps of a run, lowered to what each limit leaves."""
    lowered = list(caps)
    for limit, counted in zip(limits, committed, strict=True):
        lowered[limit.dimension] = min(lowered[limit.dimension], left_of(limit, counted))
    return tuple(lowered)


def counted_by_quota(caps: Sequence[int]) -> Charges:
    """The counters of a vector, as quotas count them; beyond AMOUNT_MAX no quota can tell amounts apart."""
    return tuple((int(d), min(caps[d], AMOUNT_MAX)) for d in COUNTERS if caps[d] > 0)


def standing(tenant: str, limit: Limit, counts: Committed) -> QuotaStanding:
    """A limit and what counts against it, for those who look."""
    return QuotaStanding(
        tenant=tenant,
        period=limit.period,
        dimension=FIELDS[limit.dimension],
        quota=limit.amount,
        spent=counts.spent,
        reserved=counts.reserved,
        left=left_of(limit, counts),
        renews_at_ms=None if limit.until_ms == NEVER_MS else limit.until_ms,
    )


def quota_exhausted(at: QuotaStanding, needed: int) -> RequestRejected:
    """Why a request cannot become a run: its tenant has too little left of what the run needs."""
    renews_at = None if at.renews_at_ms is None else _spelled(at.renews_at_ms)
    whose = f"tenant {at.tenant!r}" if at.tenant else "requests without a tenant"
    span = "in all" if at.period is Period.TOTAL else f"this {at.period.value}"
    ways = ["raise the quota"] if renews_at is None else [f"wait until it renews at {renews_at}", "raise the quota"]
    ways = ["let its open runs end" if at.spent < at.quota else "", *ways]
    message = (
        f"{whose} may spend {at.dimension}={at.quota} {span}: {at.spent} spent, {at.reserved} reserved by open runs, "
        f"{at.left} left, {needed} needed; {', or '.join(way for way in ways if way)}"
    )
    details = {
        "tenant": at.tenant,
        "period": at.period.value,
        "dimension": at.dimension,
        "quota": at.quota,
        "spent": at.spent,
        "reserved": at.reserved,
        "left": at.left,
        "needed": needed,
        "renews_at": renews_at,
    }
    return RequestRejected(QUOTA_EXHAUSTED, message, details)


def check_quotas(quotas: Iterable[Quota]) -> tuple[Quota, ...]:
    """The quotas, if they can hold beside each other; raises RequestRejected naming the first that cannot."""
    checked: list[Quota] = []
    for quota in quotas:
        good = _checked(quota)
        if any((other.tenant, other.period) == (good.tenant, good.period) for other in checked):
            raise _invalid(good.tenant, f"has two quotas per {good.period.value}; keep one, with all of its caps")
        checked.append(good)
    return tuple(checked)


def _checked(quota: Quota) -> Quota:
    given: object = quota
    caps: object = getattr(given, "caps", None)
    if not (isinstance(given, Quota) and isinstance(caps, Budget)):
        quota = as_declared(given, Quota, "quota", QUOTA_INVALID)
    # Python does not check what a record is given.
    tenant: object = quota.tenant
    said = str(quota.period)
    if not isinstance(tenant, str) or not tenant.isprintable() or not 1 <= len(tenant) <= ID_CHARS_MAX:
        raise _invalid(tenant, f"is no name of 1 to {ID_CHARS_MAX} printable characters; `*` stands for every tenant")
    if tenant != ANYONE and (problem := tenant_problem(tenant)):
        raise _invalid(tenant, problem)
    if said not in set(Period):
        raise _invalid(tenant, f"has the period {said[:SHOWN_CHARS_MAX]!r}; known are {', '.join(Period)}")
    caps = {name: amount for name in FIELDS if (amount := getattr(quota.caps, name)) is not None}
    if not caps:
        raise _invalid(tenant, f"has a quota that caps nothing; name one of {', '.join(LEASABLE)}")
    for name, amount in caps.items():
        if name not in LEASABLE:
            raise _invalid(tenant, f"has a quota of {name}, which does not add up; known are {', '.join(LEASABLE)}")
        if type(amount) is not int or not 0 <= amount <= AMOUNT_MAX:
            raise _invalid(
                tenant, f"has the quota {name}={clipped(amount)}; give a whole number from 0 to {AMOUNT_MAX}"
            )
    if found := uncharged_caps(caps.items()):
        why = f"has a quota of {FIELDS[found[0]]}, which nothing charges: {UNCHARGED[found[0]]}; leave it out"
        raise _invalid(tenant, why)
    return replace(quota, period=Period(said))


def _invalid(tenant: object, why: str) -> RequestRejected:
    return RequestRejected(QUOTA_INVALID, f"tenant {clipped(tenant)} {why}", {"tenant": f"{tenant!s:.80}"})


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def _spelled(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
