"""Steps: what was begun for a run is finished, even when whoever asked for it stops waiting.

Rule 1: a turn that was written must be acted on; who stops waiting for it must not stop that.
Rule 2: within this process one step of a run waits for the other, so nobody takes a neighbour for another process.
"""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from remit.observe.logs import run_fields

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Steps:
    """The steps that are under way, by their runs."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], str] = {}
        # Of each run with steps under way: who may go next, and how many are there.
        self._turnstiles: dict[str, tuple[asyncio.Lock, int]] = {}

    async def finish(self, run_id: str, step: Coroutine[Any, Any, T]) -> T:
        """Do a step of a run to its end, after those before it."""
        task = asyncio.create_task(self._in_turn(run_id, step))
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
        # Closing what was never begun keeps Python from complaining that nobody awaited it.
        step.close()
        # Whoever asked for it has the error, unless they stopped waiting.
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("a step raised %s", type(error).__name__, extra=run_fields(run_id))
