import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.budget import (
    COUNTERS,
    DIMENSION_UNCHARGED,
    DIMENSIONS,
    FIELDS,
    KINDS,
    STANDARD,
    Budget,
    Dimension,
    DimensionKind,
    assign,
    beyond,
    budget_of,
    charges_of,
    check_budget,
    lease_of,
    negative_caps,
)

REACHES = [Dimension, DimensionKind]


@pytest.mark.req("4.22")
def test_the_vector_has_the_eleven_dimensions_of_the_doctrine_and_four_of_our_own() -> None:
    doctrine = [
        "input_tokens",
        "output_tokens",
        "tool_calls",
        "external_api_calls",
        "wall_clock_ms",
        "inference_cost_microusd",
        "retries",
        "reflection_passes",
        "context_tokens",
        "memory_writes",
        "side_effects",
    ]
    assert list(FIELDS) == [*doctrine, "steps", "depth", "child_runs", "human_reviews"]


def test_numbers_of_dimensions_are_positions_that_journals_rely_on() -> None:
    assert [int(dimension) for dimension in Dimension] == list(range(DIMENSIONS))
    assert (int(Dimension.INPUT_TOKENS), int(Dimension.HUMAN_REVIEWS)) == (0, 14)


@pytest.mark.req("4.22")
def test_a_dimension_is_a_counter_a_gauge_or_the_clock() -> None:
    gauges = [dimension for dimension in Dimension if KINDS[dimension] is DimensionKind.GAUGE]
    assert gauges == [Dimension.RETRIES, Dimension.CONTEXT_TOKENS, Dimension.DEPTH]
    assert [d for d in Dimension if KINDS[d] is DimensionKind.CLOCK] == [Dimension.WALL_CLOCK_MS]
    assert len(COUNTERS) == DIMENSIONS - 4


def test_every_dimension_has_a_field_and_a_standard_cap() -> None:
    assert Budget.__struct_fields__ == FIELDS
    assert all(getattr(STANDARD, field) is not None for field in FIELDS)


def test_the_smallest_cap_anyone_said_is_assigned() -> None:
    caps = assign(Budget(tool_calls=7), Budget(tool_calls=3, retries=0), Budget(tool_calls=5))
    assert caps[Dimension.TOOL_CALLS] == 3
    assert caps[Dimension.RETRIES] == 0


def test_what_nobody_said_is_standard() -> None:
    assert assign(Budget()) == assign(Budget(), Budget()) == tuple(getattr(STANDARD, field) for field in FIELDS)


def test_nobody_widens_a_boundary_that_is_silent() -> None:
    assert assign(Budget(), Budget(steps=1000))[Dimension.STEPS] == STANDARD.steps


def test_a_boundary_may_say_more_than_the_standard() -> None:
    assert assign(Budget(steps=1000))[Dimension.STEPS] == 1000


def test_caps_by_name_are_the_same_caps() -> None:
    caps = assign(Budget(depth=1))
    assert assign(budget_of(caps)) == caps


def test_negative_caps_are_named() -> None:
    assert negative_caps(Budget(tool_calls=-1, steps=0, retries=-7)) == ("tool_calls", "retries")
    assert negative_caps(STANDARD) == ()


def test_a_budget_that_caps_what_nothing_charges_is_refused() -> None:
    check_budget(Budget(tool_calls=3, memory_writes=0))
    with pytest.raises(RequestRejected) as refused:
        check_budget(Budget(memory_writes=1))
    assert (refused.value.code, refused.value.details) == (DIMENSION_UNCHARGED, {"dimension": "memory_writes"})


def test_charges_are_sparse_and_in_the_order_of_dimensions() -> None:
    assert charges_of(((Dimension.SIDE_EFFECTS, 1), (Dimension.TOOL_CALLS, 2), (Dimension.RETRIES, 0))) == (
        (2, 2),
        (10, 1),
    )


def test_a_lease_is_written_by_name() -> None:
    assert lease_of((("steps", 3), ("tool_calls", 2), ("child_runs", 0))) == ((2, 2), (11, 3))


def test_what_a_budget_asks_beyond_its_boundary_is_told_with_the_cap() -> None:
    assert beyond(Budget(tool_calls=50), Budget()) == ()
    assert beyond(Budget(tool_calls=50), Budget(tool_calls=50, steps=1)) == ()
    assert beyond(Budget(tool_calls=50), Budget(tool_calls=51)) == (
        "tool_calls=51 is more than the boundary gives; the cap is 50",
    )
    assert beyond(Budget(wall_clock_ms=9), Budget(wall_clock_ms=10)) == (
        "wall_clock_ms=10 is more than the boundary gives; the cap is wall_clock_ms=9",
    )
    assert beyond(Budget(output_tokens=9), Budget(output_tokens=10), {"output_tokens": "max_tokens"}) == (
        "max_tokens=10 is more than the boundary gives; the cap is 9",
    )
