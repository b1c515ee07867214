"""A context provider, taken by its shape: it finds chunks and makes one message of them, for one exchange alone."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from remit import (
    FREE,
    AgentLoop,
    ContextProvider,
    Message,
    ModelInfo,
    ModelRequest,
    ModelResult,
    Role,
    StreamHandler,
    system_message,
)


@dataclass
class Chunk:
    """A piece of a document."""

    source: str
    content: str


class Retriever(Protocol):
    """Finds chunks."""

    def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """The best chunks for a query."""
        ...


@dataclass
class ContextBuilder:
    """Satisfies ContextProvider without knowing of it: it has a `build` of the right shape."""

    retriever: Retriever
    max_chunks: int = 3

    def build(self, query: str) -> list[Message]:
        """One message with numbered sources."""
        chunks = self.retriever.retrieve(query, self.max_chunks)
        lines = [f"[{number}] ({chunk.source}): {chunk.content}" for number, chunk in enumerate(chunks, 1)]
        return [system_message("Relevant context:\n\n" + "\n".join(lines))]


class Shelf:
    """Two documents, found by a word."""

    def retrieve(self, query: str, limit: int) -> list[Chunk]:
        """Those that share a word with the query."""
        chunks = [Chunk("tea.md", "Green tea takes 70 degrees."), Chunk("milk.md", "Milk is in the fridge.")]
        words = set(query.lower().strip("?").split())
        return [chunk for chunk in chunks if words & set(chunk.content.lower().strip(".").split())][:limit]


class Reader:
    """A model that reads out the context that it was shown."""

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The last source, or nothing."""
        shown = [str(message.content) for message in request.messages if message.role is Role.SYSTEM]
        return ModelResult(shown[-1].splitlines()[-1] if shown else "I do not know.")

    def model_info(self) -> ModelInfo:
        """It costs nothing."""
        return ModelInfo("reader", 4_096, FREE)


async def main() -> None:
    """The context of a question is shown to the model, and is no part of the conversation afterwards."""
    provider: ContextProvider = ContextBuilder(Shelf())
    async with AgentLoop(Reader(), context_provider=provider) as agent:
        result = await agent.chat("How hot for green tea?")
        print(f"answer: {result.content}")
        print(f"remembered: {[message.role.value for message in agent.messages]}")
        assert all(message.role is not Role.SYSTEM for message in agent.messages)


if __name__ == "__main__":
    asyncio.run(main())
