"""Runs that stand alone: one for each call, with nothing remembered between calls.

Rule 1: every call works in a system of its own unless one was given, so calls share neither loop nor thread.
Rule 2: a call that waits for a person is kept open for the answer; of any other nothing stays open.
        Two who answer at once disturb each other in nothing: one is heard, and the other is refused with its code.
Rule 3: every call is a session of its own, in which it is found again when it is answered.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar
from uuid import uuid4

from remit.agents.workplace import CallCancelled, Workplace, open_run, run_or_cancel
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemRequest, SystemResponse
from remit.core.run.signals import PACKET_UNKNOWN, UserSignal
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.exchange import Exchange, LoopConfig
from remit.orchestrate.facade import System
from remit.orchestrate.run_handle import Run, answer, approval, refuse, rejection, run_of
from remit.orchestrate.setup.kit import Kit, Terms

# Makes what one call works with and who is told of it, once its system is open: a long text is read to a listener from there.
KitFor = Callable[[System], tuple[Kit, Listener]]
T = TypeVar("T")
# Makes what the caller is given of a run's response and what it left in the store.
Read = Callable[[System, SystemResponse], Awaitable[T]]
# Looks at a run that is about to be resumed.
LookFirst = Callable[[System, str], Awaitable[None]]


def listening(config: LoopConfig) -> KitFor:
    """Kits with the engine, the tools and the context of the settings, whose stream and observer hear one call each."""

    def equipped(system: System) -> tuple[Kit, Listener]:
        exchange = Exchange(config, system.text, lambda _: None)
        return exchange.kit, exchange.listener

    return equipped


@dataclass(frozen=True, slots=True)
class _Call:
    """A call as it is kept while it waits."""

    workplace: Workplace
    kit: Kit
    session_id: str


class SingleRuns:
    """Calls, and those among them that wait for a person."""

    def __init__(self, *, system: System | None = None, home: Path | str | None = None) -> None:
        Workplace(system, home)  # What could not be opened is refused now, and not by the first call.
        self._given, self._home = system, home
        self._waiting: dict[str, _Call] = {}

    async def start(
        self, request: SystemRequest, kit_for: KitFor, terms: Terms, read: Read[T], *, chunks: bool
    ) -> Run[T]:
        """Begin one run and hand it over; what was opened for it is closed when its handle has told that it ended."""
        asked = replace(request, session_id=request.session_id or str(uuid4()))
        workplace = Workplace(self._given, self._home)
        async with workplace.kept_open() as system:
            kit, listener = kit_for(system)
            begun = await system.start(asked, kit, terms, listener=listener, chunks=chunks)
        call = _Call(workplace, kit, asked.session_id)

        async def rested(response: SystemResponse) -> T:
            value = await read(system, response)
            await self._at_rest(call, response)
            return value

        return begun.read_by(rested)

    async def call(self, request: SystemRequest, kit_for: KitFor, terms: Terms, read: Read[T]) -> T:
        """One run, until it has ended or waits for a person. A caller that stops waiting for it cancels it."""
        asked = replace(request, session_id=request.session_id or str(uuid4()))
        workplace = Workplace(self._given, self._home)
        async with workplace.kept_open() as system:
            kit, listener = kit_for(system)
            call = _Call(workplace, kit, asked.session_id)
            try:
                response = await run_or_cancel(system, asked, kit, terms, listener=listener)
            except asyncio.CancelledError as cancelled:
                if isinstance(cancelled.__cause__, CallCancelled):
                    cancelled.__cause__.result = await read(system, cancelled.__cause__.response)
                raise
            value = await read(system, response)
        await self._at_rest(call, response)
        return value

    async def resume(self, run_id: str, kit_for: KitFor, read: Read[T], *, before: LookFirst | None = None) -> T:
        """Go on with a run that was begun here or elsewhere, as a call of this loop.

        `before` may refuse to, by raising.
        """
        workplace = Workplace(self._given, self._home)
        async with workplace.kept_open() as system:
            if before is not None:
                await before(system, run_id)
            kit, listener = kit_for(system)
            system.listen(listener, run_id)
            response = await system.resume(run_id, kit=kit)
            value = await read(system, response)
        await self._at_rest(_Call(workplace, kit, response.session_id), response)
        return value

    async def approve(self, packet_id: str, read: Read[T], *, by: str, arguments: JsonObject | None = None) -> T:
        """Say yes to what a call asks, perhaps with other arguments, and let it go on."""
        return await self._answer(packet_id, approval(packet_id, by=by, arguments=arguments), read)

    async def reject(self, packet_id: str, read: Read[T], *, by: str, reason: str = "") -> T:
        """Say no to what a call asks, and let it go on without."""
        return await self._answer(packet_id, rejection(packet_id, by=by, reason=reason), read)

    async def _answer(self, packet_id: str, said: UserSignal, read: Read[T]) -> T:
        call = await self._call_of(run_of(packet_id))
        if call is None:
            message = f"packet {packet_id[:80]!r} is none of a call of this loop that waits"
            await self._refuse(packet_id, RequestRejected(PACKET_UNKNOWN, message, {"packet_id": packet_id[:80]}))
        async with call.workplace.kept_open() as system:
            run_id = open_run(await system.session(call.session_id))
            await answer(system, run_id, said, call.kit)
            response = await system.result(run_id)
            value = await read(system, response)
        await self._at_rest(call, response)
        return value

    async def _refuse(self, packet_id: str, otherwise: RequestRejected) -> NoReturn:
        workplace = Workplace(self._given, self._home)
        try:
            async with workplace.kept_open() as system:
                await refuse(system, packet_id, otherwise)
        finally:
            await workplace.close_when_left()

    async def _call_of(self, run_id: str) -> _Call | None:
        """The call that waits for what a run asks: its own, or the one that the run came from."""
        if (own := self._waiting.get(run_id)) is not None or not self._waiting:
            return own
        workplace = Workplace(self._given, self._home)
        async with workplace.kept_open() as system:
            lineage = await system.lineages.of(run_id)
        await workplace.close_when_left()
        return next((self._waiting[above] for above in reversed(lineage) if above in self._waiting), None)

    async def _at_rest(self, call: _Call, response: SystemResponse) -> None:
        """Keep a call that waits for its answer; what was opened for any other is closed."""
        if response.waiting_for is not None:
            self._waiting[response.run_id] = call
            return
        self._waiting.pop(response.run_id, None)
        await call.workplace.close_when_left()


async def response_of(system: System, response: SystemResponse) -> SystemResponse:
    """For loops that give the response itself."""
    return response
