"""Where an agent works: the system it was given, or one of its own that is opened when it is first needed.

Rule 1: a system lives in one event loop; in another loop, another one is opened on the same store.
Rule 2: only what was opened here is closed here.
Rule 3: several may work here at once. What one of them is refused does not concern the others: the last one closes.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from remit.assemble import Opened, opened, settings_of
from remit.core.failure import RequestRejected
from remit.orchestrate.facade import System

LOOP_RUNNING = "LOOP_RUNNING"
HOME_INVALID = "HOME_INVALID"


@dataclass(slots=True)
class _Room:
    """What was opened in one event loop, and who works there."""

    loop: asyncio.AbstractEventLoop
    own: System | None = None
    keeper: AsyncGenerator[System, None] | None = None
    # Held while a system is opened or closed: two of them must not be open on one store.
    door: asyncio.Lock = field(default_factory=asyncio.Lock)
    workers: int = 0
    is_over: bool = False

    async def close(self) -> None:
        async with self.door:
            self.own, self.is_over = None, False
            keeper, self.keeper = self.keeper, None
            if keeper is not None:
                await keeper.aclose()

    async def close_when_left(self) -> None:
        self.is_over = True
        if not self.workers:
            await self.close()


class Workplace:
    """A system that was given, or one on the store in `home`; without either, on the store of the settings."""

    def __init__(self, system: System | None, home: Path | str | None) -> None:
        given: object = home
        if given is not None and not isinstance(given, str | Path):
            message = f"home={given!r:.80} is no folder; give its path, or leave it out for that of the settings"
            raise RequestRejected(HOME_INVALID, message)
        self._given, self._home = system, None if home is None else Path(home).absolute()
        self._room: _Room | None = None

    @property
    def is_in_use(self) -> bool:
        """Whether a system was opened here in a loop that still runs."""
        room = self._room
        return room is not None and room.own is not None and room.loop.is_running()

    async def system(self) -> System:
        """The system to work with in this event loop."""
        return self._given if self._given is not None else await self._opened(self._room_here())

    @asynccontextmanager
    async def kept_open(self) -> AsyncIterator[System]:
        """The system, which stays open afterwards; when the work breaks off it is closed, once nobody works in it."""
        room = self._room_here()
        room.workers += 1
        try:
            yield self._given if self._given is not None else await self._opened(room)
        except BaseException:
            room.is_over = True
            raise
        finally:
            room.workers -= 1
            if room.is_over:
                await room.close_when_left()

    async def close_when_left(self) -> None:
        """Close what was opened here as soon as nobody works in it."""
        if self._room is not None:
            await self._room.close_when_left()

    async def close(self) -> None:
        """Close what was opened here at once; a system that was given stays open."""
        if self._room is not None:
            await self._room.close()

    def _room_here(self) -> _Room:
        loop = asyncio.get_running_loop()
        if self._room is None or self._room.loop is not loop:
            # A loop that ends closes what was opened in it.
            self._room = _Room(loop)
        return self._room

    async def _opened(self, room: _Room) -> System:
        async with room.door:
            if room.own is None:
                room.keeper = _kept(opened(settings_of(home=self._home)))
                room.own = await anext(room.keeper)
            return room.own


async def _kept(opening: Opened) -> AsyncGenerator[System, None]:
    """A system that is closed with its loop where nobody closes it: a loop that ends closes the generators it has begun."""
    try:
        yield await opening.__aenter__()
    finally:
        await opening.aclose()


def refuse_inside_a_loop(name: str, instead: str) -> None:
    """Raise RequestRejected where an event loop runs: a method for programs without one would block it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RequestRejected(LOOP_RUNNING, f"{name} was called inside a running event loop; await {instead}() instead")
