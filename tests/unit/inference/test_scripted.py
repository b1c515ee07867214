"""The scripted engine plays its script: deterministic, really waiting, and really cancelled."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.tools import ToolCall
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Message, assistant_message, tool_message, user_message
from remit.core.run.usage import TokenUsage, check_usage
from remit.core.schema.json_schema import compile_schema
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.scripted.engine import ScriptedEngine
from remit.tool.loader import load_tools
from tests.tidy.source import ROOT
from tests.unit.orchestrate.stage import play

HELLO = ModelRequest((user_message("hello"),))


def answer(engine: ScriptedEngine, request: ModelRequest = HELLO) -> ModelResult:
    return play(engine.infer(request))


def fault_of(engine: ScriptedEngine, request: ModelRequest = HELLO) -> EngineFault:
    with pytest.raises(EngineFault) as caught:
        play(engine.infer(request))
    return caught.value


def streamed(reply: dict[str, Any]) -> list[StreamChunk]:
    chunks: list[StreamChunk] = []
    play(ScriptedEngine([reply]).infer(HELLO, chunks.append))
    return chunks


def test_an_answer_stops_and_is_signed() -> None:
    result = answer(ScriptedEngine(replies=[{"text": "hi", "reasoning": "hm"}]))
    assert (result.content, result.reasoning, result.tool_calls) == ("hi", "hm", ())
    assert (result.finish_reason, result.model) == (FinishReason.STOP, "scripted")


def test_a_proposal_ends_with_its_calls_each_with_an_id() -> None:
    calls = [{"name": "look", "arguments": {"n": 1}}, {"name": "look", "id": "mine"}, {"name": "book"}]
    result = answer(ScriptedEngine([{"text": "let me see", "tool_calls": calls}]))
    assert (result.content, result.finish_reason) == ("let me see", FinishReason.TOOL)
    assert result.tool_calls == (
        ToolCall("call-1-1", "look", {"n": 1}),
        ToolCall("mine", "look"),
        ToolCall("call-1-3", "book"),
    )


def test_the_ids_of_a_conversation_are_all_different() -> None:
    engine = ScriptedEngine([{"tool_calls": [{"name": "look"}]}])
    messages: list[Message] = [user_message("go")]
    ids = set()
    for _ in range(5):
        (call,) = answer(engine, ModelRequest(tuple(messages))).tool_calls
        ids.add(call.id)
        messages += [assistant_message("", (call,)), tool_message(call.id, "look", "{}")]
    assert len(ids) == 5


def test_a_script_may_propose_what_was_not_offered() -> None:
    result = answer(ScriptedEngine([{"tool_calls": [{"name": "forbidden"}]}]))
    assert [call.name for call in result.tool_calls] == ["forbidden"]


def test_an_error_is_a_fault_with_its_code() -> None:
    fault = fault_of(ScriptedEngine([{"error": "INFERENCE_CONTEXT_EXCEEDED"}]))
    assert (fault.code, fault.usage, fault.was_cut) == (ErrorCode.INFERENCE_CONTEXT_EXCEEDED, TokenUsage(), False)
    assert fault.message == "the script says so in answer 1, attempt 1"


def test_an_error_carries_the_usage_the_script_gives_it() -> None:
    fault = fault_of(ScriptedEngine([{"error": "INFERENCE_ENGINE_ERROR", "usage": {"prompt_tokens": 7}}]))
    assert fault.usage == TokenUsage(prompt_tokens=7)


def test_an_error_after_pieces_was_cut() -> None:
    chunks: list[StreamChunk] = []
    engine = ScriptedEngine([{"error": "INFERENCE_ENGINE_ERROR", "chunks": ["half ", "an"]}, {"text": "whole"}])
    with pytest.raises(EngineFault) as caught:
        play(engine.infer(HELLO, chunks.append))
    assert caught.value.was_cut
    assert [chunk.text for chunk in chunks] == ["half ", "an"]
    assert answer(engine, ModelRequest(HELLO.messages, attempt=2)).content == "whole"


def test_usage_that_is_not_given_is_estimated_from_bytes() -> None:
    engine = ScriptedEngine([{"text": "12345", "reasoning": "1"}], context_window=50)
    usage = answer(engine, ModelRequest((user_message("123456789"),))).usage
    assert usage == TokenUsage(3, 1, 2, 6, 50, 0)
    check_usage(usage)


def test_a_call_counts_with_its_name_and_arguments() -> None:
    engine = ScriptedEngine([{"tool_calls": [{"name": "look", "arguments": {"n": 1}}]}])
    assert answer(engine).usage.output_tokens == -(-len('look{"n":1}') // 4)


def test_an_estimate_is_never_more_than_was_allowed() -> None:
    engine = ScriptedEngine([{"text": "x" * 400, "reasoning": "x" * 40}])
    for tokens_max, reasoning, output in ((0, 10, 100), (50, 10, 40), (5, 5, 0), (1000, 10, 100)):
        usage = answer(engine, ModelRequest(HELLO.messages, max_tokens=tokens_max)).usage
        assert (usage.reasoning_tokens, usage.output_tokens) == (reasoning, output)


def test_usage_that_is_given_is_taken_as_it_is() -> None:
    given = {"prompt_tokens": 1, "reasoning_tokens": 2, "output_tokens": 3, "duration_ms": 4}
    engine = ScriptedEngine([{"text": "hi", "usage": given}])
    assert answer(engine, ModelRequest(HELLO.messages, max_tokens=1)).usage == TokenUsage(1, 2, 3, 0, 0, 4)


def test_a_text_is_streamed_piece_by_piece_after_the_reasoning() -> None:
    assert streamed({"text": "hello", "chunks": ["he", "llo"], "reasoning": "hm"}) == [
        StreamChunk(reasoning="hm"),
        StreamChunk("he"),
        StreamChunk("llo"),
    ]


def test_a_call_without_words_streams_nothing() -> None:
    assert streamed({"tool_calls": [{"name": "look"}]}) == []


@pytest.mark.parametrize("on_chunk", [None, lambda chunk: None], ids=["alone", "listened to"])
@pytest.mark.parametrize(
    "reply",
    [{"text": "hi", "delay_ms": 30, "chunks": 2}, {"tool_calls": [{"name": "a"}], "delay_ms": 30}],
    ids=["text", "call"],
)
def test_a_delay_really_waits(reply: dict[str, Any], on_chunk: Any) -> None:
    async def scene() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await ScriptedEngine([reply]).infer(HELLO, on_chunk)
        return loop.time() - began

    # The loop's clock may round by a millisecond in each of two waits.
    assert play(scene()) >= 0.028


def test_a_delay_is_reported_as_the_duration() -> None:
    assert answer(ScriptedEngine([{"text": "hi", "delay_ms": 3}])).usage.duration_ms == 3


def test_a_cancellation_ends_a_delay_between_two_pieces() -> None:
    async def scene() -> list[str]:
        chunks: list[str] = []
        first = asyncio.Event()

        def hear(chunk: StreamChunk) -> None:
            chunks.append(chunk.text)
            first.set()

        reply = {"chunks": ["a"] * 10_000, "delay_ms": 60_000}
        task = asyncio.create_task(ScriptedEngine([reply]).infer(HELLO, hear))
        await first.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return chunks

    assert len(play(scene())) < 10_000


def test_the_model_is_called_scripted_and_is_free() -> None:
    assert ScriptedEngine([{"text": "hi"}]).model_info() == ModelInfo("scripted", 8192, Price(0, 0))


def test_window_and_price_can_be_given() -> None:
    engine = ScriptedEngine([{"text": "hi"}], context_window=77, price=Price(1, 2))
    assert engine.model_info() == ModelInfo("scripted", 77, Price(1, 2))
    assert ScriptedEngine([{"text": "hi"}], price=None).model_info().price is None


def test_an_engine_without_replies_cannot_be_made() -> None:
    with pytest.raises(RequestRejected, match="at least one reply"):
        ScriptedEngine()


def test_a_file_is_played_like_values(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("replies: [{text: one}, {text: two}]\ncontext_window: 10\n")
    engine = ScriptedEngine.from_file(path)
    assert answer(engine).content == "one"
    assert answer(engine, ModelRequest((*HELLO.messages, assistant_message("one")))).content == "two"
    assert answer(engine).model == engine.model_info().name == "scripted:two"
    assert engine.spec == f"scripted:{path.resolve()}"


def test_the_example_proposes_only_what_the_tools_beside_it_take() -> None:
    engine = ScriptedEngine.from_file(ROOT / "examples" / "support.script.yaml")
    tools = {tool.name: tool for tool in load_tools(str(ROOT / "examples" / "support_tools.py")).definitions}
    messages: list[Message] = [user_message("Refund order 42, it arrived broken.")]
    proposed = []
    while (result := answer(engine, ModelRequest(tuple(messages)))).finish_reason is FinishReason.TOOL:
        messages.append(assistant_message(result.content, result.tool_calls, result.reasoning))
        for call in result.tool_calls:
            assert compile_schema(tools[call.name].parameters).violations(call.arguments) == ()
            messages.append(tool_message(call.id, call.name, "{}"))
            proposed.append(call.name)
    assert proposed == ["lookup_order", "refund"]
    assert "order 42" in result.content


def test_a_reply_may_be_for_one_replica_alone() -> None:
    engine = ScriptedEngine([{"text": "yes"}, {"text": "no", "replica": 2}])
    said = [
        play(engine.infer(ModelRequest((user_message("well?"),), replica=replica))).content for replica in (0, 1, 2, 3)
    ]
    assert said == ["yes", "yes", "no", "yes"]


def test_a_script_says_how_many_calls_it_takes_at_once() -> None:
    assert ScriptedEngine([{"text": "yes"}]).model_info().calls_at_once == 1
    assert ScriptedEngine([{"text": "yes"}], calls_at_once=4).model_info().calls_at_once == 4
