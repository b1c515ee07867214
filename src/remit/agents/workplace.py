"""Where an agent works: the system it was given, or one of its own that is opened when it is first needed; and its wait there.

Rule 1: a system lives in one event loop; in another loop, another one is opened on the same store.
Rule 2: only what was opened here is closed here: when a caller asks for it, when the workplace is no longer held, or with
        its loop, which closes the generators that were begun in it.
Rule 3: a caller that stops waiting for a run that it began cancels the run.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace as replace_parts
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from remit.core.clipped import clipped
from remit.core.declared_types import refusal
from remit.core.failure import ErrorCode, RemitError, RequestRejected
from remit.core.home import HOME_INVALID, expect_place
from remit.core.journal.turn import Turn
from remit.core.run.contract import NOTHING_OPEN, SystemRequest, SystemResponse
from remit.core.run.request_checks import REQUEST_MALFORMED
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.sessions import NOTHING, Session
from remit.orchestrate.run_handle import CALLER, cancellation
from remit.orchestrate.setup.kit import Kit, Terms
from remit.stores import is_address

if TYPE_CHECKING:
    from remit.assemble import Opened
    from remit.orchestrate.facade import System

LOOP_RUNNING = "LOOP_RUNNING"
SILENCE = Listener()


class _Room:
    """What one workplace has opened in one event loop."""

    def __init__(self, home: Path | str | None) -> None:
        self._home = home
        self._floor = _floor_here()
        self._opened: Opened | None = None
        # Held while a system is opened or closed: two of them must not be open on one store.
        self._door = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_in_use(self) -> bool:
        return self._opened is not None and self._floor.loop.is_running()

    async def system(self) -> "System":
        async with self._door:
            if self._opened is None or self._opened.system is None:
                opening = await asyncio.to_thread(self._made)
                await self._floor.enter(self)
                await opening.__aenter__()
                self._opened = opening
            assert self._opened.system is not None, "it was just opened"
            return self._opened.system

    def _made(self) -> "Opened":
        """A system that can be opened, its house loaded beside the event loop: who only names the class does not load it."""
        from remit.assemble import opened_system, settings_of_place
        from remit.orchestrate.facts.intent import compile_for_requests

        compile_for_requests()
        return opened_system(settings_of_place(self._home))

    async def close(self) -> None:
        async with self._door:
            if self._opened is not None:
                await self._opened.aclose()
                self._opened = None
            self._floor.rooms.discard(self)

    def leave(self) -> None:
        """Close it soon, in its loop. The collection of garbage calls this, in any thread."""
        if self._opened is not None:
            with suppress(RuntimeError):  # The loop is closed, and so is whatever was open in it.
                self._floor.loop.call_soon_threadsafe(self._begin_closing)

    def _begin_closing(self) -> None:
        if self._opened is not None:
            self._closing = self._floor.loop.create_task(self.close())


class _Floor:
    """The rooms that are open in one event loop, which are closed when it ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.rooms: set[_Room] = set()
        self._end: AsyncGenerator[None, None] | None = None

    async def enter(self, room: _Room) -> None:
        self.rooms.add(room)
        if self._end is None:
            self._end = self._at_the_end()
            await anext(self._end)

    async def _at_the_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            _FLOORS.pop(self.loop, None)
            for room in tuple(self.rooms):
                await room.close()


# Held here, so that what is held nowhere else is closed before its loop ends.
_FLOORS: dict[asyncio.AbstractEventLoop, _Floor] = {}


def _floor_here() -> _Floor:
    for loop in tuple(_FLOORS):
        if loop.is_closed():
            _FLOORS.pop(loop, None)
    loop = asyncio.get_running_loop()
    return _FLOORS.setdefault(loop, _Floor(loop))


class Workplace:
    """A system that was given, or one on the store in `home`; without either, on the store of the settings."""

    def __init__(self, system: "System | None", home: Path | str | None) -> None:
        expect_place(home)
        if system is not None:
            # It is loaded already, unless what was given is none.
            from remit.orchestrate.facade import System

            if not isinstance(system, System):
                raise refusal(REQUEST_MALFORMED, "system", system, System | None)
        if system is not None and home is not None:
            message = f"home={clipped(str(home))} is of no use beside system=, which has a store; give one of them"
            raise RequestRejected(HOME_INVALID, message)
        # A folder is meant from where the caller is now.
        self._given, self._home = system, home if home is None or is_address(home) else Path(home).absolute()
        self._rooms: dict[asyncio.AbstractEventLoop, _Room] = {}

    @property
    def is_in_use(self) -> bool:
        """Whether a system was opened here in a loop that still runs."""
        return any(room.is_in_use for room in tuple(self._rooms.values()))

    async def system(self) -> "System":
        """The system to work with in this event loop."""
        return self._given if self._given is not None else await self._room_here().system()

    async def close(self) -> None:
        """Close what was opened here in this event loop; a system that was given stays open."""
        if (room := self._rooms.get(asyncio.get_running_loop())) is not None:
            await room.close()

    def _room_here(self) -> _Room:
        here = asyncio.get_running_loop()
        if here not in self._rooms:
            for loop in tuple(self._rooms):
                if loop.is_closed():
                    self._rooms.pop(loop, None)
            self._rooms[here] = room = _Room(self._home)
            finalize(self, room.leave).atexit = False
        return self._rooms[here]


def refuse_inside_a_loop(name: str, instead: str) -> None:
    """Raise RequestRejected where an event loop runs: a method for programs without one would block it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RequestRejected(LOOP_RUNNING, f"{name} was called inside a running event loop; await {instead}() instead")


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
    system: "System",
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
            with suppress(
                RemitError
            ):  # Of a system that is closed nothing is heard but that the caller stopped waiting.
                raise cancelled from CallCancelled(await system.result(run_id))
        raise


def open_run(session: Session) -> str:
    """The run of a session that is under way; raises RequestRejected when there is none."""
    if not session.is_open:
        raise RequestRejected(NOTHING_OPEN, f"session {session.session_id!r} has no exchange under way")
    return session.run_id
