"""A door: it sets a timeout, asks an agent and writes the answer. Whatever else there is to do lies behind it."""

import asyncio
import sys
from dataclasses import dataclass, field
from typing import TextIO

from remit import AgentLoop, ContextProvider, Engine, Registry, Restarted, ScriptedEngine, StreamChunk

DEFAULT_TIMEOUT_MS = 120_000


@dataclass
class RunConfig:
    """What a runner works with."""

    engine: Engine | str
    system_prompt: str = ""
    registry: Registry = field(default_factory=lambda: Registry(()))
    context_provider: ContextProvider | None = None
    is_streaming: bool = False
    timeout_ms: int = 0
    out: TextIO = field(default_factory=lambda: sys.stdout)


class Runner:
    """A thin shell around an AgentLoop."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config

    async def run(self, prompt: str) -> None:
        """Ask once; the answer is written whole, unless it was streamed."""
        config = self._config

        def stream(chunk: StreamChunk | Restarted) -> None:
            if isinstance(chunk, StreamChunk):
                config.out.write(chunk.text)

        async with AgentLoop(
            config.engine,
            system_prompt=config.system_prompt,
            tools=config.registry,
            context_provider=config.context_provider,
            stream=stream if config.is_streaming else None,
            timeout_ms=config.timeout_ms or DEFAULT_TIMEOUT_MS,
        ) as agent:
            result = (await agent.chat(prompt)).raise_for_error()
        config.out.write("\n" if config.is_streaming else f"{result.content}\n")


async def main() -> None:
    """The same answer, whole and streamed."""
    engine = ScriptedEngine([{"text": "Tea is ready."}])
    await Runner(RunConfig(engine, system_prompt="You make tea.")).run("Is there tea?")
    await Runner(RunConfig(engine, is_streaming=True)).run("Is there tea?")


if __name__ == "__main__":
    asyncio.run(main())
