"""The Engine: what every model must offer, how it streams, and how it says that it failed.

Rule 1: an engine answers or raises EngineFault; any other exception is a bug of the engine.
Rule 2: an engine keeps nothing between calls: the answer follows from the request alone, so a resumed run can ask again.
Rule 3: when the task that awaits an engine is cancelled, the engine stops the call for real and lets the cancellation pass.
Rule 4: what is streamed is provisional; the answer is what `infer` returns.
Rule 5: the texts of a request are at hand; an engine never sees a digest.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from remit.core.clipped import clipped
from remit.core.declared_types import as_declared
from remit.core.failure import ErrorCode, InvariantBroken, RemitError, RequestRejected
from remit.core.journal.canonical import INTEGER_MAX
from remit.core.raised import raised
from remit.core.record import JsonObject, Record
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.usage import TokenUsage

# What can go wrong with a model; every other code belongs to other rooms.
INFERENCE_CODES = frozenset(
    {
        ErrorCode.INFERENCE_ENGINE_ERROR,
        ErrorCode.INFERENCE_MODEL_UNAVAILABLE,
        ErrorCode.INFERENCE_CONTEXT_EXCEEDED,
        ErrorCode.INFERENCE_MALFORMED_RESPONSE,
    }
)

ENGINE_FAULT_MISCODED = "ENGINE_FAULT_MISCODED"


# What a figure of a model may not be below; a window of 0 is one that is not known.
_LEAST = {"context_window": 0, "template_tokens": 0, "calls_at_once": 1}


class StreamChunk(Record):
    """A piece of an answer on its way: what the model said since the last one, and what it thought."""

    text: str = ""
    reasoning: str = ""


class Restarted(Record):
    """Whatever was streamed of this answer before is void; it begins anew.

    No engine sends it: the caller that asks a model again tells those who watch.
    """


StreamHandler: TypeAlias = Callable[[StreamChunk], None]


class Engine(Protocol):
    """A model that can be asked."""

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer to a request, or EngineFault. The handler gets the pieces in order, joined they are the answer."""

    def model_info(self) -> ModelInfo:
        """What is known about the model before it is asked. It never changes while the engine lives."""


class AnyEngine(Protocol):
    """An engine as users write it: `infer` may be a plain function, and may leave the handler of pieces out."""

    @property
    def infer(self) -> Callable[[ModelRequest], ModelResult | Awaitable[ModelResult]]:
        """The answer to a request, or EngineFault."""

    def model_info(self) -> ModelInfo:
        """What is known about the model before it is asked."""


# Whether a provider can hold its model to a schema in strict mode.
StrictJudge: TypeAlias = Callable[[JsonObject], bool]


def strict_judge(engine: AnyEngine) -> StrictJudge | None:
    """Who says which schemas the engine's provider takes in strict mode, which it demands; None where none is demanded.

    An engine says so with an attribute of the same name; one without it takes schemas as they are.
    """
    judge = getattr(engine, "strict_judge", None)
    return judge if callable(judge) else None


class EngineFault(RemitError):
    """A model call failed. `usage` is what it cost all the same; `was_cut` says that its cost is unknown.

    `retry_after_s` is how long the server asked to be left alone, 0 when it did not ask. `said` is the text of an answer
    that had to keep a shape and reached the limit of its tokens before that was complete; the caller that asks again can say so.
    `is_final` says that asking again would come to the same: a key that is refused stays refused.
    """

    code: ErrorCode

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        usage: TokenUsage | None = None,
        was_cut: bool = False,
        retry_after_s: int = 0,
        said: str = "",
        is_final: bool = False,
    ) -> None:
        if code not in INFERENCE_CODES:
            allowed = ", ".join(sorted(INFERENCE_CODES))
            raise InvariantBroken(ENGINE_FAULT_MISCODED, f"an engine failed with {code!s:.80}; it may use {allowed}")
        super().__init__(ErrorCode(code), message)
        self.usage = usage or TokenUsage()
        self.was_cut = was_cut
        self.retry_after_s = retry_after_s
        self.said = said
        self.is_final = is_final


def check_engine(engine: object) -> None:
    """Refuse what cannot be asked, and what tells nothing of its model that a run could be planned or written down with."""
    if isinstance(engine, type):
        message = f"the class {engine.__name__} is no engine; make one of it: {engine.__name__}(…)"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    kind, model_info = type(engine).__name__, getattr(engine, "model_info", None)
    if not callable(getattr(engine, "infer", None)) or not callable(model_info):
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, f"a {kind} is no engine: it lacks infer() or model_info()")
    try:
        told: object = model_info()
    except RemitError:
        raise
    except Exception as error:
        message = f"model_info() of a {kind} raised {raised(error)[:400]}"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message) from error
    if not isinstance(told, ModelInfo):
        message = f"model_info() of a {kind} gave {clipped(told)}; it gives a ModelInfo, in a plain def"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    if problem := _problem_of(told):
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, f"{kind}.{problem}")


def _problem_of(info: Any) -> str:
    """What is wrong with the ModelInfo of an engine; empty where nothing is."""
    figures = [(info.price, field, 0) for field in Price.__struct_fields__] if type(info.price) is Price else []
    figures += [(info, field, least) for field, least in _LEAST.items()]
    is_typed = type(info.name) is str and type(info.calls_by_grammar) is bool and isinstance(info.price, Price | None)
    if not is_typed or any(type(getattr(owner, field)) is not int for owner, field, _ in figures):
        try:
            as_declared(info, ModelInfo, "model_info()", ErrorCode.CONFIG_NO_ENGINE)
        except RequestRejected as refused:
            return refused.message
    if not info.name.strip() or info.name.encode(errors="ignore").decode() != info.name:
        return f"model_info(): name={clipped(info.name)} is none; give the model a name"
    for owner, field, least in figures:
        if not least <= getattr(owner, field) <= INTEGER_MAX:
            return f"model_info(): {field}={getattr(owner, field)} is outside {least} to {INTEGER_MAX}"
    return ""
