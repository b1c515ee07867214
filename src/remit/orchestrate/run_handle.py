"""A run in the hands of its user: its id, what happens in it, what people tell it, and what it came to.

Rule 1: a handle holds no truth. Whatever is asked of it is asked of the system, wherever the run is driven.
Rule 2: to wait for a handle is to wait until its run has ended or waits for people; a caller that stops waiting stops nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar
from uuid import uuid4

from remit.core.clipped import clipped
from remit.core.declared_arguments import checks_arguments
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemResponse
from remit.core.run.run_events import EventKind, RunEvent
from remit.core.run.signals import (
    PACKET_AMBIGUOUS,
    PACKET_MARK,
    PACKET_UNKNOWN,
    SIGNAL_INVALID,
    Signal,
    UserSignal,
    never_asked,
    none_of,
)
from remit.orchestrate.inner_runs import told_to_step
from remit.orchestrate.setup.kit import Kit

if TYPE_CHECKING:
    from remit.orchestrate.bus.subscription import Subscription
    from remit.orchestrate.facade import System

# Who speaks for a program that names no person.
CALLER = "caller"
# A run of which nothing was heard for so long may have been paused, or its driver be gone: then it is asked who drives it.
QUIET_MS = 500
# What a caller is told who follows a run that neither ended nor rests for anybody.
LEFT_WARNING = "it is driven by no process any more; `resume` goes on with it: remit resume {run_id}"

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
# Makes of the response of a run that rests what was asked for, while its store is open.
Read = Callable[[SystemResponse], Awaitable[T]]


@checks_arguments()
class Run(Generic[T_co]):
    """One run. `await run` gives its response once it rests, `async for event in run` what happens until then."""

    def __init__(
        self,
        system: "System",
        run_id: str,
        read: Read[T_co],
        kit: Kit | None = None,
        subscription: "Subscription | None" = None,
    ) -> None:
        self.id = run_id
        self._system = system
        self._kit = kit
        self._read = read
        # What was heard since before it began, for the first who follows it.
        self._subscription = subscription
        # What it came to, once it has ended: its store may be closed then.
        self._ended: tuple[SystemResponse, T_co] | None = None

    def __await__(self) -> Generator[Any, None, SystemResponse]:
        return told_to_step(self._response()).__await__()

    def __aiter__(self) -> "Events":
        subscription, self._subscription = self._subscription, None
        return Events(self._system, self.id, -1, chunks=False, then=self.result, subscription=subscription)

    def read_by(self, read: Read[U]) -> "Run[U]":
        """A handle of this run whose result is made otherwise."""
        return Run(self._system, self.id, read, self._kit, self._subscription)

    async def result(self) -> T_co:
        """What the run came to, as the caller that started it gives it: a response, or what a pattern makes of it."""
        return await told_to_step(self._result())

    def events(self, *, since: str | int | None = -1, chunks: bool = False) -> "Events":
        """What happens in the run until it rests: from its first turn on, behind a turn or a cursor, or (None) from now on.

        With `chunks`, what its model says comes too, from the next answer on: to get the first one, start the run with `chunks`.
        """
        return Events(self._system, self.id, since, chunks=chunks, then=self.result)

    async def approve(
        self, packet_id: str = "", *, by: str = "", arguments: JsonObject | None = None, packet: str | None = None
    ) -> SystemResponse:
        """Say yes to what the run or a child of it asks, perhaps with other arguments; gives how it then rests.

        A run of an agent elsewhere is given as it stands when it was heard.

        The packet may be left out where only one is open, and `by` where the system acts for a principal.
        """
        name = packet_id or await self._only_packet()
        return await told_to_step(
            self._answered(approval(name, by=by or self._own, arguments=arguments, packet=packet))
        )

    async def reject(
        self, packet_id: str = "", *, by: str = "", reason: str = "", packet: str | None = None
    ) -> SystemResponse:
        """Say no to what the run or a child of it asks."""
        name = packet_id or await self._only_packet()
        return await told_to_step(self._answered(rejection(name, by=by or self._own, reason=reason, packet=packet)))

    async def answer(self, text: str, packet_id: str = "", *, by: str = "") -> SystemResponse:
        """Answer what the run or a child of it wants to know."""
        name = packet_id or await self._only_packet()
        told = said(Signal.APPROVE, run_of(name), by or self._own, {"text": text, "packet_id": name})
        return await told_to_step(self._answered(told))

    async def cancel(self, *, by: str = "", reason: str = "") -> None:
        """End the run at once, and its children."""
        await self._tell(cancellation(self.id, by=self._by(by), reason=reason))

    async def pause(self, *, by: str = "") -> None:
        """Let the run begin nothing more."""
        await self._tell(said(Signal.PAUSE, self.id, self._by(by), {}))

    async def resume(self, *, by: str = "") -> None:
        """Let a run that was paused go on."""
        await self._tell(said(Signal.RESUME, self.id, self._by(by), {}))

    async def feedback(self, text: str, *, by: str = "") -> None:
        """Tell the model something before its next step."""
        await self._tell(said(Signal.FEEDBACK, self.id, self._by(by), {"text": text}))

    @property
    def _own(self) -> str:
        return self._system.principal.user_id

    def _by(self, by: str) -> str:
        return by or self._own or CALLER

    async def _tell(self, signal: UserSignal) -> None:
        await self._system.signal(signal, kit=self._kit)

    async def _answered(self, signal: UserSignal) -> SystemResponse:
        await answer(self._system, self.id, signal, self._kit)
        # An agent elsewhere goes on when it likes; that it was heard is all there is to wait for.
        return await (self._system.result(self.id) if await self._system.is_guarded(self.id) else self._response())

    async def _result(self) -> T_co:
        return (await self._rested())[1]

    async def _response(self) -> SystemResponse:
        return (await self._rested())[0]

    async def _rested(self) -> tuple[SystemResponse, T_co]:
        if self._ended is None:
            async for _ in Events(self._system, self.id, None, chunks=False):
                pass
            response = await self._told_if_left(await self._system.result(self.id))
            rested = response, await self._read(response)
            if response.waiting_for is not None or response.terminal_code is None:
                return rested
            self._ended = rested
        return self._ended

    async def _told_if_left(self, response: SystemResponse) -> SystemResponse:
        """The response of a run that rests, with a warning where it does so because the process that drove it is gone."""
        system, is_explained = self._system, response.waiting_for or response.halted or response.terminal_code
        if is_explained or (await system.state_of(self.id)).place.paused or await system.is_guarded(self.id):
            return response
        # Another process may have taken it up since.
        told = (LEFT_WARNING.format(run_id=self.id),) if await system.is_left(self.id, is_quiet=True) else ()
        return replace(response, warnings=(*response.warnings, *told))

    async def _only_packet(self) -> str:
        waiting = (await self._system.result(self.id)).waiting_for
        packets = () if waiting is None else waiting.packet_ids
        if not packets:
            raise await self._system.archive.settled(self.id) or never_asked(self.id)
        if len(packets) > 1:
            message = f"run {self.id} asks {len(packets)} packets: {', '.join(packets)}; name the one you mean"
            raise RequestRejected(PACKET_AMBIGUOUS, message, {"run_id": self.id})
        return packets[0]


class Events:
    """The events of one run, here or elsewhere, until it has ended or no process drives it."""

    def __init__(
        self,
        system: "System",
        run_id: str,
        since: str | int | None,
        *,
        chunks: bool,
        then: Callable[[], Awaitable[Any]] | None = None,
        subscription: "Subscription | None" = None,
    ) -> None:
        self._system, self._run_id, self._since, self._chunks, self._then = system, run_id, since, chunks, then
        self._subscription = subscription
        self._is_quiet = self._is_left = False

    def __aiter__(self) -> "Events":
        return self

    async def __anext__(self) -> RunEvent:
        if self._subscription is None:
            self._subscription = await self._system.follow(self._run_id, since=self._since, chunks=self._chunks)
        while True:
            if (event := await self._subscription.taken()) is not None:
                self._is_quiet = self._is_left = False
                return event
            # It is left when nothing more came since that was seen.
            if self._is_left:
                break
            self._is_left = await self._system.is_left(self._run_id, is_quiet=self._is_quiet)
            if not self._is_left:
                self._is_quiet = not await self._subscription.more(QUIET_MS / 1000)
        await self.aclose()
        if self._then is not None:
            await self._then()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Hear nothing more."""
        if self._subscription is not None:
            self._subscription.close()


class Streaming(Generic[T_co]):
    """The words of models in a run, as they say them: `async for piece in streaming`; `await streaming` gives its result.

    The run begins when either is first asked for. A piece is a RunEvent: `text` and `reasoning` of kind `said`, `part` names
    the replica or the step; of kind `restarted` it says that what came before is void. To stop listening stops nothing.
    """

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, Run[T_co]]]) -> None:
        self._begin = begin
        self._begun: asyncio.Task[Run[T_co]] | None = None

    async def run(self) -> Run[T_co]:
        """The handle of the run, which answers, cancels and pauses it."""
        if self._begun is None:
            self._begun = asyncio.create_task(self._begin())
        return await asyncio.shield(self._begun)

    def __await__(self) -> Generator[Any, None, T_co]:
        return self._result().__await__()

    async def __aiter__(self) -> AsyncIterator[RunEvent]:
        events = aiter(await self.run())
        try:
            async for event in events:
                if event.kind is not EventKind.TURN:
                    yield event
        finally:
            await events.aclose()

    async def _result(self) -> T_co:
        return await (await self.run()).result()


async def answer(system: "System", run_id: str, said: UserSignal, kit: Kit | None) -> None:
    """Let a run hear what a person says to something that it or a child of it asks, and wait until it rests."""
    asking = said.run_id or run_id
    if not await system.lineages.is_beneath(asking, run_id):
        packet_id = str(said.payload["packet_id"])
        await refuse_answer(system, packet_id, none_of(packet_id, f"of the open exchange, run {run_id}"))
    await system.signal(replace(said, run_id=asking), kit=kit)
    await system.settle(run_id)


async def refuse_answer(system: "System", packet_id: str, otherwise: RequestRejected) -> NoReturn:
    """Refuse an answer that is not wanted here as any door does: its run is not there, its question settled or never asked.

    Where neither is so, with what is given.
    """
    asking, _, _ = packet_id.rpartition(PACKET_MARK)
    if asking:
        await system.find(asking)
        await system.archive.approval(packet_id)
    raise otherwise


def approval(packet_id: str, *, by: str, arguments: JsonObject | None = None, packet: str | None = None) -> UserSignal:
    """A yes to a packet, perhaps with other arguments. It names no run when the packet is a command's name alone.

    `packet` is the version that was shown, which is then the only one that it is a yes to. None binds it to no version; an
    empty text is a version that no packet has.
    """
    changed: JsonObject = {} if arguments is None else {"arguments": arguments}
    return said(Signal.APPROVE, run_of(packet_id), by, {**changed, **_bound_to(packet), "packet_id": packet_id})


def rejection(packet_id: str, *, by: str, reason: str = "", packet: str | None = None) -> UserSignal:
    """A no to a packet, and to the version that was shown, where that is named."""
    return said(Signal.REJECT, run_of(packet_id), by, {**_because(reason), **_bound_to(packet), "packet_id": packet_id})


def _bound_to(packet: str | None) -> JsonObject:
    return {} if packet is None else {"packet": packet}


def cancellation(run_id: str, *, by: str, reason: str = "") -> UserSignal:
    """The order to end a run at once."""
    return said(Signal.CANCEL, run_id, by, _because(reason))


def run_of(packet_id: str) -> str:
    """The run that asks with a packet, refused where it is no text; empty when the packet is a command's name alone."""
    given: object = packet_id
    if not isinstance(given, str):
        message = f"packet {clipped(given)} is no name of a packet; take one of `waiting_for.packet_ids`"
        raise RequestRejected(PACKET_UNKNOWN, message)
    return packet_id.rpartition(PACKET_MARK)[0]


def said(kind: Signal, run_id: str, by: str, payload: JsonObject) -> UserSignal:
    """A signal of a person to a run."""
    given: object = by
    if not isinstance(given, str):
        message = f"by={clipped(given)} is no name of a person; say in words who signals {kind.value!r}"
        raise RequestRejected(SIGNAL_INVALID, message)
    return UserSignal(str(uuid4()), kind, run_id, by, payload=payload)


def _because(reason: str) -> JsonObject:
    return {"reason": reason} if reason else {}
