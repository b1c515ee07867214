"""Where an agent works: the system it was given, or one of its own that is opened when it is first needed.

Rule 1: a system lives in one event loop; in another loop, another one is opened on the same store.
Rule 2: only what was opened here is closed here.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from remit.assemble import opened, settings_of
from remit.core.failure import RequestRejected
from remit.orchestrate.facade import System

LOOP_RUNNING = "LOOP_RUNNING"


class Workplace:
    """A system that was given, or one on the store in `home`; without either, on the store of the settings."""

    def __init__(self, system: System | None, home: Path | str | None) -> None:
        self._given, self._home = system, None if home is None else Path(home).absolute()
        self._own: System | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = AsyncExitStack()

    @property
    def is_in_use(self) -> bool:
        """Whether a system was opened here in a loop that still runs."""
        return self._own is not None and self._loop is not None and self._loop.is_running()

    async def system(self) -> System:
        """The system to work with in this event loop."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._own is None or self._loop is not loop:
            settings = settings_of(home=self._home)
            # A loop that ends closes what was opened in it.
            self._loop, self._stack = loop, AsyncExitStack()
            self._own = await self._stack.enter_async_context(opened(settings))
        return self._own

    @asynccontextmanager
    async def kept_open(self) -> AsyncIterator[System]:
        """The system, which stays open afterwards; only when the work breaks off is it closed."""
        try:
            yield await self.system()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close what was opened here; a system that was given stays open."""
        self._own = None
        await self._stack.aclose()


def refuse_inside_a_loop(name: str, instead: str) -> None:
    """Raise RequestRejected where an event loop runs: a method for programs without one would block it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RequestRejected(LOOP_RUNNING, f"{name} was called inside a running event loop; await {instead}() instead")
