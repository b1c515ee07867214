"""An answer put together from the events in which the Messages API streams it.

Rule 1: the first event tells what was read, the last one what was written. An answer of which one is missing is counted
        by its bytes; of anything less, the cost is unknown.
Rule 2: unknown events, blocks and pieces are passed over: the API may add to them at any time.
"""

from typing import Any

from remit.core.record import JsonObject
from remit.core.run.inference import ModelInfo, ModelRequest
from remit.core.run.usage import TokenUsage
from remit.inference.answers.speech import Speech
from remit.inference.answers.streamed_answer import ServerFailed, StreamedAnswer, figure
from remit.inference.endpoint.faults import EndpointPlace
from remit.inference.engine import StreamChunk

# What a prompt is made of: what was read anew, what was kept for later, and what had been kept.
_PROMPT_FIGURES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class MessagesAnswer(StreamedAnswer):
    """Takes the events of one answer of the Messages API."""

    __slots__ = ("_figures",)

    STOPPED = frozenset({"end_turn", "stop_sequence", "tool_use"})
    RAN_OUT = frozenset({"max_tokens", "model_context_window_exceeded"})
    WITHHELD = ("refusal", "the server's safeguards refused to go on with it")

    def __init__(
        self, request: ModelRequest, info: ModelInfo, place: EndpointPlace, speech: Speech | None = None
    ) -> None:
        super().__init__(request, info, place, speech)
        self._figures: JsonObject = {}

    def _take_value(self, value: JsonObject) -> StreamChunk | None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        match value.get("type"):
            case "message_start":
                self._count(self._part(value, "message"))
                # What had been written by then is not what will have been.
                self._figures.pop("output_tokens", None)
            case "content_block_start":
                return self._begin(value.get("index"), self._part(value, "content_block"))
            case "content_block_delta":
                return self._go_on(value.get("index"), self._part(value, "delta"))
            case "message_delta":
                reason = self._part(value, "delta").get("stop_reason")
                self._reason = reason if isinstance(reason, str) else self._reason
                self._count(value)
                self._usage = usage_of(self._figures, window=self._info.context_window)
                return self._speech.end() if self._reason else None
            case "message_stop":
                self.is_over = True
            case "error":
                raise ServerFailed(value.get("error"))
        return None

    def _part(self, value: JsonObject, key: str) -> JsonObject:
        part = value.get(key)
        if not isinstance(part, dict):
            self.reject(f"a piece holds a {type(part).__name__} instead of an object as its {key}")
        return part

    def _begin(self, index: Any, block: JsonObject) -> StreamChunk | None:
        match block.get("type"):
            case "tool_use":
                # The input stands here only where it is not streamed.
                function = {"name": block.get("name"), "arguments": block.get("input") or None}
                self._take_calls([{"index": index, "id": block.get("id"), "function": function}])
                return self._speech.leave_calls()
            case "text":
                return self._hear(self._said(block, "text"), "")
            case "thinking":
                return self._hear("", self._said(block, "thinking"))
        return None

    def _go_on(self, index: Any, delta: JsonObject) -> StreamChunk | None:
        match delta.get("type"):
            case "text_delta":
                return self._hear(self._said(delta, "text"), "")
            case "thinking_delta":
                return self._hear("", self._said(delta, "thinking"))
            case "input_json_delta":
                self._take_calls([{"index": index, "function": {"arguments": delta.get("partial_json")}}])
        return None

    def _hear(self, text: str, thought: str) -> StreamChunk | None:
        if not text and not thought:
            return None
        self._keep(len(text) + len(thought))
        return self._speech.take(text, thought)

    def _count(self, holder: JsonObject) -> None:
        figures = holder.get("usage")
        if isinstance(figures, dict):
            self._figures |= {name: value for name, value in figures.items() if value is not None}


def usage_of(figures: JsonObject, *, window: int) -> TokenUsage:
    """What a server says was used; figures that make no sense count as not reported.

    What was kept for later and what had been kept are part of the prompt, and charged like it.
    """
    prompt = [figure(figures.get(name, 0)) for name in _PROMPT_FIGURES]
    completion = figure(figures.get("output_tokens", 0))
    details = figures.get("output_tokens_details")
    reasoning = figure(details.get("thinking_tokens") or 0) if isinstance(details, dict) else 0
    if "input_tokens" not in figures or None in prompt or completion is None or reasoning is None:
        return TokenUsage()
    read = sum(each or 0 for each in prompt)
    reasoning = min(reasoning, completion)
    return TokenUsage(read, reasoning, completion - reasoning, read + completion, window)
