"""The events of the in-process server become an answer, or a fault with the right code."""

from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.run.inference import FinishReason, ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.local.answer import AnswerLimits, LocalAnswer, answer_limits, server_fault

PROGRESS = {"prompt_progress": {"total": 5, "cache": 0, "processed": 0, "time_ms": 0}}
OPENING = {"choices": [{"delta": {"role": "assistant", "content": None}, "finish_reason": None}]}
USED = {
    "choices": [],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    "timings": {"prompt_ms": 1.4, "predicted_ms": 2.2},
}


def piece(text: str = "", *, thought: str = "", finish: str | None = None) -> dict[str, Any]:
    delta = {"content": text} if text else {"reasoning_content": thought} if thought else {}
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


def an_answer(*, tokens_max: int = 0, is_constrained: bool = False) -> tuple[LocalAnswer, list[StreamChunk]]:
    passed_on: list[StreamChunk] = []
    return LocalAnswer(AnswerLimits(20, tokens_max, is_constrained), passed_on.append), passed_on


def fault_after(*events: Any, tokens_max: int = 0, is_constrained: bool = False) -> EngineFault:
    answer, _ = an_answer(tokens_max=tokens_max, is_constrained=is_constrained)
    for event in events:
        answer.hear(event)
    with pytest.raises(EngineFault) as caught:
        answer.result("m")
    return caught.value


def test_pieces_are_passed_on_and_joined() -> None:
    answer, passed_on = an_answer()
    events = [PROGRESS, OPENING, piece(thought="hm"), piece("he"), piece("llo"), piece(finish="stop"), USED]
    assert [answer.hear(event) for event in events] == [False] * len(events)
    assert answer.result("m") == ModelResult("hello", "hm", (), TokenUsage(5, 0, 2, 7, 20, 4), FinishReason.STOP, "m")
    assert passed_on == [StreamChunk("", "hm"), StreamChunk("he"), StreamChunk("llo")]


def test_a_thought_aloud_is_heard_as_one_unless_a_shape_is_kept() -> None:
    pieces = [piece(text) for text in ("<thi", "nk>h", "m</think>\nhel", "lo <")]
    for is_constrained, said in ((False, ("hello <", "hm")), (True, ("<think>hm</think>\nhello <", ""))):
        answer, passed_on = an_answer(is_constrained=is_constrained)
        for event in (PROGRESS, *pieces, piece(finish="stop"), USED):
            answer.hear(event)
        result = answer.result("m")
        assert (result.content, result.reasoning) == said
        assert "".join(chunk.text for chunk in passed_on) == result.content


def test_what_was_held_back_is_heard_in_the_end() -> None:
    answer, passed_on = an_answer()
    for event in (PROGRESS, piece("<thi"), piece(finish="stop"), USED):
        answer.hear(event)
    assert (answer.result("m").content, passed_on) == ("<thi", [StreamChunk("<thi")])


def test_an_answer_that_was_cut_is_told_by_its_usage() -> None:
    answer, _ = an_answer(tokens_max=2)
    for event in (PROGRESS, piece("he"), piece(finish="length"), USED):
        answer.hear(event)
    result = answer.result("m")
    assert (result.finish_reason, result.usage.completion_tokens) == (FinishReason.STOP, 2)


def test_an_answer_with_a_shape_that_was_cut_is_malformed_and_paid() -> None:
    fault = fault_after(PROGRESS, piece("{"), piece(finish="length"), USED, tokens_max=2, is_constrained=True)
    assert fault.code is ErrorCode.INFERENCE_MALFORMED_RESPONSE
    assert fault.usage.completion_tokens == 2
    assert "allow more with max_tokens" in fault.message
    assert fault.said == "{"


@pytest.mark.parametrize(
    ("prompt", "tokens_max", "fits"),
    [
        (12, 8, True),
        (13, 8, False),
        # Half of the window is enough for whatever may be longer.
        (10, 11, True),
        (10, 2048, True),
        (11, 2048, False),
        (19, 0, True),
        (20, 0, False),
    ],
)
def test_a_prompt_is_counted_before_it_is_read(prompt: int, tokens_max: int, fits: bool) -> None:
    answer, _ = an_answer(tokens_max=tokens_max)
    assert answer.hear({"prompt_progress": {"total": prompt}}) is not fits


def test_a_prompt_that_leaves_too_little_room_exceeds_the_context() -> None:
    fault = fault_after({"prompt_progress": {"total": 15}}, tokens_max=6)
    assert fault.code is ErrorCode.INFERENCE_CONTEXT_EXCEEDED
    assert "has 15 tokens and the answer needs room for 6; together they exceed the 20" in fault.message
    assert fault.usage == TokenUsage()
    full = {"prompt_progress": {"total": 20}}
    assert fault_after(full).code is ErrorCode.INFERENCE_CONTEXT_EXCEEDED


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("exceed_context_size_error", ErrorCode.INFERENCE_CONTEXT_EXCEEDED),
        ("unavailable_error", ErrorCode.INFERENCE_MODEL_UNAVAILABLE),
        ("invalid_request_error", ErrorCode.INFERENCE_ENGINE_ERROR),
        ("server_error", ErrorCode.INFERENCE_ENGINE_ERROR),
        (None, ErrorCode.INFERENCE_ENGINE_ERROR),
    ],
)
def test_an_error_of_the_server_has_a_code(kind: str | None, code: ErrorCode) -> None:
    fault = server_fault({"code": 400, "message": "so it is", "type": kind})
    assert fault.code is code
    assert "so it is" in fault.message


def test_an_error_ends_the_call_and_its_words_are_cut() -> None:
    answer, _ = an_answer()
    assert answer.hear({"error": {"message": "x" * 1000, "type": "server_error"}})
    with pytest.raises(EngineFault) as caught:
        answer.result("m")
    assert len(caught.value.message) < 400


def test_an_error_without_words_says_so() -> None:
    assert "it does not say why" in server_fault({}).message


@pytest.mark.parametrize(
    "event",
    [
        "text",
        {"error": "text"},
        {"choices": "text"},
        {"choices": ["text"]},
        {"choices": [{}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"reasoning_content": ["a"]}}]},
        {"prompt_progress": 5},
        {"prompt_progress": {"total": -1}},
        {"prompt_progress": {"total": True}},
        {"usage": {}},
        {"usage": {"prompt_tokens": 1.5, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "timings": 5},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "timings": {"prompt_ms": "1"}},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "timings": {"prompt_ms": float("inf")}},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "timings": {"prompt_ms": True}},
    ],
)
def test_an_event_nobody_can_read_is_malformed(event: Any) -> None:
    fault = fault_after(PROGRESS, piece("he"), event)
    assert (fault.code, fault.was_cut) == (ErrorCode.INFERENCE_MALFORMED_RESPONSE, True)


@pytest.mark.parametrize("events", [(), (piece("he"),), (piece("he"), piece(finish="stop")), (piece("he"), USED)])
def test_an_answer_without_an_end_is_malformed(events: tuple[Any, ...]) -> None:
    fault = fault_after(PROGRESS, *events)
    assert (fault.code, fault.was_cut) == (ErrorCode.INFERENCE_MALFORMED_RESPONSE, True)


def test_what_was_stopped_passes_nothing_on_and_ends_with_the_next_event() -> None:
    answer, passed_on = an_answer()
    answer.hear(piece("he"))
    answer.stop()
    assert answer.hear(piece("llo"))
    assert passed_on == [StreamChunk("he")]


def test_the_limits_of_a_request_know_whether_it_has_a_shape() -> None:
    messages = (user_message("hi"),)
    assert answer_limits(ModelRequest(messages, max_tokens=3), 20) == AnswerLimits(20, 3, is_constrained=False)
    assert answer_limits(ModelRequest(messages, schema={}), 20) == AnswerLimits(20, 0, is_constrained=True)
    assert answer_limits(ModelRequest(messages, grammar="root ::= x"), 20) == AnswerLimits(20, 0, is_constrained=True)
