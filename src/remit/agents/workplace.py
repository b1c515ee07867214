"""Where an agent works: the system it was given, or one of its own that is opened when it is first needed; and its wait there.

Rule 1: a system lives in one event loop; in another loop, another one is opened on the same store.
Rule 2: only what was opened here is closed here.
Rule 3: several callers may work here at once. What one of them is refused does not concern the others: the last one closes.
Rule 4: a caller that stops waiting for a run that it began cancels the run.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from dataclasses import replace as replace_parts
from pathlib import Path
from typing import Any

from remit.assemble import Opened, opened, settings_of
from remit.core.failure import ErrorCode, RemitError, RequestRejected
from remit.core.journal.turn import Turn
from remit.core.run.contract import SystemRequest, SystemResponse
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.sessions import Session
from remit.orchestrate.facade import NOTHING, System
from remit.orchestrate.run_handle import CALLER, cancellation
from remit.orchestrate.setup.kit import Kit, Terms

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
        """The system, which stays open afterwards; when the work breaks off it is closed, once no caller works in it."""
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
        """Close what was opened here as soon as no caller works in it."""
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
    """A system that is closed with its loop where no caller closes it: a loop that ends closes the generators it has begun."""
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


NOTHING_OPEN = "NOTHING_OPEN"

SILENCE = Listener()


class CallCancelled(RemitError):
    """A run that was cancelled with the call that waited for it: the cause of the CancelledError that the caller gets.

    `response` is what the run had come to by then; `result` is the same as the call itself would have given it: of a plan,
    the steps that were finished.
    """

    def __init__(self, response: SystemResponse) -> None:
        message = f"run {response.run_id} was cancelled with the call that waited for it"
        super().__init__(ErrorCode.CANCELLED_SIGNAL, message, {"run_id": response.run_id})
        self.response = response
        self.result: Any = response


async def run_or_cancel(
    system: System,
    request: SystemRequest,
    kit: Kit,
    terms: Terms,
    *,
    entries: Mapping[str, str] = NOTHING,
    listener: Listener = SILENCE,
) -> SystemResponse:
    """Run a request until it has ended or waits for people; a caller that stops waiting meanwhile cancels the run."""
    begun: list[str] = []

    def hear(state: RunState, turn: Turn) -> None:
        # The first that is heard of is the run itself; cancelling it reaches its children.
        if not begun:
            begun.append(state.run_id)
        if listener.on_turn is not None:
            listener.on_turn(state, turn)

    try:
        hearing = replace_parts(listener, on_turn=hear)
        return await system.run(request, kit, terms, entries=entries, listener=hearing)
    except asyncio.CancelledError as cancelled:
        # What was begun is finished, so the run may begin although its caller has stopped waiting.
        await system.begun()
        for run_id in begun:
            with suppress(RemitError):  # It may have ended by itself at this very moment.
                await system.signal(cancellation(run_id, by=CALLER, reason="its caller stopped waiting"))
            raise cancelled from CallCancelled(await system.result(run_id))
        raise


def open_run(session: Session) -> str:
    """The run of a session that is under way; raises RequestRejected when there is none."""
    if not session.is_open:
        raise RequestRejected(NOTHING_OPEN, f"session {session.session_id!r} has no exchange under way")
    return session.run_id
