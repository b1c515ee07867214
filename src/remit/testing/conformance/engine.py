"""What every Engine must do.

A check is a coroutine function. It opens an engine in one of the situations below with the function it is given, asks
it, and raises AssertionError with a sentence when the engine does not do what the executor relies on. Run each of
ENGINE_CHECKS against your engine, with any test runner. To open yours in a situation, let it play a script, or point
it at a server of your own that behaves so. Where a situation cannot be had, `checks_without` leaves its checks out, and
each of them has to be named with a reason.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from inspect import unwrap
from typing import Any

from remit.core.failure import ErrorCode, RemitError, RequestRejected
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.record import replace
from remit.core.run.inference import FinishReason, ModelRequest, ModelResult
from remit.core.run.messages import assistant_message, check_message, tool_message, user_message
from remit.core.run.usage import TokenUsage, check_usage
from remit.inference.engine import INFERENCE_CODES, Engine, EngineFault, StreamChunk, StreamHandler
from remit.orchestrate.loop.deadlines import TimeRanOut, within
from remit.testing.conformance.in_words import in_words

CHECK_UNKNOWN = "CONFORMANCE_CHECK_UNKNOWN"
CHECK_UNEXPLAINED = "CONFORMANCE_CHECK_UNEXPLAINED"


class Situation(StrEnum):
    """What the engine is opened for. Requests ask for greedy answers, so that they can be compared."""

    ANSWERS = "answers whatever it is asked, the second time with other words than the first"
    REPEATS = "answers with the last message, word by word"
    PROPOSES = "wants the tool `look_up` called"
    FAILS = "has a model that cannot be reached"
    HANGS = "takes longer than any caller waits"
    DRAWLS = "says something at once, and goes on for longer than any caller waits"
    BREAKS = "has a server that says that it failed"
    OVERFLOWS = "finds the conversation too long for its model"
    GARBLES = "says something, and then what cannot be read"
    DROPS = "says something, and then its connection is gone"
    BREAKS_OFF = "says something, and ends without a word that it is done"
    UNCOUNTED = "answers whatever it is asked, and its server does not say what it cost"
    THINKS = "thinks `hm`, in whatever way its server tells it, and says `hello`"


# Opens an engine in a situation, and closes it afterwards.
OpenEngine = Callable[[Situation], AbstractAsyncContextManager[Engine]]
EngineCheck = Callable[[OpenEngine], Coroutine[Any, Any, None]]

# Enough to meet each other in any engine, few enough for a local model.
CALLERS = 8
# How long an engine may take to let go of a call, and how long a hanging call is left alone before it is cancelled.
LETS_GO_S = 5.0
HANGS_FOR_S = 0.05
# How long an engine may take to say its first word; a local model may have to be loaded before it.
SPEAKS_WITHIN_S = 30.0
# Fewer tokens than any answer of two words takes.
TOKENS_FEW = 1
# What stands between the names of a chain's members.
NAMES_APART = "|"

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
    """An answer is a text, stops because it is done, and names the model that gave it."""
    async with open_engine(Situation.ANSWERS) as engine:
        result = await engine.infer(_asking("hello"))
        assert type(result) is ModelResult, f"infer returned a {type(result).__name__}"
        assert result.content, "the answer has no text"
        assert result.finish_reason is FinishReason.STOP, f"an answer ended with {result.finish_reason!r}"
        assert not result.tool_calls, "a call is proposed and no tool was offered"
        # A chain has the names of its members, and the one that answered signs.
        names = engine.model_info().name.split(NAMES_APART)
        assert result.model in names, f"the answer is signed {result.model!r} and not {' or '.join(names)!r}"


async def the_pieces_of_a_stream_are_the_answer(open_engine: OpenEngine) -> None:
    """What was streamed, joined in order, is the content and the reasoning of the answer."""
    async with open_engine(Situation.ANSWERS) as engine:
        chunks: list[StreamChunk] = []
        result = await engine.infer(_asking("hello"), chunks.append)
        assert chunks, "nothing was streamed"
        _expect_joined(chunks, result)


async def streaming_changes_nothing(open_engine: OpenEngine) -> None:
    """An answer is the same with a listener and without."""
    async with open_engine(Situation.ANSWERS) as engine:
        chunks: list[StreamChunk] = []
        heard, alone = await engine.infer(_asking("hello"), chunks.append), await engine.infer(_asking("hello"))
        assert heard.content == alone.content, "the answer differs when there is a listener"
        assert heard.tool_calls == alone.tool_calls, "the calls differ when there is a listener"


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


async def an_answer_that_nobody_counted_is_not_free(open_engine: OpenEngine) -> None:
    """Where a server reports no usage, the engine counts or bounds it: a journal that says 0 is wrong."""
    async with open_engine(Situation.UNCOUNTED) as engine:
        result = await engine.infer(_asking("hello"))
        said = len(result.content.encode()) + len(result.reasoning.encode())
        assert result.usage.prompt_tokens > 0, "prompt_tokens=0, though the model was shown a message"
        assert result.usage.completion_tokens > 0, f"completion_tokens=0, though {said} bytes were said"


async def a_thought_is_no_part_of_the_answer(open_engine: OpenEngine) -> None:
    """What a model thinks is reasoning, in the stream as in the answer."""
    async with open_engine(Situation.THINKS) as engine:
        chunks: list[StreamChunk] = []
        result = await engine.infer(_asking("hello"), chunks.append)
        heard = (result.content, result.reasoning)
        assert heard == ("hello", "hm"), f"(content, reasoning) are {heard!r:.160}"
        _expect_joined(chunks, result)


async def usage_does_not_depend_on_who_listens(open_engine: OpenEngine) -> None:
    """A streamed call is charged like any other, so its usage is counted as well."""
    async with open_engine(Situation.ANSWERS) as engine:
        chunks: list[StreamChunk] = []
        heard, alone = await engine.infer(_asking("hello"), chunks.append), await engine.infer(_asking("hello"))
        assert _charged(heard.usage) == _charged(alone.usage), (
            f"a streamed call used {_charged(heard.usage)} tokens (prompt, completion), another {_charged(alone.usage)}"
        )


async def no_more_is_generated_than_was_allowed(open_engine: OpenEngine) -> None:
    """A run reserves `max_tokens` before it asks; an engine that generates more overdraws the budget."""
    async with open_engine(Situation.ANSWERS) as engine:
        result = await engine.infer(replace(_asking("hello"), max_tokens=TOKENS_FEW))
        used = result.usage.completion_tokens
        assert used <= TOKENS_FEW, f"completion_tokens={used} exceeds max_tokens={TOKENS_FEW}"


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
        result = await engine.infer(_offering())
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


async def streaming_changes_no_proposal(open_engine: OpenEngine) -> None:
    """Calls are never streamed: what is heard of a proposal is the text beside it, and the calls are the same."""
    async with open_engine(Situation.PROPOSES) as engine:
        chunks: list[StreamChunk] = []
        heard, alone = await engine.infer(_offering(), chunks.append), await engine.infer(_offering())
        _expect_joined(chunks, heard)
        wished, wished_alone = ([(call.name, call.arguments) for call in calls.tool_calls] for calls in (heard, alone))
        assert wished == wished_alone, f"{wished} is proposed when there is a listener, otherwise {wished_alone}"


async def a_conversation_goes_on_after_its_calls(open_engine: OpenEngine) -> None:
    """What was proposed, and what the tools returned, can be shown to the model again."""
    async with open_engine(Situation.PROPOSES) as engine:
        request = _offering()
        first = await engine.infer(request)
        said = assistant_message(first.content, first.tool_calls, first.reasoning)
        returned = [tool_message(call.id, call.name, "a word") for call in first.tool_calls]
        second = await engine.infer(replace(request, messages=(*request.messages, said, *returned)))
        assert second.content or second.tool_calls, "after the calls were answered, the model says nothing"


async def a_failure_is_a_fault_with_a_code(open_engine: OpenEngine) -> None:
    """A model that cannot be asked is an EngineFault with a code of inference and a sentence."""
    async with open_engine(Situation.FAILS) as engine:
        fault = await _fault_of(engine)
        assert fault.code in INFERENCE_CODES, f"the fault has the code {fault.code!r}"
        assert fault.message, "the fault says nothing"


async def a_model_that_cannot_be_reached_is_unavailable(open_engine: OpenEngine) -> None:
    """A model that is not there may be replaced by another one, so it has its own code."""
    await _expect_code(open_engine, Situation.FAILS, ErrorCode.INFERENCE_MODEL_UNAVAILABLE)


async def a_server_that_failed_is_an_engine_error(open_engine: OpenEngine) -> None:
    """What broke behind the engine may work the next time."""
    await _expect_code(open_engine, Situation.BREAKS, ErrorCode.INFERENCE_ENGINE_ERROR)


async def a_conversation_that_does_not_fit_exceeds_the_context(open_engine: OpenEngine) -> None:
    """What does not fit is not asked again, so it has its own code."""
    await _expect_code(open_engine, Situation.OVERFLOWS, ErrorCode.INFERENCE_CONTEXT_EXCEEDED)


async def an_answer_nobody_can_read_is_malformed(open_engine: OpenEngine) -> None:
    """Half an answer is none, and the model was asked all the same: the fault says what it cost, or that this is unknown."""
    fault = await _expect_code(open_engine, Situation.GARBLES, ErrorCode.INFERENCE_MALFORMED_RESPONSE)
    _expect_paid(fault)


async def a_dropped_connection_is_a_fault_that_costs(open_engine: OpenEngine) -> None:
    """When the connection is gone in the middle of an answer, what was heard is no answer, and it was not free."""
    async with open_engine(Situation.DROPS) as engine:
        chunks: list[StreamChunk] = []
        fault = await _fault_of(engine, chunks.append)
        assert chunks, "nothing was heard before the connection was gone; open the engine so that something is"
        _expect_paid(fault)


async def an_answer_that_breaks_off_is_malformed(open_engine: OpenEngine) -> None:
    """What ends without a word that it is done may be half of it, and was paid for."""
    _expect_paid(await _expect_code(open_engine, Situation.BREAKS_OFF, ErrorCode.INFERENCE_MALFORMED_RESPONSE))


async def a_call_is_ended_by_its_deadline(open_engine: OpenEngine) -> None:
    """The executor gives every call a deadline; behind it nothing is left of the call."""
    async with open_engine(Situation.HANGS) as engine:
        chunks: list[StreamChunk] = []
        call = within(max(1, int(HANGS_FOR_S * 1000)), engine.infer(_asking("hello"), chunks.append))
        task = asyncio.create_task(call)
        await asyncio.wait([task], timeout=HANGS_FOR_S + LETS_GO_S)
        assert task.done(), f"a call goes on for more than {LETS_GO_S} s after its deadline"
        assert isinstance(task.exception(), TimeRanOut), f"a call beyond its deadline ended with {task.exception()!r}"
        await _expect_silence(chunks)


async def an_answer_is_heard_while_it_is_made(open_engine: OpenEngine) -> None:
    """Pieces come when they are said, not at the end; and an answer that is under way can be cancelled."""
    async with open_engine(Situation.DRAWLS) as engine:
        chunks: list[StreamChunk] = []
        spoke = asyncio.Event()

        def hear(chunk: StreamChunk) -> None:
            chunks.append(chunk)
            spoke.set()

        task = asyncio.create_task(engine.infer(_asking("hello"), hear))
        first = asyncio.create_task(spoke.wait())
        await asyncio.wait([task, first], timeout=SPEAKS_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        assert chunks, f"nothing was heard within {SPEAKS_WITHIN_S} s"
        assert not task.done(), "the answer was whole at once; open the engine so that it goes on"
        await _expect_cancelled(task)
        await _expect_silence(chunks)


async def a_cancelled_call_ends(open_engine: OpenEngine) -> None:
    """When its caller is cancelled, the call ends soon, ends as cancelled, and says nothing afterwards."""
    async with open_engine(Situation.HANGS) as engine:
        chunks: list[StreamChunk] = []
        task = asyncio.create_task(engine.infer(_asking("hello"), chunks.append))
        await asyncio.wait([task], timeout=HANGS_FOR_S)
        assert not task.done(), "the call did not hang; open the engine so that it does"
        await _expect_cancelled(task)
        await _expect_silence(chunks)


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


ENGINE_CHECKS: Sequence[EngineCheck] = in_words(
    the_model_is_known_before_it_is_asked,
    a_message_is_answered,
    the_pieces_of_a_stream_are_the_answer,
    streaming_changes_nothing,
    usage_counts_something,
    an_answer_that_nobody_counted_is_not_free,
    a_thought_is_no_part_of_the_answer,
    usage_does_not_depend_on_who_listens,
    no_more_is_generated_than_was_allowed,
    the_answer_follows_from_the_conversation,
    a_proposed_call_can_be_answered,
    streaming_changes_no_proposal,
    a_conversation_goes_on_after_its_calls,
    a_failure_is_a_fault_with_a_code,
    a_model_that_cannot_be_reached_is_unavailable,
    a_server_that_failed_is_an_engine_error,
    a_conversation_that_does_not_fit_exceeds_the_context,
    an_answer_nobody_can_read_is_malformed,
    a_dropped_connection_is_a_fault_that_costs,
    an_answer_that_breaks_off_is_malformed,
    a_call_is_ended_by_its_deadline,
    an_answer_is_heard_while_it_is_made,
    a_cancelled_call_ends,
    a_cancelled_call_spoils_no_other,
    calls_at_the_same_time_do_not_mix,
)


def checks_without(left_out: Mapping[EngineCheck, str]) -> tuple[EngineCheck, ...]:
    """All checks but those that an engine cannot be asked, each of which is given with the reason why."""
    # A check that was imported by its name is the one of the suite.
    every, without = set(map(unwrap, ENGINE_CHECKS)), set(map(unwrap, left_out))
    for check, reason in left_out.items():
        name = getattr(check, "__name__", str(check))
        if unwrap(check) not in every:
            raise RequestRejected(CHECK_UNKNOWN, f"{name!r} is none of ENGINE_CHECKS; leave out only what is there")
        if not reason.strip():
            raise RequestRejected(CHECK_UNEXPLAINED, f"{name!r} is left out without a reason; say why")
    return tuple(check for check in ENGINE_CHECKS if unwrap(check) not in without)


def _asking(text: str) -> ModelRequest:
    return ModelRequest((user_message(text),), temperature=0.0)


def _offering() -> ModelRequest:
    return replace(_asking("hello"), tools=(LOOK_UP,))


def _charged(usage: TokenUsage) -> tuple[int, int]:
    return usage.prompt_tokens, usage.completion_tokens


async def _failure_of(engine: Engine, on_chunk: StreamHandler | None = None) -> Exception:
    try:
        result = await engine.infer(_asking("hello"), on_chunk)
    except Exception as error:  # noqa: BLE001  # the caller judges which one it was
        return error
    raise AssertionError(f"a call that cannot succeed was answered {result.content[:80]!r}")


async def _fault_of(engine: Engine, on_chunk: StreamHandler | None = None) -> EngineFault:
    fault = await _failure_of(engine, on_chunk)
    assert isinstance(fault, EngineFault), f"the engine raised {type(fault).__name__} instead of EngineFault"
    return fault


async def _expect_code(open_engine: OpenEngine, situation: Situation, code: ErrorCode) -> EngineFault:
    async with open_engine(situation) as engine:
        fault = await _fault_of(engine)
        assert fault.code is code, f"an engine that {situation.value} failed with {fault.code} instead of {code}"
        return fault


def _expect_paid(fault: EngineFault) -> None:
    used = fault.usage.total_tokens
    assert fault.was_cut or used > 0, "the model was asked, yet the fault has no usage and does not say that it was cut"


async def _expect_cancelled(task: "asyncio.Task[ModelResult]") -> None:
    task.cancel()
    await asyncio.wait([task], timeout=LETS_GO_S)
    assert task.done(), f"a cancelled call goes on for more than {LETS_GO_S} s"
    assert task.cancelled(), "a cancelled call ended as if it had not been cancelled"


async def _expect_silence(chunks: Sequence[StreamChunk]) -> None:
    heard = len(chunks)
    await asyncio.wait([asyncio.create_task(asyncio.sleep(HANGS_FOR_S))])
    assert len(chunks) == heard, "a call that had ended was still streaming"


def _expect_joined(chunks: Sequence[StreamChunk], result: ModelResult) -> None:
    text, reasoning = "".join(chunk.text for chunk in chunks), "".join(chunk.reasoning for chunk in chunks)
    assert text == result.content, f"{text[:80]!r} was streamed and {result.content[:80]!r} is the answer"
    assert reasoning == result.reasoning, (
        f"{reasoning[:80]!r} was streamed as reasoning, which the answer does not hold"
    )
