"""The conformance suite finds an engine that does not do what every engine must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.tools import ToolCall
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.usage import TokenUsage
from remit.inference.engine import Engine, EngineFault, StreamChunk, StreamHandler
from remit.testing.conformance import engine as suite
from remit.testing.conformance.engine import ENGINE_CHECKS, EngineCheck, OpenEngine, Situation

USAGE = TokenUsage(prompt_tokens=1, output_tokens=1)
CODES = {
    Situation.BREAKS: ErrorCode.INFERENCE_ENGINE_ERROR,
    Situation.OVERFLOWS: ErrorCode.INFERENCE_CONTEXT_EXCEEDED,
    Situation.GARBLES: ErrorCode.INFERENCE_MALFORMED_RESPONSE,
    Situation.DROPS: ErrorCode.INFERENCE_ENGINE_ERROR,
    Situation.BREAKS_OFF: ErrorCode.INFERENCE_MALFORMED_RESPONSE,
}


class BadEngine:
    """An engine that behaves in every situation, but for one flaw."""

    def __init__(self, situation: Situation, flaw: str) -> None:
        self._situation = situation
        self._flaw = flaw
        self._asked = 0
        self._last = ""
        self._allowed = 0

    def model_info(self) -> ModelInfo:
        if self._flaw == "changes its name":
            return ModelInfo(f"model-{self._asked}", 100)
        return ModelInfo("" if self._flaw == "has no name" else "model", 0 if self._flaw == "has no window" else 100)

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        self._asked += 1
        self._allowed = request.max_tokens
        match self._situation:
            case Situation.FAILS:
                return await self._fail()
            case situation if situation in CODES:
                return self._break(situation, on_chunk)
            case Situation.HANGS:
                return await self._hang(on_chunk)
            case Situation.DRAWLS:
                return await self._drawl(on_chunk)
            case Situation.PROPOSES:
                return self._propose(request, on_chunk)
            case Situation.THINKS:
                thought = "hmm" if self._flaw == "thinks too long" else "hm"
                if on_chunk is not None:
                    on_chunk(StreamChunk("hello", "hm" if self._flaw == "thinks in secret" else thought))
                return ModelResult("hello", "hmm" if self._flaw == "thinks in secret" else thought, usage=USAGE)
            case Situation.UNCOUNTED:
                guess = {"reads for free": TokenUsage(0, 0, 9), "talks for free": TokenUsage(9)}
                return ModelResult("hello", usage=guess.get(self._flaw, USAGE))
            case Situation.ANSWERS:
                return self._answer(f"answer {self._place(request)}", on_chunk)
            case _:
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
                return ModelResult("a listener hears", reasoning, usage=USAGE, model="model")
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
        if self._flaw == "counts only what is heard":
            usage[self._flaw] = TokenUsage(1, 0, 1 if on_chunk is None else 7)
        if self._flaw == "runs on" and self._allowed:
            usage[self._flaw] = TokenUsage(1, 0, self._allowed + 1)
        calls = (ToolCall("1", "look_up"),) if self._flaw == "calls unasked" else ()
        ended = FinishReason.ERROR if self._flaw == "ends as an error" else FinishReason.STOP
        signed = "another" if self._flaw == "signs as another" else self.model_info().name
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

    def _propose(self, request: ModelRequest, on_chunk: StreamHandler | None) -> ModelResult:
        if self._flaw == "forgets its calls" and len(request.messages) > 1:
            return ModelResult(usage=USAGE, model="model")
        if on_chunk is not None and self._flaw == "streams its calls":
            on_chunk(StreamChunk('{"name": "look_up"}'))
        ids = {"forgets the id": ("", "2"), "repeats an id": ("1", "1")}.get(self._flaw, ("1", "2"))
        tool = "other" if self._flaw == "names another tool" else "look_up"
        word = "b" if self._flaw == "wishes otherwise" and on_chunk is not None else "a"
        calls = tuple(ToolCall(call_id, tool, {"word": word}) for call_id in ids)
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
        code = {"is vague": ErrorCode.INFERENCE_ENGINE_ERROR}.get(self._flaw, ErrorCode.INFERENCE_MODEL_UNAVAILABLE)
        fault = EngineFault(code, "" if self._flaw == "is terse" else "nobody there")
        if self._flaw == "has a code of its own":
            fault.code = ErrorCode.TOOL_TIMEOUT
        raise fault

    def _break(self, situation: Situation, on_chunk: StreamHandler | None) -> ModelResult:
        if self._flaw == "makes do with half" and situation in (Situation.DROPS, Situation.BREAKS_OFF):
            return self._answer("half an ans", on_chunk)
        if self._flaw == "has one code for all":
            raise EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "no")
        if on_chunk is not None and self._flaw != "drops in silence":
            on_chunk(StreamChunk("half an ans"))
        is_paid = self._flaw == "fails for free" or situation in (Situation.BREAKS, Situation.OVERFLOWS)
        raise EngineFault(CODES[situation], "it broke", was_cut=not is_paid)

    async def _drawl(self, on_chunk: StreamHandler | None) -> ModelResult:
        assert on_chunk is not None
        if self._flaw == "says all at once":
            return self._answer("all of it", on_chunk)
        if self._flaw != "keeps it to the end":
            on_chunk(StreamChunk("so"))
        return await self._hang(on_chunk)

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
        raise AssertionError("this event is never set")


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
    "reads for free": "an_answer_that_nobody_counted_is_not_free",
    "talks for free": "an_answer_that_nobody_counted_is_not_free",
    "thinks too long": "a_thought_is_no_part_of_the_answer",
    "thinks in secret": "a_thought_is_no_part_of_the_answer",
    "counts only what is heard": "usage_does_not_depend_on_who_listens",
    "runs on": "no_more_is_generated_than_was_allowed",
    "counts in memory": "the_answer_follows_from_the_conversation",
    "never proposes": "a_proposed_call_can_be_answered",
    "stops with calls": "a_proposed_call_can_be_answered",
    "forgets the id": "a_proposed_call_can_be_answered",
    "repeats an id": "a_proposed_call_can_be_answered",
    "names another tool": "a_proposed_call_can_be_answered",
    "proposes a text": "a_proposed_call_can_be_answered",
    "streams its calls": "streaming_changes_no_proposal",
    "wishes otherwise": "streaming_changes_no_proposal",
    "forgets its calls": "a_conversation_goes_on_after_its_calls",
    "raises as it likes": "a_failure_is_a_fault_with_a_code",
    "pretends": "a_failure_is_a_fault_with_a_code",
    "is terse": "a_failure_is_a_fault_with_a_code",
    "has a code of its own": "a_failure_is_a_fault_with_a_code",
    "is vague": "a_model_that_cannot_be_reached_is_unavailable",
    "makes do with half": "a_dropped_connection_is_a_fault_that_costs",
    "drops in silence": "a_dropped_connection_is_a_fault_that_costs",
    "fails for free": "a_dropped_connection_is_a_fault_that_costs",
    "says all at once": "an_answer_is_heard_while_it_is_made",
    "keeps it to the end": "an_answer_is_heard_while_it_is_made",
    "never hangs": "a_cancelled_call_ends",
    "ignores cancelling": "a_cancelled_call_ends",
    "answers when cancelled": "a_cancelled_call_ends",
    "goes on speaking": "a_cancelled_call_ends",
    "stays busy": "a_cancelled_call_spoils_no_other",
    "mixes answers": "calls_at_the_same_time_do_not_mix",
    "mixes streams": "calls_at_the_same_time_do_not_mix",
}


# Flaws that several checks are made for.
ALSO_FOUND = [
    ("has one code for all", "a_server_that_failed_is_an_engine_error"),
    ("has one code for all", "a_conversation_that_does_not_fit_exceeds_the_context"),
    ("has one code for all", "an_answer_nobody_can_read_is_malformed"),
    ("fails for free", "an_answer_nobody_can_read_is_malformed"),
    ("makes do with half", "an_answer_that_breaks_off_is_malformed"),
    ("fails for free", "an_answer_that_breaks_off_is_malformed"),
    ("has one code for all", "an_answer_that_breaks_off_is_malformed"),
    ("never hangs", "a_call_is_ended_by_its_deadline"),
    ("ignores cancelling", "a_call_is_ended_by_its_deadline"),
    ("answers when cancelled", "a_call_is_ended_by_its_deadline"),
    ("goes on speaking", "a_call_is_ended_by_its_deadline"),
    ("ignores cancelling", "an_answer_is_heard_while_it_is_made"),
    ("goes on speaking", "an_answer_is_heard_while_it_is_made"),
]


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "LETS_GO_S", 0.05)
    monkeypatch.setattr(suite, "HANGS_FOR_S", 0.02)
    monkeypatch.setattr(suite, "SPEAKS_WITHIN_S", 0.05)


@pytest.mark.parametrize(("flaw", "check"), [*FLAWS.items(), *ALSO_FOUND])
def test_a_flaw_is_found_by_the_check_that_is_made_for_it(flaw: str, check: str) -> None:
    assert objects(CHECKS[check], flaw)


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_without_a_flaw_passes_every_check(check: EngineCheck) -> None:
    assert not objects(check, "none")


def test_every_check_is_able_to_object() -> None:
    assert {*FLAWS.values(), *(check for _, check in ALSO_FOUND)} == set(CHECKS)


def test_a_check_is_left_out_by_name_and_with_a_reason() -> None:
    left_out = suite.a_dropped_connection_is_a_fault_that_costs
    assert suite.checks_without({left_out: "the model runs in this process"}) == tuple(
        check for check in ENGINE_CHECKS if check.__name__ != left_out.__name__
    )
    assert suite.checks_without({}) == tuple(ENGINE_CHECKS)


def test_a_check_cannot_be_left_out_in_silence() -> None:
    with pytest.raises(RequestRejected) as raised:
        suite.checks_without({suite.a_message_is_answered: " "})
    assert (raised.value.code, "a_message_is_answered" in raised.value.message) == (suite.CHECK_UNEXPLAINED, True)


def test_what_is_no_check_cannot_be_left_out() -> None:
    async def another(open_engine: OpenEngine) -> None:
        raise AssertionError

    with pytest.raises(RequestRejected) as raised:
        suite.checks_without({another: "it is mine"})
    assert (raised.value.code, "another" in raised.value.message) == (suite.CHECK_UNKNOWN, True)
