"""Asking a model: one CallModel, one engine, one report.

Rule 1: the request is made from the run's history and its manifest alone, so a call can be repeated elsewhere.
Rule 2: whatever an engine does, the run gets a report with a code; a call that took too long was cut and is charged so.
Rule 3: the words of an error nobody expected may hold secrets: they are logged for the operator, never journaled.
Rule 4: streaming passes beside the journal. A listener that breaks loses the rest of the answer, and the run goes on.
Rule 5: what only looks like an answer is not streamed: a call that a model writes as text is heard by nobody.
Rule 6: those who listen hear no secret: a word that may be a part of one is held until it is whole.
Rule 7: an answer that breaks its shape, or was cut before it was complete, is reported with what is wrong with it where
        the run checks it next: the model is told. Where it does not, the call has failed.
Rule 8: of a chain, each member is asked in the way that suits it, and its answer is read in that way; the deadline is one
        for all of them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from remit.constraint.notation import GRAMMAR_UNCHECKABLE
from remit.core.arrivals import ModelFailed
from remit.core.commands import CallModel
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Routing
from remit.core.record import Text
from remit.inference.chain import ChainEngine, Ear
from remit.inference.engine import Engine, EngineFault, Restarted, StreamChunk, StreamHandler, wants_grammars
from remit.inference.text_calls import begins_a_call
from remit.kernel.state import RunState, pinned
from remit.observe.execution import offered_tools
from remit.observe.logs import run_fields
from remit.orchestrate.deadlines import TimeRanOut, within
from remit.orchestrate.kit import Kit, OnChunk
from remit.orchestrate.ports import Live
from remit.orchestrate.reports import ModelSaid, Report
from remit.orchestrate.seals import Sealer
from remit.orchestrate.shaping import (
    TOOLS_OFFERED_MAX,
    Breach,
    Hearing,
    Shaped,
    Unfit,
    applied,
    circumstances,
    grammatically,
    is_checked,
    is_plain,
    read,
    read_cut,
    shaped,
    strictly,
)
from remit.orchestrate.veil import Veil
from remit.rerank.router import ROUTER_MISSING, Router, check_routing, has_embeddings

MS_PER_SECOND = 1000

# Of so many runs the last streamed call is remembered, so that those who watch learn when it begins anew.
STREAMS_REMEMBERED_MAX = 1024

# What is missing here, and not wrong with the grammar. Asking again would find it missing again.
_CODES = {ROUTER_MISSING: ErrorCode.CONFIG_NO_ENGINE, GRAMMAR_UNCHECKABLE: ErrorCode.CONFIG_NO_ENGINE}

_log = logging.getLogger(__name__)


class ModelExecutor:
    """Performs CallModel."""

    def __init__(
        self, kit_of: Callable[[str], Kit], text: Callable[[Text], Awaitable[str]], sealer: Sealer | None = None
    ) -> None:
        self._kit_of = kit_of
        self._text = text
        self.sealer = sealer
        self._streamed: dict[str, str] = {}
        self._has_missed_router = False

    async def __call__(self, live: Live, command: CallModel) -> Report:
        """Ask the engine of the command's model and report what it said, or why it did not."""
        kit = self._kit_of(live.run_id)
        engine = kit.engines.get(command.model)
        if engine is None:
            known = ", ".join(kit.engines) or "none"
            message = f"nobody here has an engine for model {command.model!r}; there are {known}"
            return ModelFailed(command.id, ErrorCode.CONFIG_NO_ENGINE, message)
        answer = await self._answer(live, command, kit, engine)
        if isinstance(answer, ModelFailed):
            return answer
        shape, result = answer
        if isinstance(result, Breach):
            return ModelSaid(command.id, result.result, shape.offered, (result.violation,))
        if shape.is_plain:
            return ModelSaid(command.id, result, shape.offered)
        # Reading by a grammar takes time that grows with the text.
        found = await asyncio.to_thread(read, shape, result, command.messages_count)
        if isinstance(found, Unfit):
            return ModelFailed(command.id, found.code, found.problem, result.usage)
        if not isinstance(found, Breach):
            return ModelSaid(command.id, found, shape.offered)
        if not is_checked(live.state):
            return ModelFailed(command.id, found.code, found.violation.message, result.usage)
        return ModelSaid(command.id, found.result, shape.offered, (found.violation,))

    async def _answer(
        self, live: Live, command: CallModel, kit: Kit, engine: Engine
    ) -> tuple[Shaped, ModelResult | Breach] | ModelFailed:
        """The answer with the shape in which it was asked for."""
        asking = _Asking(self, live, command, kit, engine)
        try:
            result = await within(command.timeout_ms, asking(engine, Ear()))
        except _Unshaped as unshaped:
            if not isinstance(unshaped.cause, RequestRejected):
                raise unshaped.cause from None
            code = _CODES.get(unshaped.cause.code, ErrorCode.CONSTRAINT_GRAMMAR_REJECTED)
            return ModelFailed(command.id, code, f"{unshaped.cause.code}: {unshaped.cause.message}")
        except EngineFault as fault:
            cut = read_cut(asking.shape, fault, asking.model) if is_checked(live.state) else None
            if cut is not None:
                return asking.shape, cut
            retry_after_ms = fault.retry_after_s * MS_PER_SECOND
            return ModelFailed(command.id, fault.code, fault.message, fault.usage, fault.was_cut, retry_after_ms)
        except TimeRanOut:
            message = f"model {command.model!r} did not answer within timeout_ms={command.timeout_ms}"
            return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, was_cut=True)
        except Exception as error:  # noqa: BLE001  # no engine may break its run
            fields = run_fields(live.run_id, live.state, command_id=command.id)
            _log.exception("the engine of %s broke", command.model, extra=fields)
            message = f"the engine of model {command.model!r} raised {type(error).__name__}"
            return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, was_cut=True)
        whole = _whole(command, result)
        return whole if isinstance(whole, ModelFailed) else (asking.shape, whole)

    async def shaped(self, live: Live, command: CallModel, kit: Kit, engine: Engine, info: ModelInfo) -> Shaped:
        """What this engine is to be asked for the command."""
        whole = await self._request(live, command)
        request, ask = applied(whole, live.state)
        if is_plain(request, info):
            shape = Shaped(request)
        else:
            router = self._router(live, kit, info, len(request.tools))
            given = circumstances(request, whole.messages, live.state, ask=ask, router=router, info=info)
            # The first question loads the router, and a grammar takes its time to be checked.
            shape = await asyncio.to_thread(shaped, request, given)
        if request.schema is None:
            return shape
        if wants_grammars(engine):
            shape = await asyncio.to_thread(grammatically, shape, engine)
            if shape.loosened:
                fields = run_fields(live.run_id, live.state, command_id=command.id)
                _log.info("the grammar of %s leaves to its schema: %s", command.model, shape.loosened, extra=fields)
        return strictly(shape, engine)

    def _router(self, live: Live, kit: Kit, info: ModelInfo, tools_count: int) -> Router | None:
        """Who shortlists the tools of this call: the kit's own router, the embedding one, or nobody."""
        routing = pinned(live.state).router
        if routing is Routing.NONE or not tools_count:
            return None
        if kit.router is not None:
            return kit.router
        check_routing(routing)
        if routing is Routing.AUTO and not info.calls_by_grammar and tools_count <= TOOLS_OFFERED_MAX:
            return None
        if not has_embeddings():
            if not self._has_missed_router:
                self._has_missed_router = True
                fields = run_fields(live.run_id, live.state)
                _log.warning("no router: wordllama is not installed, so every tool is offered", extra=fields)
            return None
        from remit.rerank.embedding import embedding_router

        return embedding_router()

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
            terms.options if self.sealer is None else self.sealer.filled(live, terms.options),
            command.attempt,
            terms.replica,
        )

    def stream(self, live: Live, command: CallModel, on_chunk: OnChunk) -> StreamHandler:
        """Who passes the pieces of an answer on; those who heard a part of it before are told that it begins anew."""
        run_id = live.run_id
        stream = _Stream(live, command, on_chunk)
        # Taken out and put back, so that the run that streamed last is the last to be forgotten.
        if self._streamed.pop(run_id, "") == command.id or command.attempt > 1:
            stream.send(Restarted())
        self._streamed[run_id] = command.id
        if len(self._streamed) > STREAMS_REMEMBERED_MAX:
            del self._streamed[next(iter(self._streamed))]
        return stream.send


class _Unshaped(Exception):
    """What an engine is to be asked could not be made; the cause says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Asking:
    """Asks an engine, or one member of a chain after the other; `shape` is what the last one was asked, `model` its name."""

    __slots__ = ("_command", "_engine", "_executor", "_kit", "_live", "_stream", "model", "shape")

    def __init__(self, executor: ModelExecutor, live: Live, command: CallModel, kit: Kit, engine: Engine) -> None:
        self._executor = executor
        self._live = live
        self._command = command
        self._kit = kit
        self._engine = engine
        self._stream: StreamHandler | None = None
        self.model = ""
        self.shape = Shaped(ModelRequest(()))

    async def __call__(self, asked: Engine, ear: Ear) -> ModelResult:
        if isinstance(asked, ChainEngine):
            return await asked.first_served(self)
        live, command = self._live, self._command
        info = _info(live.state, command, asked) if asked is self._engine else asked.model_info()
        self.model = info.name
        try:
            self.shape = await self._executor.shaped(live, command, self._kit, asked, info)
        except Exception as error:  # it is told from what the engine raises, and passes on
            raise _Unshaped(error) from error
        listener = self._listener()
        if listener is None or self._executor.sealer is None:
            return await asked.infer(self.shape.request, ear.before(listener))
        veil = Veil(listener, partial(self._executor.sealer.text, live))
        try:
            return await asked.infer(self.shape.request, ear.before(veil.send))
        finally:
            veil.flush()

    def _listener(self) -> StreamHandler | None:
        if self._kit.on_chunk is None or self.shape.hearing is Hearing.NOTHING:
            return None
        # One for all members: none is asked after another was heard.
        if self._stream is None:
            self._stream = self._executor.stream(self._live, self._command, self._kit.on_chunk)
        return self._stream if self.shape.hearing is Hearing.ALL else _Held(self._stream).send


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


class _Held:
    """Passes an answer on once its first letters say that it is words; a call begins with a brace, or with a mark."""

    __slots__ = ("_before", "_handler", "_is_call")

    def __init__(self, handler: StreamHandler) -> None:
        self._handler = handler
        self._before = ""
        self._is_call: bool | None = None

    def send(self, chunk: StreamChunk) -> None:
        if self._is_call is None:
            self._before += chunk.text
            self._is_call = begins_a_call(self._before)
            if self._is_call is None:
                return
            chunk = StreamChunk(self._before, chunk.reasoning)
        if not self._is_call:
            self._handler(chunk)


def _info(state: RunState, command: CallModel, engine: Engine) -> ModelInfo:
    """What the manifest says of the command's model: the request must not depend on who performs it."""
    return next((info for info in pinned(state).models if info.name == command.model), None) or engine.model_info()


def _terms(state: RunState) -> ModelRequest:
    """What every request of a run has in common: the tools it may call, and what the caller wished."""
    request = pinned(state).request
    hints, output = request.hints, request.output
    return ModelRequest(
        messages=(),
        tools=tuple([state.tools[name] for name in offered_tools(state)]),
        schema=output.schema,
        grammar=output.grammar or "",
        temperature=hints.temperature,
        top_p=hints.top_p,
        tool_choice=request.tool_choice,
        options=hints.options,
        replica=pinned(state).replica,
    )


def _whole(command: CallModel, result: ModelResult) -> ModelResult | ModelFailed:
    if type(result) is not ModelResult:
        message = f"the engine of model {command.model!r} returned a {type(result).__name__} instead of a ModelResult"
        return ModelFailed(command.id, ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, was_cut=True)
    if result.finish_reason is FinishReason.ERROR:
        message = f"model {command.model!r} stopped with an error"
        return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, result.usage)
    return result
