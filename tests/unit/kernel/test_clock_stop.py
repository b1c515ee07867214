"""Holds: how much of the time in which children were known to wait was waiting."""

from remit.kernel.people.clock_stop import UNTOLD, Hold, hold_after_child, holding, proven_ms, waited_ms


def test_a_hold_begins_with_the_turn_in_which_a_child_is_known_to_wait() -> None:
    assert holding(None, 500, 0) == Hold(500)
    assert holding(None, 500, 1) == Hold(500, own_since_ms=500)


def test_a_hold_counts_how_long_the_run_itself_waited_in_it() -> None:
    hold = holding(None, 0, 0)
    for at_ms, own in ((100, 1), (150, 2), (300, 0), (400, 0), (500, 1)):
        hold = holding(hold, at_ms, own)
    assert (hold.own_ms, hold.own_since_ms) == (200, 500)
    assert waited_ms(hold, 510) == 210


def test_as_much_was_waiting_as_the_child_says_that_waited_longest() -> None:
    hold = hold_after_child(hold_after_child(hold_after_child(Hold(0), 30), 50), 40)
    assert waited_ms(hold, 1_000) == proven_ms(hold, 1_000) == 50


def test_waiting_at_the_same_time_is_not_added_up() -> None:
    hold = hold_after_child(Hold(0, own_ms=60), 50)
    assert waited_ms(hold, 1_000) == 60


def test_no_more_was_waiting_than_the_hold_took() -> None:
    assert waited_ms(hold_after_child(Hold(900), 5_000), 1_000) == 100


def test_a_child_that_does_not_say_may_have_waited_all_the_time_and_that_is_not_proven() -> None:
    for hold in (
        hold_after_child(hold_after_child(Hold(0), 50), UNTOLD),
        hold_after_child(hold_after_child(Hold(0), UNTOLD), 50),
    ):
        assert waited_ms(hold, 1_000) == 1_000
        assert proven_ms(hold, 1_000) == 0
