"""Scripts for the model: what they say, and that a resumed run gets the right answer."""

from random import Random

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolCall
from remit.core.run.messages import assistant_message, user_message
from remit.core.run.usage import TokenUsage
from remit.testing.scripts import USAGE, Breaks, in_turn, proposes, proposes_all, says

ASKED = [user_message("please")]


def test_an_answer_in_words_reports_some_usage() -> None:
    assert says("done").content == "done"
    assert says("done").usage == USAGE != TokenUsage()


def test_an_answer_may_report_any_usage() -> None:
    assert says("done", usage=TokenUsage(7)).usage == TokenUsage(7)


def test_one_call_is_proposed_with_its_arguments() -> None:
    assert proposes("look", {"n": 1}).tool_calls == (ToolCall("call", "look", {"n": 1}),)
    assert proposes("look", call_id="mine").tool_calls == (ToolCall("mine", "look"),)


def test_several_calls_have_an_id_each() -> None:
    calls = proposes_all(("look", {"n": 1}), ("write", {"n": 2})).tool_calls
    assert [(call.id, call.name) for call in calls] == [("call1", "look"), ("call2", "write")]


def test_answers_come_one_after_the_other_and_the_last_repeats() -> None:
    model, chance = in_turn(says("first"), says("second")), Random(0)
    seen = [*ASKED]
    given = []
    for _ in range(3):
        answer = model(seen, chance)
        assert not isinstance(answer, Breaks)
        given.append(answer.content)
        seen.append(assistant_message(answer.content))
    assert given == ["first", "second", "second"]


def test_which_answer_is_next_follows_from_the_conversation_alone() -> None:
    model, chance = in_turn(says("first"), says("second")), Random(0)
    assert model(ASKED, chance) == model(ASKED, chance)


def test_a_call_breaks_as_an_engine_would() -> None:
    assert in_turn(Breaks(was_cut=True))(ASKED, Random(0)) == Breaks(ErrorCode.INFERENCE_ENGINE_ERROR, was_cut=True)
