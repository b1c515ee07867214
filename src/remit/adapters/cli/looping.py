"""Running what a command does in an event loop that a person can interrupt.

Rule 1: an interrupt or a termination ends the work cleanly: nobody is driven any more, the store is closed, every run
        can be resumed. A second one ends the process at once, which costs nothing but manners.
"""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from remit.core.failure import RemitError

INTERRUPTED = "INTERRUPTED"
_HEEDED = (signal.SIGINT, signal.SIGTERM)
# How a shell reports a process that a signal ended.
_EXIT_OF_SIGNALS = 128

_T = TypeVar("_T")


class Interrupted(RemitError):
    """Somebody ended the command before its work was done."""

    def __init__(self, number: int, message: str = "", run_id: str = "") -> None:
        details = {"run_id": run_id} if run_id else {}
        super().__init__(INTERRUPTED, message or f"stopped by {signal.Signals(number).name}", details)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects."""
        return _EXIT_OF_SIGNALS + self.number

    def in_run(self, run_id: str) -> "Interrupted":
        """The same, for somebody who wants to know how to go on with a run."""
        return Interrupted(self.number, f"run {run_id} stopped; go on with: remit resume {run_id}", run_id)


def in_loop(work: Coroutine[Any, Any, _T]) -> _T:
    """What a coroutine comes to; raises Interrupted when somebody ends it."""
    return asyncio.run(_heeding(work))


async def _heeding(work: Coroutine[Any, Any, _T]) -> _T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "a coroutine is run by a task"
    heard: list[int] = []

    def hear(number: int) -> None:
        heard.append(number)
        _unheed(loop)
        task.cancel()

    for number in _HEEDED:
        loop.add_signal_handler(number, hear, number)
    try:
        return await work
    except asyncio.CancelledError:
        if heard:
            raise Interrupted(heard[0]) from None
        raise
    finally:
        _unheed(loop)


def _unheed(loop: asyncio.AbstractEventLoop) -> None:
    for number in _HEEDED:
        loop.remove_signal_handler(number)
