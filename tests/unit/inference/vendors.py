"""The two vendors whose servers are asked over HTTP: how each is opened, and what a server of its kind says."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from remit.core.record import JsonObject
from remit.core.run.inference import ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.inference.anthropic.engine import open_anthropic
from remit.inference.engine import Engine, EngineFault, StreamHandler
from remit.inference.openai.engine import open_openai
from remit.inference.specs import EngineSettings
from tests.conformance.chat_server import Call, ChatServer, Peer, Play, serving
from tests.conformance.messages_server import base_of, refusal, says

KEY = "sk-very-secret-0123456789"
HELLO = ModelRequest((user_message("hello"),))
# Every header that any server is sent.
SENT = {
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
}


@dataclass(frozen=True)
class Vendor:
    """How an engine of this vendor is opened, and what its servers say."""

    name: str
    at: Callable[[str, str], Engine]
    says: Callable[..., Awaitable[None]]
    # The body of a refusal in these words.
    refusal: Callable[[str], JsonObject]
    # A whole answer, "Hello", and the part of it that does not say why it stopped.
    answer: tuple[bytes, ...]
    begun: tuple[bytes, ...]

    async def says_hello(self, call: Call, peer: Peer) -> None:
        """Answer in two pieces."""
        await self.says(peer, "Hel", "lo")

    def refuses(self, status: int) -> Play:
        """A server that refuses, and says the key that it was sent."""

        async def play(call: Call, peer: Peer) -> None:
            body = self.refusal(f"no to {call.headers['authorization']}")
            await peer.status(status, body, retry_after="20", location="http://127.0.0.1:1/v1")

        return play

    def asked(
        self, play: Play, request: ModelRequest = HELLO, *, key: str = "", on_chunk: StreamHandler | None = None
    ) -> tuple[ModelResult, ChatServer]:
        """The answer of a server that plays this, and the server."""

        async def scenario() -> tuple[ModelResult, ChatServer]:
            async with serving(play) as server:
                return await self.at(server.url, key).infer(request, on_chunk), server

        return asyncio.run(scenario())

    def fault_of(self, play: Play, *, key: str = "") -> EngineFault:
        """The fault of an engine whose server plays this."""
        with pytest.raises(EngineFault) as raised:
            self.asked(play, key=key)
        return raised.value


def streams(*pieces: bytes, ends: bool = True) -> Play:
    """A server that sends these pieces, and hangs up in the middle of an answer unless it ends."""

    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        for piece in pieces:
            await peer.raw(piece)
        if ends:
            await peer.end()

    return play


START = b'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 1}}}\n\n'
TEXT = b'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}\n\n'
ENDED = b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}\n\n'
STOPPED = b'data: {"type": "message_stop"}\n\n'
PIECE = b'data: {"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}\n\n'

ANTHROPIC = Vendor(
    name="anthropic",
    at=lambda url, key: open_anthropic(f"tiny?url={base_of(url)}", EngineSettings(anthropic_api_key=key)),
    says=says,
    refusal=lambda words: refusal("api_error", words),
    answer=(START, TEXT, ENDED, STOPPED),
    begun=(START, TEXT),
)
OPENAI = Vendor(
    name="openai",
    at=lambda url, key: open_openai(f"tiny?url={url}", EngineSettings(openai_api_key=key)),
    says=Peer.says,
    refusal=lambda words: {"error": {"message": words, "code": "no"}},
    answer=(PIECE, b"data: [DONE]\n\n"),
    begun=(PIECE.replace(b'"stop"', b"null"),),
)
