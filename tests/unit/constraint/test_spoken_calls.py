"""Calls of a model that knows no tools: what it is told, and what its text says."""

import pytest

from remit.constraint.spoken_calls import (
    DESCRIPTION_CHARS_SHOWN,
    EXAMPLES,
    call_hint,
    call_or_words_hint,
    read_call,
    with_answer_demanded,
    with_results_told,
)
from remit.core.failure import ErrorCode
from remit.core.journal.canonical import canonical_json
from remit.core.limits.tools import ToolCall, ToolDefinition
from remit.core.run.inference import CALL_HINT_BYTES_MAX
from remit.core.run.messages import Message, assistant_message, system_message, tool_message, user_message
from remit.kernel.results.notices import MESSAGE_TOKENS_OVERHEAD

LOOKUP = ToolDefinition(
    "lookup",
    "Look an order up.",
    {
        "type": "object",
        "properties": {"order": {"type": "string", "description": "its number"}, "deep": True, "far": {}},
        "required": ["order"],
        "additionalProperties": False,
    },
)
CLOCK = ToolDefinition("clock", "Tell the time.", {"type": "object"})
BROKEN = ToolDefinition("broken", "Broken.", {"type": "object", "properties": {"a": {"type": "sentence"}}})
TOOLS = (LOOKUP, CLOCK, BROKEN)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"tool":"lookup","arguments":{"order":"42"}}', ToolCall("call-4", "lookup", {"order": "42"})),
        (' {"tool":"clock","arguments":{}}\n', ToolCall("call-4", "clock", {})),
    ],
)
def test_a_text_that_calls_becomes_a_call_named_by_its_place(text: str, call: ToolCall) -> None:
    assert read_call(text, TOOLS, messages_before=3).call == call


def test_a_text_that_calls_nothing_is_words() -> None:
    found = read_call("It is noon.", TOOLS, messages_before=0)
    assert (found.call, found.words, found.code) == (None, "It is noon.", None)


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ('{"tool":"lookup","arguments":{"ord', ErrorCode.CONSTRAINT_JSON_INVALID, "no JSON"),
        ('{"a":' * 100_000, ErrorCode.CONSTRAINT_JSON_INVALID, "no JSON"),
        ('{"tool":"lookup"}', ErrorCode.CONSTRAINT_SCHEMA_INVALID, "nothing else"),
        ('{"tool":"lookup","arguments":[]}', ErrorCode.CONSTRAINT_SCHEMA_INVALID, "nothing else"),
        ('{"tool":"lookup","arguments":{"order":"1"},"x":1}', ErrorCode.CONSTRAINT_SCHEMA_INVALID, "nothing else"),
        ('{"tool":"pay","arguments":{}}', ErrorCode.CONSTRAINT_SCHEMA_INVALID, "lookup, clock, broken"),
        ('{"tool":["pay"],"arguments":{}}', ErrorCode.CONSTRAINT_SCHEMA_INVALID, "was offered"),
        ('{"tool":"lookup","arguments":{"order":42}}', ErrorCode.CONSTRAINT_SCHEMA_INVALID, "/order"),
        ('{"tool":"broken","arguments":{"a":1}}', ErrorCode.CONSTRAINT_SCHEMA_INVALID, "parameters of 'broken'"),
    ],
)
def test_what_does_not_fit_has_a_code_and_a_reason(text: str, code: ErrorCode, told: str) -> None:
    found = read_call(text, TOOLS, messages_before=0)
    assert (found.call, found.code) == (None, code)
    assert told in found.problem


def test_the_hint_names_tools_their_parameters_and_what_to_do() -> None:
    hint = call_hint([LOOKUP])
    assert hint.splitlines()[:3] == ["You can use this tool:", "- lookup: Look an order up.", "  order: its number"]
    assert "  deep\n  far\n" in hint
    assert "otherwise" not in hint
    assert "otherwise answer in words" in call_or_words_hint([LOOKUP, CLOCK])


def test_a_long_description_is_cut() -> None:
    tool = ToolDefinition("t", "d" * 5000, {"type": "object", "properties": {"p": {"description": "e" * 5000}}})
    assert len(call_hint([tool])) < 2 * DESCRIPTION_CHARS_SHOWN + 300


@pytest.mark.parametrize("tools", [(CLOCK,), (LOOKUP,), TOOLS])
def test_the_words_around_the_tools_take_no_more_than_is_reserved_for_them(tools: tuple[ToolDefinition, ...]) -> None:
    told = len(call_or_words_hint(tools).encode()) + MESSAGE_TOKENS_OVERHEAD
    told += sum(len(str(message.content).encode()) + MESSAGE_TOKENS_OVERHEAD for message in EXAMPLES)
    declared = sum(len((tool.name + tool.description).encode() + canonical_json(tool.parameters)) for tool in tools)
    assert told <= declared + CALL_HINT_BYTES_MAX


def test_results_stand_behind_the_words_that_asked_and_calls_are_left_out() -> None:
    conversation = (
        system_message("Be brief."),
        user_message("Where is order 42?"),
        assistant_message("", (ToolCall("1", "lookup", {"order": "42"}),)),
        tool_message("1", "lookup", "shipped"),
        assistant_message("One more.", (ToolCall("2", "clock", {}),)),
        tool_message("2", "clock", "noon"),
    )
    assert with_results_told(conversation) == (
        system_message("Be brief."),
        user_message("Where is order 42?\n\nThe result of lookup is: shipped\n\nThe result of clock is: noon"),
        assistant_message("One more."),
    )


def test_a_result_that_nobody_asked_for_stands_alone() -> None:
    assert with_results_told([tool_message("1", "clock", "noon")]) == (user_message("The result of clock is: noon"),)


@pytest.mark.parametrize(
    ("messages", "last"),
    [
        ((user_message("q"),), user_message("q\nAnswer in words, using this result.")),
        ((user_message("q"), assistant_message("a")), assistant_message("a")),
    ],
)
def test_an_answer_is_demanded_of_the_model_that_is_to_speak(messages: tuple[Message, ...], last: Message) -> None:
    assert with_answer_demanded(messages)[-1] == last
