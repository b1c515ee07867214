"""Asking a model: one CallModel, one engine, one report.

Rule 1: the request is made from the run's history and its manifest alone, so a call can be repeated elsewhere.
Rule 2: whatever an engine does, the run gets a report with a code; a call that took too long was cut and is charged so.
Rule 3: the words of an unexpected error may hold secrets: they are logged for the operator, never journaled.
Rule 4: streaming passes beside the journal. A listener that breaks loses the rest of the answer, and the run goes on.
Rule 5: what only looks like an answer is not streamed: a call that a model writes as text is passed on to no listener.
Rule 6: those who listen hear no secret: a word that may be a part of one is held until it is whole.
Rule 7: an answer that breaks its shape, or was cut before it was complete, is reported with what is wrong with it where
        the run checks it next: the model is told. Where it does not, the call has failed.
Rule 8: of a chain, each member is asked in the way that suits it, and its answer is read in that way; the deadline is one
        for all of them.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from remit.constraint.grammar.notation import GRAMMAR_UNCHECKABLE
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.journal.commands import CallModel, place_in_journal
from remit.core.json_fault import nests_deeper
from remit.core.record import replace
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Routing
from remit.inference.answers.text_calls import begins_a_call
from remit.inference.chain import ChainEngine, Ear
from remit.inference.engine import AnyEngine, EngineFault, Restarted, StreamChunk, StreamHandler
from remit.observe.logs import command_fields
from remit.orchestrate.bus.bus import AnswerRelay
from remit.orchestrate.exchange.call_shape import (
    TOOLS_OFFERED_MAX,
    Circumstances,
    Hearing,
    ShapeBreach,
    Shaped,
    Unfit,
    is_plain,
    occasion_of,
    read_answer,
    read_cut,
    shaped,
    strictly,
)
from remit.orchestrate.exchange.veil import Veil
from remit.orchestrate.executors.errands import ModelErrand
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import ModelSaid, Report
from remit.orchestrate.loop.deadlines import TimeRanOut, within
from remit.orchestrate.setup.kit import Kit
from remit.rerank.router import ROUTER_MISSING, Router, check_routing, has_embeddings
from remit.tool.call.threads import call_user_code

MS_PER_SECOND = 1000

# Of so many runs the last streamed call is remembered, so that those who watch learn when it begins anew.
STREAMS_REMEMBERED_MAX = 1024

# What is missing here, and not wrong with the grammar. Asking again would find it missing again.
_CODES = {ROUTER_MISSING: ErrorCode.CONFIG_NO_ENGINE, GRAMMAR_UNCHECKABLE: ErrorCode.CONFIG_NO_ENGINE}

# Looking a member up in its enum takes longer than comparing with it, and every call comes by these.
_NOTHING, _ALL, _ERROR = Hearing.NOTHING, Hearing.ALL, FinishReason.ERROR

_log = logging.getLogger(__name__)


class ModelExecutor:
    """Performs ModelErrand."""

    def __init__(self, resources: ProcessResources) -> None:
        self.resources = resources
        self._streamed: dict[str, str] = {}
        self._has_missed_router = False

    async def __call__(self, errand: ModelErrand, kit: Kit) -> Report:
        """Ask the engine of the command's model and report what it said, or why it did not."""
        command = errand.command
        engine = kit.engines.get(command.model)
        if engine is None:
            known = ", ".join(kit.engines) or "none"
            message = f"no engine is here for model {command.model!r}; there are {known}"
            return ModelFailed(command.id, ErrorCode.CONFIG_NO_ENGINE, message)
        answer = await self._answer(errand, kit, engine)
        if isinstance(answer, ModelFailed):
            return answer
        shape, result = answer
        if isinstance(result, ShapeBreach):
            return ModelSaid(command.id, result.result, shape.offered, (result.violation,))
        if shape.is_plain:
            return ModelSaid(command.id, result, shape.offered)
        # Reading by a grammar takes time that grows with the text.
        found = await asyncio.to_thread(read_answer, shape, result, command.messages_count)
        if isinstance(found, Unfit):
            return ModelFailed(command.id, found.code, found.problem, result.usage)
        if not isinstance(found, ShapeBreach):
            return ModelSaid(command.id, found, shape.offered)
        if not errand.is_checked:
            return ModelFailed(command.id, found.code, found.violation.message, result.usage)
        return ModelSaid(command.id, found.result, shape.offered, (found.violation,))

    async def _answer(
        self, errand: ModelErrand, kit: Kit, engine: AnyEngine
    ) -> tuple[Shaped, ModelResult | ShapeBreach] | ModelFailed:
        """The answer with the shape in which it was asked for."""
        command, asking = errand.command, _Asking(self, errand, kit, engine)
        try:
            result = await within(command.timeout_ms, asking(engine, Ear()))
        except _Unshaped as unshaped:
            if not isinstance(unshaped.cause, RequestRejected):
                raise unshaped.cause from None
            code = _CODES.get(unshaped.cause.code, ErrorCode.CONSTRAINT_GRAMMAR_REJECTED)
            return ModelFailed(command.id, code, f"{unshaped.cause.code}: {unshaped.cause.message}")
        except EngineFault as fault:
            cut = read_cut(asking.shape, fault, asking.model) if errand.is_checked else None
            if cut is not None:
                return asking.shape, cut
            retry_after_ms = fault.retry_after_s * MS_PER_SECOND
            return ModelFailed(
                command_id=command.id,
                code=fault.code,
                message=fault.message,
                usage=fault.usage,
                was_cut=fault.was_cut,
                retry_after_ms=retry_after_ms,
                is_final=fault.is_final,
            )
        except TimeRanOut:
            message = f"model {command.model!r} did not answer within timeout_ms={command.timeout_ms}"
            return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, was_cut=True)
        except Exception as error:  # noqa: BLE001  # no engine may break its run
            _log.exception("the engine of %s broke", command.model, extra=_fields(errand))
            message = f"the engine of model {command.model!r} raised {type(error).__name__}"
            return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, was_cut=True)
        whole = _whole(command, result)
        return whole if isinstance(whole, ModelFailed) else (asking.shape, whole)

    async def shaped(self, errand: ModelErrand, kit: Kit, engine: AnyEngine, info: ModelInfo) -> Shaped:
        """What this engine is to be asked for an errand that cannot go to it as it stands."""
        request, sealer = errand.request, self.resources.sealer
        if request.options and sealer is not None:
            request = replace(request, options=sealer.filled(errand.sender.family, request.options))
        if is_plain(request, info):
            shape = Shaped(request)
        else:
            router = self._router(errand, kit, info, len(request.tools))
            occasion = errand.occasion or occasion_of(request, request.messages, errand.began)
            # The first question loads the router, and a grammar takes its time to be checked.
            shape = await asyncio.to_thread(shaped, request, Circumstances(info, router, occasion))
        return shape if request.schema is None else strictly(shape, engine)

    def _router(self, errand: ModelErrand, kit: Kit, info: ModelInfo, tools_count: int) -> Router | None:
        """Choose what shortlists the tools of this call: the router of the kit, the embedding one, or None."""
        routing = errand.routing
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
                _log.warning("no router: wordllama is not installed, so every tool is offered", extra=_fields(errand))
            return None
        from remit.rerank.embedding import embedding_router

        return embedding_router()

    def stream(self, errand: ModelErrand) -> AnswerRelay | None:
        """Begin to stream an answer; gives what passes its pieces on, None without a listener. A new attempt is a restart."""
        run_id, command, bus = errand.sender.run_id, errand.command, self.resources.bus
        if bus is None or not bus.is_heard:
            return None
        answer = bus.answer(run_id, place_in_journal(command.id)[0])
        if answer is None:
            return None
        # Taken out and put back, so that the run that streamed last is the last to be forgotten.
        if self._streamed.pop(run_id, "") == command.id or command.attempt > 1:
            answer.send(Restarted())
        self._streamed[run_id] = command.id
        if len(self._streamed) > STREAMS_REMEMBERED_MAX:
            del self._streamed[next(iter(self._streamed))]
        return answer


# What was asked before anything was.
_UNASKED = Shaped(ModelRequest(()))


class _Unshaped(Exception):
    """What an engine is to be asked could not be made; the cause says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Asking:
    """Asks an engine, or one member of a chain after the other; `shape` is what the last one was asked, `model` its name."""

    __slots__ = ("_answer", "_engine", "_errand", "_executor", "_kit", "model", "shape")

    def __init__(self, executor: ModelExecutor, errand: ModelErrand, kit: Kit, engine: AnyEngine) -> None:
        self._executor = executor
        self._errand = errand
        self._kit = kit
        self._engine = engine
        self._answer: AnswerRelay | None = None
        self.model = ""
        self.shape = _UNASKED

    async def __call__(self, asked: AnyEngine, ear: Ear) -> ModelResult:
        if isinstance(asked, ChainEngine):
            return await asked.first_served(self)
        errand, sealer = self._errand, self._executor.resources.sealer
        # What the manifest says of the command's model: the request must not depend on who performs it.
        info = errand.info if asked is self._engine and errand.info is not None else asked.model_info()
        self.model = info.name
        request = errand.request
        if request.schema is None and not request.options and is_plain(request, info):
            self.shape = Shaped(request)
        else:
            try:
                self.shape = await self._executor.shaped(errand, self._kit, asked, info)
            except Exception as error:  # it is told from what the engine raises, and passes on
                raise _Unshaped(error) from error
        listener = self._listener()
        if listener is None or sealer is None:
            return await _infer(asked, self.shape.request, ear.before(listener))
        veil = Veil(listener, partial(sealer.text, errand.sender.family, errand.request.messages))
        try:
            return await _infer(asked, self.shape.request, ear.before(veil.send))
        finally:
            veil.flush()

    def _listener(self) -> StreamHandler | None:
        if self.shape.hearing is _NOTHING:
            return None
        # One for all members: none is asked after another was heard.
        if self._answer is None:
            self._answer = self._executor.stream(self._errand)
        if self._answer is None:
            return None
        return self._answer.send if self.shape.hearing is _ALL else _Held(self._answer.send).send


async def _infer(engine: AnyEngine, request: ModelRequest, on_chunk: StreamHandler | None) -> ModelResult:
    """The answer of an engine. One that takes the request alone may be no coroutine, and tells its answer as one piece."""
    infer: Callable[..., Any] = engine.infer
    function = getattr(infer, "__func__", infer)
    if _streams(function, is_method=function is not infer):
        said = infer(request, on_chunk)
        return await said if inspect.isawaitable(said) else said  # type: ignore[no-any-return]  # looked at by the caller
    result: ModelResult = await call_user_code(infer, request)
    if on_chunk is not None and isinstance(result, ModelResult):
        on_chunk(StreamChunk(result.content, result.reasoning))
    return result


@cache
def _streams(function: Callable[..., Any], *, is_method: bool) -> bool:
    """Whether a function takes a handler for the pieces of its answer, as one that shows no signature is taken to do."""
    try:
        inspect.signature(function).bind(*[None] * (2 + is_method))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


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


def _fields(errand: ModelErrand) -> dict[str, str]:
    return command_fields(errand.sender.run_id, errand.sender.correlation(errand.command.id))


def _whole(command: CallModel, result: ModelResult) -> ModelResult | ModelFailed:
    if type(result) is not ModelResult:
        message = f"the engine of model {command.model!r} returned a {type(result).__name__} instead of a ModelResult"
        return ModelFailed(command.id, ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, was_cut=True)
    if result.finish_reason is _ERROR:
        message = f"model {command.model!r} stopped with an error"
        return ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, message, result.usage)
    for call in result.tool_calls:
        if nests_deeper(call.arguments, DEPTH_MAX) or nests_deeper(call.metadata, DEPTH_MAX):
            message = (
                f"model {command.model!r} called {call.name!r:.80} with values nested deeper than depth_max={DEPTH_MAX}"
            )
            return ModelFailed(command.id, ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, result.usage)
    return result
