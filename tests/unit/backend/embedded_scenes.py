"""Scenes on an embedded store, which is closed behind them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from remit.backend.embedded.store import EmbeddedStore


@asynccontextmanager
async def open_at(home: Path) -> AsyncIterator[EmbeddedStore]:
    """The store in this folder."""
    store = EmbeddedStore.open(home)
    try:
        yield store
    finally:
        await store.close()


def play(home: Path, scene: Callable[[EmbeddedStore], Awaitable[None]]) -> None:
    """Open the store, play the scene, close it."""

    async def whole() -> None:
        async with open_at(home) as store:
            await scene(store)

    asyncio.run(whole())
