"""Asking a model: one CallModel, one engine, one report.

Rule 1: the request is made from the run's history and its manifest alone, so a call can be repeated elsewhere.
Rule 2: whatever an engine does, the run gets a report with a code; a call that took too long was cut and is charged so.
Rule 3: the words of an error nobody expected may hold secrets: they are logged for the operator, never journaled.
Rule 4: streaming passes beside the journal. A listener that breaks loses the rest of the answer, and the run goes on.
"""

import logging
from collections.abc import Awaitable, Callable

from remit.core.arrivals import ModelFailed
from remit.core.commands import CallModel
from remit.core.failure import ErrorCode
from remit.core.inference import FinishReason, ModelRequest, ModelResult
from remit.core.record import Text
from remit.inference.engine import EngineFault, Restarted, StreamChunk, StreamHandler
from remit.kernel.state import RunState, pinned
from remit.observe.execution import selected_tools
from remit.observe.logs import run_fields
from remit.orchestrate.deadlines import TimeRanOut, within
from remit.orchestrate.kit import Kit, OnChunk
from remit.orchestrate.ports import Live
from remit.orchestrate.reports import ModelSaid, Report

# Of so many runs the last streamed call is remembered, so that those who watch learn when it begins anew.
STREAMS_REMEMBERED_MAX = 1024

_log = logging.getLogger(__name__)


class ModelExecutor:
    """Performs CallModel."""

    def __init__(self, kit_of: Callable[[str], Kit], text: Callable[[Text], Awaitable[str]]) -> None:
        self._kit_of = kit_of
        self._text = text
        self._streamed: dict[str, str] = {}

    async def __call__(self, live: Live, command: CallModel) -> Report:
        """Ask the engine of the command's model and report what it said, or why it did not."""
        kit = self._kit_of(live.run_id)
        engine = kit.engines.get(command.model)
        if engine is None:
            known = ", ".join(kit.engines) or "none"
            message = f"nobody here has an engine for model {command.model!r}; there are {known}"
            return ModelFailed(command.id, ErrorCode.CONFIG_NO_ENGINE, message)
        request = await self._request(live, command)
        on_chunk = None if kit.on_chunk is None else self._stream(live, command, kit.on_chunk)
        try:
            result = await within(command.timeout_ms, engine.infer(request, on_chunk))
        except EngineFault as fault:
            return ModelFailed(command.id, fault.code, fault.message, fault.usage, fault.was_cut)
        except TimeRanOut:
            message = f"model {command.model!r} did not answer within timeout_ms={command.timeout_ms}"
            return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, was_cut=True)
        except Exception as error:  # noqa: BLE001  # no engine may break its run
            fields = run_fields(live.run_id, live.state, command_id=command.id)
            _log.exception("the engine of %s broke", command.model, extra=fields)
            message = f"the engine of model {command.model!r} raised {type(error).__name__}"
            return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, was_cut=True)
        return _report(command, result)

    async def _request(self, live: Live, command: CallModel) -> ModelRequest:
        conversation = live.conversation
        messages = await conversation.whole(live.state, command.messages_count, self._text)
        terms = conversation.terms
        if terms is None:
            terms = conversation.terms = _terms(live.state)
        return ModelRequest(
            messages,
            terms.tools,
            terms.schema,
            terms.grammar,
            command.max_tokens,
            terms.temperature,
            terms.top_p,
            terms.tool_choice,
            terms.options,
            command.attempt,
        )

    def _stream(self, live: Live, command: CallModel, on_chunk: OnChunk) -> StreamHandler:
        run_id = live.run_id
        stream = _Stream(live, command, on_chunk)
        # Taken out and put back, so that the run that streamed last is the last to be forgotten.
        if self._streamed.pop(run_id, "") == command.id or command.attempt > 1:
            stream.send(Restarted())
        self._streamed[run_id] = command.id
        if len(self._streamed) > STREAMS_REMEMBERED_MAX:
            del self._streamed[next(iter(self._streamed))]
        return stream.send


class _Stream:
    """Passes the pieces of one answer on for as long as whoever listens can take them."""

    __slots__ = ("_command", "_live", "_on_chunk", "is_broken")

    def __init__(self, live: Live, command: CallModel, on_chunk: OnChunk) -> None:
        self._live = live
        self._command = command
        self._on_chunk = on_chunk
        self.is_broken = False

    def send(self, chunk: StreamChunk | Restarted) -> None:
        if self.is_broken:
            return
        try:
            self._on_chunk(self._live.run_id, chunk)
        except Exception:  # noqa: BLE001  # no listener may break the run
            self.is_broken = True
            fields = run_fields(self._live.run_id, self._live.state, command_id=self._command.id)
            _log.exception("a listener broke; the rest of this answer is not streamed", extra=fields)


def _terms(state: RunState) -> ModelRequest:
    """What every request of a run has in common: the tools it may call, and what the caller wished."""
    request = pinned(state).request
    hints, output = request.hints, request.output
    return ModelRequest(
        messages=(),
        tools=tuple([state.tools[name] for name in selected_tools(state)]),
        schema=output.schema,
        grammar=output.grammar or "",
        temperature=hints.temperature,
        top_p=hints.top_p,
        tool_choice=request.tool_choice,
        options=hints.options,
    )


def _report(command: CallModel, result: ModelResult) -> Report:
    if type(result) is not ModelResult:
        message = f"the engine of model {command.model!r} returned a {type(result).__name__} instead of a ModelResult"
        return ModelFailed(command.id, ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, was_cut=True)
    if result.finish_reason is FinishReason.ERROR:
        message = f"model {command.model!r} stopped with an error"
        return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, result.usage)
    return ModelSaid(command.id, result)
