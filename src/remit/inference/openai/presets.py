"""Servers of the user that speak like OpenAI, by their names: `ollama:MODEL` and `vllm:MODEL`.

Rule 1: a preset is an engine for OpenAI-compatible servers with the url at which its server listens unless it is told
        otherwise, and in its dialect; every option of theirs may follow.
Rule 2: the user's own machine gets no key: the key at hand belongs to another server.
"""

from collections.abc import Mapping
from dataclasses import replace as with_changes
from types import MappingProxyType

from remit.core.failure import RequestRejected
from remit.core.record import replace
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.inference.anthropic.spec import refusal_of_kind
from remit.inference.engine import Engine, StreamHandler, StrictJudge, strict_judge
from remit.inference.openai.dialects import NAMED
from remit.inference.openai.engine import open_openai
from remit.inference.openai.spec import OPENAI, Endpoint, read_endpoint
from remit.inference.specs import EngineSettings

# Where each server listens unless it is told otherwise.
URLS: Mapping[str, str] = MappingProxyType({"ollama": "http://127.0.0.1:11434/v1", "vllm": "http://127.0.0.1:8000/v1"})


class PresetEngine:
    """Asks a model of a server that goes by a name of its own."""

    def __init__(self, kind: str, endpoint: Endpoint, engine: Engine) -> None:
        self.spec = f"{kind}:{endpoint.spec.removeprefix(f'{OPENAI}:')}"
        self._engine = engine
        self._info = replace(engine.model_info(), name=f"{kind}:{endpoint.model}")

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"PresetEngine({self.spec!r})"

    def model_info(self) -> ModelInfo:
        """The model as its spec describes it."""
        return self._info

    @property
    def strict_judge(self) -> StrictJudge | None:
        """Who judges schemas for the provider behind it."""
        return strict_judge(self._engine)

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the server, signed with the name of the preset."""
        return replace(await self._engine.infer(request, on_chunk), model=self._info.name)


def open_preset(kind: str, rest: str, settings: EngineSettings) -> Engine:
    """The engine that the part of a spec behind the name of a preset names."""
    settings = with_changes(settings, openai_base_url=URLS[kind])
    try:
        endpoint = read_endpoint(rest, url_default=URLS[kind])
        if endpoint.is_loopback:
            settings = with_changes(settings, openai_api_key="")
        return PresetEngine(kind, endpoint, open_openai(rest, settings, NAMED[kind]))
    except RequestRejected as error:
        raise RequestRejected(error.code, refusal_of_kind(kind, error.message)) from None
