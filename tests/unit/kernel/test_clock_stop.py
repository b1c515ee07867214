"""Holds: how much of the time in which children were known to wait was waiting."""

from remit.kernel.people.clock_stop import (
    UNTOLD,
    Standstill,
    proven_ms,
    standstill_after_child,
    standstill_after_turn,
    waited_ms,
)


def test_a_hold_begins_with_the_turn_in_which_a_child_is_known_to_wait() -> None:
    assert standstill_after_turn(None, 500, 0) == Standstill(500)
    assert standstill_after_turn(None, 500, 1) == Standstill(500, own_since_ms=500)


def test_a_hold_counts_how_long_the_run_itself_waited_in_it() -> None:
    standstill = standstill_after_turn(None, 0, 0)
    for at_ms, own in ((100, 1), (150, 2), (300, 0), (400, 0), (500, 1)):
        standstill = standstill_after_turn(standstill, at_ms, own)
    assert (standstill.own_ms, standstill.own_since_ms) == (200, 500)
    assert waited_ms(standstill, 510) == 210


def test_as_much_was_waiting_as_the_child_says_that_waited_longest() -> None:
    standstill = standstill_after_child(standstill_after_child(standstill_after_child(Standstill(0), 30), 50), 40)
    assert waited_ms(standstill, 1_000) == proven_ms(standstill, 1_000) == 50


def test_waiting_at_the_same_time_is_not_added_up() -> None:
    standstill = standstill_after_child(Standstill(0, own_ms=60), 50)
    assert waited_ms(standstill, 1_000) == 60


def test_no_more_was_waiting_than_the_hold_took() -> None:
    assert waited_ms(standstill_after_child(Standstill(900), 5_000), 1_000) == 100


def test_a_child_that_does_not_say_may_have_waited_all_the_time_and_that_is_not_proven() -> None:
    for standstill in (
        standstill_after_child(standstill_after_child(Standstill(0), 50), UNTOLD),
        standstill_after_child(standstill_after_child(Standstill(0), UNTOLD), 50),
    ):
        assert waited_ms(standstill, 1_000) == 1_000
        assert proven_ms(standstill, 1_000) == 0
