"""Where in a value a rule looks."""

import pytest

from remit.core.failure import RequestRejected
from remit.validate.json_pointers import CheckedValue, Missing, Stands, Unread, below, rule_text, steps_of

ORDER = {"items": [{"price": 5}, {"price": 7}], "a/b": {"~": 1}, "*": 2}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", [Stands("", ORDER)]),
        ("/items/1/price", [Stands("/items/1/price", 7)]),
        ("/items/*/price", [Stands("/items/0/price", 5), Stands("/items/1/price", 7)]),
        ("/a~1b/~0", [Stands("/a~1b/~0", 1)]),
        ("/items/2", [Missing("/items/2")]),
        ("/items/x", [Missing("/items/x")]),
        ("/items/999999999999", [Missing("/items/999999999999")]),
        ("/items/0/price/more", [Missing("/items/0/price/more")]),
        ("/nothing/*", [Missing("/nothing")]),
        ("/items/0/price/*", [Missing("/items/0/price/*")]),
    ],
)
def test_a_pointer_leads_to_what_stands_there(pointer: str, found: list[object]) -> None:
    assert list(CheckedValue(ORDER).at(steps_of(pointer))) == found


def test_every_entry_of_an_object_is_looked_at() -> None:
    assert list(CheckedValue({"a": 1, "b": 2}).at(("*",))) == [Stands("/a", 1), Stands("/b", 2)]


def test_a_text_is_read_as_json_when_it_is_looked_into() -> None:
    assert list(CheckedValue('{"a": [1, 2]}').at(steps_of("/a/1"))) == [Stands("/a/1", 2)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Hello", "it is not JSON: expected value at line 1, column 1"),
        ('{"a": NaN}', "it is not JSON: expected value at line 1, column 7"),
        ("[" * 100_000, "nests too deep"),
        ("1" * 5000, "it is not JSON"),
        ('{"a": 1, "a": 2}', "it is not JSON: the key 'a' stands twice in one object"),
    ],
)
def test_a_text_that_cannot_be_read_says_why(text: str, reason: str) -> None:
    (found,) = CheckedValue(text).at(("a",))
    assert isinstance(found, Unread)
    assert reason in found.reason


def test_more_entries_than_the_bound_are_not_passed_over_in_silence() -> None:
    *found, last = CheckedValue([1] * 5000).at(("*",))
    assert len(found) == 1000
    assert isinstance(last, Unread)
    assert "places_max=1000" in last.reason


@pytest.mark.parametrize(("pointer", "named"), [("price", "begin with a slash"), ("/a" * 33, "steps_max=32")])
def test_what_is_no_pointer_is_refused(pointer: str, named: str) -> None:
    with pytest.raises(RequestRejected, match=named) as caught:
        steps_of(pointer)
    assert caught.value.code == "PLACE_REFUSED"


def test_a_step_is_escaped_in_the_pointer() -> None:
    assert below("/a", "b/c~d") == "/a/b~1c~0d"


@pytest.mark.parametrize(
    ("value", "text"),
    [("é", "é"), ("\ud800", "?"), ({"a": "é"}, '{"a":"é"}'), ({"a": "\ud800"}, '{"a":"?"}'), ({1, 2}, "'set'")],
)
def test_every_value_has_a_text(value: object, text: str) -> None:
    assert rule_text(value) == text
