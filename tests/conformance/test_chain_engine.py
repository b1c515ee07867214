"""A chain, and an engine within limits, do what every engine must, in front of real servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode
from remit.core.inference import ModelRequest
from remit.core.messages import user_message
from remit.inference.chain import ChainEngine
from remit.inference.engine import Engine, EngineFault
from remit.inference.specs import open_engine
from remit.testing.conformance.engine import (
    ENGINE_CHECKS,
    EngineCheck,
    Situation,
    a_message_is_answered,
    a_server_that_failed_is_an_engine_error,
    checks_without,
)
from tests.conformance.chat_server import free_port, serving
from tests.conformance.test_openai_engine import PLAYS

OF_A_CHAIN = checks_without(
    {
        a_message_is_answered: "an answer of a chain is signed by the member that gave it",
        a_server_that_failed_is_an_engine_error: "with a member that is not there, the failures are told together",
    }
)


@asynccontextmanager
async def limited(situation: Situation) -> AsyncIterator[Engine]:
    options = "concurrency=4&rpm=100000&breaker=1000/1"
    if situation is Situation.FAILS:
        yield open_engine(f"vllm:tiny?url=http://127.0.0.1:{await free_port()}/v1&{options}", base=Path("/"))
        return
    async with serving(PLAYS[situation]) as server:
        yield open_engine(f"vllm:tiny?url={server.url}&{options}", base=Path("/"))


@asynccontextmanager
async def chained(situation: Situation) -> AsyncIterator[Engine]:
    """A chain whose first member is never there."""
    nobody = open_engine(f"openai:gone?url=http://127.0.0.1:{await free_port()}/v1", base=Path("/"))
    async with limited(situation) as engine:
        yield ChainEngine([nobody, engine])


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_within_limits_does_what_every_engine_must(check: EngineCheck) -> None:
    asyncio.run(check(limited))


@pytest.mark.parametrize("check", OF_A_CHAIN, ids=lambda check: check.__name__)
def test_a_chain_does_what_every_engine_must(check: EngineCheck) -> None:
    asyncio.run(check(chained))


def test_the_failures_of_all_members_are_told_together() -> None:
    async def scenario() -> None:
        async with chained(Situation.BREAKS) as chain:
            with pytest.raises(EngineFault, match="none of 2 models can serve") as raised:
                await chain.infer(ModelRequest((user_message("hello"),)))
            assert raised.value.code is ErrorCode.INFERENCE_ENGINE_ERROR

    asyncio.run(scenario())
