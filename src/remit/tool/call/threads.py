"""Threads for functions that block: a bounded number, and none that a process would wait for when it ends.

Rule 1: threads are daemons. The standard pool joins its threads at exit, so one hanging tool would hang the process.
Rule 2: a thread is never ended from outside; a caller that gives up on its work leaves it, and it stays taken until it returns.
Rule 3: work that has not begun can be withdrawn, and then nothing has happened.
"""

import asyncio
import inspect
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any, TypeVar

from remit.core.raised import words_of

# Tools wait for files and services and not for the processor, so many may wait at once; each costs some memory.
THREADS_MAX = 64

_T = TypeVar("_T")


class Threads:
    """Threads that are made when they are needed and kept."""

    __slots__ = ("_count", "_idle", "_lock", "_waiting")

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Context, Callable[[], Any]]] = SimpleQueue()
        self._idle = Semaphore(0)
        self._lock = Lock()
        self._count = 0

    def submit(self, work: Callable[[], _T]) -> "Future[_T]":
        """Have work done by the next thread that is free, in the context of the caller."""
        future: Future[_T] = Future()
        self._waiting.put((future, copy_context(), work))
        if not self._idle.acquire(blocking=False):
            self._grow()
        return future

    def _grow(self) -> None:
        with self._lock:
            if self._count == THREADS_MAX:
                return
            self._count += 1
            number = self._count
        Thread(target=self._serve, name=f"remit-tool-{number}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            _do(*self._waiting.get())
            self._idle.release()


def _do(future: "Future[Any]", context: Context, work: Callable[[], Any]) -> None:
    # A function of its own, so that no thread holds on to work it has done.
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
    answer, error = await asyncio.wrap_future(threads().submit(partial(_caught, function, values)))
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
