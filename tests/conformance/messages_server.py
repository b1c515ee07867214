"""What a server of the Messages API sends, for the small HTTP server that the tests run on this machine."""

import json
from typing import Any

from tests.conformance.chat_server import Call, Peer


def base_of(url: str) -> str:
    """The base of a server's url: the path of the API is added by the client."""
    return url.removesuffix("/v1")


def result_texts(call: Call) -> list[str]:
    """The results of tools in the last message."""
    content = call.body["messages"][-1]["content"]
    return [block["content"] for block in content if block["type"] == "tool_result"]


def last_text(call: Call) -> str:
    """What the user said last."""
    return str(call.body["messages"][-1]["content"][-1]["text"])


class Messages:
    """Speaks the events of an answer to one caller."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._index = -1

    async def event(self, kind: str, **fields: Any) -> None:
        data = json.dumps({"type": kind, **fields}).encode()
        await self.peer.raw(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")

    async def begin(self, **usage: int) -> None:
        await self.peer.begin()
        figures = {"input_tokens": 7, "output_tokens": 1, **usage}
        await self.event("message_start", message={"id": "msg_1", "role": "assistant", "content": [], "usage": figures})
        await self.event("ping")

    async def open_block(self, **block: Any) -> None:
        self._index += 1
        await self.event("content_block_start", index=self._index, content_block=block)

    async def delta(self, kind: str, **fields: Any) -> None:
        await self.event("content_block_delta", index=self._index, delta={"type": kind, **fields})

    async def close_block(self) -> None:
        await self.event("content_block_stop", index=self._index)

    async def text(self, *pieces: str) -> None:
        await self.open_block(type="text", text="")
        for piece in pieces:
            await self.delta("text_delta", text=piece)
        await self.close_block()

    async def thought(self, *pieces: str) -> None:
        await self.open_block(type="thinking", thinking="", signature="")
        for piece in pieces:
            await self.delta("thinking_delta", thinking=piece)
        await self.delta("signature_delta", signature="c2lnbmVk")
        await self.close_block()

    async def call(self, call_id: str, name: str, *pieces: str) -> None:
        await self.open_block(type="tool_use", id=call_id, name=name, input={})
        for piece in ("", *pieces):
            await self.delta("input_json_delta", partial_json=piece)
        await self.close_block()

    async def stop(self, reason: str, output_tokens: int, **usage: Any) -> None:
        figures = {"output_tokens": output_tokens, **usage}
        await self.event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=figures)
        await self.event("message_stop")
        await self.peer.end()

    async def says(self, *pieces: str, reason: str = "end_turn") -> None:
        """A whole answer in pieces of a token each."""
        await self.begin()
        await self.text(*pieces)
        await self.stop(reason, len(pieces))


async def says(peer: Peer, *pieces: str, reason: str = "end_turn") -> None:
    """A whole answer in pieces of a token each."""
    await Messages(peer).says(*pieces, reason=reason)


def refusal(kind: str, message: str) -> dict[str, Any]:
    """The body with which a call is turned away."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
