"""An answer put together from the events in which the Messages API streams it.

Rule 1: an answer is whole when the server has said why it stopped; anything less is a fault.
Rule 2: a text that ran into its limit is an answer, but not when it had to keep a shape, nor when nothing was said.
Rule 3: what the server's safeguards refused is no answer: its rest is missing. It may be asked for again.
Rule 4: the first event tells what was read, the last one what was written. An answer of which one is missing is counted
        by its bytes; of anything less, nobody knows what it cost.
Rule 5: events, blocks and pieces nobody knows are passed over: the API may add to them at any time.
Rule 6: a server that repeats the key is not quoted: neither in a message, nor in the answer, which is journaled.
"""

from typing import Any, NoReturn

from remit.core.failure import ErrorCode
from remit.core.journal.codec import read_json
from remit.core.record import JsonObject
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Role
from remit.core.run.usage import TokenUsage
from remit.inference.answers.speech import Speech, plain_speech
from remit.inference.answers.token_bounds import Generated, counted
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.openai.answer import ANSWER_CHARS_MAX, FIGURE_MAX, REASON_CHARS_MAX, ServerFailed, timed
from remit.inference.openai.call_pieces import CallPieces, CallsUnreadable
from remit.inference.openai.faults import Place

STOPPED = frozenset({"end_turn", "stop_sequence", "tool_use"})
RAN_OUT = frozenset({"max_tokens", "model_context_window_exceeded"})
REFUSED = "refusal"

# What a prompt is made of: what was read anew, what was kept for later, and what had been kept.
_PROMPT_FIGURES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Answer:
    """Takes the events of one answer, and says in the end what it came to."""

    __slots__ = (
        "_calls",
        "_chars",
        "_figures",
        "_info",
        "_place",
        "_reason",
        "_request",
        "_speech",
        "_usage",
        "is_over",
    )

    def __init__(self, request: ModelRequest, info: ModelInfo, place: Place, speech: Speech | None = None) -> None:
        self.is_over = False
        self._request = request
        self._info = info
        self._place = place
        self._speech = speech or plain_speech(request, place.blotted)
        self._calls = CallPieces()
        self._figures: JsonObject = {}
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

    def result(self, duration_ms: int) -> ModelResult:
        """The whole answer, now that no more events come."""
        if not self._reason:
            self.reject("it ended without saying why it stopped")
        if self._reason == REFUSED:
            self.reject("the server's safeguards refused to go on with it; ask for something else")
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
                self._call({"index": index, "id": block.get("id"), "function": function})
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
                self._call({"index": index, "function": {"arguments": delta.get("partial_json")}})
        return None

    def _call(self, piece: JsonObject) -> None:
        try:
            self._keep(self._calls.take([piece]))
        except CallsUnreadable as error:
            self.reject(str(error))

    def _hear(self, text: str, thought: str) -> StreamChunk | None:
        if not text and not thought:
            return None
        self._keep(len(text) + len(thought))
        return self._speech.take(text, thought)

    def _keep(self, chars: int) -> None:
        self._chars += chars
        if self._chars > ANSWER_CHARS_MAX:
            self.reject(f"it goes on behind answer_chars_max={ANSWER_CHARS_MAX}")

    def _said(self, part: JsonObject, key: str) -> str:
        said = part.get(key)
        if said is None:
            return ""
        if not isinstance(said, str):
            self.reject(f"its {key} is a {type(said).__name__} instead of a text")
        return self._place.blotted(said)

    def _count(self, holder: JsonObject) -> None:
        figures = holder.get("usage")
        if isinstance(figures, dict):
            self._figures |= {name: value for name, value in figures.items() if value is not None}

    def _judge_cut(self, text: str) -> None:
        """Refuse an answer that ran into its limit and is of no use without its end."""
        limit = f"max_tokens={self._request.max_tokens}" if self._request.max_tokens else "the limit of the server"
        if self._calls.is_cut():
            self.reject(f"{limit} was reached within a call; allow more")
        if not text and not self._calls:
            self.reject(f"{limit} was reached before anything was said; allow more")
        if self._request.schema is not None and not self._calls:
            self.reject(f"{limit} was reached before its shape was complete; allow more", text)


def usage_of(figures: JsonObject, *, window: int) -> TokenUsage:
    """What a server says was used; figures that make no sense count as not reported.

    What was kept for later and what had been kept are part of the prompt, and charged like it.
    """
    prompt = [_figure(figures.get(name, 0)) for name in _PROMPT_FIGURES]
    completion = _figure(figures.get("output_tokens", 0))
    details = figures.get("output_tokens_details")
    reasoning = _figure(details.get("thinking_tokens") or 0) if isinstance(details, dict) else 0
    if "input_tokens" not in figures or None in prompt or completion is None or reasoning is None:
        return TokenUsage()
    read = sum(each or 0 for each in prompt)
    reasoning = min(reasoning, completion)
    return TokenUsage(read, reasoning, completion - reasoning, read + completion, window)


def _figure(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= FIGURE_MAX else None
