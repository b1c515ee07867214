"""An event loop of chance and virtual time, in which several processes are played at once; one seed gives one order.

Rule 1: within a process callbacks run in the order in which asyncio promises them; between processes the seed decides.
Rule 2: time stands still while anything is ready, and then jumps to the next timer. Nothing here sleeps or does I/O.
Rule 3: a process that crashes is never resumed, and no `finally` of it runs; its coroutines are kept until the loop is closed.
Rule 4: no threads: what is given to an executor is done at once, and its result comes a turn of the loop later.
Rule 5: a loop in which nothing will ever happen again, although it is waited for something, says so.
"""

import asyncio
import heapq
import inspect
import threading
import warnings
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Whose callback is being run. What belongs to no process belongs to the world, which never crashes.
WORLD = ""
PROCESS: ContextVar[str] = ContextVar("simulated_process", default=WORLD)


class Stalled(AssertionError):
    """Nothing will ever happen again, and a task still waits."""


class SeededLoop(asyncio.BaseEventLoop):
    """Plays processes one callback at a time. `on_step` is told before each callback, and may crash its process."""

    def __init__(self, chance: Random, on_step: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self.on_step = on_step
        self.steps = 0
        self._is_disturbed = False
        self._chance = chance
        self._now_s = 0.0
        self._queues: dict[str, deque[asyncio.Handle]] = {}
        self._alarms: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._alarms_set = 0
        self._crashed: set[str] = set()
        self._tasks: dict[asyncio.Task[Any], str] = {}
        self.set_task_factory(self._new_task)

    def time(self) -> float:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Seconds since the world began."""
        return self._now_s

    def spawn(self, process: str, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begin something in a process; whatever comes of it belongs to that process."""
        context = copy_context()
        context.run(PROCESS.set, process)
        return self.create_task(work, context=context)

    def crash(self, process: str) -> None:
        """Drop a process: nothing of it is ever resumed. A name is used once."""
        self._crashed.add(process)
        self._queues.pop(process, None)
        self.set_exception_handler(_pass_over_the_unread)

    def has_crashed(self, process: str) -> bool:
        """Whether a process was dropped."""
        return process in self._crashed

    def tasks_of(self, process: str) -> "list[asyncio.Task[Any]]":
        """What a process has under way, oldest first."""
        return [task for task, owner in self._tasks.items() if owner == process and not task.done()]

    def call_soon_threadsafe(  # type: ignore[explicit-override]
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As good as call_soon where no thread is; one that comes all the same is refused, since no seed orders it."""
        if threading.get_ident() != self._thread_id:  # type: ignore[attr-defined]
            self._is_disturbed = True
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[explicit-override]
        self, executor: Any, func: Callable[[*Ts], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        """Do it here and now; its caller goes on a turn of the loop later."""
        future: asyncio.Future[T] = self.create_future()
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001  # as an executor would hand it on
            self.call_soon(_fail, future, error)
        else:
            self.call_soon(_succeed, future, result)
        return future

    def call_at(  # type: ignore[explicit-override]
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Set an alarm; of two for the same moment the first one set rings first."""
        handle = events.TimerHandle(when, callback, args, self, context)
        self._alarms_set += 1
        heapq.heappush(self._alarms, (when, self._alarms_set, handle))
        return handle

    def _call_soon(self, callback: Any, args: Any, context: Context | None) -> asyncio.Handle:
        handle = events.Handle(callback, args, self, context)
        self._enqueue(handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled alarm is passed over when its moment comes."""

    def _enqueue(self, handle: asyncio.Handle) -> None:
        process = handle._context.get(PROCESS, WORLD)  # type: ignore[attr-defined]  # a loop owns its handles
        if process not in self._crashed:
            queue = self._queues.get(process)
            if queue is None:
                queue = self._queues[process] = deque()
            queue.append(handle)

    def _run_once(self) -> None:
        if self._is_disturbed:
            raise RuntimeError("a thread called into the simulated loop; what it does depends on more than the seed")
        self._ring()
        ready = [process for process, queue in self._queues.items() if queue]
        if not ready:
            self._await_alarm()
            return
        process = ready[0] if len(ready) == 1 else ready[int(self._chance.random() * len(ready))]
        handle = self._queues[process].popleft()
        if handle.cancelled():
            return
        self.steps += 1
        if process and self.on_step is not None:
            self.on_step(process)
            if process in self._crashed:
                return
        handle._run()  # a loop owns its handles

    def _ring(self) -> None:
        """Let every alarm ring whose moment has come."""
        alarms = self._alarms
        while alarms and (alarms[0][0] <= self._now_s or alarms[0][2].cancelled()):
            _, _, handle = heapq.heappop(alarms)
            if not handle.cancelled():
                self._enqueue(handle)

    def _await_alarm(self) -> None:
        """Jump to the next moment at which something happens."""
        if self._stopping:  # type: ignore[attr-defined]
            return
        if not self._alarms:
            raise Stalled(f"nothing will happen any more, and it is waited for: {self._waited_for()}")
        self._now_s = self._alarms[0][0]

    def _waited_for(self) -> str:
        names = [f"{owner}:{_name(task)}" for task, owner in self._tasks.items() if not task.done()]
        return ", ".join(name for name in names if name.partition(":")[0] not in self._crashed) or "nothing"

    def _new_task(self, loop: Any, work: Any, context: Context | None = None) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(work, loop=self, context=context)
        self._tasks[task] = context.get(PROCESS, WORLD) if context is not None else PROCESS.get()
        task.add_done_callback(self._tasks.pop)
        return task

    def close(self) -> None:  # type: ignore[explicit-override]
        """Let go of everything, what crashed included; whatever its `finally` says comes too late to matter."""
        left = list(self._tasks)
        self._tasks.clear()
        self._queues.clear()
        self._alarms.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # as gather() does
                _drop(task.get_coro())
        super().close()


def _succeed(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _pass_over_the_unread(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what went wrong, but not what was never read: in a world with crashes the reader may be gone."""
    if not context["message"].endswith("exception was never retrieved"):
        loop.default_exception_handler(context)


def _drop(work: Any) -> None:
    """Close a coroutine, what it waits for, and what it was given to await and never began."""
    inner = work
    while inspect.iscoroutine(inner):
        for value in [] if inner.cr_frame is None else list(inner.cr_frame.f_locals.values()):
            if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
                value.close()
        inner = inner.cr_await
    with suppress(BaseException):
        work.close()


def _name(task: "asyncio.Task[Any]") -> str:
    return str(getattr(task.get_coro(), "__qualname__", task))


class Turns:
    """So many turns of the loop, in which others may be faster."""

    __slots__ = ("_count",)

    def __init__(self, count: int) -> None:
        self._count = count

    def __await__(self) -> Generator[None, None, None]:
        """Let the others go first."""
        for _ in range(self._count):
            yield
