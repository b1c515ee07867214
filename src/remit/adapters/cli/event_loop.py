"""Running what a command does in an event loop that a person can interrupt.

Rule 1: an interrupt or a termination ends the work cleanly: no run is driven any more, the store is closed, every run
        can be resumed. A second one ends the process at once, which costs nothing but manners.
Rule 2: a command that knows a gentler way than ending the work says so; the first interrupt then goes that way.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias, TypeVar

from remit.core.failure import RemitError

INTERRUPTED = "INTERRUPTED"
_HEEDED = (signal.SIGINT, signal.SIGTERM)

SignalHandler: TypeAlias = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None
# What becomes of a signal that is not taken.
_UNHEEDED: dict[signal.Signals, SignalHandler] = {
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
    """The command was interrupted before its work was done."""

    def __init__(self, number: int, message: str = "", run_id: str = "") -> None:
        details = {"run_id": run_id} if run_id else {}
        super().__init__(INTERRUPTED, message or f"stopped by {signal.Signals(number).name}", details)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects."""
        return _EXIT_OF_SIGNALS + self.number

    def in_run(self, run_id: str) -> "Interrupted":
        """The interrupt with how to go on with a run."""
        return Interrupted(self.number, f"run {run_id} stopped; go on with: remit resume {run_id}", run_id)

    def at_once(self, run_id: str) -> "Interrupted":
        """The interrupt for a user who did not wait for the end of the run."""
        if not run_id:
            return Interrupted(self.number, "stopped at once")
        message = (
            f"run {run_id} was cut off; everything it had decided is kept, and it goes on with: remit resume {run_id}"
        )
        return Interrupted(self.number, message, run_id)


def in_loop(work: Coroutine[Any, Any, _T], *, on_first: Heard | None = None, on_second: Heard | None = None) -> _T:
    """What a coroutine comes to; raises Interrupted when it is interrupted."""
    return asyncio.run(heeding(work, on_first=on_first, on_second=on_second))


async def heeding(
    work: Coroutine[Any, Any, _T],
    *,
    on_first: Heard | None = None,
    on_second: Heard | None = None,
    gently: Gently | None = None,
) -> _T:
    """Await work within a loop that runs already. An interrupt is met gently where that is said; a termination never is."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    heard: list[int] = []
    errands: set[asyncio.Task[None]] = set()

    async def end() -> None:
        if gently is None or not await gently():
            task.cancel()

    def begin_to_end(number: int) -> None:
        if on_first is not None:
            on_first(number)
        if gently is None or number != signal.SIGINT:
            task.cancel()
        else:
            errands.add(loop.create_task(end()))

    def hear(number: int, frame: FrameType | None) -> None:
        # Not the loop's own way of hearing signals: a second one must be heard although the loop is busy.
        if heard:
            _die_of(number, on_second)
        heard.append(number)
        if on_second is None:
            _heed(dict.fromkeys(_HEEDED, None))
        loop.call_soon_threadsafe(begin_to_end, number)

    before = _heed(dict.fromkeys(_HEEDED, hear))
    try:
        return await task
    except asyncio.CancelledError:
        if heard:
            raise Interrupted(heard[0]) from None
        raise
    finally:
        await asyncio.gather(*errands)
        _heed(before)


async def served(work: Coroutine[Any, Any, object]) -> None:
    """Do some work until this process is told to end, which is how a service ends well."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in _HEEDED:
        loop.add_signal_handler(number, told.set)
    tasks = asyncio.ensure_future(work), asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for number in _HEEDED:
            # Again, it ends at once.
            loop.remove_signal_handler(number)
        for task in tasks:
            task.cancel()
    if not told.is_set():
        await tasks[0]


@contextmanager
def leaving_by_signals() -> Iterator[None]:
    """Let a termination, or the end of the terminal, end the command as its own end would: whatever it began is ended, too.

    Within a loop a termination is heeded as ever; this is for what a command does outside of one.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_EXIT_OF_SIGNALS + number)

    def hang_up(number: int, frame: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, leave), signal.signal(signal.SIGHUP, hang_up)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGHUP, before[1])


@contextmanager
def unheeded() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt, as it does outside of a loop: for as long as a person is asked."""
    before = _heed(dict.fromkeys(_HEEDED, None))
    try:
        yield
    finally:
        _heed(before)


def _die_of(number: int, on_second: Heard | None) -> None:
    """End the process as the signal would have, last words first."""
    try:
        if on_second is not None:
            on_second(number)
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _heed(handlers: Mapping[signal.Signals, SignalHandler]) -> dict[signal.Signals, SignalHandler]:
    """Let these take the signals, None for none of them; returns which took them before."""
    return {
        number: signal.signal(number, _UNHEEDED[number] if handler is None else handler)
        for number, handler in handlers.items()
    }
