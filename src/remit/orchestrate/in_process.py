"""Dispatch within one process: executors are awaited, one directly, several as tasks.

Rule 1: a turn with one command awaits its executor directly; a task costs more than the turn.
Rule 2: a timer is reported when its moment has come and nothing else has.
Rule 3: a person's answer comes from outside, so a run that only waits for people has nothing to receive.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from remit.core.arrivals import TimerFired
from remit.core.commands import AskHuman, CancelCommand, Command, ForkRun, SetTimer, TimerPurpose
from remit.orchestrate.ports import Clock, Live
from remit.orchestrate.reports import Report

Executor = Callable[[Live, Any], Awaitable[Report]]


class _Work:
    """What one run has under way."""

    __slots__ = ("outbox", "reports", "tasks", "timers")

    def __init__(self) -> None:
        self.outbox: list[Command] = []
        self.timers: dict[str, SetTimer] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.reports: asyncio.Queue[Report] = asyncio.Queue()


class InProcessDispatch:
    """Performs commands with the executors it was given, one per command kind."""

    def __init__(self, executors: Mapping[type[Command], Executor], clock: Clock) -> None:
        self._executors = executors
        self._clock = clock
        self._work: dict[str, _Work] = {}

    def send(self, live: Live, command: Command) -> None:
        """Have a command performed when the run is next driven."""
        work = self._work.get(live.run_id)
        if work is None:
            work = self._work[live.run_id] = _Work()
        if isinstance(command, SetTimer):
            work.timers[command.id] = command
        elif isinstance(command, CancelCommand):
            self._cancel(work, command.about)
        elif not isinstance(command, AskHuman | ForkRun):
            work.outbox.append(command)

    async def receive(self, live: Live) -> Report | None:
        """The next report: of the one command under way, of whichever of several is first, or of a timer."""
        work = self._work.get(live.run_id)
        if work is None:
            return None
        if len(work.outbox) == 1 and not work.tasks and work.reports.empty():
            command = work.outbox.pop()
            return await self._executors[type(command)](live, command)
        for command in work.outbox:
            work.tasks[command.id] = asyncio.create_task(self._perform(work, live, command))
        work.outbox.clear()
        if work.tasks or not work.reports.empty():
            return await work.reports.get()
        return await self._next_timer(work, live)

    async def _perform(self, work: _Work, live: Live, command: Command) -> None:
        try:
            work.reports.put_nowait(await self._executors[type(command)](live, command))
        finally:
            work.tasks.pop(command.id, None)

    def _cancel(self, work: _Work, command_id: str) -> None:
        work.outbox = [command for command in work.outbox if command.id != command_id]
        if (task := work.tasks.get(command_id)) is not None:
            task.cancel()

    async def _next_timer(self, work: _Work, live: Live) -> Report | None:
        """Wait for the next timer that moves the run by itself; one behind a question moves it only when it expires."""
        work.timers = {key: timer for key, timer in work.timers.items() if key in live.state.open}
        due = [timer for timer in work.timers.values() if timer.purpose is TimerPurpose.RETRY]
        due += [timer for timer in work.timers.values() if timer.due_at_ms <= self._clock.now_ms()]
        if not due:
            return None
        timer = min(due, key=lambda timer: timer.due_at_ms)
        await asyncio.sleep(max(0, timer.due_at_ms - self._clock.now_ms()) / 1000)
        del work.timers[timer.id]
        return TimerFired(timer.id)
