"""Hours that pass in no time: an event loop whose clock is moved on instead of waited for.

Rule 1: when nothing is ready, the next timer is due at once; a day of silence takes a microsecond.
Rule 2: nothing of a scenario runs in a thread, so a task that waits for nothing waits for ever, and that is an error.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

# A Monday morning, so that reports read the same every day.
START_MS = 1_767_603_600_000

_T = TypeVar("_T")


class _Skipping(selectors.DefaultSelector):
    """Finds what is ready, and skips the time in which nothing happens."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """What is ready now."""
        ready = super().select(0)
        if timeout is None and not ready:
            raise RuntimeError("the scenario waits for something that will never come")
        if not ready:
            self.skipped_s += timeout or 0
        return ready


class Hours(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Seconds since the loop was made."""
        return self._skipping.skipped_s

    def now_ms(self) -> int:
        """What the clock on the wall of the scenario says."""
        return START_MS + int(self.time() * 1000)

    def pass_until(self, at_ms: int) -> None:
        """Let the time pass until this moment."""
        self._skipping.skipped_s = max(self.time(), (at_ms - START_MS + 1) / 1000)


def in_no_time(work: Coroutine[Any, Any, _T], hours: Hours) -> _T:
    """What a coroutine comes to, played on these hours."""
    with asyncio.Runner(loop_factory=lambda: hours) as runner:
        return runner.run(work)
