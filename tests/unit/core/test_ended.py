"""Whether turns end a run is read from the last one backwards, and where it belongs from the first."""

from remit.core.journal.ended import (
    Belonging,
    Belongings,
    belonging_of,
    ended_at_ms,
    ending_of,
    is_child_of,
    is_over,
    parent_in,
)
from remit.core.journal.storage import RunListing
from remit.testing.conformance.sample_turns import first_turn, last_turn

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


def test_how_a_run_ended_is_what_its_turns_say() -> None:
    assert ending_of([OPEN, ENDED]) == "SUCCESS"
    assert ending_of([OPEN]) == ending_of([b"no turn"]) == ""


CHILD = first_turn("child", RunListing(1, parent_id="root", lineage=("root",)))
PLACED = first_turn("one", RunListing(1, tenant_id="acme", session_id="talk", ordinal=3))


def test_where_a_run_belongs_is_what_its_first_turn_says() -> None:
    assert belonging_of(CHILD) == Belonging("root", ("root",))
    assert belonging_of(PLACED) == Belonging("", (), ("acme", "talk"), 3)
    assert belonging_of(OPEN) is belonging_of(b"no turn") is None
    assert [is_child_of(CHILD, name) for name in ("root", "other")] == [True, False]
    assert [parent_in(first, "listed") for first in (CHILD, PLACED, OPEN)] == ["root", "", "listed"]
    # Of a run whose first turn cannot be read, the list is all there is.
    assert is_child_of(b"no turn", "other")


def test_the_newest_of_a_session_and_what_came_from_it_will_be_asked_for() -> None:
    firsts = [
        (name, first_turn(name, RunListing(1, tenant_id=tenant, session_id="talk", ordinal=ordinal)))
        for name, tenant, ordinal in (("b", "acme", 1), ("a", "acme", 0), ("c", "", 0))
    ]
    retry = ("retry", first_turn("retry", RunListing(1, lineage=("b",))))
    told = Belongings([*firsts, retry, ("child", CHILD), ("torn", b"no turn")])
    assert [name for name in ("a", "b", "c", "retry", "child", "torn") if told.is_asked_for(name)] == [
        "b",
        "c",
        "retry",
    ]
    assert [told.parent_of(name, "listed") for name in ("child", "a", "torn")] == ["root", "", "listed"]
