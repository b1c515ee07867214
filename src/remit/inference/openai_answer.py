"""An answer put together from the events in which an OpenAI-compatible server streams it.

Rule 1: an answer is whole when the server has said why it stopped; anything less is a fault.
Rule 2: a text that ran into its limit is an answer, but not when it had to keep a shape, nor when nothing was said.
Rule 3: what a filter of the server withheld is no answer: its rest is missing. It may be asked for again.
Rule 4: a fault carries the usage that was reported; without one, nobody knows what the call cost.
Rule 5: usage that makes no sense counts as not reported: the run then pays what it had reserved.
Rule 6: a server that repeats the key is not quoted: neither in a message, nor in the answer, which is journaled.
"""

from typing import Any, NoReturn

from remit.core.codec import read_json
from remit.core.failure import ErrorCode
from remit.core.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.messages import Role
from remit.core.record import JsonObject
from remit.core.usage import TokenUsage
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.openai_calls import CallPieces, CallsUnreadable
from remit.inference.openai_faults import Place

# Longer than any model writes in one go; what lies beyond is a server that has lost its way.
ANSWER_CHARS_MAX = 16 * 1024 * 1024
# The largest figure of a usage; sums and prices made of it still fit the 64 bits of a record.
FIGURE_MAX = 2**40 - 1

# What servers call an answer that is done, and one that ran into its limit.
STOPPED = frozenset({"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence"})
RAN_OUT = frozenset({"length", "max_tokens", "model_length"})
FILTERED = "content_filter"
# As much of an unknown reason as one needs to look it up.
REASON_CHARS_MAX = 40


class ServerFailed(Exception):
    """The server announced a failure in the middle of its answer. `error` is what it said."""

    def __init__(self, error: Any) -> None:
        super().__init__("the server failed while it answered")
        self.error = error


class Answer:
    """Takes the events of one answer, and says in the end what it came to."""

    __slots__ = ("_calls", "_chars", "_info", "_place", "_reason", "_reasoning", "_request", "_text", "_usage")

    def __init__(self, request: ModelRequest, info: ModelInfo, place: Place) -> None:
        self._request = request
        self._info = info
        self._place = place
        # Bytes, so that a million pieces of a letter each cost no more than their letters.
        self._text = bytearray()
        self._reasoning = bytearray()
        self._calls = CallPieces()
        self._usage = TokenUsage()
        self._reason = ""
        self._chars = 0

    def take(self, event: bytes) -> StreamChunk | None:
        """What an event adds to what is heard, if it adds something."""
        try:
            value = read_json(event)
        except (ValueError, RecursionError):
            self.reject(f"a piece of {len(event)} bytes is no JSON")
        if not isinstance(value, dict):
            self.reject(f"a piece is a {type(value).__name__} instead of an object")
        # Under a field of its own, a failure is announced without a name.
        if value.get("error") or ("message" in value and "choices" not in value):
            raise ServerFailed(value.get("error") or value)
        if isinstance(value.get("usage"), dict):
            self._usage = usage_of(value["usage"], window=self._info.context_window)
        choice = _first_choice(value)
        return None if choice is None else self._take_choice(choice)

    def result(self, duration_ms: int) -> ModelResult:
        """The whole answer, now that no more events come."""
        usage = self._timed(duration_ms)
        if not self._reason:
            self.reject("it ended without saying why it stopped")
        if self._reason == FILTERED:
            self.reject("the server's content filter withheld the rest of it; ask for something else")
        has_run_out = self._reason in RAN_OUT
        if not has_run_out and self._reason not in STOPPED:
            reason = self._place.said(self._reason)[:REASON_CHARS_MAX]
            self.reject(f"it stopped because of {reason!r}, which nobody knows")
        # Each piece was looked at already; a key may lie across two of them.
        text, reasoning = (self._place.blotted(heard.decode()) for heard in (self._text, self._reasoning))
        if has_run_out:
            self._judge_cut(text)
        spoken = sum(message.role is Role.ASSISTANT for message in self._request.messages)
        try:
            calls = self._calls.whole(spoken, blotted=self._place.blotted)
        except CallsUnreadable as error:
            self.reject(str(error))
        ended = FinishReason.TOOL if calls else FinishReason.STOP
        return ModelResult(text, reasoning, calls, usage, ended, self._info.name)

    def reject(self, problem: str) -> NoReturn:
        """Give the answer up as one that nobody can read."""
        message = f"the answer of model {self._info.name!r} cannot be read: {problem}"
        code = ErrorCode.INFERENCE_MALFORMED_RESPONSE
        raise EngineFault(code, message, usage=self._usage, was_cut=not self._usage.total_tokens)

    def _take_choice(self, choice: JsonObject) -> StreamChunk | None:
        reason, delta = choice.get("finish_reason"), choice.get("delta") or {}
        if isinstance(reason, str):
            self._reason = reason
        if not isinstance(delta, dict):
            self.reject(f"a piece holds a {type(delta).__name__} instead of an object")
        # A refusal is what the model says instead of what it was asked to say.
        text = self._said(delta, "content") + self._said(delta, "refusal")
        thought = self._said(delta, "reasoning_content") or self._said(delta, "reasoning")
        self._chars += len(text) + len(thought)
        if delta.get("tool_calls"):
            try:
                self._chars += self._calls.take(delta["tool_calls"])
            except CallsUnreadable as error:
                self.reject(str(error))
        if self._chars > ANSWER_CHARS_MAX:
            self.reject(f"it goes on behind answer_chars_max={ANSWER_CHARS_MAX}")
        if not text and not thought:
            return None
        self._text += text.encode()
        self._reasoning += thought.encode()
        return StreamChunk(text, thought)

    def _said(self, delta: JsonObject, key: str) -> str:
        said = delta.get(key)
        if said is None:
            return ""
        if not isinstance(said, str):
            self.reject(f"its {key} is a {type(said).__name__} instead of a text")
        return self._place.blotted(said)

    def _judge_cut(self, text: str) -> None:
        """Refuse an answer that ran into its limit and is of no use without its end."""
        limit = f"max_tokens={self._request.max_tokens}" if self._request.max_tokens else "the limit of the server"
        if self._calls.is_cut():
            self.reject(f"{limit} was reached within a call; allow more")
        if not text and not self._calls:
            self.reject(f"{limit} was reached before anything was said; allow more")
        if (self._request.schema is not None or self._request.grammar) and not self._calls:
            self.reject(f"{limit} was reached before its shape was complete; allow more")

    def _timed(self, duration_ms: int) -> TokenUsage:
        used = self._usage
        prompt, reasoning, output = used.prompt_tokens, used.reasoning_tokens, used.output_tokens
        return TokenUsage(prompt, reasoning, output, used.context_tokens, used.context_window, duration_ms)


def _first_choice(value: JsonObject) -> JsonObject | None:
    """The choice that was asked for; events without any keep a connection alive, or tell the usage."""
    choices = value.get("choices")
    if not isinstance(choices, list):
        return None
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return None


def usage_of(reported: JsonObject, *, window: int) -> TokenUsage:
    """What a server says was used. What it read from a cache is part of the prompt and charged like it."""
    prompt, completion = _figure(reported.get("prompt_tokens")), _figure(reported.get("completion_tokens"))
    details = reported.get("completion_tokens_details")
    reasoning = _figure(details.get("reasoning_tokens") or 0) if isinstance(details, dict) else 0
    if prompt is None or completion is None or reasoning is None:
        return TokenUsage()
    # Most servers count thinking as part of the completion, some beside it.
    is_beside = reasoning > completion or reported.get("total_tokens") == prompt + completion + reasoning
    output = completion if is_beside else completion - reasoning
    return TokenUsage(prompt, reasoning, output, prompt + reasoning + output, window)


def _figure(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= FIGURE_MAX else None
