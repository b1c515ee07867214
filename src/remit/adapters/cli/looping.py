"""Running what a command does in an event loop that a person can interrupt.

Rule 1: an interrupt or a termination ends the work cleanly: nobody is driven any more, the store is closed, every run
        can be resumed. A second one ends the process at once, which costs nothing but manners.
Rule 2: whoever knows a gentler way than ending the work says so; the first interrupt then goes that way.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from remit.core.failure import RemitError

INTERRUPTED = "INTERRUPTED"
# What is heeded, and what becomes of each when nobody heeds it.
_HEEDED: dict[signal.Signals, Callable[[int, FrameType | None], Any] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
# How a shell reports a process that a signal ended.
_EXIT_OF_SIGNALS = 128

_T = TypeVar("_T")

# Is told the number of the signal.
Heard = Callable[[int], None]
# Ends what is under way in a gentler way than cutting it off; False when there is nothing that it could end.
Gently = Callable[[], Coroutine[Any, Any, bool]]


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

    def at_once(self, run_id: str) -> "Interrupted":
        """The same, for somebody who did not wait for the end of it."""
        if not run_id:
            return Interrupted(self.number, "stopped at once")
        message = (
            f"run {run_id} was cut off; everything it had decided is kept, and it goes on with: remit resume {run_id}"
        )
        return Interrupted(self.number, message, run_id)


def in_loop(work: Coroutine[Any, Any, _T], *, on_first: Heard | None = None, on_second: Heard | None = None) -> _T:
    """What a coroutine comes to; raises Interrupted when somebody ends it."""
    return asyncio.run(heeding(work, on_first=on_first, on_second=on_second))


async def heeding(
    work: Coroutine[Any, Any, _T],
    *,
    on_first: Heard | None = None,
    on_second: Heard | None = None,
    gently: Gently | None = None,
) -> _T:
    """The same within a loop. An interrupt is met gently where that is said; a termination never is."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    heard: list[int] = []
    errands: set[asyncio.Task[None]] = set()

    async def end() -> None:
        if gently is None or not await gently():
            task.cancel()

    def hear(number: int) -> None:
        heard.append(number)
        _unheed(loop)
        if on_second is not None:
            _arm(on_second)
        if on_first is not None:
            on_first(number)
        if gently is None or number != signal.SIGINT:
            task.cancel()
        else:
            errands.add(loop.create_task(end()))

    for number in _HEEDED:
        loop.add_signal_handler(number, hear, number)
    try:
        return await task
    except asyncio.CancelledError:
        if heard:
            raise Interrupted(heard[0]) from None
        raise
    finally:
        await asyncio.gather(*errands)
        _unheed(loop)


def _arm(on_second: Heard) -> None:
    """Let the next signal end the process, whatever the loop is busy with; last words first."""

    def die(number: int, frame: FrameType | None) -> None:
        on_second(number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in _HEEDED:
        signal.signal(number, die)


def _unheed(loop: asyncio.AbstractEventLoop) -> None:
    for number, default in _HEEDED.items():
        if not loop.remove_signal_handler(number):
            signal.signal(number, default)
