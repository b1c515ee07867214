"""What is asked together, the version of it, and what somebody changed in it."""

import pytest

from remit.core.failure import Ending
from remit.core.limits.authority import ValueOrigin
from remit.core.record import JsonObject
from remit.observe.people.packets import Approval, What, changes, group_of, grouped, is_named, origins_of, version_of


def held(command: str, group: str = "", packet: str = "v") -> Approval:
    """A held call of one run."""
    name = f"r/{group}" if group else ""
    return Approval(f"r/{command}", "r", What.APPROVAL, Ending.CONFIRM_REQUIRED, 0, group=name, packet=packet)


def test_calls_of_one_group_are_one_packet_where_the_first_of_them_stands() -> None:
    one, other, alone = held("1.2", "1.2"), held("1.4", "1.2"), held("3.1")
    assert grouped([one, alone, other]) == [[one, other], [alone]]
    assert group_of(one) == group_of(other) == "r/1.2+"
    assert group_of(alone) == "r/3.1+"


def test_the_version_of_a_packet_covers_every_call_in_it() -> None:
    one, other = held("1.2", "1.2", "a"), held("1.4", "1.2", "b")
    assert version_of([one]) == "a"
    together = version_of([one, other])
    assert len(together) == 64
    assert version_of([one, held("1.4", "1.2", "c")]) != together
    assert version_of([held("1.2", "1.2", "b"), held("1.4", "1.2", "a")]) != together


@pytest.mark.parametrize(
    ("named", "means"), [("a" * 64, True), ("a" * 12, True), ("a" * 11, False), ("", False), ("a" * 11 + "b", False)]
)
def test_a_version_is_named_by_enough_of_its_digits(named: str, means: bool) -> None:
    assert is_named("a" * 64, named) is means
    assert not is_named("", named)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": True}]}, ["a"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, ["a"]),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, ["a", "c"]),
        ({"a": None}, {}, ["a"]),
    ],
)
def test_changes_are_told_key_by_key_as_they_are_written(
    before: JsonObject, after: JsonObject, changed: list[str]
) -> None:
    assert [change.key for change in changes(before, after)] == changed


def test_a_key_that_was_added_or_removed_says_so() -> None:
    removed, added = changes({"a": None}, {"b": None})
    assert (removed.is_removed, removed.is_added, added.is_added, added.is_removed) == (True, False, True, False)


def test_the_values_within_an_argument_belong_to_it_and_to_no_other() -> None:
    origins = tuple(ValueOrigin(path, "v") for path in ("to", "to[0]", "to.name", "token", "top[0]"))
    assert [origin.path for origin in origins_of("to", origins)] == ["to", "to[0]", "to.name"]
