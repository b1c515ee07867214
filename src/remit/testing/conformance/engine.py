"""What every Engine must do.

A check is a coroutine function. It opens an engine in one of the situations below with the function it is given, asks
it, and raises AssertionError with a sentence when the engine does not do what the executor relies on. Run each of
ENGINE_CHECKS against your engine, with any test runner. To open yours in a situation, let it play a script, or point
it at a server of your own that behaves so; a check whose situation cannot be had can be left out.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any

from remit.core.failure import RemitError
from remit.core.inference import FinishReason, ModelRequest, ModelResult
from remit.core.messages import assistant_message, check_message, user_message
from remit.core.tools import Effect, ToolDefinition
from remit.core.usage import check_usage
from remit.inference.engine import INFERENCE_CODES, Engine, EngineFault, StreamChunk


class Situation(StrEnum):
    """What the engine is opened for. Requests ask for greedy answers, so that they can be compared."""

    ANSWERS = "answers whatever it is asked, the second time with other words than the first"
    REPEATS = "answers with the last message, word by word"
    PROPOSES = "wants the tool `look_up` called"
    FAILS = "has a model that cannot be reached"
    HANGS = "takes longer than anybody waits"


# Opens an engine in a situation, and closes it afterwards.
OpenEngine = Callable[[Situation], AbstractAsyncContextManager[Engine]]
EngineCheck = Callable[[OpenEngine], Coroutine[Any, Any, None]]

# Enough to meet each other in any engine, few enough for a local model.
CALLERS = 8
# How long an engine may take to let go of a call, and how long a hanging call is left alone before it is cancelled.
LETS_GO_S = 5.0
HANGS_FOR_S = 0.05

LOOK_UP = ToolDefinition(
    "look_up",
    "Look a word up.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    effect=Effect.READ,
)


async def the_model_is_known_before_it_is_asked(open_engine: OpenEngine) -> None:
    """The manifest pins a model's name, window and price, so they are there at once and never change."""
    async with open_engine(Situation.ANSWERS) as engine:
        before = engine.model_info()
        assert before.name, "the model has no name"
        assert before.context_window > 0, f"context_window={before.context_window} is no window"
        await engine.infer(_asking("hello"))
        assert engine.model_info() == before, "what is known about the model changed when it was asked"


async def a_message_is_answered(open_engine: OpenEngine) -> None:
    """An answer is a text, stops because it is done, and names the model."""
    async with open_engine(Situation.ANSWERS) as engine:
        result = await engine.infer(_asking("hello"))
        assert type(result) is ModelResult, f"infer returned a {type(result).__name__}"
        assert result.content, "the answer has no text"
        assert result.finish_reason is FinishReason.STOP, f"an answer ended with {result.finish_reason!r}"
        assert not result.tool_calls, "a call is proposed and no tool was offered"
        assert result.model == engine.model_info().name, f"the answer is signed {result.model!r}"


async def the_pieces_of_a_stream_are_the_answer(open_engine: OpenEngine) -> None:
    """What was streamed, joined in order, is the content and the reasoning of the answer."""
    async with open_engine(Situation.ANSWERS) as engine:
        chunks: list[StreamChunk] = []
        result = await engine.infer(_asking("hello"), chunks.append)
        assert chunks, "nothing was streamed"
        _expect_joined(chunks, result)


async def streaming_changes_nothing(open_engine: OpenEngine) -> None:
    """An answer is the same whether or not somebody listens."""
    async with open_engine(Situation.ANSWERS) as engine:
        chunks: list[StreamChunk] = []
        heard, alone = await engine.infer(_asking("hello"), chunks.append), await engine.infer(_asking("hello"))
        assert heard.content == alone.content, "the answer differs when somebody listens"
        assert heard.tool_calls == alone.tool_calls, "the calls differ when somebody listens"


async def usage_counts_something(open_engine: OpenEngine) -> None:
    """Usage is whole numbers from 0 up, and asking is not free: usage that counts nothing is charged as the worst."""
    async with open_engine(Situation.ANSWERS) as engine:
        result = await engine.infer(_asking("hello"))
        try:
            check_usage(result.usage)
        except RemitError as error:
            raise AssertionError(error.message) from error
        assert result.usage.prompt_tokens > 0, "prompt_tokens=0, yet the model was shown a message"
        assert result.usage.completion_tokens > 0, "completion_tokens=0, yet the model said something"


async def the_answer_follows_from_the_conversation(open_engine: OpenEngine) -> None:
    """An engine keeps nothing between calls: another one, or the same one asked out of order, answers the same."""
    first = _asking("one")
    async with open_engine(Situation.ANSWERS) as engine:
        said = (await engine.infer(first)).content
        then = ModelRequest((*first.messages, assistant_message(said), user_message("two")), temperature=0.0)
        expected = (await engine.infer(then)).content
        assert (await engine.infer(first)).content == said, "asked again, the engine answers something else"
    async with open_engine(Situation.ANSWERS) as engine:
        resumed = (await engine.infer(then)).content
        assert resumed == expected, f"a resumed conversation is answered {resumed!r} instead of {expected!r}"


async def a_proposed_call_can_be_answered(open_engine: OpenEngine) -> None:
    """A proposed call names the tool, has an id to match its result with, and arguments in an object."""
    async with open_engine(Situation.PROPOSES) as engine:
        result = await engine.infer(ModelRequest((user_message("hello"),), (LOOK_UP,), temperature=0.0))
        assert result.tool_calls, "no call is proposed"
        assert result.finish_reason is FinishReason.TOOL, f"a proposal ended with {result.finish_reason!r}"
        ids = [call.id for call in result.tool_calls]
        assert len(set(ids)) == len(ids), f"two calls of one answer have the same id: {ids}"
        for call in result.tool_calls:
            assert call.name == LOOK_UP.name, f"the call names {call.name!r}"
            assert isinstance(call.arguments, dict), f"the arguments are a {type(call.arguments).__name__}"
        try:
            check_message(assistant_message(result.content, result.tool_calls, result.reasoning))
        except RemitError as error:
            raise AssertionError(error.message) from error


async def a_failure_is_a_fault_with_a_code(open_engine: OpenEngine) -> None:
    """A model that cannot be asked is an EngineFault with one of the four codes of inference and a sentence."""
    async with open_engine(Situation.FAILS) as engine:
        fault = await _failure_of(engine)
        assert isinstance(fault, EngineFault), f"the engine raised {type(fault).__name__} instead of EngineFault"
        assert fault.code in INFERENCE_CODES, f"the fault has the code {fault.code!r}"
        assert fault.message, "the fault says nothing"


async def a_cancelled_call_ends(open_engine: OpenEngine) -> None:
    """When whoever waits is cancelled, the call ends soon, ends as cancelled, and says nothing afterwards."""
    async with open_engine(Situation.HANGS) as engine:
        chunks: list[StreamChunk] = []
        task = asyncio.create_task(engine.infer(_asking("hello"), chunks.append))
        await asyncio.wait([task], timeout=HANGS_FOR_S)
        assert not task.done(), "the call did not hang; open the engine so that it does"
        task.cancel()
        await asyncio.wait([task], timeout=LETS_GO_S)
        assert task.done(), f"a cancelled call goes on for more than {LETS_GO_S} s"
        assert task.cancelled(), "a cancelled call ended as if nobody had cancelled it"
        heard = len(chunks)
        await asyncio.wait([asyncio.create_task(asyncio.sleep(HANGS_FOR_S))])
        assert len(chunks) == heard, "a cancelled call was still streaming"


async def a_cancelled_call_spoils_no_other(open_engine: OpenEngine) -> None:
    """An engine that was cancelled can be asked again."""
    async with open_engine(Situation.REPEATS) as engine:
        task = asyncio.create_task(engine.infer(_asking("never mind")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=LETS_GO_S)
        assert task.done(), f"a cancelled call goes on for more than {LETS_GO_S} s"
        result = await engine.infer(_asking("hello"))
        assert result.content == "hello", f"after a cancelled call, 'hello' is answered {result.content[:80]!r}"


async def calls_at_the_same_time_do_not_mix(open_engine: OpenEngine) -> None:
    """Every caller gets the answer and the stream of its own conversation."""
    async with open_engine(Situation.REPEATS) as engine:
        words = [f"word{number}" for number in range(CALLERS)]
        streams: list[list[StreamChunk]] = [[] for _ in words]
        calls = [engine.infer(_asking(word), stream.append) for word, stream in zip(words, streams, strict=True)]
        results = await asyncio.gather(*calls)
        for word, stream, result in zip(words, streams, results, strict=True):
            assert result.content == word, f"who asked {word!r} was answered {result.content[:80]!r}"
            _expect_joined(stream, result)


ENGINE_CHECKS: Sequence[EngineCheck] = (
    the_model_is_known_before_it_is_asked,
    a_message_is_answered,
    the_pieces_of_a_stream_are_the_answer,
    streaming_changes_nothing,
    usage_counts_something,
    the_answer_follows_from_the_conversation,
    a_proposed_call_can_be_answered,
    a_failure_is_a_fault_with_a_code,
    a_cancelled_call_ends,
    a_cancelled_call_spoils_no_other,
    calls_at_the_same_time_do_not_mix,
)


def _asking(text: str) -> ModelRequest:
    return ModelRequest((user_message(text),), temperature=0.0)


async def _failure_of(engine: Engine) -> Exception:
    try:
        result = await engine.infer(_asking("hello"))
    except Exception as error:  # noqa: BLE001  # which one it was is judged by whoever asked
        return error
    raise AssertionError(f"a model that cannot be reached answered {result.content[:80]!r}")


def _expect_joined(chunks: Sequence[StreamChunk], result: ModelResult) -> None:
    text, reasoning = "".join(chunk.text for chunk in chunks), "".join(chunk.reasoning for chunk in chunks)
    assert text == result.content, f"{text[:80]!r} was streamed and {result.content[:80]!r} is the answer"
    assert reasoning == result.reasoning, (
        f"{reasoning[:80]!r} was streamed as reasoning, which the answer does not hold"
    )
