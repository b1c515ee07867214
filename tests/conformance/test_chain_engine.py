"""A chain, and an engine within limits, do what every engine must, in front of real servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import user_message
from remit.inference.chain import ChainEngine
from remit.inference.engine import Engine, EngineFault
from remit.inference.local.engine import LocalEngine
from remit.inference.local.server import WINDOW_MAX, LoadedModels
from remit.inference.specs import open_engine
from remit.testing.conformance.engine import ENGINE_CHECKS, EngineCheck, OpenEngine, Situation
from tests.conformance.chat_server import free_port, serving
from tests.conformance.test_local_engine import CHECKS, opener
from tests.conformance.test_openai_engine import PLAYS
from tests.unit.inference.tiny_model import write_tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> OpenEngine:
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    return opener(write_tiny_model(path, llama__context_length=WINDOW_MAX), LoadedModels())


@asynccontextmanager
async def limited(situation: Situation) -> AsyncIterator[Engine]:
    options = "concurrency=4&rpm=100000&breaker=1000/1"
    if situation is Situation.FAILS:
        yield open_engine(f"vllm:tiny?url=http://127.0.0.1:{await free_port()}/v1&{options}", base=Path("/"))
        return
    async with serving(PLAYS[situation]) as server:
        yield open_engine(f"vllm:tiny?url={server.url}&{options}", base=Path("/"))


def with_nobody_before(open_last: OpenEngine) -> OpenEngine:
    """Opens chains whose first member is never there."""

    @asynccontextmanager
    async def opened(situation: Situation) -> AsyncIterator[Engine]:
        nobody = open_engine(f"openai:gone?url=http://127.0.0.1:{await free_port()}/v1", base=Path("/"))
        async with open_last(situation) as engine:
            yield ChainEngine([nobody, engine])

    return opened


chained = with_nobody_before(limited)


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_within_limits_does_what_every_engine_must(check: EngineCheck) -> None:
    asyncio.run(check(limited))


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_a_chain_does_what_every_engine_must(check: EngineCheck) -> None:
    asyncio.run(check(chained))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_chain_that_ends_on_this_machine_does_what_every_local_engine_must(
    check: EngineCheck, tiny: OpenEngine
) -> None:
    asyncio.run(check(with_nobody_before(tiny)))


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_a_chain_that_begins_with_a_model_that_is_gone_does_what_every_engine_must(
    check: EngineCheck, tmp_path: Path
) -> None:
    path = write_tiny_model(tmp_path / "gone.gguf")

    @asynccontextmanager
    async def opened(situation: Situation) -> AsyncIterator[Engine]:
        gone = LocalEngine(path, loaded=LoadedModels())
        async with limited(situation) as engine:
            path.unlink(missing_ok=True)
            yield ChainEngine([gone, engine])
            write_tiny_model(path)

    asyncio.run(check(opened))


def test_the_failures_of_all_members_are_told_together() -> None:
    async def scenario() -> None:
        async with chained(Situation.BREAKS) as chain:
            with pytest.raises(EngineFault, match="none of 2 models can serve") as raised:
                await chain.infer(ModelRequest((user_message("hello"),)))
            assert raised.value.code is ErrorCode.INFERENCE_ENGINE_ERROR

    asyncio.run(scenario())
