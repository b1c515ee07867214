"""The local engine: a model on this machine, loaded into this process. It needs no network and no key.

Rule 1: the event loop never computes: a thread asks the model, and what it says comes back to the loop in order.
Rule 2: a cancelled call ends at once for the caller. The model stops with its next token, or after the batch of the
        prompt that it is reading, and nothing more is heard of it.
Rule 3: it knows no tools: a caller that wants calls gives it a grammar, and reads them from its text.
Rule 4: an engine names its file and holds no model; what is loaded is shared by all engines of the process.
Rule 5: it has no source: weights are data, not code, and reading gigabytes for their digest with every run would cost
        more than the run. Its spec names the file, and a run that is resumed is told when the file is gone.
"""

import asyncio
import importlib.util
from pathlib import Path

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.installing import install_command
from remit.core.record import JsonObject
from remit.core.run.inference import TEMPLATE_TOKENS_MAX, ModelInfo, ModelRequest, ModelResult, Price
from remit.inference.engine import StreamChunk, StreamHandler
from remit.inference.local.answer import AnswerLimits, LocalAnswer, answer_limits
from remit.inference.local.models import find_model, header_of
from remit.inference.local.request import body_of
from remit.inference.local.server import LoadedModel, LoadedModels, window_of

LOCAL = "local"
RUNTIME_MODULE = "xllamacpp"

# The one thing of this process that is shared by all: a second copy of a model would double hundreds of megabytes.
_LOADED = LoadedModels()


class LocalEngine:
    """Asks the model in a GGUF file."""

    def __init__(self, path: Path, *, loaded: LoadedModels = _LOADED) -> None:
        header = header_of(path)
        self._path = path.resolve()
        self._loaded = loaded
        self._control_tokens = header.control_tokens
        self._info = ModelInfo(
            f"{LOCAL}:{path.stem}",
            window_of(header.context_length),
            Price(0, 0),
            calls_by_grammar=True,
            template_tokens=TEMPLATE_TOKENS_MAX,
        )

    @property
    def spec(self) -> str:
        """What opens the same engine again."""
        return f"{LOCAL}:{self._path}"

    def model_info(self) -> ModelInfo:
        """The model in the file. Its window is what one conversation may have here."""
        return self._info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer to a request, made in a thread."""
        body = body_of(request, self._control_tokens)
        model = self._loaded.of(self._path, self._info.context_window)
        call = _Call(asyncio.get_running_loop(), answer_limits(request, self._info.context_window), on_chunk)
        return await call.made(model, body, self._info.name)


class _Call:
    """One call: asks in a thread, and brings what the model says to the listener on the loop."""

    __slots__ = ("_answer", "_broke", "_loop", "_on_chunk")

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: AnswerLimits, on_chunk: StreamHandler | None) -> None:
        self._loop = loop
        self._on_chunk = on_chunk
        self._answer = LocalAnswer(limits, self._pass_on)
        self._broke: Exception | None = None

    async def made(self, model: LoadedModel, body: JsonObject, name: str) -> ModelResult:
        """The answer. A call waits for a slot here, and can leave."""
        try:
            await self._loop.run_in_executor(model.threads, model.ask, body, self._answer.hear)
        finally:
            # Whether it was cancelled, failed or is whole: nothing is heard of it after this.
            self._answer.stop()
        if self._broke is not None:
            raise self._broke
        return self._answer.result(name)

    def _pass_on(self, chunk: StreamChunk) -> None:
        """In the thread: let the loop tell."""
        if self._on_chunk is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._tell, self._on_chunk, chunk)
        except RuntimeError:
            # The loop was closed, and the answer is not awaited any more.
            self._answer.stop()

    def _tell(self, on_chunk: StreamHandler, chunk: StreamChunk) -> None:
        """On the loop: tell, unless the call has ended meanwhile."""
        if self._answer.is_stopped:
            return
        try:
            on_chunk(chunk)
        except Exception as error:  # noqa: BLE001  # the caller gets it, in the place where it waits
            self._broke = error
            self._answer.stop()


def open_local(wanted: str, base: Path, *, models: Path | None, loaded: LoadedModels = _LOADED) -> LocalEngine:
    """The engine of a model: a path, a name, or the model that is there when nothing is named."""
    if importlib.util.find_spec(RUNTIME_MODULE) is None:
        message = (
            "the local engine is not installed; install it and a small model with: remit models add smollm2, "
            f"or the engine alone with: {install_command('local')}"
        )
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    return LocalEngine(find_model(wanted, base=base, folder=models), loaded=loaded)
