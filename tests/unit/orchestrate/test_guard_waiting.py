"""Calls that wait are found by their id and by their tool, and gone once they are answered."""

from remit.core.commands import CallTool
from remit.core.rulings import NodeEntered
from remit.orchestrate.guard_waiting import Waiting


def a_call(command_id: str, call_id: str, tool: str = "look") -> CallTool:
    return CallTool(command_id, call_id, tool, "v", "{}", b"hash", f"run:{command_id}", 1_000, ())


def test_a_result_with_an_id_answers_the_first_call_of_that_id_and_tool() -> None:
    first, second, other = a_call("1", "a"), a_call("2", "a"), a_call("3", "a", "send")
    waiting = Waiting()
    waiting.add([NodeEntered("act", "started"), other, first, second])
    assert waiting.answered("a", "look") == [first]
    waiting.drop(first)
    assert waiting.answered("a", "look") == [second]
    assert waiting.answered("a", "send") == [other]
    assert waiting.answered("b", "look") == []


def test_a_result_without_an_id_answers_all_calls_of_its_tool_in_their_order() -> None:
    calls = [a_call("1", "b"), a_call("2", "a"), a_call("3", "b")]
    waiting = Waiting()
    waiting.add([*calls, a_call("4", "c", "send")])
    assert waiting.answered(None, "look") == calls
    assert waiting.answered(None, "nothing") == []


def test_an_id_is_free_again_when_its_last_call_is_answered() -> None:
    first, second = a_call("1", "a"), a_call("2", "a")
    waiting = Waiting()
    waiting.add([first, second])
    waiting.drop(first)
    assert "a" in waiting
    waiting.drop(second)
    assert "a" not in waiting
    assert waiting.answered(None, "look") == []
