"""An answer put together from the events in which an OpenAI-compatible server streams it.

Rule 1: of two fields for what a model thought, `reasoning_content` wins: once it was heard, `reasoning` is not.
"""

from typing import Any

from remit.core.record import JsonObject
from remit.core.run.inference import ModelInfo, ModelRequest
from remit.core.run.usage import TokenUsage
from remit.inference.answers.speech import Speech, joined_pieces
from remit.inference.answers.streamed_answer import ServerFailed, StreamedAnswer, figure
from remit.inference.endpoint.faults import EndpointPlace
from remit.inference.engine import StreamChunk

# The event that says that no other follows.
DONE = b"[DONE]"

# Where most servers put what a model thought.
_THOUGHT = "reasoning_content"


class ChatAnswer(StreamedAnswer):
    """Takes the events of one answer of chat completions."""

    __slots__ = ("_thought_field",)

    STOPPED = frozenset({"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence"})
    RAN_OUT = frozenset({"length", "max_tokens", "model_length"})
    WITHHELD = ("content_filter", "the server's content filter withheld the rest of it")

    def __init__(
        self, request: ModelRequest, info: ModelInfo, place: EndpointPlace, speech: Speech | None = None
    ) -> None:
        super().__init__(request, info, place, speech)
        self._thought_field = "reasoning"

    def take(self, event: bytes) -> StreamChunk | None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Take in an event; gives what it adds to the answer, None for nothing. The last event is no JSON."""
        self.is_over = event == DONE
        return None if self.is_over else super().take(event)

    def _take_value(self, value: JsonObject) -> StreamChunk | None:  # type: ignore[explicit-override]
        # Under a field of its own, a failure is announced without a name.
        if value.get("error") or ("message" in value and "choices" not in value):
            raise ServerFailed(value.get("error") or value)
        if isinstance(value.get("usage"), dict):
            self._usage = usage_of(value["usage"], window=self._info.context_window)
        choice = _first_choice(value)
        return None if choice is None else self._take_choice(choice)

    def _take_choice(self, choice: JsonObject) -> StreamChunk | None:
        reason, delta = choice.get("finish_reason"), choice.get("delta") or {}
        if not isinstance(delta, dict):
            self.reject(f"a piece holds a {type(delta).__name__} instead of an object")
        text, thought = self._spoken(delta)
        self._keep(len(text) + len(thought))
        heard = self._speech.take(text, thought)
        if delta.get("tool_calls"):
            heard = joined_pieces(heard, self._speech.leave_calls())
            self._take_calls(delta["tool_calls"])
        if isinstance(reason, str) and reason:
            self._reason = reason
            heard = joined_pieces(heard, self._speech.end())
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
        """What a text says and thinks that comes in parts, each with a type. Unknown parts are passed over."""
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
    prompt, completion = figure(reported.get("prompt_tokens")), figure(reported.get("completion_tokens"))
    details = reported.get("completion_tokens_details")
    reasoning = figure(details.get("reasoning_tokens") or 0) if isinstance(details, dict) else 0
    if prompt is None or completion is None or reasoning is None:
        return TokenUsage()
    # Most servers count thinking as part of the completion, some beside it.
    is_beside = reasoning > completion or reported.get("total_tokens") == prompt + completion + reasoning
    output = completion if is_beside else completion - reasoning
    return TokenUsage(prompt, reasoning, output, prompt + reasoning + output, window)
