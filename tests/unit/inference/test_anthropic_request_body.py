"""A request in the words of the Messages API."""

from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import Message, Role, assistant_message, system_message, tool_message, user_message
from remit.inference.anthropic.request_body import NO_RESULT, body_of, sampling_of, sent_messages
from remit.inference.engine import EngineFault

HELLO = ModelRequest((user_message("hello"),))
TOOL = ToolDefinition("look_up", "Look a word up.", {"type": "object", "properties": {"word": {"type": "string"}}})


def body(request: ModelRequest) -> JsonObject:
    return body_of("tiny", request)


def test_a_plain_request_says_no_more_than_it_must() -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    assert body(HELLO) == {"model": "tiny", "stream": True, "max_tokens": 2048, "messages": said}


def test_instructions_stand_apart_in_their_order() -> None:
    request = ModelRequest((system_message("Be kind."), user_message("hello"), system_message("Be brief.")))
    sent = body(request)
    assert sent["system"] == "Be kind.\n\nBe brief."
    assert [turn["role"] for turn in sent["messages"]] == ["user"]


def test_options_reach_the_server_and_change_nothing_that_was_asked_for() -> None:
    options = {"model": "dear", "stream": False, "max_tokens": 10**6, "messages": [], "stop_sequences": ["x"]}
    sent = body(replace(HELLO, options=options, max_tokens=5))
    assert sent == {**body(HELLO), "max_tokens": 5, "stop_sequences": ["x"]}


@pytest.mark.parametrize(
    "name", ["cache_control", "speed", "service_tier", "container", "mcp_servers", "tools", "tool_choice"]
)
def test_what_would_cost_more_or_do_more_than_was_allowed_is_left_out(name: str) -> None:
    assert body(replace(HELLO, options={name: {"type": "x"}})) == body(HELLO)


def test_wishes_about_sampling_stand_apart() -> None:
    request = replace(HELLO, temperature=0.0, top_p=0.5, options={"temperature": 1.0, "top_k": 3, "seed": 1})
    assert sampling_of(request) == {"temperature": 0.0, "top_p": 0.5, "top_k": 3}
    assert sampling_of(HELLO) == {}
    assert not {"temperature", "top_p", "top_k"} & set(body(request))


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(), None),
        (ToolChoice(ToolChoiceMode.REQUIRED), {"type": "any"}),
        (ToolChoice(ToolChoiceMode.NONE), {"type": "none"}),
        (ToolChoice(ToolChoiceMode.FUNCTION, "look_up"), {"type": "tool", "name": "look_up"}),
    ],
)
def test_tools_are_offered_with_how_freely_they_are_chosen(choice: ToolChoice, sent: Any) -> None:
    wire = body(replace(HELLO, tools=(TOOL,), tool_choice=choice))
    assert wire["tools"] == [{"name": "look_up", "description": "Look a word up.", "input_schema": TOOL.parameters}]
    assert wire.get("tool_choice") == sent


def test_a_schema_is_sent_as_one_that_can_be_kept() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    config = body(replace(HELLO, schema=schema, options={"output_config": {"effort": "low"}}))["output_config"]
    assert config["effort"] == "low"
    assert config["format"]["type"] == "json_schema"
    assert config["format"]["schema"]["additionalProperties"] is False
    assert "minimum: 1" in config["format"]["schema"]["properties"]["n"]["description"]
    assert schema["properties"] == {"n": {"type": "integer", "minimum": 1}}


@pytest.mark.parametrize("schema", [{}, {"type": ["string", "null"]}, {"type": "object", "properties": {"a": True}}])
def test_a_schema_that_nobody_can_be_held_to_is_not_sent_as_if_it_were(schema: JsonObject) -> None:
    with pytest.raises(EngineFault, match="cannot be held to this schema") as raised:
        body(replace(HELLO, schema=schema))
    assert (raised.value.code, raised.value.was_cut) == (ErrorCode.INFERENCE_ENGINE_ERROR, False)


def test_a_grammar_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(EngineFault, match="cannot be held to a grammar; ask for a schema instead"):
        body(replace(HELLO, grammar='root ::= "x"'))


def test_calls_and_their_results_are_blocks_that_find_each_other() -> None:
    calls = (ToolCall("toolu_1", "look_up", {"word": "a"}), ToolCall("toolu_2", "look_up", {"word": "b"}))
    turns = sent_messages(
        [
            user_message("hello"),
            assistant_message("Let me see.", calls, "hm"),
            tool_message("toolu_1", "look_up", "A"),
            tool_message("toolu_2", "look_up", "B"),
            user_message("and?"),
        ]
    )
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"word": "a"}},
        {"type": "tool_use", "id": "toolu_2", "name": "look_up", "input": {"word": "b"}},
    ]
    assert turns[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "B"},
        {"type": "text", "text": "and?"},
    ]


def test_words_put_before_a_result_stand_behind_it() -> None:
    messages = [
        user_message("hello"),
        assistant_message("", (ToolCall("a", "look_up"),)),
        user_message("by the way"),
        tool_message("a", "look_up", "A"),
    ]
    assert [block["type"] for block in sent_messages(messages)[2]["content"]] == ["tool_result", "text"]


def test_ids_that_repeat_or_that_the_api_does_not_take_are_replaced_in_call_and_result() -> None:
    def exchange(call_id: str) -> list[Message]:
        return [assistant_message("", (ToolCall(call_id, "look_up"),)), tool_message(call_id, "look_up", "A")]

    turns = sent_messages([user_message("go"), *exchange("same"), *exchange("same"), *exchange("a b|c"), *exchange("")])
    called = [block["id"] for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
    found = [block["tool_use_id"] for turn in turns for block in turn["content"] if block["type"] == "tool_result"]
    assert called == found == ["same", "call_0", "call_1", "call_2"]


def test_a_result_without_a_call_right_before_it_is_text() -> None:
    calls = assistant_message("", (ToolCall("a", "look_up"),))
    result = tool_message("a", "look_up", "A")
    assert sent_messages([result])[0]["content"] == [{"type": "text", "text": "A"}]
    turns = sent_messages([calls, result, result, assistant_message("So."), result])
    assert [block["type"] for block in turns[1]["content"]] == ["tool_result", "text"]
    assert turns[3]["content"] == [{"type": "text", "text": "A"}]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    calls = assistant_message("", (ToolCall("a", "look_up"), ToolCall("b", "look_up")))
    lost = {"type": "tool_result", "tool_use_id": "a", "content": NO_RESULT, "is_error": True}
    [_, turn] = sent_messages([calls, tool_message("b", "look_up", "B"), user_message("and?")])
    found = {"type": "tool_result", "tool_use_id": "b", "content": "B"}
    assert turn["content"] == [lost, found, {"type": "text", "text": "and?"}]
    [_, turn] = sent_messages([calls])
    assert turn == {"role": "user", "content": [lost, {**lost, "tool_use_id": "b"}]}


def test_tools_that_were_called_and_are_offered_no_more_are_named_and_cannot_be_called() -> None:
    calls = assistant_message("", (ToolCall("a", "look_up"), ToolCall("b", "look_up")))
    sent = body(ModelRequest((*HELLO.messages, calls, tool_message("a", "look_up", "A"))))
    assert sent["tools"] == [{"name": "look_up", "description": "", "input_schema": {"type": "object"}}]
    assert sent["tool_choice"] == {"type": "none"}


def test_what_was_only_thought_or_is_blank_is_not_sent_back() -> None:
    assert sent_messages([user_message("hello"), Message(Role.ASSISTANT, " \n", "hm")]) == sent_messages(HELLO.messages)


def test_thinking_by_a_budget_pauses_between_calls_and_their_results() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    between = (*HELLO.messages, assistant_message("", (ToolCall("a", "look_up"),)), tool_message("a", "look_up", "A"))
    assert body(replace(HELLO, options={"thinking": thinking}))["thinking"] == thinking
    assert "thinking" not in body(ModelRequest(between, options={"thinking": thinking}))
    assert "thinking" in body(ModelRequest(between, options={"thinking": {"type": "adaptive"}}))


def test_where_a_schema_is_to_be_kept_no_thinking_is_asked_for() -> None:
    options = {"thinking": {"type": "adaptive"}}
    assert body(replace(HELLO, options=options))["thinking"] == {"type": "adaptive"}
    assert "thinking" not in body(replace(HELLO, options=options, schema={"type": "object"}))
    assert "thinking" not in body(replace(HELLO, schema={"type": "object"}))
