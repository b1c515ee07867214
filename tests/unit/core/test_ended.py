"""Whether turns end a run is read from the last one backwards."""

from remit.core.journal.ended import ended_at_ms, is_over
from remit.testing.conformance.sample_turns import last_turn

OPEN, ENDED = last_turn(9, None), last_turn(7)


def test_a_run_ends_with_the_turn_that_says_so_whatever_was_added_later() -> None:
    assert ended_at_ms([OPEN, ENDED, OPEN]) == 7
    assert ended_at_ms([OPEN, OPEN]) is None
    assert ended_at_ms([]) is None


def test_what_cannot_be_read_does_not_say_that_a_run_ended() -> None:
    assert ended_at_ms([b"no turn", ENDED]) is None
    # Nothing before the end is read.
    assert ended_at_ms([ENDED, b"no turn"]) == 7


def test_a_run_is_over_where_it_ended_before_a_time() -> None:
    assert [is_over([ENDED], at_ms) for at_ms in (7, 8)] == [False, True]
    assert not is_over([OPEN], 8)
