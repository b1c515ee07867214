"""Calls are put together from pieces, however a server cuts them."""

from typing import Any

import pytest

from remit.core.limits.tools import ToolCall
from remit.inference.answers.call_pieces import CALLS_MAX, ID_CHARS_MAX, NAME_CHARS_MAX, CallPieces, CallsUnreadable


def piece(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry = {"index": index, "id": call_id, "function": function or None}
    return {key: value for key, value in entry.items() if value is not None}


def whole(*deltas: list[dict[str, Any]], answers: int = 0) -> tuple[ToolCall, ...]:
    calls = CallPieces()
    for delta in deltas:
        calls.take(delta)
    return calls.whole(answers)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


A, B = ToolCall("a", "look_up", {"word": "x"}), ToolCall("b", "count", {"to": 3})

WAYS: dict[str, list[list[dict[str, Any]]]] = {
    "the id once and the arguments in pieces": [
        [piece(0, "a", "look_up", "")],
        [piece(0, arguments='{"wo')],
        [piece(0, arguments='rd": "x"}')],
        [piece(1, "b", "count", "")],
        [piece(1, arguments='{"to": 3}')],
    ],
    "both at the same time": [
        [piece(0, "a", "look_up"), piece(1, "b", "count")],
        [piece(1, arguments='{"to"'), piece(0, arguments='{"word": ')],
        [piece(0, arguments='"x"}'), piece(1, arguments=": 3}")],
    ],
    "each whole in one piece": [
        [piece(0, "a", "look_up", '{"word": "x"}')],
        [piece(1, "b", "count", '{"to": 3}')],
    ],
    "every call with index 0": [
        [piece(0, "a", "look_up", '{"word": "x"}')],
        [piece(0, "b", "count", '{"to": 3}')],
    ],
    "without an index": [
        [piece(None, "a", "look_up", '{"word"')],
        [piece(None, "a", None, ': "x"}')],
        [piece(None, "b", "count", '{"to": 3')],
        [piece(None, None, None, "}")],
    ],
    "id and name again with every piece": [
        [piece(0, "a", "look_up", '{"word"')],
        [piece(0, "a", "look_up", ': "x"}')],
        [piece(1, "b", "count", '{"to": 3}')],
    ],
    "the name in pieces": [
        [piece(0, "a", "look", "")],
        [piece(0, None, "_up", '{"word": "x"}')],
        [piece(1, "b", "count", '{"to": 3}')],
    ],
    "arguments as an object": [
        [piece(0, "a", "look_up", {"word": "x"}), piece(1, "b", "count", {"to": 3})],
    ],
    "the id behind the name": [
        [piece(0, None, "look_up", '{"word": "x"}')],
        [piece(0, "a")],
        [piece(1, "b", "count", '{"to": 3}')],
    ],
}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_however_calls_are_cut_they_are_the_same(way: str) -> None:
    assert whole(*WAYS[way]) == (A, B)


def test_calls_without_ids_get_some_that_follow_from_the_conversation() -> None:
    pieces = [piece(None, None, "look_up", '{"word": "x"}'), piece(None, None, "count", '{"to": 3}')]
    first, second = whole(pieces, answers=4)
    assert (first.id, second.id) == ("call-5-1", "call-5-2")
    assert (first.arguments, second.arguments) == (A.arguments, B.arguments)


def test_an_id_that_two_calls_share_is_given_to_the_first() -> None:
    first, second = whole([piece(0, "a", "look_up"), piece(1, "a", "count")])
    assert (first.id, second.id) == ("a", "call-1-2")


@pytest.mark.parametrize("arguments", [None, "", "  ", "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    assert whole([piece(0, "a", "look_up", arguments)]) == (ToolCall("a", "look_up", {}),)


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ([piece(0, "a", "look_up", '{"word": ')], "the arguments of call 1 are no JSON"),
        ([piece(0, "a", "look_up", '{"word": 1, "word": 2}')], "call 1 mean two things: the key 'word' stands twice"),
        ([piece(0, "a", "look_up", r'{"x": {"word": 1, "\u0077ord": 2}}')], "the key 'word' stands twice"),
        ([piece(0, "a", "look_up", "[1]")], "no JSON object"),
        ([piece(0, "a", "look_up", "null")], "no JSON object"),
        ([piece(0, "a", "look_up", "[" * 100_000)], "no JSON"),
        ([piece(0, "a", None, "{}")], "call 1 names no tool"),
        ([piece(0, "a", "look_up", 3)], "the arguments of a call are a int"),
        ([{"index": 0, "function": "look_up"}], "the function of a call is a str"),
        ([{"id": 3, "function": {"name": "look_up"}}], "the id of a call is a int"),
        ([{"id": "a", "function": {"name": ["look_up"]}}], "the name of a call is a list"),
        (["look_up"], "a piece of a call is a str"),
        ({"0": {}}, "tool_calls is a dict"),
        ([piece(number, f"{number}", "look_up") for number in range(CALLS_MAX + 1)], f"calls_max={CALLS_MAX}"),
        ([{}] * (CALLS_MAX + 1), f"holds {CALLS_MAX + 1} calls, more than calls_max={CALLS_MAX}"),
        ([piece(0, "a" * (ID_CHARS_MAX + 1), "look_up")], f"id_chars_max={ID_CHARS_MAX}"),
        ([piece(0, "a", "n" * (NAME_CHARS_MAX + 1))], f"name_chars_max={NAME_CHARS_MAX}"),
        ([piece(0, "a", "n" * NAME_CHARS_MAX), piece(0, None, "m")], f"name_chars_max={NAME_CHARS_MAX}"),
        ([piece(0, "a", "look_up", nested(100_000))], "nested too deeply"),
    ],
)
def test_what_makes_no_calls_is_refused(listed: Any, problem: str) -> None:
    with pytest.raises(CallsUnreadable, match=problem):
        whole(listed)


def test_calls_are_counted_over_all_events() -> None:
    calls = CallPieces()
    calls.take([piece(number, f"{number}", "look_up") for number in range(CALLS_MAX)])
    with pytest.raises(CallsUnreadable, match=f"more than calls_max={CALLS_MAX} calls"):
        calls.take([piece(CALLS_MAX, "one more", "look_up")])


def test_the_longest_id_and_name_are_taken() -> None:
    [call] = whole([piece(10**30, "a" * ID_CHARS_MAX, "n" * NAME_CHARS_MAX)])
    assert (len(call.id), len(call.name)) == (ID_CHARS_MAX, NAME_CHARS_MAX)


def test_a_problem_is_told_without_the_words_of_the_server() -> None:
    with pytest.raises(CallsUnreadable) as raised:
        whole([piece(0, "a", "secret", "{")])
    assert "secret" not in str(raised.value)


def test_what_nobody_may_keep_is_taken_out_of_every_part_of_a_call() -> None:
    calls = CallPieces()
    calls.take([piece(0, "id-secret", "name-secret", '{"word": "sec'), piece(0, arguments='ret"}')])
    [call] = calls.whole(0, blotted=lambda text: text.replace("secret", "***"))
    assert call == ToolCall("id-***", "name-***", {"word": "***"})


def test_a_call_whose_arguments_never_began_may_be_cut() -> None:
    calls = CallPieces()
    assert not calls
    assert not calls.is_cut()
    calls.take([piece(0, "a", "look_up", "")])
    assert calls
    assert calls.is_cut()
    calls.take([piece(0, arguments="{}")])
    assert not calls.is_cut()


def test_the_length_of_the_pieces_is_told() -> None:
    assert CallPieces().take([piece(0, "a", "look_up", "{}"), piece(1, "b", "count", "{}")]) == 18
