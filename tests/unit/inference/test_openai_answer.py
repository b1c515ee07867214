"""An answer is what a server has streamed and ended; anything less is a fault that says what it cost."""

import json
import tracemalloc
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolCall, ToolDefinition
from remit.core.record import replace
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import assistant_message, user_message
from remit.core.run.usage import TokenUsage
from remit.inference.answers import streamed_answer
from remit.inference.answers.speech import Speech, mixed_speech
from remit.inference.answers.streamed_answer import FIGURE_MAX, OVERHEAD_TOKENS, ServerFailed
from remit.inference.endpoint.faults import BLOT, SECRET_CHARS_MIN, EndpointPlace
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.openai.answer import ChatAnswer, usage_of

REACHES = [FinishReason]

PLAIN = ModelRequest((user_message("hello"),))
INFO = ModelInfo("openai:tiny", 1000)
KEY = "sk-very-secret-0123456789"
PLACE = EndpointPlace("tiny", "http://127.0.0.1:1/v1")
SECRETIVE = EndpointPlace("tiny", "http://127.0.0.1:1/v1", KEY)
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
USED = TokenUsage(5, 0, 2, 7, 1000, 9)


def delta(value: Any, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": value, "finish_reason": reason, **more}]}


def answer(
    *events: Any, request: ModelRequest = PLAIN, place: EndpointPlace = PLACE, speech: Speech | None = None
) -> tuple[ModelResult, list[StreamChunk]]:
    taking = ChatAnswer(request, INFO, place, speech)
    chunks = [taking.take(json.dumps(event).encode()) for event in events]
    return taking.result(9), [chunk for chunk in chunks if chunk is not None]


def fault(*events: Any, request: ModelRequest = PLAIN) -> EngineFault:
    with pytest.raises(EngineFault) as raised:
        answer(*events, request=request)
    assert raised.value.code is ErrorCode.INFERENCE_MALFORMED_RESPONSE
    return raised.value


def test_texts_and_thoughts_are_joined_and_heard() -> None:
    result, chunks = answer(
        delta({"role": "assistant", "content": None}),
        delta({"reasoning": "h"}),
        delta({"reasoning_content": "m", "reasoning": "ignored"}),
        delta({"content": "Hel"}),
        delta({"content": ""}),
        delta({"content": "lo"}),
        delta({}, "stop"),
        USAGE,
    )
    assert result == ModelResult("Hello", "hm", (), USED, FinishReason.STOP, "openai:tiny")
    assert chunks == [
        StreamChunk(reasoning="h"),
        StreamChunk(reasoning="m"),
        StreamChunk("Hel"),
        StreamChunk("lo"),
    ]


def test_once_reasoning_content_was_heard_reasoning_is_not() -> None:
    result, chunks = answer(
        delta({"reasoning": "a", "reasoning_content": None}),
        delta({"reasoning": "x", "reasoning_content": "b"}),
        delta({"reasoning": "x", "reasoning_content": ""}),
        delta({"reasoning_content": "c"}),
        delta({"content": "Hello", "reasoning": "x"}, "stop"),
    )
    assert (result.content, result.reasoning) == ("Hello", "abc")
    assert "".join(chunk.reasoning for chunk in chunks) == "abc"


def test_a_text_in_parts_is_said_and_thought_by_their_types() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, "?", {"type": "text", "text": "m"}]}
    result, _ = answer(
        delta({"content": [thinking, {"type": "text", "text": "Hel"}, {"type": "picture"}]}),
        delta({"content": [{"type": "thinking", "thinking": "!"}, {"type": "text", "text": "lo"}]}, "stop"),
    )
    assert (result.content, result.reasoning) == ("Hello", "hm!")


OFFERING = replace(PLAIN, tools=(ToolDefinition("look_up", "", {"type": "object"}),))
WRITTEN = '<tool_call>{"name": "look_up", "arguments": {"word": "tea"}}</tool_call>'


def mixed(*events: Any, request: ModelRequest = OFFERING) -> tuple[ModelResult, list[StreamChunk]]:
    """An answer of a server that may pass on what its model wrote."""
    return answer(*events, request=request, speech=mixed_speech(request, PLACE.blotted))


def test_thoughts_and_calls_that_were_written_into_the_text_are_set_apart() -> None:
    text = f"<think>hm</think>Let me see.\n{WRITTEN}"
    for pieces in ([text], list(text)):
        result, chunks = mixed(*[delta({"content": piece}) for piece in pieces], delta({}, "stop"), USAGE)
        call = ToolCall("call-1-1", "look_up", {"word": "tea"})
        assert result == ModelResult("Let me see.\n", "hm", (call,), USED, FinishReason.TOOL, "openai:tiny")
        assert "".join(chunk.text for chunk in chunks) == result.content
        assert "".join(chunk.reasoning for chunk in chunks) == result.reasoning


def test_what_was_held_back_is_heard_with_the_reason_why_the_model_stopped() -> None:
    result, chunks = mixed(delta({"content": "<thi"}), delta({"content": ""}, "stop"))
    assert (result.content, chunks) == ("<thi", [StreamChunk("<thi")])


def test_calls_that_a_server_tells_in_its_own_way_win_over_those_in_the_text() -> None:
    call = {"index": 0, "id": "7", "function": {"name": "look_up", "arguments": "{}"}}
    result, chunks = mixed(delta({"content": WRITTEN}), delta({"tool_calls": [call]}), delta({}, "tool_calls"))
    assert (result.content, result.tool_calls) == (WRITTEN, (ToolCall("7", "look_up", {}),))
    assert chunks == [StreamChunk(WRITTEN)]


def test_written_calls_that_ran_into_the_limit_count_when_they_are_whole_and_are_words_when_not() -> None:
    result, _ = mixed(delta({"content": WRITTEN}, "length"))
    assert result.finish_reason is FinishReason.TOOL
    result, _ = mixed(delta({"content": WRITTEN[:-15]}, "length"))
    assert (result.content, result.tool_calls) == (WRITTEN[:-15], ())


def test_the_vendors_text_is_only_text() -> None:
    text = f"<think>hm</think>{WRITTEN}"
    result, _ = answer(delta({"content": text}, "stop"), request=OFFERING)
    assert (result.content, result.reasoning, result.tool_calls) == (text, "", ())


def test_a_key_in_a_written_call_is_blotted_out_even_across_two_pieces() -> None:
    speech = mixed_speech(OFFERING, SECRETIVE.blotted)
    pieces = WRITTEN.replace("tea", KEY).partition(KEY[:9])
    events = [delta({"content": piece}) for piece in (pieces[0] + pieces[1], pieces[2])]
    result, _ = answer(*events, delta({}, "stop"), request=OFFERING, place=SECRETIVE, speech=speech)
    assert result.tool_calls == (ToolCall("call-1-1", "look_up", {"word": BLOT}),)


def test_calls_end_an_answer_as_a_proposal_whatever_the_server_calls_it() -> None:
    call = {"index": 0, "function": {"name": "look_up", "arguments": "{}"}}
    before = ModelRequest((user_message("a"), assistant_message("b"), user_message("c")))
    for reason in ("tool_calls", "stop"):
        result, chunks = answer(delta({"content": "Wait."}), delta({"tool_calls": [call]}, reason), request=before)
        assert result.finish_reason is FinishReason.TOOL
        assert result.tool_calls == (ToolCall("call-2-1", "look_up", {}),)
        assert chunks == [StreamChunk("Wait.")]


def test_a_server_that_repeats_the_key_is_not_quoted_in_the_answer() -> None:
    call = {"index": 0, "id": KEY, "function": {"name": f"n{KEY}", "arguments": json.dumps({"a": KEY})}}
    result, chunks = answer(
        delta({"content": f"<{KEY}>", "reasoning": KEY}),
        delta({"content": KEY[:10]}),
        delta({"content": KEY[10:], "tool_calls": [call]}, "stop"),
        place=SECRETIVE,
    )
    assert (result.content, result.reasoning) == (f"<{BLOT}>{BLOT}", BLOT)
    assert result.tool_calls == (ToolCall(BLOT, f"n{BLOT}", {"a": BLOT}),)
    assert chunks[0] == StreamChunk(f"<{BLOT}>", BLOT)


def test_a_key_that_is_no_secret_leaves_answers_as_they_are() -> None:
    place = EndpointPlace("tiny", "http://127.0.0.1:1/v1", "x" * (SECRET_CHARS_MIN - 1))
    assert answer(delta({"content": "x" * 99}, "stop"), place=place)[0].content == "x" * 99


def test_a_reason_that_is_the_key_is_not_quoted_either() -> None:
    for reason in (KEY, "x" * 30 + KEY):
        with pytest.raises(EngineFault) as raised:
            answer(delta({}, reason), place=SECRETIVE)
        assert KEY[:8] not in raised.value.message
        assert "which is not known" in raised.value.message


# What counts the coverage takes memory, too.
@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "piece",
    [
        {"content": "\u6211"},
        {"reasoning": "\u6211"},
        {"tool_calls": [{"index": 0, "function": {"arguments": "\u6211"}}]},
        {"tool_calls": [{"index": 0}]},
    ],
)
def test_many_small_pieces_cost_no_more_memory_than_their_letters(piece: dict[str, Any]) -> None:
    taking, event = ChatAnswer(PLAIN, INFO, PLACE), json.dumps(delta(piece)).encode()
    tracemalloc.start()
    try:
        for _ in range(20_000):
            taking.take(event)
        # Three bytes for a letter, and some room to grow. A list of pieces would take ten times that.
        assert tracemalloc.get_traced_memory()[0] < 120_000
    finally:
        tracemalloc.stop()


def test_a_refusal_is_what_the_model_says() -> None:
    result, chunks = answer(delta({"refusal": "I won't."}), delta({}, "stop"))
    assert (result.content, chunks) == ("I won't.", [StreamChunk("I won't.")])


@pytest.mark.parametrize(
    "event",
    [{"choices": []}, {"type": "ping"}, {"choices": None}, {"choices": ["x"]}, delta({"content": "other"}, index=1)],
)
def test_events_about_something_else_add_nothing(event: dict[str, Any]) -> None:
    result, chunks = answer(event, delta({"content": "Hello"}), delta(None, "stop"))
    assert (result.content, len(chunks)) == ("Hello", 1)


@pytest.mark.parametrize(
    "reported",
    [None, {}, {"prompt_tokens": -1}, {"prompt_tokens": 0, "completion_tokens": 0}, {"completion_tokens": 2}],
)
def test_an_answer_whose_server_counted_nothing_is_counted_by_its_bytes(reported: object) -> None:
    result, _ = answer({**delta({"content": "Hällo", "reasoning": "hm"}), "usage": reported}, delta({}, "stop"))
    prompt, said = len("hello") + OVERHEAD_TOKENS, len("Hällo".encode()) + OVERHEAD_TOKENS
    assert result.usage == TokenUsage(prompt, 2, said, prompt + 2 + said, 1000, 9)


def test_half_a_usage_is_filled_in_and_of_a_fault_it_says_nothing() -> None:
    counted = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 0}}
    result, _ = answer(delta({"content": "Hello"}), delta({}, "stop"), counted)
    assert (result.usage.prompt_tokens, result.usage.output_tokens) == (5, 5 + OVERHEAD_TOKENS)
    assert fault(delta({"content": "Hello"}), counted).was_cut


def test_calls_that_nobody_counted_cost_what_was_allowed() -> None:
    call = {"index": 0, "id": "1", "function": {"name": "look_up", "arguments": "{}"}}
    request = replace(PLAIN, max_tokens=400)
    result, _ = answer(delta({"tool_calls": [call]}), delta({}, "stop"), request=request)
    assert result.usage.completion_tokens == 400
    result, _ = answer(delta({"tool_calls": [call]}), delta({}, "stop"))
    assert result.usage.completion_tokens == len("1look_up{}") + 2 * OVERHEAD_TOKENS


def test_the_last_usage_counts() -> None:
    first = {**delta({"content": "Hello"}), "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    result, _ = answer(first, {**delta({}, "stop"), "usage": None}, USAGE)
    assert result.usage == USED


@pytest.mark.parametrize("reason", sorted(ChatAnswer.STOPPED))
def test_every_word_for_being_done_ends_an_answer(reason: str) -> None:
    assert answer(delta({"content": "Hello"}, reason))[0].content == "Hello"


@pytest.mark.parametrize("reason", sorted(ChatAnswer.RAN_OUT))
def test_a_text_that_ran_into_its_limit_is_an_answer(reason: str) -> None:
    assert answer(delta({"content": "Hel"}, reason))[0].finish_reason is FinishReason.STOP


def test_a_shape_that_ran_into_its_limit_is_none() -> None:
    for shaped in (replace(PLAIN, schema={"type": "object"}, max_tokens=3), replace(PLAIN, grammar="root ::= x")):
        found = fault(delta({"content": '{"a'}, "length"), USAGE, request=shaped)
        assert "reached before its shape was complete" in found.message
        assert (found.usage.total_tokens, found.was_cut, found.said) == (7, False, '{"a')
    assert answer(delta({"content": "{}"}, "stop"), request=shaped)[0].content == "{}"


def test_silence_that_ran_into_its_limit_is_no_answer() -> None:
    found = fault(delta({"reasoning": "so many thoughts"}, "length"), request=replace(PLAIN, max_tokens=3))
    assert "max_tokens=3 was reached before anything was said" in found.message


def test_a_call_that_ran_into_its_limit_is_none_unless_it_is_whole() -> None:
    begun = {"index": 0, "id": "a", "function": {"name": "look_up"}}
    assert "within a call" in fault(delta({"tool_calls": [begun]}, "length")).message
    cut = {"index": 0, "function": {"arguments": '{"word'}}
    assert "no JSON" in fault(delta({"tool_calls": [begun]}), delta({"tool_calls": [cut]}, "length")).message
    end = {"index": 0, "function": {"arguments": "{}"}}
    shaped = replace(PLAIN, schema={"type": "object"})
    result, _ = answer(delta({"tool_calls": [begun]}), delta({"tool_calls": [end]}, "length"), request=shaped)
    assert result.tool_calls == (ToolCall("a", "look_up", {}),)


def test_what_a_filter_withheld_is_no_answer() -> None:
    assert "content filter" in fault(delta({"content": "The best way"}, "content_filter")).message


def test_a_reason_nobody_knows_is_no_answer() -> None:
    assert "'abort', which is not known" in fault(delta({"content": "x"}, "abort")).message


def test_an_answer_that_nobody_ended_is_none() -> None:
    found = fault(delta({"content": "Hello"}))
    assert ("without saying why it stopped" in found.message, found.was_cut) == (True, True)


def test_a_silent_answer_that_is_done_is_one() -> None:
    assert answer(delta({}, "stop"))[0].content == ""


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ([1], "a piece is a list"),
        ("x", "a piece is a str"),
        (delta("text"), "a piece holds a str"),
        (delta({"content": ["a"]}), "a part of its content is a str"),
        (delta({"content": {"a": 1}}), "its content is a dict"),
        (delta({"content": [{"type": "text", "text": 3}]}), "its text is a int"),
        (delta({"reasoning": {"a": 1}}), "its reasoning is a dict"),
        (delta({"tool_calls": "look_up"}), "tool_calls is a str"),
    ],
)
def test_a_piece_of_another_shape_is_refused_with_what_it_cost(event: Any, problem: str) -> None:
    found = fault(USAGE, event)
    assert problem in found.message
    assert (found.usage.total_tokens, found.was_cut) == (7, False)
    assert fault(event).was_cut


@pytest.mark.parametrize("event", [b"{", b"", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}'])
def test_a_piece_that_is_no_json_is_refused(event: bytes) -> None:
    with pytest.raises(EngineFault, match=f"a piece of {len(event)} bytes is no JSON"):
        ChatAnswer(PLAIN, INFO, PLACE).take(event)


def test_an_answer_that_goes_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_answer, "ANSWER_CHARS_MAX", 10)
    assert answer(delta({"content": "ten chars."}, "stop"))[0].content == "ten chars."
    assert "answer_chars_max=10" in fault(delta({"content": "ten chars."}), delta({"reasoning": "x"})).message
    call = {"index": 0, "function": {"name": "look_up", "arguments": "{   }"}}
    assert "answer_chars_max=10" in fault(delta({"tool_calls": [call]})).message


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"error": {"message": "overloaded"}}, {"message": "overloaded"}),
        ({"error": "overloaded"}, "overloaded"),
        ({"code": 500, "message": "overloaded"}, {"code": 500, "message": "overloaded"}),
    ],
)
def test_a_failure_that_the_server_announces_is_told_apart(event: Any, said: Any) -> None:
    with pytest.raises(ServerFailed) as raised:
        answer(delta({"content": "x"}), event)
    assert raised.value.error == said


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, TokenUsage(5, 0, 2, 7, 1000)),
        (
            {
                "prompt_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 6},
                "total_tokens": 14,
            },
            TokenUsage(5, 6, 3, 14, 1000),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 6},
                "total_tokens": 20,
            },
            TokenUsage(5, 6, 9, 20, 1000),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 6}},
            TokenUsage(5, 6, 2, 13, 1000),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": None}},
            TokenUsage(5, 0, 2, 7, 1000),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": None}, TokenUsage(5, 0, 2, 7, 1000)),
        ({"prompt_tokens": FIGURE_MAX, "completion_tokens": 0}, TokenUsage(FIGURE_MAX, 0, 0, FIGURE_MAX, 1000)),
        ({"prompt_tokens": FIGURE_MAX + 1, "completion_tokens": 2}, TokenUsage()),
        ({"prompt_tokens": -5, "completion_tokens": 2}, TokenUsage()),
        ({"prompt_tokens": 5, "completion_tokens": 2.0}, TokenUsage()),
        ({"prompt_tokens": True, "completion_tokens": 2}, TokenUsage()),
        ({"prompt_tokens": 5}, TokenUsage()),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": "6"}},
            TokenUsage(),
        ),
    ],
)
def test_usage_is_taken_as_servers_report_it_or_not_at_all(reported: dict[str, Any], usage: TokenUsage) -> None:
    assert usage_of(reported, window=1000) == usage
