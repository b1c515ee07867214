"""The engine for OpenAI-compatible servers does what every engine must, through real sockets and whatever a server does."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from remit.core.run.inference import ModelRequest
from remit.core.run.messages import user_message
from remit.inference.engine import Engine, StreamChunk
from remit.inference.openai.presets import URLS
from remit.inference.specs import open_engine
from remit.testing.conformance.engine import (
    ENGINE_CHECKS,
    EngineCheck,
    OpenEngine,
    Situation,
    a_conversation_goes_on_after_its_calls,
    a_proposed_call_can_be_answered,
    a_thought_is_no_part_of_the_answer,
    streaming_changes_no_proposal,
)
from tests.conformance.chat_server import Call, Peer, Play, free_port, serving

PROPOSING = (
    a_proposed_call_can_be_answered,
    streaming_changes_no_proposal,
    a_conversation_goes_on_after_its_calls,
)


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


async def breaks_off(call: Call, peer: Peer) -> None:
    await peer.begin()
    await peer.delta({"content": "half an ans"})
    await peer.done()


async def counts_nothing(call: Call, peer: Peer) -> None:
    await peer.begin()
    for piece in ("fir", "st ", "word"):
        await peer.delta({"content": piece})
    await peer.delta({}, "stop")
    await peer.done()


def thinking(*deltas: dict[str, Any]) -> Play:
    """Says `hello` and thinks `hm`, in one of the ways in which servers tell that."""

    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        for delta in deltas:
            await peer.delta(delta)
        await peer.delta({}, "stop")
        await peer.usage(7, 3)
        await peer.done()

    return play


THOUGHTS: dict[str, Play] = {
    "reasoning_content": thinking({"reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "hello"}),
    "reasoning": thinking({"reasoning": "h", "content": ""}, {"reasoning": "m"}, {"content": "hello"}),
    "both": thinking({"reasoning": "x", "reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "hello"}),
    "tags": thinking({"content": "<think>hm</think>hello"}),
    "tags in pieces": thinking(*({"content": letter} for letter in "<think>hm</think>\n\nhello")),
    "parts": thinking(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        {"content": [{"type": "text", "text": "hello"}]},
    ),
}

CALL = '{"name": "look_up", "arguments": {"word": "a"}}'

# How models write calls that their server does not know.
NOTATIONS = {
    "tool_call": f"<tool_call>\n{CALL}\n</tool_call>",
    "behind words": f"Let me see.\n<tool_call>{CALL}</tool_call>",
    "behind a thought": f"<think>hm</think>\n<tool_call>{CALL}</tool_call>",
    "mistral": f"[TOOL_CALLS][{CALL}, {CALL}]",
    "llama": '<|python_tag|>{"name": "look_up", "parameters": {"word": "a"}}',
    "bare": '{"name": "look_up", "parameters": {"word": "a"}}',
    "fenced": f"```json\n{CALL}\n```",
}


def writing(notation: str) -> Play:
    """Proposes in a text, in pieces of three letters."""

    async def play(call: Call, peer: Peer) -> None:
        if call.answers:
            return await peer.says(call.last)
        await peer.says(*(notation[start : start + 3] for start in range(0, len(notation), 3)))
        return None

    return play


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
    Situation.THINKS: THOUGHTS["tags in pieces"],
}


def opener(kind: str, plays: Mapping[Situation, Play] = MappingProxyType(PLAYS)) -> OpenEngine:
    """Opens an engine of a kind in front of a server that plays a situation."""

    @asynccontextmanager
    async def opened(situation: Situation) -> AsyncIterator[Engine]:
        if situation is Situation.FAILS:
            yield open_engine(f"{kind}:tiny?url=http://127.0.0.1:{await free_port()}/v1", base=Path("/"))
            return
        async with serving(plays[situation]) as server:
            yield open_engine(f"{kind}:tiny?url={server.url}", base=Path("/"))

    return opened


@pytest.mark.req("1.11")
@pytest.mark.parametrize("kind", ["openai", *URLS])
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_for_a_server_does_what_every_engine_must(check: EngineCheck, kind: str) -> None:
    asyncio.run(check(opener(kind)))


@pytest.mark.parametrize("way", THOUGHTS)
def test_a_thought_is_heard_as_one_however_a_server_tells_it(way: str) -> None:
    asyncio.run(a_thought_is_no_part_of_the_answer(opener("openai", {Situation.THINKS: THOUGHTS[way]})))


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("check", PROPOSING, ids=lambda check: check.__name__)
def test_a_call_that_is_written_as_text_is_a_proposal_like_any_other(check: EngineCheck, notation: str) -> None:
    asyncio.run(check(opener("openai", {Situation.PROPOSES: writing(NOTATIONS[notation])})))


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
            engine = open_engine(f"openai:tiny?url={server.url}", base=Path("/"))
            heard: list[StreamChunk] = []
            task = asyncio.create_task(engine.infer(ModelRequest((user_message("hello"),)), heard.append))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await hung_up

    assert asyncio.run(scenario())
