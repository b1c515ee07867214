"""What a local model answers: the events of the in-process server, gathered into an answer or a fault.

Rule 1: events are heard in the thread that asks the server; what listeners are to hear is passed on, in order.
Rule 2: the first event counts the prompt. What does not fit the window is cut there, before the prompt is read. An answer
        that may be longer than half the window needs no more room than that; it ends where the window ends.
Rule 3: errors are events, not exceptions; each becomes a fault with a code.
Rule 4: an answer that had to keep a shape and was cut by `max_tokens` is malformed. Any other that was cut is an answer,
        and can be told by its usage: it generated as many tokens as it was allowed to.
Rule 5: a model may think aloud, unless it is held to a shape; what it thinks is heard as reasoning.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from remit.core.failure import ErrorCode
from remit.core.record import JsonObject
from remit.core.run.inference import ModelRequest, ModelResult
from remit.core.run.usage import TokenUsage
from remit.inference.answers.speech import Speech, joined_pieces
from remit.inference.answers.think import ThinkFilter
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.local.request import answer_grammar

# How much of a complaint of the server is repeated: it may quote the request.
COMPLAINT_CHARS_MAX = 300

# The kinds of errors the server knows that have a code of their own; every other is an error of the engine.
_CODES = {
    "exceed_context_size_error": ErrorCode.INFERENCE_CONTEXT_EXCEEDED,
    "unavailable_error": ErrorCode.INFERENCE_MODEL_UNAVAILABLE,
}
_LENGTH = "length"


class AnswerLimits(NamedTuple):
    """What an answer has to keep within: the window of its slot, what may be generated, and whether it has a shape."""

    window: int
    # 0 where no limit was given: then the answer may take what the prompt leaves.
    tokens_max: int
    is_constrained: bool


def answer_limits(request: ModelRequest, window: int) -> AnswerLimits:
    """The limits that a request sets to its answer."""
    return AnswerLimits(window, request.max_tokens, bool(answer_grammar(request)))


class LocalAnswer:
    """Hears the events of one call. Once it was stopped, it tells the server to end the call and passes nothing on."""

    def __init__(self, limits: AnswerLimits, pass_on: Callable[[StreamChunk], None]) -> None:
        self._limits = limits
        self._pass_on = pass_on
        # What keeps a shape is no thought.
        self._speech = Speech(thoughts=None if limits.is_constrained else ThinkFilter())
        self._finish = ""
        self._usage: TokenUsage | None = None
        self._fault: EngineFault | None = None
        self.is_stopped = False

    def stop(self) -> None:
        """End the call with its next event; the answer is not awaited any more."""
        self.is_stopped = True

    def hear(self, event: Any) -> bool:
        """Take an event in. True tells the server to end the call."""
        if self.is_stopped:
            return True
        try:
            self._take(event)
        except EngineFault as fault:
            self._fault = fault
        return self._fault is not None

    def result(self, model: str) -> ModelResult:
        """The whole answer, or the fault that it came to."""
        if self._fault is not None:
            raise self._fault
        if not self._finish or self._usage is None:
            raise _unreadable("the answer has no end")
        usage = self._usage
        if self._finish == _LENGTH and self._limits.is_constrained:
            message = (
                f"the answer was cut after {usage.completion_tokens} tokens and does not keep the shape it was asked for; "
                "allow more with max_tokens, or ask for less"
            )
            raise EngineFault(ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, usage=usage, said=self._speech.text)
        return ModelResult(self._speech.text, self._speech.reasoning, (), usage, model=model)

    def _take(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise _unreadable(f"the server sent a {type(event).__name__}")
        if "error" in event:
            raise server_fault(event["error"])
        if "prompt_progress" in event:
            self._count(event["prompt_progress"])
        if choices := event.get("choices"):
            self._choose(choices)
        if "usage" in event:
            self._usage = _usage(event, self._limits.window)

    def _count(self, progress: Any) -> None:
        """See that the prompt and what may follow it fit."""
        prompt, window = _whole(progress, "total"), self._limits.window
        # A request without a limit asks for as many tokens as small models have altogether.
        needed = min(self._limits.tokens_max or 1, window // 2)
        if prompt + needed > window:
            message = (
                f"the prompt has {prompt} tokens and the answer needs room for {needed}; together they exceed the "
                f"{window} tokens of the model's window; shorten the conversation, or ask for less with max_tokens"
            )
            raise EngineFault(ErrorCode.INFERENCE_CONTEXT_EXCEEDED, message)

    def _choose(self, choices: Any) -> None:
        choice = choices[0] if isinstance(choices, list) else None
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(delta, dict):
            raise _unreadable("a piece of the answer has no delta")
        text, reasoning = delta.get("content") or "", delta.get("reasoning_content") or ""
        if not isinstance(text, str) or not isinstance(reasoning, str):
            raise _unreadable("a piece of the answer is no text")
        heard = self._speech.take(text, reasoning)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
            heard = joined_pieces(heard, self._speech.end())
        if heard is not None:
            self._pass_on(heard)


def server_fault(error: Any) -> EngineFault:
    """The fault that an error of the server comes to."""
    if not isinstance(error, dict):
        return _unreadable(f"the server reported an error that is a {type(error).__name__}")
    code = _CODES.get(str(error.get("type")), ErrorCode.INFERENCE_ENGINE_ERROR)
    said = str(error.get("message") or "it does not say why")[:COMPLAINT_CHARS_MAX]
    way_out = "; shorten the conversation" if code is ErrorCode.INFERENCE_CONTEXT_EXCEEDED else ""
    return EngineFault(code, f"the local model refused the call: {said}{way_out}")


def _usage(event: JsonObject, window: int) -> TokenUsage:
    """What the server counted. Thoughts are not counted apart, so they are part of the output."""
    used, timings = event["usage"], event.get("timings", {})
    prompt, output = _whole(used, "prompt_tokens"), _whole(used, "completion_tokens")
    taken_ms = _figure(timings, "prompt_ms") + _figure(timings, "predicted_ms")
    return TokenUsage(
        prompt_tokens=prompt,
        reasoning_tokens=0,
        output_tokens=output,
        context_tokens=prompt + output,
        context_window=window,
        duration_ms=round(taken_ms),
    )


def _whole(record: Any, key: str) -> int:
    found = record.get(key) if isinstance(record, dict) else None
    if type(found) is not int or found < 0:
        _not_counted(key, found)
    return found


def _figure(record: Any, key: str) -> float:
    found = record.get(key, 0) if isinstance(record, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < math.inf:
        _not_counted(key, found)
    return float(found)


def _not_counted(key: str, found: Any) -> NoReturn:
    raise _unreadable(f"{key}={str(found)[:80]!r} is no figure")


def _unreadable(problem: str) -> EngineFault:
    message = f"the local model's answer cannot be read: {problem}"
    return EngineFault(ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, was_cut=True)
