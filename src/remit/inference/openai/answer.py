"""An answer put together from the events in which an OpenAI-compatible server streams it.

Rule 1: an answer is whole when the server has said why it stopped; anything less is a fault.
Rule 2: a text that ran into its limit is an answer, but not when it had to keep a shape, nor when nothing was said.
Rule 3: what a filter of the server withheld is no answer: its rest is missing. It may be asked for again.
Rule 4: a fault carries the usage that was reported; without one, nobody knows what the call cost.
Rule 5: usage that makes no sense counts as not reported: an answer is then counted by its bytes.
Rule 6: a server that repeats the key is not quoted: neither in a message, nor in the answer, which is journaled.
Rule 7: of two fields for what a model thought, `reasoning_content` wins: once it was heard, `reasoning` is not.
"""

from typing import Any, NoReturn

from remit.core.failure import ErrorCode
from remit.core.journal.codec import read_json
from remit.core.record import JsonObject, replace
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Role
from remit.core.run.usage import TokenUsage
from remit.inference.answers.speech import Speech, joined, plain_speech
from remit.inference.answers.token_bounds import Generated, counted
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.openai.call_pieces import CallPieces, CallsUnreadable
from remit.inference.openai.faults import Place

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

# Where most servers put what a model thought.
_THOUGHT = "reasoning_content"


class ServerFailed(Exception):
    """The server announced a failure in the middle of its answer. `error` is what it said."""

    def __init__(self, error: Any) -> None:
        super().__init__("the server failed while it answered")
        self.error = error


class Answer:
    """Takes the events of one answer, and says in the end what it came to."""

    __slots__ = ("_calls", "_chars", "_info", "_place", "_reason", "_request", "_speech", "_thought_field", "_usage")

    def __init__(self, request: ModelRequest, info: ModelInfo, place: Place, speech: Speech | None = None) -> None:
        self._request = request
        self._info = info
        self._place = place
        self._speech = speech or plain_speech(request, place.blotted)
        self._thought_field = "reasoning"
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
        if not self._reason:
            self.reject("it ended without saying why it stopped")
        if self._reason == FILTERED:
            self.reject("the server's content filter withheld the rest of it; ask for something else")
        has_run_out = self._reason in RAN_OUT
        if not has_run_out and self._reason not in STOPPED:
            reason = self._place.said(self._reason)[:REASON_CHARS_MAX]
            self.reject(f"it stopped because of {reason!r}, which nobody knows")
        text = self._speech.text
        spoken = sum(message.role is Role.ASSISTANT for message in self._request.messages)
        written = self._speech.calls(spoken)
        if has_run_out and not written:
            self._judge_cut(text)
        try:
            calls = self._calls.whole(spoken, blotted=self._place.blotted) or written
        except CallsUnreadable as error:
            self.reject(str(error))
        said_bytes = self._speech.said_bytes + self._calls.size_bytes
        generated = Generated(self._speech.thought_bytes, said_bytes, len(self._calls))
        usage = counted(self._usage, self._request, self._info, generated)
        ended = FinishReason.TOOL if calls else FinishReason.STOP
        return ModelResult(text, self._speech.reasoning, calls, timed(usage, duration_ms), ended, self._info.name)

    def reject(self, problem: str, said: str = "") -> NoReturn:
        """Give the answer up as one that nobody can read; `said` is what there is of one that was cut."""
        message = f"the answer of model {self._info.name!r} cannot be read: {problem}"
        code = ErrorCode.INFERENCE_MALFORMED_RESPONSE
        # Half a usage says as little as none.
        is_counted = self._usage.prompt_tokens and self._usage.completion_tokens
        raise EngineFault(code, message, usage=self._usage, was_cut=not is_counted, said=said)

    def _take_choice(self, choice: JsonObject) -> StreamChunk | None:
        reason, delta = choice.get("finish_reason"), choice.get("delta") or {}
        if not isinstance(delta, dict):
            self.reject(f"a piece holds a {type(delta).__name__} instead of an object")
        text, thought = self._spoken(delta)
        self._chars += len(text) + len(thought)
        heard = self._speech.take(text, thought)
        if delta.get("tool_calls"):
            heard = joined(heard, self._speech.leave_calls())
            try:
                self._chars += self._calls.take(delta["tool_calls"])
            except CallsUnreadable as error:
                self.reject(str(error))
        if self._chars > ANSWER_CHARS_MAX:
            self.reject(f"it goes on behind answer_chars_max={ANSWER_CHARS_MAX}")
        if isinstance(reason, str) and reason:
            self._reason = reason
            heard = joined(heard, self._speech.end())
        return heard

    def _spoken(self, delta: JsonObject) -> tuple[str, str]:
        """What a piece says and what it thinks."""
        # A refusal is what the model says instead of what it was asked to say.
        refusal, content = self._said(delta, "refusal"), delta.get("content")
        text, thought = self._parts(content) if isinstance(content, list) else (self._said(delta, "content"), "")
        if own := self._said(delta, _THOUGHT):
            self._thought_field = _THOUGHT
        elif self._thought_field != _THOUGHT:
            own = self._said(delta, self._thought_field)
        return text + refusal, own + thought

    def _parts(self, content: list[Any]) -> tuple[str, str]:
        """What a text says and thinks that comes in parts, each with a type. Parts nobody knows are passed over."""
        text = thought = ""
        for part in content:
            if not isinstance(part, dict):
                self.reject(f"a part of its content is a {type(part).__name__} instead of an object")
            if part.get("type") == "text":
                text += self._said(part, "text")
            elif part.get("type") == "thinking":
                inner = part.get("thinking")
                # In parts of its own, or as a text.
                pieces = [each for each in inner if isinstance(each, dict)] if isinstance(inner, list) else [part]
                thought += "".join([self._said(each, "thinking" if each is part else "text") for each in pieces])
        return text, thought

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
            self.reject(f"{limit} was reached before its shape was complete; allow more", text)


def timed(usage: TokenUsage, duration_ms: int) -> TokenUsage:
    """A usage with the time that it took."""
    return replace(usage, duration_ms=duration_ms)


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
