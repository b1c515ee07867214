"""An answer that a server streams: what is the same for every API, from the first event to the result.

Rule 1: an answer is whole when the server has said why it stopped; anything less is a fault.
Rule 2: a text that ran into its limit is an answer, but not when it had to keep a shape, nor when nothing was said.
Rule 3: what the server withheld is no answer: its rest is missing. It may be asked for again.
Rule 4: a fault carries the usage that was reported; without one, the cost of the call is unknown.
Rule 5: usage that makes no sense counts as not reported: an answer is then counted by its bytes.
Rule 6: a server that repeats the key is not quoted: neither in a message, nor in the answer, which is journaled.
Rule 7: tokens that a server did not count are bounded by bytes, since every token takes at least one. What was reported
        stands; a figure that is missing, or 0 where something was read or said, becomes its bound. A bound is never 0 and
        no larger than what a run reserves for the same call. Schemas and grammars count nothing: they hold the decoder, and
        servers that count nothing do not show them to the model.
"""

from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, NamedTuple, NoReturn

from remit.core.failure import ErrorCode
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.journal.codec import read_json
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, replace, size_bytes
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Message, Role
from remit.core.run.usage import TokenUsage
from remit.inference.answers.call_pieces import CallPieces, CallsUnreadable
from remit.inference.answers.speech import Speech, plain_speech
from remit.inference.endpoint.faults import EndpointPlace
from remit.inference.engine import EngineFault, StreamChunk

# Tokens that a template puts around a message, a call, a tool or an answer; as much as a run reserves for it.
OVERHEAD_TOKENS = 16


class Generated(NamedTuple):
    """The bytes of an answer as they came: what was thought, what was said, and the calls that the server made of it."""

    thought_bytes: int
    said_bytes: int
    calls: int = 0


def bounded_usage(usage: TokenUsage, request: ModelRequest, info: ModelInfo, generated: Generated) -> TokenUsage:
    """The usage of an answer, with a bound in the place of every figure that was not reported."""
    if usage.prompt_tokens and usage.completion_tokens:
        return usage
    prompt = usage.prompt_tokens or prompt_bound(request, info)
    thought, said = usage.reasoning_tokens, usage.output_tokens
    if not usage.completion_tokens:
        thought, said = _generated_bound(request.max_tokens, generated)
    return replace(
        usage,
        prompt_tokens=prompt,
        reasoning_tokens=thought,
        output_tokens=said,
        context_tokens=prompt + thought + said,
        context_window=info.context_window,
    )


def prompt_bound(request: ModelRequest, info: ModelInfo) -> int:
    """No prompt that shows this request to this model has more tokens."""
    messages = sum(_message_bytes(message) + OVERHEAD_TOKENS for message in request.messages)
    tools = sum(_tool_bytes(tool) + OVERHEAD_TOKENS for tool in request.tools)
    return messages + tools + info.template_tokens


def _generated_bound(tokens_max: int, generated: Generated) -> tuple[int, int]:
    """What was thought and what was said, together within the limit if there was one."""
    thought = generated.thought_bytes
    said = generated.said_bytes + (1 + generated.calls) * OVERHEAD_TOKENS
    if tokens_max <= 0:
        return thought, said
    thought = min(thought, tokens_max)
    # A server may make calls of a text that was longer than what it tells of them: then only the limit is sure.
    return thought, tokens_max - thought if generated.calls else min(said, tokens_max - thought)


def _message_bytes(message: Message) -> int:
    # What was thought is not shown again.
    size = size_bytes(message.content) + size_bytes(message.tool_call_id) + size_bytes(message.name)
    for call in message.tool_calls:
        size += size_bytes(call.id) + size_bytes(call.name) + _json_bytes(call.arguments) + OVERHEAD_TOKENS
    return size


def _tool_bytes(tool: ToolDefinition) -> int:
    return size_bytes(tool.name) + size_bytes(tool.description) + _json_bytes(tool.parameters)


def _json_bytes(value: JsonObject) -> int:
    try:
        return len(canonical_json(value))
    except NotCanonical:
        # Sending it fails; a count need not.
        return len(repr(value).encode(errors="replace"))


# Longer than any model writes in one go; what lies beyond is a server that has lost its way.
ANSWER_CHARS_MAX = 16 * 1024 * 1024
# The largest figure of a usage; sums and prices made of it still fit the 64 bits of a record.
FIGURE_MAX = 2**40 - 1
# As much of an unknown reason as is needed to look it up.
REASON_CHARS_MAX = 40


class ServerFailed(Exception):
    """The server announced a failure in the middle of its answer. `error` is what it said."""

    def __init__(self, error: Any) -> None:
        super().__init__("the server failed while it answered")
        self.error = error


class StreamedAnswer(ABC):
    """Takes the events of one answer, and says in the end what it came to. `is_over` says that no more events count."""

    __slots__ = ("_calls", "_chars", "_info", "_place", "_reason", "_request", "_speech", "_usage", "is_over")

    # How an API says that an answer is done, that it ran into its limit, and that its rest was withheld, and by whom.
    STOPPED: ClassVar[AbstractSet[str]]
    RAN_OUT: ClassVar[AbstractSet[str]]
    WITHHELD: ClassVar[tuple[str, str]]

    def __init__(
        self, request: ModelRequest, info: ModelInfo, place: EndpointPlace, speech: Speech | None = None
    ) -> None:
        self.is_over = False
        self._request = request
        self._info = info
        self._place = place
        self._speech = speech or plain_speech(request, place.blotted)
        self._calls = CallPieces()
        self._usage = TokenUsage()
        self._reason = ""
        self._chars = 0

    def take(self, event: bytes) -> StreamChunk | None:
        """What an event adds to the answer, if it adds something."""
        try:
            value = read_json(event)
        except (ValueError, RecursionError):
            self.reject(f"a piece of {len(event)} bytes is no JSON", is_final=True)
        if not isinstance(value, dict):
            self.reject(f"a piece is a {type(value).__name__} instead of an object", is_final=True)
        return self._take_value(value)

    @abstractmethod
    def _take_value(self, value: JsonObject) -> StreamChunk | None:
        """What the value of an event adds to the answer; raises ServerFailed where it announces a failure."""

    def result(self, duration_ms: int) -> ModelResult:
        """The whole answer, now that no more events come."""
        if not self._reason:
            self.reject("it ended without saying why it stopped")
        withheld, problem = self.WITHHELD
        if self._reason == withheld:
            self.reject(f"{problem}; ask for something else")
        has_run_out = self._reason in self.RAN_OUT
        if not has_run_out and self._reason not in self.STOPPED:
            reason = self._place.said(self._reason)[:REASON_CHARS_MAX]
            self.reject(f"it stopped because of {reason!r}, which is not known")
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
        usage = bounded_usage(self._usage, self._request, self._info, generated)
        return ModelResult(
            content=text,
            reasoning=self._speech.reasoning,
            tool_calls=calls,
            usage=replace(usage, duration_ms=duration_ms),
            finish_reason=FinishReason.TOOL if calls else FinishReason.STOP,
            model=self._info.name,
        )

    def reject(self, problem: str, said: str = "", *, is_final: bool = False) -> NoReturn:
        """Give the answer up as one that cannot be read; `said` is what there is of one that was cut.

        What speaks no JSON is no server of models, and `is_final`: it is not asked again.
        """
        message = f"the answer of model {self._info.name!r} cannot be read: {problem}"
        code = ErrorCode.INFERENCE_MALFORMED_RESPONSE
        # Half a usage says as little as none.
        is_counted = self._usage.prompt_tokens and self._usage.completion_tokens
        raise EngineFault(code, message, usage=self._usage, was_cut=not is_counted, said=said, is_final=is_final)

    def _said(self, part: JsonObject, key: str) -> str:
        """The text under a key, without the key of the server; empty where there is none."""
        said = part.get(key)
        if said is None:
            return ""
        if not isinstance(said, str):
            self.reject(f"its {key} is a {type(said).__name__} instead of a text")
        return self._place.blotted(said)

    def _take_calls(self, pieces: Any) -> None:
        """Add pieces of calls to those that are there."""
        try:
            self._keep(self._calls.take(pieces))
        except CallsUnreadable as error:
            self.reject(str(error))

    def _keep(self, chars: int) -> None:
        self._chars += chars
        if self._chars > ANSWER_CHARS_MAX:
            self.reject(f"it goes on behind answer_chars_max={ANSWER_CHARS_MAX}")

    def _judge_cut(self, text: str) -> None:
        """Refuse an answer that ran into its limit and is of no use without its end."""
        limit = f"max_tokens={self._request.max_tokens}" if self._request.max_tokens else "the limit of the server"
        if self._calls.is_cut():
            self.reject(f"{limit} was reached within a call; allow more")
        if not text and not self._calls:
            self.reject(f"{limit} was reached before anything was said; allow more")
        if (self._request.schema is not None or self._request.grammar) and not self._calls:
            self.reject(f"{limit} was reached before its shape was complete; allow more", text)


def figure(value: Any) -> int | None:
    """A figure of a usage; None where it makes no sense."""
    return value if type(value) is int and 0 <= value <= FIGURE_MAX else None
