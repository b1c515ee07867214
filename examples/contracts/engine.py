"""An engine of your own: an adapter that turns the chunks of some client into one result, and streams them meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from remit import (
    AgentLoop,
    ModelInfo,
    ModelRequest,
    ModelResult,
    StreamChunk,
    StreamHandler,
    TokenUsage,
)


class LLMChat(Protocol):
    """What the adapter needs of a client."""

    def chat_streaming(self, request: dict[str, object]) -> AsyncIterator[str]:
        """The pieces of an answer."""
        ...


class Adapter:
    """Makes an engine of such a client; nothing above it sees the client's own types."""

    def __init__(self, chat: LLMChat) -> None:
        self._chat = chat

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """Translate the request, hand the pieces on as they come, and put them together."""
        sent: dict[str, object] = {"messages": [{"role": m.role.value, "content": m.content} for m in request.messages]}
        sent["max_tokens"] = request.max_tokens
        if request.tools:
            sent["tools"] = [tool.name for tool in request.tools]
        if request.grammar:
            sent["grammar"] = request.grammar
        if request.schema is not None:
            sent["json_schema"] = request.schema
        pieces: list[str] = []
        async for piece in self._chat.chat_streaming(sent):
            pieces.append(piece)
            if on_chunk is not None:
                on_chunk(StreamChunk(piece))
        return ModelResult("".join(pieces), usage=TokenUsage(prompt_tokens=12, output_tokens=len(pieces)))

    def model_info(self) -> ModelInfo:
        """Its name and its window; a price that is not told is unknown, and warned of."""
        return ModelInfo("gemma", 8_192)


class Canned:
    """A client that always says the same."""

    async def chat_streaming(self, request: dict[str, object]) -> AsyncIterator[str]:
        """Three pieces."""
        for piece in ("Hello", ", ", "world."):
            yield piece


@asynccontextmanager
async def load(model_source: str) -> AsyncIterator[LLMChat]:
    """A client with its model loaded, which is put away when it is left."""
    print(f"loaded: {model_source}")
    try:
        yield Canned()
    finally:
        print(f"unloaded: {model_source}")


async def main() -> None:
    """One exchange, streamed."""
    heard: list[str] = []

    def hear(chunk: object) -> None:
        if isinstance(chunk, StreamChunk):
            heard.append(chunk.text)

    async with load("unsloth/gemma-4-E4B-it") as chat, AgentLoop(Adapter(chat), stream=hear) as agent:
        result = await agent.chat("Say hello.")
    print(f"content: {result.content}")
    print(f"streamed: {heard}")
    print(f"tokens: {result.token_usage.output_tokens}")
    print(f"warning: {result.warnings[0].partition(',')[0]}")


if __name__ == "__main__":
    asyncio.run(main())
