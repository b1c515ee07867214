"""Threads for functions that block: a bounded number, and none that a process would wait for when it ends.

Rule 1: threads are daemons. The standard pool joins its threads at exit, so one hanging tool would hang the process.
Rule 2: a thread is never ended from outside; a caller that gives up on its work leaves it, and it stays taken until it returns.
Rule 3: work that has not begun can be withdrawn, and then nothing has happened.
"""

import asyncio
import inspect
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from remit.core.raised import words_of

# Tools wait for files and services and not for the processor, so many may wait at once; each costs some memory.
THREADS_MAX = 64

_T = TypeVar("_T")


class Threads:
    """Threads that are made when they are needed and kept."""

    __slots__ = ("_count", "_idle", "_lock", "_waiting")

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        # An entry for every thread that is free; an entry is taken by one caller alone.
        self._idle: deque[None] = deque()
        self._lock = Lock()
        self._count = 0

    def submit(self, work: Callable[[], _T]) -> "Future[_T]":
        """Have work done by the next thread that is free, in the context of the caller, who may be a thread."""
        future: Future[_T] = Future()
        self._put(partial(_do, future, copy_context(), work))
        return future

    def hand_over(self, work: Callable[[], _T]) -> "Handed[_T]":
        """Have work that never raises done by the next free thread, for a task of the running loop."""
        handed = Handed(work)
        self._put(handed.do)
        return handed

    def _put(self, job: Callable[[], None]) -> None:
        self._waiting.put(job)
        try:
            self._idle.pop()
        except IndexError:
            self._grow()

    def _grow(self) -> None:
        with self._lock:
            if self._count == THREADS_MAX:
                return
            self._count += 1
            number = self._count
        Thread(target=self._serve, name=f"remit-tool-{number}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            # No name holds on to work that is done.
            self._waiting.get()()
            self._idle.append(None)


class Handed(Generic[_T]):
    """Work that a thread does for a task. A cancelled task can wait for it once more, or withdraw it before it begins.

    It stands for a future that is chained to another and shielded, which takes the loop one more round a call.
    """

    __slots__ = ("_answers", "_context", "_loop", "_tickets", "_waiter", "_work")

    def __init__(self, work: Callable[[], _T]) -> None:
        self._work: Callable[[], _T] | None = work
        self._context = copy_context()
        self._loop = asyncio.get_running_loop()
        # Who takes the ticket, the thread or the task that withdraws, decides whether the work begins.
        self._tickets = [None]
        self._answers: list[_T] = []
        self._waiter: asyncio.Future[None] | None = None

    async def answer(self) -> _T:
        """What the work came to; one task waits for it at a time."""
        while not self._answers:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._answers[0]

    def withdraw(self) -> bool:
        """Take the work back; whether it will never begin."""
        try:
            self._tickets.pop()
        except IndexError:
            return False
        return True

    def do(self) -> None:
        """Do the work, in a thread."""
        work, self._work = self._work, None
        if work is None or not self.withdraw():
            return
        answer = self._context.run(work)
        try:
            self._loop.call_soon_threadsafe(self._settle, answer)
        except RuntimeError:
            # A loop that was closed meanwhile has no task left that waits.
            if not self._loop.is_closed():
                raise

    def _settle(self, answer: _T) -> None:
        self._answers.append(answer)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _do(future: "Future[Any]", context: Context, work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = context.run(work)
    except BaseException as error:  # noqa: BLE001  # the thread lives on; the caller gets the error
        future.set_exception(error)
    else:
        future.set_result(result)


async def in_thread(function: Callable[..., Any], *values: Any) -> Any:
    """What a function returns or raises, called in a thread. When the caller is cancelled, it is left alone."""
    handed = threads().hand_over(partial(_caught, function, values))
    try:
        answer, error = await handed.answer()
    except asyncio.CancelledError:
        handed.withdraw()
        raise
    if isinstance(error, Exception):
        raise error
    if error is not None:
        # An exit or an interrupt in a thread is none of the loop.
        raise RuntimeError(f"{type(error).__name__} was raised in a thread: {words_of(error)}") from error
    return answer


def _caught(function: Callable[..., Any], values: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    """The answer or the error, as a value: some errors cannot cross from a thread to the loop by being raised."""
    try:
        return function(*values), None
    except BaseException as error:  # noqa: BLE001  # it is raised again where it is awaited
        return None, error


def threads() -> Threads:
    """The threads of this process. A process that was forked off has none of its parent's, and makes its own."""
    return _threads_of(os.getpid())


@cache
def _threads_of(pid: int) -> Threads:
    return Threads()


async def call_user_code(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the user's gives: coroutines run on the loop, all else in a thread; an awaitable is awaited."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004  # whether it is async, not whether it is callable
        return await function(*arguments)
    said = await in_thread(function, *arguments)
    return await said if inspect.isawaitable(said) else said
