"""The engine for the Messages API does what every engine must, through real sockets and whatever a server does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.core.run.inference import ModelRequest
from remit.core.run.messages import user_message
from remit.inference.anthropic.engine import open_anthropic
from remit.inference.engine import Engine, StreamChunk
from remit.inference.specs import EngineSettings
from remit.testing.conformance.engine import ENGINE_CHECKS, EngineCheck, OpenEngine, Situation
from tests.conformance.chat_server import Call, Peer, Play, free_port, serving
from tests.conformance.messages_server import Messages, base_of, last_text, refusal, result_texts, says


async def answers(call: Call, peer: Peer) -> None:
    pieces = ["fir", "st ", "word"] if call.answers == 0 else ["sec", "ond"]
    if call.body["max_tokens"] < len(pieces):
        return await says(peer, *pieces[: call.body["max_tokens"]], reason="max_tokens")
    speech = Messages(peer)
    await speech.begin()
    await speech.thought("h", "m")
    await speech.text(*pieces)
    await speech.stop("end_turn", 2 + len(pieces), output_tokens_details={"thinking_tokens": 2})
    return None


async def repeats(call: Call, peer: Peer) -> None:
    await says(peer, *last_text(call))


async def proposes(call: Call, peer: Peer) -> None:
    if call.answers:
        return await says(peer, *result_texts(call))
    speech = Messages(peer)
    await speech.begin()
    await speech.text("Let me see.")
    for number, word in enumerate(("a", "b")):
        await speech.call(f"toolu_{number}", "look_up", '{"wo', f'rd": "{word}', '"}')
    await speech.stop("tool_use", 12)
    return None


async def hangs(call: Call, peer: Peer) -> None:
    await peer.wait_for_hanging_up()


async def drawls(call: Call, peer: Peer) -> None:
    speech = Messages(peer)
    await speech.begin()
    await speech.open_block(type="text", text="")
    await speech.delta("text_delta", text="so")
    await peer.wait_for_hanging_up()


async def breaks(call: Call, peer: Peer) -> None:
    await peer.status(500, refusal("api_error", "out of luck"))


async def overflows(call: Call, peer: Peer) -> None:
    await peer.status(400, refusal("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"))


async def garbles(call: Call, peer: Peer) -> None:
    speech = Messages(peer)
    await speech.begin()
    await speech.open_block(type="text", text="half an ans")
    await peer.raw(b'event: content_block_delta\ndata: {"type": "content_bl\n\n')
    await peer.end()


async def drops(call: Call, peer: Peer) -> None:
    speech = Messages(peer)
    await speech.begin()
    await speech.open_block(type="text", text="half an ans")
    peer.drop()


async def breaks_off(call: Call, peer: Peer) -> None:
    speech = Messages(peer)
    await speech.begin()
    await speech.text("half an ans")
    await speech.event("message_stop")
    await peer.end()


async def counts_nothing(call: Call, peer: Peer) -> None:
    await peer.begin()
    speech = Messages(peer)
    await speech.event("message_start", message={"role": "assistant", "content": []})
    await speech.text("first ", "word")
    await speech.event("message_delta", delta={"stop_reason": "end_turn"})
    await speech.event("message_stop")
    await peer.end()


async def thinks(call: Call, peer: Peer) -> None:
    speech = Messages(peer)
    await speech.begin()
    await speech.thought("h", "m")
    await speech.text("hel", "lo")
    await speech.stop("end_turn", 3)


async def thinks_aloud(call: Call, peer: Peer) -> None:
    await says(peer, "<th", "ink>h", "m</thi", "nk>\nhel", "lo")


async def writes_a_call(call: Call, peer: Peer) -> None:
    if call.answers:
        return await says(peer, *result_texts(call))
    await says(peer, "Let me see.\n<tool", '_call>{"name": "look_up", ', '"arguments": {"word": "a"}}</tool_call>')
    return None


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
    Situation.BREAKS_OFF: breaks_off,
    Situation.UNCOUNTED: counts_nothing,
    Situation.THINKS: thinks,
}
# What a server does whose model knows nothing of the API that it is served behind.
PLAYS_ALOUD: dict[Situation, Play] = {**PLAYS, Situation.THINKS: thinks_aloud, Situation.PROPOSES: writes_a_call}


def opener(plays: dict[Situation, Play]) -> OpenEngine:
    @asynccontextmanager
    async def opened(situation: Situation) -> AsyncIterator[Engine]:
        if situation is Situation.FAILS:
            yield open_anthropic(f"tiny?url=http://127.0.0.1:{await free_port()}", EngineSettings())
            return
        async with serving(plays[situation]) as server:
            yield open_anthropic(f"tiny?url={base_of(server.url)}", EngineSettings())

    return opened


@pytest.mark.req("1.11")
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("plays", [PLAYS, PLAYS_ALOUD], ids=["in blocks", "aloud"])
def test_an_engine_for_the_messages_api_does_what_every_engine_must(
    check: EngineCheck, plays: dict[Situation, Play]
) -> None:
    asyncio.run(check(opener(plays)))


@pytest.mark.parametrize("play", [hangs, drawls], ids=lambda play: play.__name__)
def test_a_cancelled_call_hangs_up_on_the_server(play: Play) -> None:
    async def scenario() -> bool:
        hung_up: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        asked = asyncio.Event()

        async def watched(call: Call, peer: Peer) -> None:
            if play is drawls:
                await Messages(peer).begin()
            asked.set()
            hung_up.set_result(await peer.wait_for_hanging_up())

        async with serving(watched) as server:
            engine = open_anthropic(f"tiny?url={base_of(server.url)}", EngineSettings())
            heard: list[StreamChunk] = []
            task = asyncio.create_task(engine.infer(ModelRequest((user_message("hello"),)), heard.append))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await hung_up

    assert asyncio.run(scenario())
