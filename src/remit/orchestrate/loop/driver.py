"""The driver of a run in this process, and the steps that are taken for runs: a step that was begun is finished.

Rule 1: a turn that was written must be acted on, even when the caller who asked for the step stops waiting.
Rule 2: a step that waits is told that it is cancelled, even before its task has begun: it lets go what it holds.
Rule 3: within this process the steps of a run wait for each other, so that none takes another for a step of another process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar, cast

from remit.observe.logs import run_fields
from remit.orchestrate.loop.live import Live

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Driver:
    """The driver of one run in this process, and how many callers are saying something to the run."""

    __slots__ = ("is_abandoned", "is_awaited", "is_lost", "live", "news", "speaking", "task", "waiters")

    def __init__(self, live: Live) -> None:
        self.live = live
        self.task: asyncio.Task[None] | None = None
        self.speaking = 0
        # Tells the driver that one of them has spoken; there only while it waits for that.
        self.news: asyncio.Event | None = None
        # Whether a parent waits here for this run to end, and so need not be told.
        self.is_awaited = False
        # Whether the lease of the run went to another, or the house was closed although the driver did not stop.
        self.is_lost = self.is_abandoned = False
        # Those who wait until the run rests.
        self.waiters: set[asyncio.Future[None]] = set()

    def tell_waiters(self) -> None:
        """Let those go on who wait until the run rests; they see for themselves how it does."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


class _Begun:
    """What has taken its first step and waits: a coroutine for a task that goes on with it.

    No `async def`: of one whose task is cancelled before it begins, Python runs nothing, and what waits would never be told.
    """

    __slots__ = ("_steps", "_waits_for")

    def __init__(self, waits_for: Any, steps: Generator[Any, Any, Any]) -> None:
        # What the task waits for first; in a tuple, since a pause of one tick waits for None.
        self._waits_for: tuple[Any, ...] = (waits_for,)
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._steps

    def send(self, value: Any) -> Any:
        """Wait for what is waited for already, and then go on."""
        if self._waits_for:
            (waits_for,), self._waits_for = self._waits_for, ()
            return waits_for
        return self._steps.send(value)

    def throw(self, error: BaseException) -> Any:
        """Hand an error on; one that comes before the task begins ends the wait, as a cancellation does that comes later."""
        (waits_for, *_), self._waits_for = self._waits_for or (None,), ()
        if waits_for is not None and waits_for.cancel():
            return waits_for
        return self._steps.throw(error)

    def close(self) -> None:
        """Go no further."""
        self._steps.close()


class Steps:
    """The steps that are under way, by their runs."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], str] = {}
        # Of each run with steps under way: the lock that its steps take in turn, and how many there are.
        self._turnstiles: dict[str, tuple[asyncio.Lock, int]] = {}

    async def finish(self, run_id: str, step: Coroutine[Any, Any, T]) -> T:
        """Do a step of a run to its end, after those before it."""
        return await self._shielded(run_id, step, self._in_turn(run_id, step))

    async def begin(self, run_id: str, step: Coroutine[Any, Any, T]) -> T:
        """Like `finish`, but with a task only if the step waits: a caller cannot leave a step that never waits."""
        in_turn = self._in_turn(run_id, step)
        begun = in_turn.__await__()
        try:
            waits_for = next(begun)
        except StopIteration as done:
            result: T = done.value
            return result
        return await self._shielded(run_id, step, cast("Coroutine[Any, Any, T]", _Begun(waits_for, begun)))

    async def _shielded(self, run_id: str, step: Coroutine[Any, Any, T], rest: Coroutine[Any, Any, T]) -> T:
        """Finish a step in a task of its own, even if its caller stops waiting."""
        task = asyncio.create_task(rest)
        self._tasks[task] = run_id
        task.add_done_callback(partial(self._is_over, step))
        return await asyncio.shield(task)

    def under_way(self) -> list[tuple[asyncio.Task[Any], str]]:
        """The steps that are not over, each with its run."""
        return list(self._tasks.items())

    async def wait_once(self) -> None:
        """Wait until those steps are over that are under way now."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def wait(self) -> None:
        """Wait until every step is over."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _in_turn(self, run_id: str, step: Coroutine[Any, Any, T]) -> T:
        lock, waiting = self._turnstiles.get(run_id) or (asyncio.Lock(), 0)
        self._turnstiles[run_id] = (lock, waiting + 1)
        try:
            async with lock:
                return await step
        finally:
            _, waiting = self._turnstiles.pop(run_id)
            if waiting > 1:
                self._turnstiles[run_id] = (lock, waiting - 1)

    def _is_over(self, step: Coroutine[Any, Any, Any], task: "asyncio.Task[Any]") -> None:
        run_id = self._tasks.pop(task)
        # Closing what was never begun keeps Python from warning that it was never awaited.
        step.close()
        # The caller has the error, unless it stopped waiting.
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("a step raised %s", type(error).__name__, extra=run_fields(run_id))


async def make_beside_loop(make: Callable[[], T], undo: Callable[[T], Awaitable[None]]) -> T:
    """Make something beside the loop. A caller that stops waiting does not stop that, so what was made then is undone."""
    making = asyncio.get_running_loop().run_in_executor(None, make)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        await undo(await making)
        raise
