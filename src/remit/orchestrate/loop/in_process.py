"""Dispatch within one process: executors are awaited, one directly, several as tasks.

Rule 1: a turn with one command awaits its executor directly; a task costs more than the turn.
Rule 2: every command under way ends in a report. An executor that raises, is cancelled or speaks of another command
        broke its own, and that is reported with a code. A mutating call that broke is in doubt once it was claimed, and
        certainly not done before.
Rule 3: a timer is reported when its moment has come. A deadline cuts off whatever is under way.
Rule 4: a person's answer comes from outside, so a run that only waits for people has nothing to receive.
Rule 5: telling a child to end and making a fork are chores: no run waits for their reports, since the run that sends
        them may have ended; a caller that leaves waits until they are done.
Rule 6: a command that is under way is not begun a second time, however often it is sent.
Rule 7: no report that is handed on holds a secret of the vault.
Rule 8: nothing goes out that a halt stops: its run hears that it was withheld. What is under way then is called off.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from remit.core.failure import RemitError
from remit.core.journal.arrivals import RunHalted, TimerFired
from remit.core.journal.commands import CallTool, CancelCommand, Command, ForkRun, SetTimer, StartChild
from remit.core.run.halt import Halt
from remit.kernel.state import is_safe_to_repeat
from remit.observe.logs import run_fields
from remit.orchestrate.executors.reports import PERFORMED, Report, report_of_broken, unperformed
from remit.orchestrate.executors.timer import ALARM_SLACK_MS, cuts_off, moment_of, moves_by_itself, timers_of
from remit.orchestrate.facts.sealer import received
from remit.orchestrate.loop.claims import Claims, PerformerLost, not_called, not_done
from remit.orchestrate.loop.halt_switch import Halts, HaltStands, halted
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.patience import STOP_GRACE_S
from remit.orchestrate.ports import Clock
from remit.tool.secrets.vault import NO_SECRETS, Vault

if TYPE_CHECKING:
    from remit.orchestrate.errand_ports import SharedClaims

Executor = Callable[[Live, Any], Awaitable[Report]]

_log = logging.getLogger(__name__)


class _Work:
    """What one run has under way."""

    __slots__ = (
        "alarm",
        "called_off",
        "direct",
        "driver",
        "is_cut",
        "outbox",
        "reports",
        "rung",
        "tasks",
        "waiter",
    )

    def __init__(self) -> None:
        self.outbox: list[tuple[Live, Command]] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.reports: list[Report] = []
        # The run's next timer, and those that were reported and may not have been judged yet.
        self.alarm: asyncio.TimerHandle | None = None
        self.rung: set[str] = set()
        # Who waits for the next report; or which command is awaited directly, in which task, and whether it was cut off.
        # One task drives a run, from the first report it receives until the run is forgotten.
        self.waiter: asyncio.Future[None] | None = None
        self.direct = ""
        self.driver: asyncio.Task[Any] | None = None
        self.is_cut = False
        # Commands that a halt called off while they were under way.
        self.called_off: dict[str, Halt] = {}

    @property
    def is_waited_for(self) -> bool:
        """Whether the driver of the run waits for a report already."""
        return self.direct != "" or self.waiter is not None

    def has(self, command_id: str) -> bool:
        """Whether a command is under way, or waits to be begun."""
        if command_id in self.tasks or command_id == self.direct:
            return True
        return bool(self.outbox) and any(command.id == command_id for _, command in self.outbox)

    def report(self, report: Report) -> None:
        """Put a report where the next one to ask finds it."""
        self.reports.append(report)
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class InProcessDispatch:
    """Performs commands with the executors it was given, one per command kind."""

    def __init__(
        self,
        executors: Mapping[type[Command], Executor],
        clock: Clock,
        vault: Vault = NO_SECRETS,
        halts: Halts | None = None,
        shared: "SharedClaims | None" = None,
    ) -> None:
        self.vault = vault
        # Claims of all processes, where a store has them.
        self._shared = shared
        # The kinds of commands that workers are given.
        self.carried: frozenset[type[Command]] = frozenset()
        self._halts = halts
        self._executors = executors
        self._clock = clock
        self._work: defaultdict[str, _Work] = defaultdict(_Work)
        self._claims = Claims()
        # Takes a report for a run that has gone on without it.
        self.on_late: Callable[[str, Report], None] | None = None
        # Told of a run that has ended and is forgotten.
        self.on_ended: Callable[[Live], None] | None = None
        # Cancels on their way to children and forks in the making, with the run that sends each. Only this keeps them.
        self._chores: dict[asyncio.Task[None], str] = {}
        # What was under way for a run that is not driven here any more, and was told to stop.
        self._stopping: dict[asyncio.Task[None], str] = {}

    def send(self, live: Live, command: Command) -> None:
        """Have a command performed: when the run is next driven, or at once when its driver waits already."""
        work = self._work[live.run_id]
        if type(command) in PERFORMED:
            if type(command) is CallTool and command.mutating and live.is_ordered_here(command):
                self._claims.offer(live.run_id, command.id)
            # Asked only where something is under way; most commands come when nothing is.
            if not (work.direct or work.outbox or work.tasks or work.waiter is not None):
                work.outbox.append((live, command))
            elif not work.has(command.id):
                self._add(work, live, command)
        elif isinstance(command, SetTimer):
            _disarm(work)
            if work.is_waited_for:
                self._arm(work, live)
        elif isinstance(command, CancelCommand):
            self._take_back(work, live, command.about)
            if command.run_id:
                self._run_chore(live, command)
        elif isinstance(command, ForkRun):
            self._run_chore(live, command)

    async def receive(self, live: Live) -> Report | None:
        """The next report: of the one command under way, of the first of several, or of a timer."""
        work = self._work[live.run_id]
        if work.alarm is None:
            self._arm(work, live)
        if work.reports:
            return work.reports.pop(0)
        if len(work.outbox) != 1 or work.tasks:
            return await self._next(work, live)
        sender, command = work.outbox.pop()
        executor = self._executors.get(type(command))
        if executor is None:
            return unperformed(command)
        if self._halts is not None and (halt := self._halts.stopping(sender.state, command)) is not None:
            return halted(halt, command.id)
        work.direct = command_id = command.id
        if work.driver is None or work.driver.done():
            # Asked for once and not with every command: it takes a system call to find out.
            work.driver = asyncio.current_task()
        try:
            report = await executor(sender, command)
            if self.vault.masker.names:
                report = received(report, self.vault)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # no command may be lost with its executor
            if not work.is_cut:
                return await self._explained(live, command, error)
            report = await self._called_off(work, live, command) or report_of_broken(command, "it was cut off")
        finally:
            work.direct = ""
        if getattr(report, "command_id", None) != command_id:
            report = await self._placed(live, command, report)
        return _resumed(work, report) if work.is_cut else report

    def call_off(self, live: Live) -> None:
        """Call off whatever is under way for a run and must not be any longer; its driver hears of the halt."""
        work = self._work.get(live.run_id)
        if work is None or self._halts is None:
            return
        for command_id in [*work.tasks, *([work.direct] if work.direct else ())]:
            command = live.state.commands.open.get(command_id)
            if command is None or command_id in work.called_off or type(command) not in PERFORMED:
                continue
            if (halt := self._halts.stopping(live.state, command)) is None:
                continue
            if isinstance(command, StartChild):
                # Its run is halted by itself, and this one rests as soon as that does.
                work.report(halted(halt))
                continue
            work.called_off[command_id] = halt
            self._cancel(work, command_id)

    def forget(self, live: Live) -> None:
        """Cancel what is under way for a run and keep nothing of it; its timers stand in its state."""
        work = self._work.pop(live.run_id, None)
        self._claims.forget(live.run_id)
        if live.state.end.ending is not None and self.on_ended is not None:
            self.on_ended(live)
        if work is None:
            return
        _disarm(work)
        for task in work.tasks.values():
            task.cancel()
            # It may take a while to stop; the caller does not leave before it has, or was given up.
            self.look_after(asyncio.create_task(_stop(task, live)), live.run_id)

    def look_after(self, task: "asyncio.Task[None]", run_id: str) -> None:
        """Have a process that leaves wait for something that was told to stop."""
        self._stopping[task] = run_id
        task.add_done_callback(self._stopping.pop)

    def wake(self, live: Live) -> None:
        """Let the driver of a run look at it again: another caller had a report ruled on for it."""
        work = self._work.get(live.run_id)
        if work is not None and work.waiter is not None and not work.waiter.done():
            work.waiter.set_result(None)

    def under_way(self) -> list[tuple[asyncio.Task[None], str]]:
        """The chores that are not done, and what was told to stop and has not, each with its run."""
        return [*self._chores.items(), *self._stopping.items()]

    async def finish(self, run_id: str = "") -> None:
        """Wait until every child that was to be cancelled has been told, and every fork made: of one run, or of all.

        Telling a child may mean that it tells its own children, so a run that tells waits only for those beneath it.
        """
        named = self._chores.items() if run_id else self.under_way()
        while chores := [chore for chore, sender in named if run_id in ("", sender)]:
            await asyncio.wait(chores)
            named = self._chores.items() if run_id else self.under_way()

    def _run_chore(self, live: Live, command: Command) -> None:
        if (executor := self._executors.get(type(command))) is not None:
            chore = asyncio.create_task(_run(executor, live, command))
            self._chores[chore] = live.run_id
            chore.add_done_callback(self._chores.pop)

    async def _next(self, work: _Work, live: Live) -> Report | None:
        """Start everything that was sent and wait for the first report, or for a timer that will come."""
        for sender, command in work.outbox:
            self._start(work, sender, command)
        work.outbox.clear()
        while not work.reports:
            if live.state.end.ending is not None or not (work.tasks or moves_by_itself(live.state)):
                return None
            work.waiter = asyncio.get_running_loop().create_future()
            try:
                await work.waiter
            finally:
                work.waiter = None
        return work.reports.pop(0)

    def _add(self, work: _Work, live: Live, command: Command) -> None:
        """Begin a command beside others: at once, where the driver of the run will not look into the outbox."""
        if work.is_waited_for:
            self._start(work, live, command)
        else:
            work.outbox.append((live, command))

    def _start(self, work: _Work, live: Live, command: Command) -> None:
        work.tasks[command.id] = asyncio.create_task(self._perform(work, live, command))

    async def _perform(self, work: _Work, live: Live, command: Command) -> None:
        executor = self._executors.get(type(command))
        report = unperformed(command)
        try:
            if executor is not None:
                if self._halts is not None and (halt := self._halts.stopping(live.state, command)) is not None:
                    raise HaltStands(halt)
                report = report_of_broken(command, "it was cancelled")
                report = received(await executor(live, command), self.vault)
        except HaltStands as stop:
            report = halted(stop.halt, command.id)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # no command may be lost with its executor
            report = await self._called_off(work, live, command) or await self._explained(live, command, error)
        finally:
            # Also after a cancel: the driver must not wait for something that will never be reported.
            work.tasks.pop(command.id, None)
            work.report(await self._placed(live, command, report))

    def carries(self, command: Command) -> bool:
        """Whether a command that an earlier driver has sent is waited for by sending it, and not performed again."""
        return type(command) in self.carried

    async def claim(self, run_id: str, command_id: str, *, is_repeatable: bool = False) -> bool:
        """Claim a call that changes something; False where it was revoked, or has begun, here or elsewhere.

        One that is safe to repeat may begin although it has begun before.
        """
        was_reopened = self._claims.is_reopened(run_id, command_id)
        if not self._claims.claim(run_id, command_id, is_repeatable=is_repeatable):
            return False
        if self._shared is None:
            return True
        # Only those who share claims pay for it.
        from remit.core.journal.queued import Claimed

        if was_reopened:
            await self._shared.offer(run_id, command_id)
        attempt = 0 if is_repeatable else 1
        return await self._shared.claim(run_id, command_id, attempt=attempt) is Claimed.GRANTED

    async def revoke(self, run_id: str, command_id: str) -> bool:
        """Take a call back, so that it is certainly not made; False where it has begun.

        Where workers perform calls, each of them claims what it begins for all to see, so it need not have been sent here.
        """
        if self.carried:
            self._claims.offer(run_id, command_id)
        if not self._claims.revoke(run_id, command_id):
            return False
        if self._shared is None or await self._shared.revoke(run_id, command_id):
            return True
        self._claims.begun(run_id, command_id)
        return False

    async def _explained(self, live: Live, command: Command, error: BaseException) -> Report:
        """Why there is no report, unless the driver of the run wants to stop: then there will be none."""
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise error
            return await self._broken(live, command, "its executor was cancelled from within")
        kind, fields = type(command).__name__, run_fields(live.run_id, live.state, command_id=command.id)
        if isinstance(error, PerformerLost):
            _log.warning("the performer of %s is gone", kind, extra=fields)
            return await self._broken(live, command, "the process that performed it is gone")
        # The words of an unexpected error may hold secrets: they are for the operator, not for the journal.
        _log.error("the executor of %s broke", kind, exc_info=error, extra=fields)
        return await self._broken(live, command, f"its executor raised {type(error).__name__}")

    async def _placed(self, live: Live, command: Command, report: Report) -> Report:
        """A report that is about its command: as it is, or what is said of one that reported something else."""
        if getattr(report, "command_id", None) == command.id:
            return report
        if isinstance(report, RunHalted) and report.withheld == (command.id,):
            return report
        why = f"its executor reported {type(report).__name__}, which is not about it"
        return await self._broken(live, command, why)

    async def _broken(self, live: Live, command: Command, why: str) -> Report:
        """Revoke a command that broke and give its report: a call that could still be revoked has certainly not begun."""
        if isinstance(command, CallTool) and command.mutating and await self.revoke(live.run_id, command.id):
            return not_called(command, why)
        return report_of_broken(command, why)

    async def _called_off(self, work: _Work, live: Live, command: Command) -> Report | None:
        """Revoke a command that a halt called off and give its report; None where no halt did.

        What may be repeated is withheld, and so is what had not begun. A mutating call that had may have done everything or
        nothing: the run pauses first, so that no person is asked about it before the halt is lifted.
        """
        halt = work.called_off.pop(command.id, None)
        if halt is None:
            return None
        is_mutating = isinstance(command, CallTool) and command.mutating
        is_revoked = is_mutating and await self.revoke(live.run_id, command.id)
        if is_safe_to_repeat(live.state, command) or is_revoked:
            return halted(halt, command.id)
        work.report(halted(halt))
        return report_of_broken(command, f"it was under way when {halt.scope} was halted by {halt.by}")

    def _take_back(self, work: _Work, live: Live, command_id: str) -> None:
        """Stop a command that its run no longer waits for; a call that has not begun is told to be certainly not done."""
        command = live.state.commands.open.get(command_id)
        self._cancel(work, command_id)
        if (
            not isinstance(command, CallTool)
            or not command.mutating
            or self._claims.is_revoked(live.run_id, command_id)
        ):
            return
        if self._shared is not None:
            chore = asyncio.create_task(self._tell_if_revoked(live.run_id, command))
            self._chores[chore] = live.run_id
            chore.add_done_callback(self._chores.pop)
        elif self._claims.revoke(live.run_id, command_id) and self.on_late is not None:
            self.on_late(live.run_id, not_done(command))

    async def _tell_if_revoked(self, run_id: str, command: CallTool) -> None:
        if await self.revoke(run_id, command.id) and self.on_late is not None:
            self.on_late(run_id, not_done(command))

    def _cancel(self, work: _Work, command_id: str) -> None:
        work.outbox = [(live, command) for live, command in work.outbox if command.id != command_id]
        if (task := work.tasks.get(command_id)) is not None:
            # Behind its own first step: a task that is cancelled before it has begun runs nothing, and would report nothing.
            asyncio.get_running_loop().call_soon(task.cancel)
        elif work.direct == command_id:
            _cut(work)

    def _arm(self, work: _Work, live: Live) -> None:
        """Set the alarm for the run's next timer. Timers that are due already are reported."""
        for timer in timers_of(live.state):
            if timer.id in work.rung:
                continue
            # The run's own time, which does not go back when the clock is set back.
            due_at_ms = moment_of(live.state, timer)
            wait_ms = due_at_ms - max(live.state.at_ms, self._clock.now_ms())
            if wait_ms > 0:
                wait_s, loop = (wait_ms + ALARM_SLACK_MS) / 1000, asyncio.get_running_loop()
                work.alarm = loop.call_later(wait_s, self._ring, work, live, timer, due_at_ms)
                return
            self._report(work, live, timer)

    def _ring(self, work: _Work, live: Live, timer: SetTimer, due_at_ms: int) -> None:
        work.alarm = None
        # Where the deadline has moved since the alarm was set, whatever is under way has until then.
        if moment_of(live.state, timer) <= due_at_ms:
            self._report(work, live, timer)
        self._arm(work, live)

    def _report(self, work: _Work, live: Live, timer: SetTimer) -> None:
        work.rung.add(timer.id)
        live.reached_ms = max(live.reached_ms, moment_of(live.state, timer))
        work.report(TimerFired(timer.id))
        if work.direct and cuts_off(live.state, timer, max(live.reached_ms, self._clock.now_ms())):
            _cut(work)


async def _stop(task: "asyncio.Task[None]", live: Live) -> None:
    """Wait until something has ended that was told to stop, for as long as a caller waits for that."""
    await asyncio.wait([task], timeout=STOP_GRACE_S)
    if not task.done() and _log.hasHandlers():
        _log.warning("a command does not stop and was abandoned", extra=run_fields(live.run_id, live.state))


async def _run(executor: Executor, live: Live, command: Command) -> None:
    """Run a chore. Whatever goes wrong is for the operator; the run repeats it when it is next taken up."""
    try:
        await executor(live, command)
    except Exception as error:  # noqa: BLE001  # no caller waits for a chore
        kind, fields = type(command).__name__, run_fields(live.run_id, live.state, command_id=command.id)
        if isinstance(error, RemitError):
            _log.warning("%s was not done: %s", kind, error, extra=fields)
        else:
            _log.error("the executor of %s broke", kind, exc_info=error, extra=fields)


def _resumed(work: _Work, report: Report) -> Report:
    """Go on after the executor that was awaited directly was cut off: what cut it comes first."""
    work.is_cut = False
    if work.driver is not None and work.driver.uncancel():
        raise asyncio.CancelledError  # The driver of the run wants to stop as well.
    work.report(report)
    return work.reports.pop(0)


def _disarm(work: _Work) -> None:
    if work.alarm is not None:
        work.alarm.cancel()
        work.alarm = None


def _cut(work: _Work) -> None:
    """Interrupt the executor that is awaited directly; its driver goes on with a report."""
    if work.driver is not None and not work.is_cut:
        work.is_cut = True
        work.driver.cancel()
