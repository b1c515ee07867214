"""Deadlines: stop waiting for something that takes too long, and pay for it only when there is something to wait for.

Rule 1: what is late is cancelled, and has ended when TimeRanOut is raised.
Rule 2: a cancellation from outside always wins: over the deadline, over a result, and over whatever was raised instead.
Rule 3: a TimeoutError of the awaited thing's own passes as it is; TimeRanOut is the deadline's alone.
Rule 4: no timer is set before the awaited thing first waits: a timer costs as much as a turn, and much never waits.
"""

import asyncio
from collections.abc import Awaitable, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TimeRanOut(TimeoutError):
    """The deadline passed before there was a result."""


async def within(timeout_ms: int, awaitable: Awaitable[T]) -> T:
    """The outcome of the awaitable, or TimeRanOut when that takes longer."""
    steps = awaitable.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    return await _on_time(timeout_ms, waits_for, steps)


async def _on_time(timeout_ms: int, waits_for: Any, steps: Generator[Any, Any, T]) -> T:
    task = asyncio.current_task()
    assert task is not None, "a coroutine is awaited in a task"
    alarm = _Alarm(task, timeout_ms)
    timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, alarm.ring)
    try:
        result = await resumed(waits_for, steps)
    except BaseException as error:
        alarm.settle(error)
        raise
    finally:
        timer.cancel()
    alarm.settle(None)
    return result


class _Alarm:
    """Cancels a task once, and says afterwards whose cancellation it was."""

    __slots__ = ("_cancelling", "_has_rung", "_task", "_timeout_ms")

    def __init__(self, task: asyncio.Task[Any], timeout_ms: int) -> None:
        self._task = task
        self._timeout_ms = timeout_ms
        # A task that is being cancelled and cleans up has cancellations of its own that are not meant for us.
        self._cancelling = task.cancelling()
        self._has_rung = False

    def ring(self) -> None:
        """The time is up."""
        self._has_rung = True
        self._task.cancel()

    def settle(self, error: BaseException | None) -> None:
        """Take back our own cancellation, and raise what follows from ours and from all others."""
        if self._has_rung:
            self._task.uncancel()
        if self._task.cancelling() > self._cancelling:
            raise asyncio.CancelledError from error
        if self._has_rung and isinstance(error, asyncio.CancelledError):
            raise TimeRanOut(f"no result within timeout_ms={self._timeout_ms}") from error


async def resumed(waits_for: Any, steps: Generator[Any, Any, T]) -> T:
    """Go on with something that has taken its first step and waits."""
    return await _rest(waits_for, steps)


@coroutine
def _rest(waits_for: Any, steps: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    while True:
        try:
            yield waits_for
        except BaseException as error:  # noqa: BLE001  # whatever reaches us is meant for what we wait for
            try:
                waits_for = steps.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
        else:
            return (yield from steps)
