"""An answer of the Messages API is put together from its events."""

import json
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolCall, ToolDefinition
from remit.core.record import replace
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import assistant_message, user_message
from remit.core.run.usage import TokenUsage
from remit.inference.answers import streamed_answer
from remit.inference.answers.speech import mixed_speech
from remit.inference.answers.streamed_answer import OVERHEAD_TOKENS, ServerFailed
from remit.inference.anthropic.answer import MessagesAnswer, usage_of
from remit.inference.endpoint.faults import BLOT, EndpointPlace
from remit.inference.engine import EngineFault, StreamChunk

KEY = "sk-ant-very-secret-0123456789"
INFO = ModelInfo("anthropic:tiny", 1000)
HELLO = ModelRequest((user_message("hello"),), max_tokens=50)

START = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def begins(index: int = 0, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def goes_on(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def ends(reason: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3, **usage}}


def text(said: str) -> dict[str, Any]:
    return goes_on("text_delta", text=said)


def heard(*events: Any, request: ModelRequest = HELLO) -> tuple[ModelResult, list[StreamChunk]]:
    answer = MessagesAnswer(request, INFO, EndpointPlace("tiny", "http://host", KEY))
    chunks = [answer.take(json.dumps(event).encode()) for event in events]
    return answer.result(5), [chunk for chunk in chunks if chunk is not None]


def fault(*events: Any, request: ModelRequest = HELLO) -> EngineFault:
    with pytest.raises(EngineFault) as raised:
        heard(*events, request=request)
    assert raised.value.code is ErrorCode.INFERENCE_MALFORMED_RESPONSE
    return raised.value


def test_pieces_of_text_are_heard_in_order_and_make_the_answer() -> None:
    result, chunks = heard(START, begins(type="text", text="H"), text("el"), text("lo"), ends(), STOP)
    assert [chunk.text for chunk in chunks] == ["H", "el", "lo"]
    assert (result.content, result.finish_reason, result.model) == ("Hello", FinishReason.STOP, "anthropic:tiny")
    assert result.usage == TokenUsage(7, 0, 3, 10, 1000, 5)


def test_what_the_model_thinks_is_reasoning_and_its_signature_nobodys() -> None:
    result, chunks = heard(
        START,
        begins(type="thinking", thinking="", signature=""),
        goes_on("thinking_delta", thinking="hm"),
        goes_on("signature_delta", signature="c2ln"),
        begins(1, type="redacted_thinking", data="AAAA"),
        begins(2, type="text", text=""),
        goes_on("text_delta", 2, text="Hi"),
        ends(output_tokens=9, output_tokens_details={"thinking_tokens": 4}),
        STOP,
    )
    assert (result.reasoning, result.content) == ("hm", "Hi")
    assert [(chunk.text, chunk.reasoning) for chunk in chunks] == [("", "hm"), ("Hi", "")]
    assert (result.usage.reasoning_tokens, result.usage.output_tokens) == (4, 5)


def test_calls_are_put_together_from_fragments_even_when_they_mix() -> None:
    result, chunks = heard(
        START,
        begins(0, type="tool_use", id="toolu_1", name="look_up", input={}),
        begins(1, type="tool_use", id="toolu_2", name="look_up", input={}),
        goes_on("input_json_delta", 0, partial_json='{"wo'),
        goes_on("input_json_delta", 1, partial_json='{"word": "b"}'),
        goes_on("input_json_delta", 0, partial_json='rd": "a"}'),
        begins(2, type="tool_use", id="toolu_3", name="now", input={}),
        ends("tool_use"),
        STOP,
    )
    assert result.finish_reason is FinishReason.TOOL
    assert chunks == []
    assert result.tool_calls == (
        ToolCall("toolu_1", "look_up", {"word": "a"}),
        ToolCall("toolu_2", "look_up", {"word": "b"}),
        ToolCall("toolu_3", "now", {}),
    )


def test_a_call_that_is_not_streamed_is_taken_whole_and_one_without_an_id_gets_one() -> None:
    request = replace(HELLO, messages=(*HELLO.messages, assistant_message("x"), user_message("y")))
    result, _ = heard(START, begins(type="tool_use", name="f", input={"a": 1}), ends("tool_use"), request=request)
    assert result.tool_calls == (ToolCall("call-2-1", "f", {"a": 1}),)


def test_what_was_kept_in_a_cache_is_part_of_the_prompt() -> None:
    start = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": None}},
    }
    result, _ = heard(start, begins(type="text", text="Hi"), ends(cache_read_input_tokens=100))
    assert (result.usage.prompt_tokens, result.usage.context_tokens) == (123, 126)


@pytest.mark.parametrize(
    "figures",
    [
        {},
        {"output_tokens": 3},
        {"input_tokens": -1, "output_tokens": 3},
        {"input_tokens": True, "output_tokens": 3},
        {"input_tokens": 3, "output_tokens": 2**40},
        {"input_tokens": 3, "output_tokens": 3, "cache_read_input_tokens": "many"},
        {"input_tokens": 3, "output_tokens": 3, "output_tokens_details": {"thinking_tokens": -4}},
    ],
)
def test_usage_that_makes_no_sense_counts_as_not_reported(figures: dict[str, Any]) -> None:
    assert usage_of(figures, window=9) == TokenUsage()


def test_a_prompt_that_was_counted_stays_counted_where_the_output_was_not() -> None:
    assert usage_of({"input_tokens": 3}, window=9) == TokenUsage(3, 0, 0, 3, 9)


def test_nobody_thinks_more_than_was_written() -> None:
    figures = {"input_tokens": 1, "output_tokens": 3, "output_tokens_details": {"thinking_tokens": 8}}
    assert usage_of(figures, window=9) == TokenUsage(1, 3, 0, 4, 9)


@pytest.mark.parametrize(
    "reason", ["end_turn", "stop_sequence", "tool_use", "max_tokens", "model_context_window_exceeded"]
)
def test_a_text_is_an_answer_however_it_stopped(reason: str) -> None:
    assert heard(START, begins(type="text", text="Hi"), ends(reason))[0].content == "Hi"


@pytest.mark.parametrize(
    ("reason", "problem"),
    [
        (None, "without saying why it stopped"),
        ("refusal", "safeguards refused"),
        ("pause_turn", "because of 'pause_turn', which is not known"),
    ],
)
def test_an_answer_without_its_rest_is_none_and_costs_what_was_reported(reason: str | None, problem: str) -> None:
    failed = fault(START, begins(type="text", text="Hi"), ends(reason), STOP)
    assert problem in failed.message
    assert (failed.usage.total_tokens, failed.was_cut) == (10, False)


@pytest.mark.parametrize(
    ("events", "change", "problem"),
    [
        ([begins(type="text", text="")], {}, "max_tokens=50 was reached before anything was said"),
        ([begins(type="text", text="")], {"max_tokens": 0}, "the limit of the server was reached"),
        ([begins(type="text", text="{")], {"schema": {"type": "object"}}, "before its shape was complete"),
        ([begins(type="tool_use", id="a", name="f", input={})], {}, "within a call"),
        (
            [begins(type="tool_use", id="a", name="f"), goes_on("input_json_delta", partial_json='{"a')],
            {},
            "the arguments of call 1 are no JSON",
        ),
    ],
)
def test_an_answer_that_ran_into_its_limit_is_refused_where_its_end_matters(
    events: list[Any], change: dict[str, Any], problem: str
) -> None:
    assert problem in fault(START, *events, ends("max_tokens"), request=replace(HELLO, **change)).message


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ([1], "a piece is a list instead of an object"),
        ({"type": "message_start"}, "a NoneType instead of an object as its message"),
        ({"type": "content_block_start", "content_block": "x"}, "a str instead of an object as its content_block"),
        ({"type": "content_block_delta", "delta": 5}, "a int instead of an object as its delta"),
        ({"type": "message_delta", "delta": None}, "a NoneType instead of an object as its delta"),
        (text(5), "its text is a int instead of a text"),  # type: ignore[arg-type]
        (begins(type="thinking", thinking=[]), "its thinking is a list instead of a text"),
        (begins(type="tool_use", id=5, name="f"), "the id of a call is a int"),
        (begins(type="tool_use", id="a", name="f", input=[1]), "the arguments of a call are a list"),
    ],
)
def test_an_event_that_nobody_can_read_gives_the_answer_up_at_an_unknown_cost(event: Any, problem: str) -> None:
    failed = fault(START, event)
    assert problem in failed.message
    assert (failed.usage, failed.was_cut) == (TokenUsage(), True)


def test_bytes_that_are_no_json_are_counted_and_not_repeated() -> None:
    for event in (b"<secret>", b"[" * 100_000):
        with pytest.raises(EngineFault, match=f"a piece of {len(event)} bytes is no JSON"):
            MessagesAnswer(HELLO, INFO, EndpointPlace("tiny", "http://host")).take(event)


def test_what_nobody_knows_is_passed_over() -> None:
    result, _ = heard(
        START,
        {"type": "ping"},
        {"type": "brand_new", "data": 1},
        {"no": "type"},
        begins(type="server_tool_use", id="x", name="search"),
        goes_on("citations_delta", citation={}),
        begins(1, type="text", text=None),
        text("Hi"),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": "none"},
    )
    assert (result.content, result.usage.prompt_tokens) == ("Hi", 7)
    # What the first event says of the output was said before there was any.
    assert result.usage.output_tokens == len("Hi") + OVERHEAD_TOKENS


def test_a_failure_that_the_server_announces_is_passed_to_the_part_that_knows_it() -> None:
    with pytest.raises(ServerFailed) as raised:
        heard(START, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    assert raised.value.error == {"type": "overloaded_error", "message": "Overloaded"}


def test_an_answer_is_over_when_the_server_says_so() -> None:
    answer = MessagesAnswer(HELLO, INFO, EndpointPlace("tiny", "http://host"))
    assert not answer.is_over
    answer.take(json.dumps(STOP).encode())
    assert answer.is_over


def test_an_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_answer, "ANSWER_CHARS_MAX", 5)
    assert "answer_chars_max=5" in fault(text("123456")).message
    call = begins(type="tool_use", id="a", name="f")
    assert "answer_chars_max=5" in fault(call, goes_on("input_json_delta", partial_json="12345")).message


def test_a_key_that_the_server_repeats_stands_nowhere() -> None:
    half = len(KEY) // 2
    result, chunks = heard(
        START,
        text(f"{KEY}!"),
        text(KEY[:half]),
        text(KEY[half:]),
        goes_on("thinking_delta", thinking=KEY),
        begins(1, type="tool_use", id="a", name="f"),
        goes_on("input_json_delta", 1, partial_json=json.dumps({"key": KEY})),
        ends(),
    )
    assert result.content == f"{BLOT}!{BLOT}"
    assert result.reasoning == BLOT
    assert result.tool_calls[0].arguments == {"key": BLOT}
    assert KEY not in "".join(repr(chunk) for chunk in chunks)


def test_an_answer_that_nobody_counted_is_counted_by_its_bytes() -> None:
    silent = {"type": "message_start", "message": {}}
    result, _ = heard(silent, text("Hi"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, STOP)
    prompt, said = len("hello") + OVERHEAD_TOKENS, len("Hi") + OVERHEAD_TOKENS
    assert result.usage == TokenUsage(prompt, 0, said, prompt + said, 1000, 5)


def test_half_a_usage_of_a_fault_says_that_nobody_knows_what_it_cost() -> None:
    failed = fault(START, text("Hi"), ends("refusal", output_tokens=0), STOP)
    assert (failed.usage.prompt_tokens, failed.was_cut) == (7, True)


WRITTEN = '<tool_call>{"name": "look_up", "arguments": {}}</tool_call>'
OFFERING = replace(HELLO, tools=(ToolDefinition("look_up", "", {"type": "object"}),))


def aloud(*events: Any) -> tuple[ModelResult, str]:
    """What is heard of a server whose model writes thoughts and calls into its text."""
    answer = MessagesAnswer(OFFERING, INFO, EndpointPlace("tiny", "http://host"), mixed_speech(OFFERING, str))
    chunks = [answer.take(json.dumps(event).encode()) for event in events]
    return answer.result(5), "".join(chunk.text for chunk in chunks if chunk is not None)


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens"])
def test_thoughts_and_calls_that_were_written_into_the_text_are_set_apart(reason: str) -> None:
    pieces = [text(piece) for piece in ("<think>h", "m</think>So:\n", WRITTEN[:7], WRITTEN[7:])]
    result, said = aloud(START, *pieces, ends(reason), STOP)
    assert (result.content, result.reasoning, said) == ("So:\n", "hm", "So:\n")
    assert (result.tool_calls, result.finish_reason) == ((ToolCall("call-1-1", "look_up", {}),), FinishReason.TOOL)


def test_calls_in_blocks_win_over_those_in_the_text() -> None:
    block = begins(1, type="tool_use", id="toolu_1", name="look_up", input={"a": 1})
    result, said = aloud(START, text(WRITTEN), block, ends("tool_use"), STOP)
    assert (result.tool_calls, said) == ((ToolCall("toolu_1", "look_up", {"a": 1}),), WRITTEN)


def test_what_there_is_of_a_shape_that_ran_into_its_limit_is_told() -> None:
    shaped = replace(HELLO, schema={"type": "object"})
    failed = fault(START, begins(type="text", text='{"a'), ends("max_tokens"), STOP, request=shaped)
    assert failed.said == '{"a'
