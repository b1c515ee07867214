"""The budget vector: what a run may spend, in whole numbers, one cap per dimension.

Rule 1: every dimension has its own cap; money never stands in for the others.
Rule 2: a counter is reserved before a call and settled after it; a gauge is compared and never summed;
        the clock is a deadline that stands still while a person is waited for.
Rule 3: a cap of 0 forbids. A dimension without a cap takes the boundary's cap, and every boundary caps everything.
Rule 4: a dimension that nothing charges yet binds nothing, so no caller may set a cap above 0 for it.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import TypeAlias

from remit.core.failure import RequestRejected
from remit.core.record import Record, once_a_record

DIMENSION_UNCHARGED = "DIMENSION_UNCHARGED"


class Dimension(IntEnum):
    """The dimensions of a budget. The numbers are written to journals: new ones are added at the end, none is reused.

    A manifest that was written before a dimension was added is read with a cap for it (`padded`).
    """

    INPUT_TOKENS = 0
    OUTPUT_TOKENS = 1
    TOOL_CALLS = 2
    EXTERNAL_API_CALLS = 3
    WALL_CLOCK_MS = 4
    INFERENCE_COST_MICROUSD = 5
    RETRIES = 6
    REFLECTION_PASSES = 7
    CONTEXT_TOKENS = 8
    MEMORY_WRITES = 9
    SIDE_EFFECTS = 10
    STEPS = 11
    DEPTH = 12
    CHILD_RUNS = 13
    HUMAN_REVIEWS = 14


DIMENSIONS = len(Dimension)


class DimensionKind(StrEnum):
    """How a dimension is measured."""

    COUNTER = "counter"
    GAUGE = "gauge"
    CLOCK = "clock"


# Retries count consecutively per command, so they are compared like a gauge and never add up over a run.
GAUGES = frozenset({Dimension.RETRIES, Dimension.CONTEXT_TOKENS, Dimension.DEPTH})

KINDS: dict[Dimension, DimensionKind] = {
    dimension: DimensionKind.CLOCK
    if dimension is Dimension.WALL_CLOCK_MS
    else DimensionKind.GAUGE
    if dimension in GAUGES
    else DimensionKind.COUNTER
    for dimension in Dimension
}
COUNTERS: tuple[Dimension, ...] = tuple(d for d in Dimension if KINDS[d] is DimensionKind.COUNTER)
# What nothing charges yet, with what has to be built first. Their places in the vector stay, and so do the figures
# that the profiles have for them.
UNCHARGED: dict[Dimension, str] = {
    Dimension.REFLECTION_PASSES: "reflection is not built yet",
    Dimension.MEMORY_WRITES: "memory is not built yet",
}
# What a lease may name: only what is counted can be handed on.
LEASABLE: tuple[str, ...] = tuple(dimension.name.lower() for dimension in COUNTERS)

# Sparse amounts per dimension, smallest dimension first: what a command reserves or a settlement charges.
Charges: TypeAlias = tuple[tuple[int, int], ...]

# A full vector, one amount per dimension in the order of Dimension.
Caps: TypeAlias = tuple[int, ...]


class Budget(Record):
    """Caps a person may set, by name. What is not said comes from the boundary."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    tool_calls: int | None = None
    external_api_calls: int | None = None
    wall_clock_ms: int | None = None
    inference_cost_microusd: int | None = None
    retries: int | None = None
    reflection_passes: int | None = None
    context_tokens: int | None = None
    memory_writes: int | None = None
    side_effects: int | None = None
    steps: int | None = None
    depth: int | None = None
    child_runs: int | None = None
    human_reviews: int | None = None


FIELDS: tuple[str, ...] = tuple(dimension.name.lower() for dimension in Dimension)

# Generous enough for a conversation with twenty tool rounds, small enough that a lost loop costs cents.
STANDARD = Budget(
    input_tokens=1_000_000,
    output_tokens=60_000,
    tool_calls=50,
    external_api_calls=10,
    wall_clock_ms=600_000,
    inference_cost_microusd=5_000_000,
    retries=3,
    reflection_passes=2,
    context_tokens=200_000,
    memory_writes=0,
    side_effects=0,
    steps=300,
    depth=2,
    child_runs=32,
    human_reviews=20,
)


# Budgets that a program gives to its runs, again and again.
_BUDGETS_KEPT_MAX = 64
_UNCHARGED_NAMES = {FIELDS[dimension]: dimension for dimension in UNCHARGED}
_amounts_of = attrgetter(*FIELDS)
_STANDARD_AMOUNTS = _amounts_of(STANDARD)
_SILENT = (None,) * len(FIELDS)


def assign(boundary: Budget, *narrower: Budget) -> Caps:
    """The caps of a run: the boundary's, the standard ones where it is silent, and less where a narrower budget says less."""
    caps = _said_or_standard(boundary)
    for budget in narrower:
        amounts = _amounts_of(budget)
        if amounts != _SILENT:
            caps = tuple([cap if less is None else min(cap, less) for cap, less in zip(caps, amounts, strict=True)])
    return caps


@once_a_record(_BUDGETS_KEPT_MAX)
def _said_or_standard(boundary: Budget) -> Caps:
    both = zip(_amounts_of(boundary), _STANDARD_AMOUNTS, strict=True)
    return tuple([standard if said is None else said for said, standard in both])


def beyond(boundary: Budget, budget: Budget, said: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """What a budget asks for that its boundary does not give, in words: the boundary's cap then holds.

    `said` are the words in which the caller asked, where they are not the names of dimensions.
    """
    amounts = _amounts_of(budget)
    if amounts == _SILENT:
        return ()
    return tuple(
        f"{said.get(name, name)}={amount} is more than the boundary gives; the cap is {_with_unit(name, cap)}"
        for name, amount, cap in zip(FIELDS, amounts, assign(boundary), strict=True)
        if amount is not None and amount > cap
    )


def _with_unit(name: str, amount: int) -> str:
    """An amount, behind the name of its dimension where that says what is counted, so that it can be read for people."""
    return f"{name}={amount}" if name.endswith(("_ms", "_microusd")) else str(amount)


def padded(caps: Caps, boundary: Budget) -> Caps:
    """Caps that were assigned when there were fewer dimensions, with the boundary's or the standard ones for the rest."""
    return (*caps, *assign(boundary)[len(caps) :])


def budget_of(caps: Iterable[int]) -> Budget:
    """The budget with these caps, one for each dimension in order."""
    return Budget(*caps)


@once_a_record(_BUDGETS_KEPT_MAX)
def negative_caps(budget: Budget) -> tuple[str, ...]:
    """The names of the dimensions whose cap is below zero, which no budget may have."""
    return tuple([name for name, amount in by_name(budget) if amount is not None and amount < 0])


def uncharged_caps(amounts: Iterable[tuple[str, int | None]]) -> tuple[Dimension, ...]:
    """The dimensions of these, by name, that have more than 0 and that nothing charges yet."""
    return tuple([_UNCHARGED_NAMES[name] for name, amount in amounts if amount and name in _UNCHARGED_NAMES])


@once_a_record(_BUDGETS_KEPT_MAX)
def uncharged_in(budget: Budget) -> tuple[Dimension, ...]:
    """The dimensions that a budget caps above 0 and that nothing charges yet."""
    return uncharged_caps(by_name(budget))


def uncharged(dimension: Dimension, whose: str) -> RequestRejected:
    """The refusal of an amount that would bind nothing."""
    name = FIELDS[dimension]
    message = f"{whose} sets {name} above 0, and nothing charges it: {UNCHARGED[dimension]}; leave it out, or say 0"
    return RequestRejected(DIMENSION_UNCHARGED, message, {"dimension": name})


def check_charged(whose: str, amounts: Iterable[tuple[str, int | None]]) -> None:
    """Refuse amounts above 0 of a dimension that nothing charges."""
    if found := uncharged_caps(amounts):
        raise uncharged(found[0], whose)


def check_budget(budget: Budget) -> None:
    """Refuse a budget that caps a dimension above 0 which nothing charges."""
    if found := uncharged_in(budget):
        raise uncharged(found[0], "the budget")


def by_name(budget: Budget) -> tuple[tuple[str, int | None], ...]:
    """Every cap of a budget with its name; None where nothing was said."""
    return tuple(zip(FIELDS, _amounts_of(budget), strict=True))


def charges_of(amounts: Iterable[tuple[int, int]]) -> Charges:
    """Sparse charges in the order of Dimension; one named twice adds up, and nothing is written for zero."""
    summed: dict[int, int] = {}
    for dimension, amount in amounts:
        summed[int(dimension)] = summed.get(int(dimension), 0) + amount
    return tuple(sorted((dimension, amount) for dimension, amount in summed.items() if amount))


def lease_of(amounts: Iterable[tuple[str, int]]) -> Charges:
    """Charges from named counters, as a graph or a tool declares them for a child run; one named twice adds up."""
    lease: dict[Dimension, int] = {}
    for name, amount in amounts:
        dimension = Dimension[name.upper()]
        lease[dimension] = lease.get(dimension, 0) + amount
    return charges_of(lease.items())
