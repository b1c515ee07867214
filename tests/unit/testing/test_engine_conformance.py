"""The conformance suite finds an engine that does not do what every engine must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.core.failure import ErrorCode
from remit.core.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.tools import ToolCall
from remit.core.usage import TokenUsage
from remit.inference.engine import Engine, EngineFault, StreamChunk, StreamHandler
from remit.testing.conformance import engine as suite
from remit.testing.conformance.engine import ENGINE_CHECKS, EngineCheck, OpenEngine, Situation

USAGE = TokenUsage(prompt_tokens=1, output_tokens=1)


class BadEngine:
    """An engine that behaves in every situation, but for one flaw."""

    def __init__(self, situation: Situation, flaw: str) -> None:
        self._situation = situation
        self._flaw = flaw
        self._asked = 0
        self._last = ""

    def model_info(self) -> ModelInfo:
        if self._flaw == "changes its name":
            return ModelInfo(f"model-{self._asked}", 100)
        return ModelInfo("" if self._flaw == "has no name" else "model", 0 if self._flaw == "has no window" else 100)

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        self._asked += 1
        match self._situation:
            case Situation.FAILS:
                return await self._fail()
            case Situation.HANGS:
                return await self._hang(on_chunk)
            case Situation.PROPOSES:
                return self._propose()
            case Situation.ANSWERS:
                return self._answer(f"answer {self._place(request)}", on_chunk)
            case Situation.REPEATS:
                return await self._repeat(request, on_chunk)

    def _place(self, request: ModelRequest) -> int:
        return self._asked if self._flaw == "counts in memory" else len(request.messages)

    def _answer(self, text: str, on_chunk: StreamHandler | None) -> ModelResult:
        reasoning = "" if self._flaw == "thinks only aloud" else "hm"
        if on_chunk is not None and self._flaw != "never streams":
            for chunk in (StreamChunk(reasoning="hm"), StreamChunk(text[:3]), StreamChunk(text[3:])):
                on_chunk(chunk)
            if self._flaw == "stutters":
                on_chunk(StreamChunk(text[3:]))
            if self._flaw == "is shy":
                return ModelResult("somebody listens", reasoning, usage=USAGE, model="model")
            if self._flaw == "shows off":
                call = ToolCall("1", "look_up")
                return ModelResult(text, reasoning, (call,), USAGE, FinishReason.STOP, "model")
        if self._flaw == "says nothing":
            return ModelResult(usage=USAGE, model="model")
        if self._flaw == "returns a text":
            return text  # type: ignore[return-value]  # that is its flaw
        usage = {
            "miscounts": TokenUsage(-1, 0, 1),
            "asks for free": TokenUsage(0, 0, 1),
            "speaks for free": TokenUsage(1),
        }
        calls = (ToolCall("1", "look_up"),) if self._flaw == "calls unasked" else ()
        ended = FinishReason.ERROR if self._flaw == "ends as an error" else FinishReason.STOP
        signed = "somebody" if self._flaw == "signs as another" else self.model_info().name
        return ModelResult(text, reasoning, calls, usage.get(self._flaw, USAGE), ended, signed)

    async def _repeat(self, request: ModelRequest, on_chunk: StreamHandler | None) -> ModelResult:
        word = str(request.messages[-1].content)
        if self._flaw == "stays busy" and self._asked > 1:
            return self._answer("busy", on_chunk)
        self._last = word
        await asyncio.sleep(0)
        if self._flaw == "mixes answers":
            word = self._last
        result = self._answer(word, None)
        if on_chunk is not None:
            on_chunk(StreamChunk(self._last if self._flaw == "mixes streams" else word, "hm"))
        return result

    def _propose(self) -> ModelResult:
        ids = {"forgets the id": ("", "2"), "repeats an id": ("1", "1")}.get(self._flaw, ("1", "2"))
        tool = "other" if self._flaw == "names another tool" else "look_up"
        calls = tuple(ToolCall(call_id, tool, {"word": "a"}) for call_id in ids)
        if self._flaw == "never proposes":
            calls = ()
        if self._flaw == "proposes a text":
            calls = (ToolCall("1", tool, '{"word": "a"}'),)  # type: ignore[arg-type]  # that is its flaw
        ended = FinishReason.STOP if self._flaw == "stops with calls" else FinishReason.TOOL
        return ModelResult("", "", calls, USAGE, ended, "model")

    async def _fail(self) -> ModelResult:
        if self._flaw == "raises as it likes":
            raise ConnectionError("refused")
        if self._flaw == "pretends":
            return ModelResult("all is well", usage=USAGE, model="model")
        fault = EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "" if self._flaw == "is terse" else "nobody there")
        if self._flaw == "has a code of its own":
            fault.code = ErrorCode.TOOL_TIMEOUT
        raise fault

    async def _hang(self, on_chunk: StreamHandler | None) -> ModelResult:
        assert on_chunk is not None
        if self._flaw == "never hangs":
            return self._answer("quick", on_chunk)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._flaw == "answers when cancelled":
                return self._answer("sorry", on_chunk)
            if self._flaw == "ignores cancelling":
                await asyncio.sleep(0.2)
            if self._flaw == "goes on speaking":
                asyncio.get_running_loop().call_later(0.005, on_chunk, StreamChunk("still here"))
            raise
        raise AssertionError("nobody sets this event")


def with_flaw(flaw: str) -> OpenEngine:
    @asynccontextmanager
    async def opened(situation: Situation) -> AsyncIterator[Engine]:
        yield BadEngine(situation, flaw)

    return opened


def objects(check: EngineCheck, flaw: str) -> bool:
    """Whether a check complains about an engine with this flaw."""
    try:
        asyncio.run(check(with_flaw(flaw)))
    except AssertionError:
        return True
    return False


CHECKS = {check.__name__: check for check in ENGINE_CHECKS}

FLAWS = {
    "has no name": "the_model_is_known_before_it_is_asked",
    "has no window": "the_model_is_known_before_it_is_asked",
    "changes its name": "the_model_is_known_before_it_is_asked",
    "returns a text": "a_message_is_answered",
    "says nothing": "a_message_is_answered",
    "ends as an error": "a_message_is_answered",
    "calls unasked": "a_message_is_answered",
    "signs as another": "a_message_is_answered",
    "never streams": "the_pieces_of_a_stream_are_the_answer",
    "stutters": "the_pieces_of_a_stream_are_the_answer",
    "thinks only aloud": "the_pieces_of_a_stream_are_the_answer",
    "is shy": "streaming_changes_nothing",
    "shows off": "streaming_changes_nothing",
    "miscounts": "usage_counts_something",
    "asks for free": "usage_counts_something",
    "speaks for free": "usage_counts_something",
    "counts in memory": "the_answer_follows_from_the_conversation",
    "never proposes": "a_proposed_call_can_be_answered",
    "stops with calls": "a_proposed_call_can_be_answered",
    "forgets the id": "a_proposed_call_can_be_answered",
    "repeats an id": "a_proposed_call_can_be_answered",
    "names another tool": "a_proposed_call_can_be_answered",
    "proposes a text": "a_proposed_call_can_be_answered",
    "raises as it likes": "a_failure_is_a_fault_with_a_code",
    "pretends": "a_failure_is_a_fault_with_a_code",
    "is terse": "a_failure_is_a_fault_with_a_code",
    "has a code of its own": "a_failure_is_a_fault_with_a_code",
    "never hangs": "a_cancelled_call_ends",
    "ignores cancelling": "a_cancelled_call_ends",
    "answers when cancelled": "a_cancelled_call_ends",
    "goes on speaking": "a_cancelled_call_ends",
    "stays busy": "a_cancelled_call_spoils_no_other",
    "mixes answers": "calls_at_the_same_time_do_not_mix",
    "mixes streams": "calls_at_the_same_time_do_not_mix",
}


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "LETS_GO_S", 0.05)
    monkeypatch.setattr(suite, "HANGS_FOR_S", 0.02)


@pytest.mark.parametrize(("flaw", "check"), FLAWS.items())
def test_a_flaw_is_found_by_the_check_that_is_made_for_it(flaw: str, check: str) -> None:
    assert objects(CHECKS[check], flaw)


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_without_a_flaw_passes_every_check(check: EngineCheck) -> None:
    assert not objects(check, "none")


def test_every_check_is_able_to_object() -> None:
    assert set(FLAWS.values()) == set(CHECKS)
