"""Deadlines: stop waiting for something that takes too long, and pay for it only when there is something to wait for.

Rule 1: whoever is late is cancelled, and has ended when TimeRanOut is raised.
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
    """What the awaitable comes to, or TimeRanOut when that takes longer."""
    steps = awaitable.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    return await _on_time(timeout_ms, waits_for, steps)


class _Alarm:
    """Cancels a task once, and knows that it did."""

    __slots__ = ("_task", "has_rung")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self.has_rung = False

    def ring(self) -> None:
        self.has_rung = True
        self._task.cancel()


async def _on_time(timeout_ms: int, waits_for: Any, steps: Generator[Any, Any, T]) -> T:
    task = asyncio.current_task()
    assert task is not None, "a coroutine is awaited in a task"
    # Whoever calls this while being cancelled, to clean up, has cancellations of its own that are not meant for us.
    cancelling = task.cancelling()
    alarm = _Alarm(task)
    timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, alarm.ring)
    try:
        result = await _resumed(waits_for, steps)
    except BaseException as error:
        if alarm.has_rung:
            task.uncancel()
        if task.cancelling() > cancelling:
            raise asyncio.CancelledError from error
        if alarm.has_rung and isinstance(error, asyncio.CancelledError):
            raise TimeRanOut(f"no result within timeout_ms={timeout_ms}") from error
        raise
    finally:
        timer.cancel()
    if alarm.has_rung:
        task.uncancel()  # It was told to stop and came to a result all the same.
    if task.cancelling() > cancelling:
        raise asyncio.CancelledError
    return result


@coroutine
def _resumed(waits_for: Any, steps: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Go on with something that has taken its first step and waits."""
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
