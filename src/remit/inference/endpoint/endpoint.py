"""Endpoints: how many calls a server gets at once and in a minute, and when it is left alone.

Rule 1: all engines of a process that ask one url share its gate: so many calls at once, so many in a minute, none while
        the server asks to be left alone. Of several limits for one url, the strictest holds.
Rule 2: each model at a url has a breaker of its own: another model is not to blame.
Rule 3: a call that has to wait waits in line, can be cancelled, and never waits for longer than WAIT_S_MAX: a call that would,
        fails at once and says when to come back. A call that was not let in costs nothing.
Rule 4: nothing is tried twice here; the run decides about that.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import ceil
from threading import Lock
from typing import TypeAlias

from remit.core.record import replace
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.inference.endpoint.breaker import FAILURES, Breaker, MonotonicClock, unavailable
from remit.inference.endpoint.limits import EndpointLimits, url_in
from remit.inference.engine import Engine, EngineFault, StreamHandler, StrictJudge, strict_judge

# A minute: a call that has to wait for longer is told so, and the run decides.
WAIT_S_MAX = 60.0
# A line longer than this is not worth waiting in.
WAITING_MAX = 1_000
# More servers than one process asks; beyond it the one that was not asked for longest is forgotten.
ENDPOINTS_MAX = 1_000
SECONDS_PER_MINUTE = 60

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class _Waiter:
    """A call in line: the loop it waits in, its turn, and whether it was given a place."""

    __slots__ = ("has_place", "loop", "turn")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.turn: asyncio.Future[None] = loop.create_future()
        self.has_place = False

    def wake(self) -> None:
        """Tell that the turn has come, unless the call was given up."""
        if not self.turn.done():
            self.turn.set_result(None)


class CallLimiter:
    """Lets calls to one url pass: so many at once, so many in a minute, and none while the server wants none."""

    def __init__(
        self,
        url: str,
        clock: MonotonicClock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        *,
        wait_s: float = WAIT_S_MAX,
    ) -> None:
        self._url = url
        self._clock = clock
        self._sleep = sleep
        self._wait_s = wait_s
        self._lock = Lock()
        self._concurrency = 0
        self._rpm = 0
        self._running = 0
        # Each waits in a loop of its own: engines are asked from one loop after another, or from several.
        self._line: deque[_Waiter] = deque()
        # When the bucket was last looked at, and what it held then. Below 0, that many calls have been promised one.
        self._looked_at_s = clock()
        self._tokens = 0.0
        self._held_until_s = 0.0

    def tighten(self, limits: EndpointLimits) -> None:
        """Keep these limits from now on, unless stricter ones are kept already."""
        with self._lock:
            self._concurrency = _stricter(self._concurrency, limits.concurrency)
            if (rpm := _stricter(self._rpm, limits.rpm)) != self._rpm:
                # A bucket begins full; one that is replaced by a smaller one does not.
                self._tokens = self._burst(rpm) if not self._rpm else min(self._tokens, self._burst(rpm))
                self._rpm, self._looked_at_s = rpm, self._clock()

    def hold(self, seconds: int) -> None:
        """Let no call pass for a while: the server asked for it."""
        with self._lock:
            self._held_until_s = max(self._held_until_s, self._clock() + seconds)

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Wait for a place, and make room for the next when done."""
        await self._take_place()
        try:
            await self._take_token()
            yield
        finally:
            self._leave()

    async def _take_place(self) -> None:
        with self._lock:
            if not self._concurrency or self._running < self._concurrency:
                self._running += 1
                return
            if len(self._line) >= WAITING_MAX:
                raise unavailable(f"{len(self._line)} calls already wait for {self._url}, as many as may wait", 0)
            waiter = _Waiter(asyncio.get_running_loop())
            self._line.append(waiter)
        try:
            async with asyncio.timeout(self._wait_s):
                await waiter.turn
        except BaseException as error:
            self._give_up(waiter)
            if not isinstance(error, TimeoutError):
                raise
            message = f"no call to {self._url} ended within {self._wait_s:.0f} s, and concurrency={self._concurrency}"
            raise unavailable(f"{message} are allowed at once; come back later", 0) from None

    def _give_up(self, waiter: "_Waiter") -> None:
        with self._lock:
            if waiter in self._line:
                self._line.remove(waiter)
        if waiter.has_place:
            # It came too late, and is the next one's.
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            while self._line:
                waiter = self._line.popleft()
                if not waiter.loop.is_closed():
                    # The place passes from one to the other, so no third call slips in between.
                    waiter.has_place = True
                    waiter.loop.call_soon_threadsafe(waiter.wake)
                    return
            self._running -= 1

    async def _take_token(self) -> None:
        deadline_s = self._clock() + self._wait_s
        with self._lock:
            due_s = self._clock() + self._refilled_in_s()
            self._tokens -= 1
        try:
            # The server may ask to be left alone while a call waits.
            while (wait_s := max(due_s, self._held_until_s) - self._clock()) > 0:
                if max(due_s, self._held_until_s) > deadline_s:
                    message = f"{self._url} is not asked before {ceil(wait_s)} s have passed; come back then"
                    raise unavailable(message, wait_s)
                await self._sleep(wait_s)
        except BaseException:
            with self._lock:
                self._tokens += 1
            raise

    def _refilled_in_s(self) -> float:
        """Refill the bucket; gives the seconds until it holds a token for the next call."""
        now_s = self._clock()
        elapsed_s, self._looked_at_s = now_s - self._looked_at_s, now_s
        if not self._rpm:
            # Without a limit there is always one.
            self._tokens = 1.0
            return 0.0
        per_s = self._rpm / SECONDS_PER_MINUTE
        self._tokens = min(self._burst(self._rpm), self._tokens + elapsed_s * per_s)
        return max(0.0, (1 - self._tokens) / per_s)

    @staticmethod
    def _burst(rpm: int) -> float:
        """What may pass at once: a second's worth, so that no minute sees many more than its limit."""
        return float(max(1, rpm // SECONDS_PER_MINUTE))


class Endpoints:
    """The gates and breakers of a process, by what they guard."""

    def __init__(self, clock: MonotonicClock = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._gates: OrderedDict[str, CallLimiter] = OrderedDict()
        self._breakers: OrderedDict[tuple[str, EndpointLimits], Breaker] = OrderedDict()

    def gate(self, url: str, limits: EndpointLimits) -> CallLimiter:
        """The gate of a url, at least as strict as these limits."""
        with self._lock:
            gate = self._gates.pop(url, None) or CallLimiter(url, self._clock)
            self._gates[url] = gate
            if len(self._gates) > ENDPOINTS_MAX:
                self._gates.popitem(last=False)
        gate.tighten(limits)
        return gate

    def breaker(self, spec: str, limits: EndpointLimits) -> Breaker:
        """The breaker of a model at a url."""
        with self._lock:
            breaker = self._breakers.pop((spec, limits), None) or Breaker(limits, self._clock)
            self._breakers[spec, limits] = breaker
            if len(self._breakers) > ENDPOINTS_MAX:
                self._breakers.popitem(last=False)
        return breaker


# A server sees one process, however many engines that has. What is kept here is how busy and how well servers are; no
# answer follows from it.
EVERYBODYS = Endpoints()


class LimitedEngine:
    """Asks an engine within the limits of its endpoint."""

    def __init__(self, engine: Engine, spec: str, limits: EndpointLimits, endpoints: Endpoints = EVERYBODYS) -> None:
        self.spec = limits.written_behind(spec)
        self._engine, self._calls_at_once = engine, limits.concurrency
        self._gate = endpoints.gate(url_in(spec), limits)
        self._breaker = endpoints.breaker(spec, limits)

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"LimitedEngine({self.spec!r})"

    def model_info(self) -> ModelInfo:
        """The model behind it, asked no more at once than its endpoint may be."""
        info = self._engine.model_info()
        return (
            replace(info, calls_at_once=min(info.calls_at_once, self._calls_at_once)) if self._calls_at_once else info
        )

    @property
    def strict_judge(self) -> StrictJudge | None:
        """Who judges schemas for the provider behind it."""
        return strict_judge(self._engine)

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the engine, once its endpoint may be asked."""
        name = self.model_info().name
        # No call waits in line for a model that is left alone.
        self._breaker.check(name)
        async with self._gate.passing():
            self._breaker.admit(name)
            try:
                result = await self._engine.infer(request, on_chunk)
            except EngineFault as fault:
                self._judge(fault)
                raise
            except BaseException:
                self._breaker.forget()
                raise
        self._breaker.succeed()
        return result

    def _judge(self, fault: EngineFault) -> None:
        if fault.code not in FAILURES:
            self._breaker.succeed()
        elif fault.retry_after_s:
            # A server that says when to come back is there; no call comes before.
            self._gate.hold(fault.retry_after_s)
            self._breaker.forget()
        else:
            self._breaker.fail()


def _stricter(kept: int, asked: int) -> int:
    """The smaller of two limits, of which 0 is none."""
    return min(kept, asked) if kept and asked else kept or asked
