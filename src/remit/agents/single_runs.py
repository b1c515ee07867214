"""Runs that stand alone: one for each call, with nothing remembered between calls.

Rule 1: a loop works in one system, which is open as long as the loop or a handle of a run is held, until it is closed, or
        with its event loop; so a handle can be asked and told whatever one of a system can.
Rule 2: two who answer at once disturb each other in nothing: one is heard, and the other is refused with its code.
Rule 3: every call is a session of its own, in which it is found again when it is answered.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from dataclasses import replace as replace_parts
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar
from uuid import uuid4

from remit.agents.workplace import CallCancelled, Workplace, open_run, run_or_cancel
from remit.core.declared_arguments import checks_arguments
from remit.core.failure import ArrivalFault, RemitError, RequestRejected
from remit.core.journal.turn import Turn
from remit.core.record import JsonObject, replace
from remit.core.run.contract import NOTHING_OPEN, SystemRequest, SystemResponse
from remit.core.run.signals import UserSignal, none_of
from remit.kernel.state import RunState, pinned
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.exchange import Exchange
from remit.orchestrate.exchange.loop_config import LoopConfig
from remit.orchestrate.facade import System
from remit.orchestrate.inner_runs import told_to_step
from remit.orchestrate.loop.needs import RUN_PARTS_MISSING
from remit.orchestrate.run_handle import CALLER, Run, answer, approval, cancellation, refuse_answer, rejection, run_of
from remit.orchestrate.setup.kit import Kit, Terms

# Makes the kit and the listener of one call, once its system is open: a long text is read to a listener from there.
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
    """A call as it is kept until it has ended."""

    kit: Kit
    session_id: str


class SingleRuns(Generic[T]):
    """Calls, and those among them that have not ended."""

    def __init__(
        self,
        read: Read[T],
        kit_for: KitFor,
        look_first: LookFirst,
        *,
        system: System | None = None,
        home: Path | str | None = None,
    ) -> None:
        """`kit_for` equips calls that were begun elsewhere; `look_first` raises for a run that no such loop began."""
        self._read, self._workplace = read, Workplace(system, home)
        self._kit_for, self._look_first = kit_for, look_first
        self._open: dict[str, _Call] = {}

    async def start(self, request: SystemRequest, kit_for: KitFor, terms: Terms, *, chunks: bool) -> Run[T]:
        """Begin one run and hand it over."""
        system, asked = await self.system(), _in_a_session(request)
        kit, listener = self._equipped(system, asked.session_id, kit_for)
        begun = await system.start(asked, kit, terms, listener=listener, chunks=chunks)
        return begun.read_by(partial(self._rested, system))

    async def call(self, request: SystemRequest, kit_for: KitFor, terms: Terms) -> T:
        """One run, until it has ended or waits for a person. A caller that stops waiting for it cancels it."""
        return await told_to_step(self._called(request, kit_for, terms))

    async def _called(self, request: SystemRequest, kit_for: KitFor, terms: Terms) -> T:
        system, asked = await self.system(), _in_a_session(request)
        kit, listener = self._equipped(system, asked.session_id, kit_for)
        try:
            response = await run_or_cancel(system, asked, kit, terms, listener=listener)
        except asyncio.CancelledError as cancelled:
            if isinstance(cancelled.__cause__, CallCancelled):
                cancelled.__cause__.result = await self._rested(system, cancelled.__cause__.response)
            raise
        return await self._rested(system, response)

    async def resume(self, run_id: str, kit_for: KitFor | None = None) -> T:
        """Go on with a run that was begun here or elsewhere, as a call of this loop."""
        return await (await self.take_up(run_id, kit_for)).result()

    async def take_up(self, run_id: str, kit_for: KitFor | None = None) -> Run[T]:
        """Go on with a run without waiting: gives its handle; the run goes on by itself."""
        system = await self.system()
        await self._look_first(system, run_id)
        kit, listener = (kit_for or self._kit_for)(system)
        end = system.listen(listener, run_id)
        try:
            taken = await system.take_up(run_id, kit=kit)
        except BaseException:
            end()
            raise
        entry = await system.archive.find(run_id)
        self._open[run_id] = _Call(kit, entry.listing.session_id)
        return taken.read_by(partial(self._rested, system))

    async def approve(
        self, packet_id: str, *, by: str, arguments: JsonObject | None = None, packet: str | None = None
    ) -> T:
        """Say yes to what a call asks, perhaps with other arguments, and let it go on."""
        return await told_to_step(
            self._answer(packet_id, approval(packet_id, by=by, arguments=arguments, packet=packet))
        )

    async def reject(self, packet_id: str, *, by: str, reason: str = "", packet: str | None = None) -> T:
        """Say no to what a call asks, and let it go on without."""
        return await told_to_step(self._answer(packet_id, rejection(packet_id, by=by, reason=reason, packet=packet)))

    async def cancel(self, *, by: str = "", reason: str = "") -> None:
        """End every call that has not ended, wherever it is driven; refused where there is none."""
        system, told = await self.system(), 0
        for run_id in tuple(self._open):
            try:
                await system.signal(cancellation(run_id, by=by or system.principal.user_id or CALLER, reason=reason))
                told += 1
            except RemitError as error:
                if error.code != ArrivalFault.RUN_ENDED:
                    raise
            self._open.pop(run_id, None)
        if not told:
            message = (
                "no call of this loop is under way here; take up one that was begun elsewhere with resume(run_id), "
                "or cancel it by its id: `remit signal RUN cancel`"
            )
            raise RequestRejected(NOTHING_OPEN, message)

    async def system(self) -> System:
        """The system that calls are runs of, opened where it is not."""
        return await self._workplace.system()

    async def close(self) -> None:
        """Close the store that was opened here; a system that was given stays open."""
        await self._workplace.close()

    async def _answer(self, packet_id: str, said: UserSignal) -> T:
        system, asking = await self.system(), run_of(packet_id)
        lineage = (asking, *reversed(await system.lineages.of(asking))) if self._open else ()
        call = next((self._open[run_id] for run_id in lineage if run_id in self._open), None)
        call = call or await self._taken_up_for(system, packet_id)
        run_id = open_run(await system.session(call.session_id))
        await answer(system, run_id, said, call.kit)
        # Where runs are left to workers, one of them goes on.
        return await self._rested(system, await (await system.find(run_id, kit=call.kit)))

    async def _taken_up_for(self, system: System, packet_id: str) -> _Call:
        """The call of an earlier process that asks with a packet, gone on with as one of this loop; refused where there is none.

        A packet that names its run names the call: the first run that is open of those that the run came from, or the run.
        """
        asking = run_of(packet_id)
        for run_id in (*await system.lineages.of(asking), asking) if asking else ():
            try:
                if not (await system.archive.find(run_id)).ending:
                    await system.archive.approval(packet_id)
                    await self.take_up(run_id)
                    break
            except RequestRejected as refused:
                # It is a call of such a loop, and lacks code of the program that began it, such as a type.
                if refused.code == RUN_PARTS_MISSING:
                    raise
        else:
            await refuse_answer(system, packet_id, none_of(packet_id, "of a call of this loop that waits"))
        return self._open[run_id]

    def _equipped(self, system: System, session_id: str, kit_for: KitFor) -> tuple[Kit, Listener]:
        """Make the kit of a call, and a listener that keeps the call until its run has ended."""
        kit, listener = kit_for(system)
        call = _Call(kit, session_id)

        def hear(state: RunState, turn: Turn) -> None:
            if pinned(state).parent is None and state.end.ending is None:
                self._open[state.run_id] = call
            elif state.end.ending is not None:
                self._open.pop(state.run_id, None)
            if listener.on_turn is not None:
                listener.on_turn(state, turn)

        return kit, replace_parts(listener, on_turn=hear)

    async def _rested(self, system: System, response: SystemResponse) -> T:
        if response.waiting_for is None and response.terminal_code is not None:
            self._open.pop(response.run_id, None)
        return await self._read(system, response)


@checks_arguments()
class CallLoop(Generic[T]):
    """What every loop of single runs offers: its calls are answered and cancelled, and it is closed when it is left."""

    _runs: SingleRuns[T]

    async def approve(
        self, packet_id: str, *, by: str, arguments: JsonObject | None = None, packet: str | None = None
    ) -> T:
        """Say yes to what a call asks, perhaps with other arguments, and let it go on.

        `packet` names the version that was shown; any other, also an empty one, is refused with PACKET_CHANGED.
        """
        return await self._runs.approve(packet_id, by=by, arguments=arguments, packet=packet)

    async def reject(self, packet_id: str, *, by: str, reason: str = "", packet: str | None = None) -> T:
        """Say no to what a call asks; it goes on without, or ends there."""
        return await self._runs.reject(packet_id, by=by, reason=reason, packet=packet)

    async def cancel(self, *, by: str = "", reason: str = "") -> None:
        """End every call that is under way or waits, from wherever it is driven."""
        await self._runs.cancel(by=by, reason=reason)

    async def take_up(self, run_id: str) -> Run[T]:
        """Go on with a call that was begun here or elsewhere; its handle waits for it, answers and cancels it."""
        return await self._runs.take_up(run_id)

    async def open(self) -> None:
        """Open the store now, and not with the first call."""
        await self._runs.system()

    async def close(self) -> None:
        """Close the store that this loop opened; a system that was given to it stays open."""
        await self._runs.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _in_a_session(request: SystemRequest) -> SystemRequest:
    return replace(request, session_id=request.session_id or str(uuid4()))
