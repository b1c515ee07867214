"""The engine for OpenAI-compatible servers does what every engine must, through real sockets and whatever a server does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.core.inference import ModelRequest
from remit.core.messages import user_message
from remit.inference.engine import Engine, StreamChunk
from remit.inference.openai import open_openai
from remit.inference.specs import EngineSettings
from remit.testing.conformance.engine import ENGINE_CHECKS, EngineCheck, Situation
from tests.conformance.chat_server import Call, Peer, Play, free_port, serving


async def answers(call: Call, peer: Peer) -> None:
    pieces = ["fir", "st ", "word"] if call.answers == 0 else ["sec", "ond"]
    if call.body.get("max_tokens"):
        return await peer.says(*pieces[: call.body["max_tokens"]], reason="length")
    await peer.begin()
    await peer.delta({"role": "assistant", "content": None, "reasoning_content": "hm"})
    for piece in pieces:
        await peer.delta({"content": piece})
    await peer.delta({}, "stop")
    await peer.usage(9, 1 + len(pieces), completion_tokens_details={"reasoning_tokens": 1})
    await peer.done()
    return None


async def repeats(call: Call, peer: Peer) -> None:
    await peer.says(*call.last)


async def proposes(call: Call, peer: Peer) -> None:
    await peer.begin()
    await peer.delta({"role": "assistant", "content": "Let me see."})
    for index, word in enumerate(("a", "b")):
        start = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": "look_up"}}
        await peer.delta({"tool_calls": [start]})
        for piece in ('{"wo', f'rd": "{word}', '"}'):
            await peer.delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    await peer.delta({}, "tool_calls")
    await peer.usage(20, 12)
    await peer.done()


async def hangs(call: Call, peer: Peer) -> None:
    await peer.wait_for_hanging_up()


async def drawls(call: Call, peer: Peer) -> None:
    await peer.begin()
    await peer.delta({"content": "so"})
    await peer.wait_for_hanging_up()


async def breaks(call: Call, peer: Peer) -> None:
    await peer.status(500, {"error": {"message": "out of luck", "type": "server_error"}})


async def overflows(call: Call, peer: Peer) -> None:
    await peer.status(400, {"error": {"message": "too many tokens", "code": "context_length_exceeded"}})


async def garbles(call: Call, peer: Peer) -> None:
    await peer.begin()
    await peer.delta({"content": "half an ans"})
    await peer.raw(b'data: {"choices": [{"delta": {"con\n\n')
    await peer.done()


async def drops(call: Call, peer: Peer) -> None:
    await peer.begin()
    await peer.delta({"content": "half an ans"})
    peer.drop()


PLAYS: dict[Situation, Play] = {
    Situation.ANSWERS: answers,
    Situation.REPEATS: repeats,
    Situation.PROPOSES: proposes,
    Situation.HANGS: hangs,
    Situation.DRAWLS: drawls,
    Situation.BREAKS: breaks,
    Situation.OVERFLOWS: overflows,
    Situation.GARBLES: garbles,
    Situation.DROPS: drops,
}


@asynccontextmanager
async def opened(situation: Situation) -> AsyncIterator[Engine]:
    if situation is Situation.FAILS:
        yield open_openai(f"tiny?url=http://127.0.0.1:{await free_port()}/v1", EngineSettings())
        return
    async with serving(PLAYS[situation]) as server:
        yield open_openai(f"tiny?url={server.url}", EngineSettings())


@pytest.mark.req("1.11")
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_for_a_server_does_what_every_engine_must(check: EngineCheck) -> None:
    asyncio.run(check(opened))


@pytest.mark.parametrize("play", [hangs, drawls], ids=lambda play: play.__name__)
def test_a_cancelled_call_hangs_up_on_the_server(play: Play) -> None:
    async def scenario() -> bool:
        hung_up: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        asked = asyncio.Event()

        async def watched(call: Call, peer: Peer) -> None:
            if play is drawls:
                await peer.begin()
                await peer.delta({"content": "so"})
            asked.set()
            hung_up.set_result(await peer.wait_for_hanging_up())

        async with serving(watched) as server:
            engine = open_openai(f"tiny?url={server.url}", EngineSettings())
            heard: list[StreamChunk] = []
            task = asyncio.create_task(engine.infer(ModelRequest((user_message("hello"),)), heard.append))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await hung_up

    assert asyncio.run(scenario())
