"""A ModelRequest in the words of chat completions."""

import json
from typing import Any

import pytest

from remit.core.limits.tools import Effect, ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import replace
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import assistant_message, system_message, tool_message, user_message
from remit.inference.openai.dialects import NAMED
from remit.inference.openai.request_body import LIMIT, LIMIT_OF_VENDOR, body_of, sent_message, sent_tool

REACHES = [ToolChoiceMode]

PARAMETERS = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
LOOK_UP = ToolDefinition("look_up", "Look it up.", PARAMETERS, effect=Effect.READ, permissions=("books",))
PLAIN = ModelRequest((user_message("hello"),))
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def body(request: ModelRequest) -> dict[str, Any]:
    return body_of("tiny", request, limit=LIMIT)


def test_what_a_request_leaves_open_is_not_sent() -> None:
    assert body(PLAIN) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_every_role_has_its_words() -> None:
    said = assistant_message("", (ToolCall("7", "look_up", {"word": "ä", "b": 1}),), "let me think")
    assert [sent_message(message) for message in (system_message("be kind"), user_message("hi"))] == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]
    wire = sent_message(said)
    function = wire["tool_calls"][0].pop("function")
    assert wire == {"role": "assistant", "content": None, "tool_calls": [{"id": "7", "type": "function"}]}
    assert (function["name"], json.loads(function["arguments"])) == ("look_up", {"word": "ä", "b": 1})
    answered = sent_message(tool_message("7", "look_up", "a letter"))
    assert answered == {"role": "tool", "content": "a letter", "tool_call_id": "7"}


def test_a_text_beside_calls_is_kept_and_a_thought_is_not_sent() -> None:
    assert sent_message(assistant_message("Wait.", (ToolCall("7", "look_up"),)))["content"] == "Wait."
    assert sent_message(assistant_message("", (), "only a thought")) == {"role": "assistant", "content": ""}


def test_a_tool_is_its_name_its_description_and_its_parameters() -> None:
    function = {"name": "look_up", "description": "Look it up.", "parameters": PARAMETERS}
    assert sent_tool(LOOK_UP) == {"type": "function", "function": function}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(ToolChoiceMode.REQUIRED), "required"),
        (ToolChoice(ToolChoiceMode.NONE), "none"),
        (ToolChoice(ToolChoiceMode.FUNCTION, "look_up"), {"type": "function", "function": {"name": "look_up"}}),
    ],
)
def test_a_choice_of_tools_is_sent(choice: ToolChoice, sent: Any) -> None:
    sent_body = body(replace(PLAIN, tools=(LOOK_UP,), tool_choice=choice))
    assert (sent_body["tool_choice"], len(sent_body["tools"])) == (sent, 1)


def test_a_free_choice_and_a_choice_of_nothing_are_not_sent() -> None:
    assert "tool_choice" not in body(replace(PLAIN, tools=(LOOK_UP,)))
    assert body(replace(PLAIN, tool_choice=ToolChoice(ToolChoiceMode.NONE))) == body(PLAIN)


def test_limits_and_chances_are_sent() -> None:
    request = replace(PLAIN, max_tokens=50, temperature=0.0, top_p=0.5)
    sent = body(request)
    assert (sent["max_tokens"], sent["temperature"], sent["top_p"]) == (50, 0.0, 0.5)
    vendors = body_of("tiny", request, limit=LIMIT_OF_VENDOR)
    assert (vendors["max_completion_tokens"], "max_tokens" in vendors) == (50, False)


def test_options_reach_the_server_but_change_nothing_that_the_request_says() -> None:
    options = {"seed": 7, "min_p": 0.1, "max_tokens": 9999, "temperature": 2.0, "messages": [], "stream_options": None}
    sent = body(replace(PLAIN, options=options, max_tokens=50, temperature=0.0))
    assert (sent["seed"], sent["min_p"]) == (7, 0.1)
    assert (sent["max_tokens"], sent["temperature"]) == (50, 0.0)
    assert sent["messages"] == body(PLAIN)["messages"]
    assert sent["stream_options"] == {"include_usage": True}


def test_an_option_says_what_the_server_calls_the_limit() -> None:
    sent = body(replace(PLAIN, options={"max_completion_tokens": 9999}, max_tokens=50))
    assert (sent["max_completion_tokens"], "max_tokens" in sent) == (50, False)


def test_no_option_makes_an_answer_longer_than_was_reserved() -> None:
    options = {"max_tokens": 9999, "n_predict": 9999, "n": 5, "best_of": 5, "seed": 7}
    sent = body_of("tiny", replace(PLAIN, options=options, max_tokens=50), limit=LIMIT_OF_VENDOR)
    assert {key: sent[key] for key in sent if key not in body(PLAIN)} == {"seed": 7, "max_completion_tokens": 50}
    unlimited = body(replace(PLAIN, options=options))
    assert {key: unlimited[key] for key in unlimited if key not in body(PLAIN)} == {
        "max_tokens": 9999,
        "n_predict": 9999,
        "seed": 7,
    }


def test_a_schema_and_a_grammar_shape_the_answer_and_the_grammar_wins() -> None:
    shaped = body(replace(PLAIN, schema=CLOSED))
    assert shaped["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": CLOSED, "strict": True},
    }
    both = body(replace(PLAIN, schema=CLOSED, grammar='root ::= "yes"'))
    assert (both["grammar"], "response_format" in both) == ('root ::= "yes"', False)


def test_a_server_without_grammars_is_sent_the_schema_that_stands_beside_one() -> None:
    ollama = NAMED["ollama"]
    both = body_of("tiny", replace(PLAIN, schema=CLOSED, grammar='root ::= "yes"'), limit=LIMIT, dialect=ollama)
    assert ("grammar" in both, both["response_format"]["type"], both["reasoning_effort"]) == (
        False,
        "json_schema",
        "none",
    )
    alone = body_of("tiny", replace(PLAIN, grammar='root ::= "yes"'), limit=LIMIT, dialect=ollama)
    assert {key: alone[key] for key in alone if key not in body(PLAIN)} == {"reasoning_effort": "none"}


def test_a_call_that_keeps_no_shape_may_think() -> None:
    for dialect in NAMED.values():
        assert body_of("tiny", PLAIN, limit=LIMIT, dialect=dialect) == body(PLAIN)


def test_a_model_that_is_held_to_a_grammar_does_not_think() -> None:
    sent = body(replace(PLAIN, grammar='root ::= "yes"'))
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert "chat_template_kwargs" not in body(replace(PLAIN, schema=CLOSED))
