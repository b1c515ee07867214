"""The hub: which runs this process drives, each by one driver.

Rule 1: a run is driven by one process at a time: by the holder of its lease. A process that loses the lease puts the run down.
Rule 2: a run at rest is driven by no process; one that has something for it takes it up and drives it on.
Rule 3: a driver does not leave while a caller is saying something to its run.
Rule 4: when a child ends and its parent does not wait here, the parent is taken up, and finds out how it ended. A child that
        was told to end and was not driven here loads nothing: its parent goes on where its kit is at hand, or when resumed.
Rule 5: a run that a halt paused goes on by being taken up once that is lifted; until then it is taken up and rests.
Rule 6: a fork is copied by the holder of its lease, and before anything else is said to it.
Rule 7: once closed, nothing is begun or told here any more, and nothing that was begun is left but code that swallowed
        its cancellation: it is given up after a while, and nothing of it is written.
Rule 8: whatever a run names must be there when it is taken up; else that is refused, and the run rests as before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.arrivals import ResumeRequested
from remit.core.journal.storage import LeaseLost, Warrant
from remit.core.journal.turn import Turn
from remit.core.run.manifest import Manifest, lineage_of
from remit.core.run.run_events import system_closed
from remit.kernel.state import RunState, pinned
from remit.observe.logs import run_fields
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.history.fork_run import let_go_on, rests_because
from remit.orchestrate.loop.driver import Driver, Steps
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.late_delivery import LateDelivery
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.needs import check_needs
from remit.orchestrate.loop.offspring import Lineages
from remit.orchestrate.loop.outlet import Dispatch
from remit.orchestrate.loop.patience import STOP_GRACE_S
from remit.orchestrate.loop.recover import copy_whole, recover
from remit.orchestrate.loop.run_leases import RunLeases
from remit.orchestrate.loop.run_snapshots import keep_if_due
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.ports import Leases
from remit.orchestrate.setup.kit import Kit

# Of so many runs that broke here it is remembered why, for callers that ask for their result.
BROKEN_MAX = 1024

_log = logging.getLogger(__name__)

# Finds what a run works with when this process has not started it, from what its state says.
FindKit = Callable[[RunState], Awaitable[Kit]]
# Told of a run that was taken up, before it is driven; and of one that is let go for others to drive.
OnTaken = Callable[[Live], Awaitable[None]]
OnLeft = Callable[[str], Awaitable[None]]
# Writes what is missing of a fork, under the warrant of its holder.
Copy = Callable[[Warrant], Awaitable[None]]
T = TypeVar("T")


class Hub:
    """Starts, takes up and drives runs."""

    def __init__(
        self,
        runner: Runner,
        dispatch: Dispatch,
        leases: Leases,
        find_kit: FindKit,
        lineages: Lineages,
        halts: Halts | None = None,
    ) -> None:
        self.runner = runner
        self.halts = halts
        self.dispatch = dispatch
        # Those of runs that are driven here; and their tasks, until the runs are let go and parents are told.
        self.drivers: dict[str, Driver] = {}
        self._driving: dict[asyncio.Task[None], str] = {}
        self.run_leases = RunLeases(leases, self._lost)
        self._find_kit = find_kit
        self._lineages = lineages
        self._kits: dict[str, Kit] = {}
        # While it is being closed, what was ordered is still done, and nothing follows from it here; then nothing is.
        self.is_closing = self.is_closed = False
        self.on_taken: OnTaken | None = None
        self.on_driven: Callable[[], None] | None = None
        self.on_left: OnLeft | None = None
        self.late_delivery = LateDelivery(self)
        runner.on_contradicted = self.late_delivery.contradicted
        self.steps = Steps()
        self.broken: dict[str, BaseException] = {}  # Why drivers broke, until their runs are taken up again.
        # Who looks at runs that were written down before they are gone on with; None where nothing outlives the process.
        self.custody: Custody | None = None

    def kit_of(self, run_id: str) -> Kit:
        """The kit of a run that is driven here."""
        return self._kits[run_id]

    def known_kit(self, run_id: str) -> Kit | None:
        """The kit of a run, if that is known here; an ended one works with nothing."""
        kit = self._kits.get(run_id)
        return kit if kit is not None and kit.engines else None

    def has_kit(self, run_id: str) -> bool:
        """Whether a run can be gone on with here without loading anything: it is driven here, or its kit is at hand."""
        return run_id in self.drivers or self._kits.get(run_id) is not None

    def lend(self, run_id: str, kit: Kit) -> None:
        """Let a run of another process, or of an earlier one, work with this kit when it is taken up here."""
        self._kits.setdefault(run_id, kit)

    async def begin(self, manifest: Manifest, kit: Kit) -> Driver:
        """Start a run and drive it."""
        self._lineages.learn(manifest)
        begin = self._begin(manifest, kit)
        if self.is_closed:
            begin.close()
            raise system_closed(manifest.run_id)
        return await self.steps.begin(manifest.run_id, begin)

    async def take_up(self, run_id: str, kit: Kit | None = None) -> Driver:
        """Go on with a run that no process drives; one that is driven here already just goes on."""
        if (driver := self.drivers.get(run_id)) is not None:
            return driver
        return await self._step(run_id, self._take_up(run_id, kit))

    async def hear(self, run_id: str, report: Report, *, entry: int = 0) -> tuple[Driver, Turn]:
        """Say something to a run and let it go on; raises IllegalArrival when it does not want to hear it."""
        return await self._step(run_id, self._hear(run_id, report, entry))

    async def fork(self, run_id: str, report: ResumeRequested, copy: Copy) -> str:
        """Copy a run as another and let that go on, in one step; gives why it rests, if it does.

        What was left for it meanwhile is heard first: a fork that was paused, ended or resumed by that stays as it is.
        """
        return await self._step(run_id, self._fork(run_id, report, copy))

    async def _fork(self, run_id: str, report: ResumeRequested, copy: Copy) -> str:
        if (driver := self.drivers.get(run_id)) is not None:  # Made before, and driven here already.
            await let_go_on(driver.live.state, partial(self._tell, driver, entry=0), report)
            return rests_because(driver.live.state)
        live, _ = await self._taken_up(run_id, is_released=False, copy=copy)
        return rests_because((await self._go_on(live, report)).live.state)

    async def _go_on(self, live: Live, report: ResumeRequested | None = None) -> Driver:
        """Drive a run that was taken up; a fork that was made just now, or was left in the making, is let go on first."""
        try:
            await let_go_on(live.state, partial(self.runner.rule_on, live), report)
        except BaseException:
            await self._rest(live)
            raise
        return self._drive_on(live)

    async def note(self, run_id: str, report: Report, *, entry: int = 0) -> tuple[Live, Turn]:
        """Say something to a run without letting it go on, unless it is going on here anyway."""
        return await self._step(run_id, self._note(run_id, report, entry))

    async def note_and_rest(self, run_id: str, reports: Sequence[Report], *, entry: int = 0) -> Turn:
        """Say something to a run that no process drives, order nothing and load nothing; gives the turn of the last report.

        `entry` is the number in the inbox that the last report came from.
        """
        return await self._step(run_id, self._note_and_rest(run_id, reports, entry))

    async def _step(self, run_id: str, step: Coroutine[Any, Any, T]) -> T:
        if self.is_closed:
            step.close()
            raise system_closed(run_id)
        return await self.steps.finish(run_id, step)

    async def _note_and_rest(self, run_id: str, reports: Sequence[Report], entry: int) -> Turn:
        warrant = await self.run_leases.take(run_id)
        try:
            live = await self._loaded(run_id, warrant)
            *first, last = reports
            for report in first:
                await self.runner.rule_on(live, report)
            turn = await self.runner.rule_on(live, last, entry=entry)
            await self.dispatch.finish(run_id)
            self.dispatch.forget(live)
        finally:
            await self.run_leases.let_go(run_id, warrant)
        self._tell_parent_of(live)
        return turn

    async def _begin(self, manifest: Manifest, kit: Kit) -> Driver:
        run_id = manifest.run_id
        warrant = await self.run_leases.take(run_id)
        try:
            live = self._equipped(Live(run_id), kit)
            live.warrant = warrant
            await self.runner.start(manifest, live)
        except BaseException:
            self._kits.pop(run_id, None)
            await self.run_leases.let_go(run_id, warrant)
            raise
        return self._drive_on(live)

    async def _take_up(self, run_id: str, kit: Kit | None) -> Driver:
        if (driver := self.drivers.get(run_id)) is not None:
            return driver
        live, _ = await self._taken_up(run_id, kit)
        return await self._go_on(live)

    async def _hear(self, run_id: str, report: Report, entry: int) -> tuple[Driver, Turn]:
        if (driver := self.drivers.get(run_id)) is not None:
            return driver, await self._tell(driver, report, entry)
        # Who says resume releases the run, from whatever paused it.
        live, has_heard = await self._taken_up(run_id, is_released=not isinstance(report, ResumeRequested))
        try:
            turn = await self.runner.rule_on(live, report, entry=entry)
        except RemitError:
            if has_heard:
                # It goes on because of what it heard before; a sender that is refused need not wait for that.
                self._drive_on(live)
            else:
                # Nothing was heard, so the run rests as before; its kit stays for the next signal.
                await self._rest(live)
            raise
        except BaseException:
            await self._rest(live)
            raise
        return self._drive_on(live), turn

    async def _tell(self, driver: Driver, report: Report, entry: int) -> Turn:
        """Say something to a run that is driven here."""
        driver.speaking += 1
        try:
            return await self.runner.rule_on(driver.live, report, entry=entry)
        finally:
            driver.speaking -= 1
            if driver.news is not None:
                driver.news.set()
            self.dispatch.wake(driver.live)

    async def _note(self, run_id: str, report: Report, entry: int) -> tuple[Live, Turn]:
        driver = self.drivers.get(run_id)
        if driver is not None:
            return driver.live, await self._tell(driver, report, entry)
        warrant = await self.run_leases.take(run_id)
        try:
            live = await self._loaded(run_id, warrant)
            turn = await self.runner.rule_on(live, report, entry=entry)
            await self.dispatch.finish(run_id)
            self.dispatch.forget(live)
        finally:
            await self.run_leases.let_go(run_id, warrant)
        self._tell_parent_of(live)
        return live, turn

    def _tell_parent_of(self, live: Live) -> None:
        """Let the parent of a run that was told to end, and was not driven here, go on where nothing has to be loaded for it."""
        if live.state.end.ending is None:
            return
        self._kits.pop(live.run_id, None)
        parent = pinned(live.state).parent
        if parent is not None and self.has_kit(parent.run_id):
            self.late_delivery.tell_parent(live.state)

    async def at_rest(self, driver: Driver) -> RunState:
        """The state of a run once it has ended or only waits for people."""
        task, run_id = driver.task, driver.live.run_id
        if task is None:
            return driver.live.state
        if not (task.done() or driver.is_abandoned):
            # Not the task itself: a caller that stops waiting must not stop the run.
            waiter = asyncio.get_running_loop().create_future()
            driver.waiters.add(waiter)
            try:
                await waiter
            finally:
                driver.waiters.discard(waiter)
        if driver.is_abandoned or task.cancelled():
            raise LeaseLost(run_id) if driver.is_lost else system_closed(run_id)
        task.result()
        return driver.live.state

    async def close(self, announce: Callable[[Sequence[str]], Awaitable[None]] | None = None) -> None:
        """Stop driving. Every run stays as its journal has it; those put down are announced once no other can follow."""
        self.is_closing = True
        # What is being begun or told is finished, and may have children or forks told in turn.
        while self.steps.under_way() or self.dispatch.under_way():
            await self.steps.wait()
            await self.dispatch.finish()
        self.is_closed = True
        if announce is not None:
            await announce(list(self.drivers))
        told: set[asyncio.Task[Any]] = set()
        while tasks := await self._moving(""):
            # What the dispatch has under way was told to stop already, and is left to clean up.
            stopping = {task for task, _ in self.dispatch.under_way()}
            for task in [task for task in tasks if task not in told and task not in stopping]:
                task.cancel()
                told.add(task)
            ended, _ = await asyncio.wait(tasks, timeout=STOP_GRACE_S, return_when=asyncio.FIRST_COMPLETED)
            if not ended:
                self._abandon()
        await self.run_leases.close()

    def _abandon(self) -> None:
        """Give up drivers that were told to stop and perform code that does not; they write nothing when it is done."""
        for driver in list(self.drivers.values()):
            if driver.task is None or driver.task not in self._driving:
                continue
            fields = run_fields(driver.live.run_id, driver.live.state)
            _log.warning("a run has code under way that does not stop, and was abandoned", extra=fields)
            del self._driving[driver.task]
            driver.is_abandoned = True
            if self._is_put_down(driver):
                self.run_leases.leave(driver.live.run_id, driver.live.warrant)
            driver.tell_waiters()

    async def settle(self, run_id: str = "") -> None:
        """Wait until nothing moves here any more, parents of children that have ended included.

        With a run, only what belongs to it is waited for: the run, its parents and all their children.
        """
        family = await self._lineages.family(run_id) if run_id else ""
        while tasks := await self._moving(family):
            # Waited for and not gathered: a caller that stops waiting must not stop the runs.
            await asyncio.wait(tasks)
            if self.is_closed:
                raise system_closed(run_id)

    async def settle_beneath(self, run_id: str) -> bool:
        """Wait until neither a run nor anything beneath it moves here; says whether anything did."""
        has_moved = False
        lineages = self._lineages
        while tasks := [task for task, name in self._under_way() if await lineages.is_beneath(name, run_id)]:
            has_moved = True
            await asyncio.wait(tasks)
            if self.is_closing:
                raise system_closed(run_id)
        return has_moved

    async def _moving(self, family: str) -> list[asyncio.Task[Any]]:
        """What is under way for the runs of a family; for everything when it is empty."""
        under_way = self._under_way()
        return [task for task, name in under_way if not family or await self._lineages.family(name) == family]

    def _under_way(self) -> list[tuple[asyncio.Task[Any], str]]:
        """Everything that moves here, each with its run."""
        elsewhere = (*self.late_delivery.under_way(), *self.steps.under_way(), *self.dispatch.under_way())
        return [*elsewhere, *self._driving.items()]

    def _lost(self, run_id: str) -> None:
        """Put down a run whose lease went to another."""
        driver = self.drivers.get(run_id)
        if driver is not None and driver.task is not None:
            driver.is_lost = True
            driver.task.cancel()

    def _equipped(self, live: Live, kit: Kit) -> Live:
        self._kits[live.run_id] = kit
        if self.runner.bus is not None and live.state.manifest is not None:
            self.runner.bus.learn(live.state)
        return live

    async def _taken_up(
        self, run_id: str, kit: Kit | None = None, *, is_released: bool = True, copy: Copy | None = None
    ) -> tuple[Live, bool]:
        """A run with its lease and its kit, its open commands sent again, not yet driven; and whether it heard an entry."""
        warrant = await self.run_leases.take(run_id)
        try:
            if copy is not None:
                await copy(warrant)
            live = await self._loaded(run_id, warrant)
            found = kit or self._kits.get(run_id) or await self._found_kit(live.state)
            self._check_needs(live.state, found)
            token = warrant.token if self.run_leases.may_expire else 0
            await recover(self.runner, run_id, self._equipped(live, found), token=token)
            if is_released:
                await self._release(live)
            seq = live.state.seq
            if self.on_taken is not None:
                await self.on_taken(live)
        except BaseException:
            await self.run_leases.let_go(run_id, warrant)
            raise
        return live, live.state.seq != seq

    async def _release(self, live: Live) -> None:
        """Let a run go on that was paused by a halt which is lifted by now, in the name of the person who lifted it."""
        if self.halts is None or live.state.place.halted is None or self.halts.stopping_run(live.state) is not None:
            return
        by = self.halts.standing.lifted_by or live.state.place.halted.by
        await self.runner.rule_on(live, ResumeRequested(by))

    def call_off(self) -> None:
        """Call off whatever is under way here and halted by now."""
        if self.halts is not None and self.halts.standing.halts:
            for driver in list(self.drivers.values()):
                self.dispatch.call_off(driver.live)

    def _check_needs(self, state: RunState, kit: Kit) -> None:
        try:
            check_needs(state, kit)
        except RequestRejected:
            # What does not suffice is forgotten, or it would stand in the way of the right one.
            for run_id in (state.run_id, state.derived.family):
                if run_id not in self.drivers and self._kits.get(run_id) is kit:
                    del self._kits[run_id]
            raise

    async def _found_kit(self, state: RunState) -> Kit:
        if state.manifest is None or state.end.ending is not None or pinned(state).host is not None:
            # Nothing of an ended run is performed again but to tell its children; what a host makes, nothing here does.
            return Kit({})
        # A child works with what its parent works with, a retry with what its origin did.
        for above in reversed(lineage_of(pinned(state))):
            if (known := self.known_kit(above)) is not None:
                return known
        return await self._find_kit(state)

    async def _loaded(self, run_id: str, warrant: Warrant) -> Live:
        """A run that is held here, as its journal tells it; raises where no accepted key vouches for it, or turns are missing."""
        live = await self.runner.load(run_id)
        if self.custody is not None:
            await self.custody.expect_kept(live.state, run_id)
        await self.run_leases.bind(live, warrant)
        await copy_whole(self.runner, live)
        return live

    def _drive_on(self, live: Live) -> Driver:
        if self.runner.bus is not None:
            self.runner.bus.learn(live.state)
        driver = Driver(live)
        self.broken.pop(live.run_id, None)
        if self.on_left is None:
            self.drivers[live.run_id] = driver
        driver.task = asyncio.create_task(self._drive(driver) if self.on_left is None else self._leave(live))
        self._driving[driver.task] = live.run_id
        driver.task.add_done_callback(lambda task: self._driven(driver, task))
        if self.on_driven is not None:
            self.on_driven()
        return driver

    async def _drive(self, driver: Driver) -> None:
        live = driver.live
        try:
            self.run_leases.expect_held(live, self.dispatch.forget)
            while live.state.end.ending is None:
                await self.runner.drive(live)
                seq = live.state.seq
                if self.runner.snapshots is not None:
                    # Before it is asked who is speaking: a caller that begins while this is written has to be waited for.
                    await keep_if_due(live, self.runner.snapshots)
                while driver.speaking:
                    driver.news = asyncio.Event()
                    await driver.news.wait()
                if live.state.seq == seq:
                    break
        finally:
            if self._is_put_down(driver):
                await self.run_leases.let_go(live.run_id, live.warrant)
        if live.state.end.ending is None:
            self.late_delivery.look_after(live.state)
        elif not driver.is_awaited:
            self.late_delivery.tell_parent(live.state)

    async def _leave(self, live: Live) -> None:
        """Let a run go for others to drive; they are told before: its lease tells them where this process dies in between."""
        if self.on_left is not None and live.state.end.ending is None:
            await self.on_left(live.run_id)
        await self._rest(live)

    def _is_put_down(self, driver: Driver) -> bool:
        """Put a run down that rests, has ended, or that may not be driven any more; says whether that is new."""
        run_id = driver.live.run_id
        if self.drivers.get(run_id) is not driver:
            return False
        del self.drivers[run_id]
        if driver.live.state.end.ending is not None:
            self._kits.pop(run_id, None)
            self.runner.remember_ended(driver.live.state)
            driver.live.keep_state_alone()
        if self.runner.bus is not None:
            self.runner.bus.wake(run_id)
        return True

    def _driven(self, driver: Driver, task: "asyncio.Task[None]") -> None:
        """Clean up after a driver's task: release the lease if it was cancelled before its first step, and keep why it failed."""
        run_id = driver.live.run_id
        if self._is_put_down(driver):
            self.run_leases.leave(run_id, driver.live.warrant)
        self._driving.pop(task, None)
        driver.tell_waiters()
        error = (LeaseLost(run_id) if driver.is_lost else None) if task.cancelled() else task.exception()
        if error is not None:
            fields = run_fields(run_id, driver.live.state)
            _log.error("a run is no longer driven: %s", error, exc_info=error, extra=fields)
            self.broken[run_id] = error
            if len(self.broken) > BROKEN_MAX:
                del self.broken[next(iter(self.broken))]

    async def _rest(self, live: Live) -> None:
        """Leave a run as it was found."""
        self.dispatch.forget(live)
        await self.run_leases.let_go(live.run_id, live.warrant)
