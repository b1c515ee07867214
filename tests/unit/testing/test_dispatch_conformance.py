"""The checks of a dispatch pass the one in process, and find one that does not do what a hub relies on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import TimerFired
from remit.core.journal.commands import CallTool, CancelCommand, Command, SetTimer, TimerPurpose
from remit.core.record import replace
from remit.orchestrate.executors.reports import PERFORMED, Report, ToolBroke, ToolSaid
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.outlet import Dispatch
from remit.testing.conformance.processes.dispatch import DISPATCH_CHECKS, DispatchCheck, Perform, Performer, a_call
from remit.testing.conformance.sample_turns import RUN
from tests.simulation.seeded_loop import SeededLoop
from tests.unit.orchestrate.stage import HandClock

CHECKS = {check.__name__: check for check in DISPATCH_CHECKS}


class BadDispatch(InProcessDispatch):
    """A dispatch in process with one flaw."""

    def __init__(self, flaw: str, perform: Perform, halts: Halts) -> None:
        super().__init__(dict.fromkeys(PERFORMED, self._performed), HandClock(), halts=halts)
        self._flaw = flaw
        self._perform_it = perform
        self._one = asyncio.Lock()
        self._sent: list[str] = []
        self._lives: list[Live] = []
        self._taken_back: list[str] = []
        self._told: list[Report] = []
        self._woken: list[Live] = []
        self._beside: set[asyncio.Future[Report] | asyncio.Future[Report | None]] = set()

    async def _performed(self, _: Live, command: Command) -> Report:
        if self._flaw == "one at a time":
            async with self._one:
                return await self._perform_it(command)
        if self._flaw == "performs twice":
            await self._perform_it(command)
        return await self._perform_it(command)

    def send(self, live: Live, command: Command) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        if isinstance(command, CallTool) and command.id in self._sent:
            if self._flaw == "begins again":
                self._beside.add(asyncio.get_running_loop().create_task(self._performed(live, command)))
            if self._flaw == "never offers again":
                return
        if self._flaw == "knows ids alone" and isinstance(command, CallTool) and command.id in self._sent:
            return
        self._sent.append(command.id)
        self._lives.append(live)
        if isinstance(command, CancelCommand):
            for other in self._lives if self._flaw == "cancels in every run" else ():
                super().send(other, command)
            for each in self._sent if self._flaw == "cancels all" else ():
                super().send(live, replace(command, about=each))
            self._taken_back.append(command.about)
            if self._flaw == "never cancels":
                return
        if self._flaw == "keeps from later drivers" and not live.is_ordered_here(command):
            return
        if self._flaw == "rings early" and isinstance(command, SetTimer):
            command = replace(command, due_at_ms=0)
            live.state.commands.open[command.id] = command
        if self._flaw == "knows no recovery":
            live.recovered_seq = -1
        super().send(live, command)

    def call_off(self, live: Live) -> None:  # type: ignore[explicit-override]
        match self._flaw:
            case "calls off nothing":
                pass
            case "calls off in silence":
                self.forget(live)
            case "calls off what is not halted":
                for command_id in live.state.commands.open:
                    self._cancel(self._work[live.run_id], command_id)
            case _:
                super().call_off(live)

    def carries(self, command: Command) -> bool:  # type: ignore[explicit-override]
        return self._flaw == "says that it carries" or super().carries(command)

    async def receive(self, live: Live) -> Report | None:  # type: ignore[explicit-override]
        if self._flaw == "sends callers away":
            waiting = asyncio.ensure_future(super().receive(live))
            self._beside.add(waiting)
            return waiting.result() if (await asyncio.wait([waiting], timeout=0.01))[0] else None
        if self._flaw == "stays awake" and live in self._woken:
            return None
        if self._flaw == "begins what was taken back":
            for command_id in self._taken_back:
                await self._perform_it(live.state.commands.open[command_id])
        if self._flaw in ("repeats itself", "rings twice") and len(self._told) == 1:
            self._told *= 2
            return self._told[0]
        report = await super().receive(live)
        if self._flaw == "loses one" and isinstance(report, ToolSaid) and ToolSaid not in map(type, self._told):
            self._told.append(report)
            report = await super().receive(live)
        if report is None:
            return TimerFired("1.1") if self._flaw == "makes up reports" else None
        self._told.append(report)
        return await self._told_as(report)

    async def _told_as(self, report: Report) -> Report:
        if self._flaw == "misnames commands" and isinstance(report, ToolSaid):
            return replace(report, command_id="9.9")
        if self._flaw == "takes results for failures" and isinstance(report, ToolSaid):
            return ToolBroke(report.command_id, ErrorCode.TOOL_EXECUTION_FAILED, "it returned")
        if isinstance(report, ToolBroke):
            if self._flaw == "is silent about the broken":
                await asyncio.get_running_loop().create_future()
            if self._flaw == "takes failures for results":
                return TimerFired(report.command_id)
            if self._flaw == "knows no doubt":
                return replace(report, code=ErrorCode.TOOL_EXECUTION_FAILED)
        return report

    async def claim(self, run_id: str, command_id: str, *, is_repeatable: bool = False) -> bool:  # type: ignore[explicit-override]
        match self._flaw:
            case "lets nothing begin":
                return False
            case "lets all begin":
                return True
            case "mixes runs":
                return await super().claim(RUN, command_id, is_repeatable=is_repeatable)
        return await super().claim(run_id, command_id, is_repeatable=is_repeatable)

    async def revoke(self, run_id: str, command_id: str) -> bool:  # type: ignore[explicit-override]
        match self._flaw:
            case "revokes nothing":
                return False
            case "revokes what has begun":
                return True
            case "revokes once":
                is_revoked = self._claims.is_revoked(run_id, command_id)
                return await super().revoke(run_id, command_id) and not is_revoked
            case "revokes what it does not know":
                self._claims.offer(run_id, command_id)
        return await super().revoke(run_id, command_id)

    def wake(self, live: Live) -> None:  # type: ignore[explicit-override]
        self._woken.append(live)
        if self._flaw != "never wakes":
            super().wake(live)

    def forget(self, live: Live) -> None:  # type: ignore[explicit-override]
        if self._flaw != "forgets nothing":
            super().forget(live)
        for other in self._lives if self._flaw == "forgets every run" else ():
            super().forget(other)

    def under_way(self) -> list[tuple[asyncio.Task[None], str]]:  # type: ignore[explicit-override]
        found = super().under_way()
        if self._flaw == "is never done" and not self._sent:
            found.append((asyncio.get_running_loop().create_task(asyncio.sleep(0)), "run"))
        return [] if self._flaw == "knows of nothing" else found

    async def finish(self, run_id: str = "") -> None:  # type: ignore[explicit-override]
        if self._flaw not in ("is never done", "does not wait"):
            await super().finish(run_id)

    def _arm(self, work: object, live: Live) -> None:  # type: ignore[explicit-override]
        if self._flaw != "never rings":
            super()._arm(work, live)  # type: ignore[arg-type]


def with_flaw(flaw: str) -> Callable[[Perform, Halts], AbstractAsyncContextManager[Dispatch]]:
    """Opens dispatches with a flaw; without one where it is empty."""

    @asynccontextmanager
    async def opened(perform: Perform, halts: Halts) -> AsyncIterator[Dispatch]:
        dispatch = BadDispatch(flaw, perform, halts)
        yield dispatch
        await dispatch.finish()

    return opened


def judge(check: DispatchCheck, flaw: str = "") -> None:
    """Check a dispatch in virtual time, where the patience of a check costs nothing."""
    loop = SeededLoop(Random(0))
    try:
        loop.run_until_complete(check(with_flaw(flaw)))
    finally:
        loop.close()


@pytest.mark.parametrize("name", CHECKS)
def test_a_dispatch_without_flaw_passes_every_check(name: str) -> None:
    judge(CHECKS[name])


# What is wrong -> the checks that must say so, and in which words.
FLAWS: Sequence[tuple[str, str, str]] = (
    ("takes results for failures", "a_command_is_performed_once_and_reported_once", "that returned was reported as"),
    ("misnames commands", "a_command_is_performed_once_and_reported_once", "about another command"),
    ("repeats itself", "a_command_is_performed_once_and_reported_once", "more to receive than was sent"),
    ("performs twice", "a_command_is_performed_once_and_reported_once", "one command was begun as"),
    ("one at a time", "many_are_performed_beside_each_other", "not all begun"),
    ("misnames commands", "many_are_performed_beside_each_other", "20 commands were reported as"),
    ("begins again", "what_is_under_way_is_not_begun_again", "was begun again"),
    ("takes results for failures", "what_is_under_way_is_not_begun_again", "sent again is not reported"),
    ("is silent about the broken", "one_that_breaks_is_reported", "told nothing"),
    ("takes failures for results", "one_that_breaks_is_reported", "broke is reported as TimerFired"),
    ("knows no doubt", "one_that_breaks_is_reported", "claimed=True"),
    ("knows no doubt", "one_that_breaks_before_its_claim_is_certainly_not_done", "claimed=False"),
    ("never cancels", "a_cancelled_command_is_stopped", "told nothing"),
    ("cancels all", "what_is_not_cancelled_goes_on", "has stopped"),
    ("never cancels", "what_is_not_cancelled_goes_on", "cancelled goes on"),
    ("loses one", "what_is_not_cancelled_goes_on", "two calls gave"),
    ("never cancels", "what_was_cancelled_before_it_began_never_begins", "taken back is reported"),
    ("begins what was taken back", "what_was_cancelled_before_it_began_never_begins", "taken back was begun"),
    ("lets nothing begin", "whoever_is_first_claims_or_revokes", "not revoked may not begin"),
    ("revokes what has begun", "whoever_is_first_claims_or_revokes", "has begun was revoked"),
    ("revokes nothing", "whoever_is_first_claims_or_revokes", "has not begun cannot be revoked"),
    ("lets all begin", "whoever_is_first_claims_or_revokes", "begun by another performer"),
    ("revokes once", "whoever_is_first_claims_or_revokes", "cannot be revoked again"),
    ("mixes runs", "whoever_is_first_claims_or_revokes", "revoked along"),
    ("never offers again", "whoever_is_first_claims_or_revokes", "wanted again may not begin"),
    ("revokes what it does not know", "what_somebody_else_may_have_begun_is_not_revoked", "sent elsewhere"),
    ("knows no recovery", "what_somebody_else_may_have_begun_is_not_revoked", "earlier process"),
    ("never wakes", "whoever_waits_can_be_woken", "told nothing"),
    ("sends callers away", "whoever_waits_is_not_sent_away_while_something_is_under_way", "the caller was told None"),
    ("calls off nothing", "what_is_halted_is_called_off_and_nothing_else", "told nothing"),
    ("calls off what is not halted", "what_is_halted_is_called_off_and_nothing_else", "not halted was called off"),
    ("calls off in silence", "what_is_halted_is_called_off_and_nothing_else", "not halted was called off|told nothing"),
    ("says that it carries", "what_an_earlier_driver_sent_is_carried_or_begun_again", "is performed again"),
    ("keeps from later drivers", "what_an_earlier_driver_sent_is_carried_or_begun_again", "is not begun again"),
    ("forgets nothing", "nothing_goes_on_for_a_run_that_is_forgotten", "goes on"),
    ("knows ids alone", "runs_are_performed_apart", "not all are begun"),
    ("cancels in every run", "runs_are_performed_apart", "goes on|gave|told nothing"),
    ("forgets every run", "runs_are_performed_apart", "goes on|gave|told nothing"),
    ("never cancels", "runs_are_performed_apart", "took back or left goes on"),
    ("knows of nothing", "what_was_told_to_stop_is_under_way_until_it_has", "is under way for no run"),
    ("does not wait", "what_was_told_to_stop_is_under_way_until_it_has", "does not wait for what was told"),
    ("stays awake", "whoever_waits_is_not_sent_away_while_something_is_under_way", "told None"),
    ("rings early", "a_timer_is_reported_when_its_moment_has_come", "moment has not come"),
    ("rings twice", "a_timer_is_reported_when_its_moment_has_come", "that was reported"),
    ("never rings", "a_timer_is_reported_when_its_moment_has_come", "told nothing"),
    ("makes up reports", "nothing_has_to_be_waited_for_where_nothing_was_sent", "something to receive"),
    ("is never done", "nothing_has_to_be_waited_for_where_nothing_was_sent", "something is under way"),
)


@pytest.mark.parametrize(("flaw", "name", "what"), FLAWS)
def test_a_dispatch_with_a_flaw_is_found_by_its_check(flaw: str, name: str, what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        judge(CHECKS[name], flaw)


def test_each_check_of_a_dispatch_finds_some_flaw() -> None:
    assert {name for _, name, _ in FLAWS} == set(CHECKS)


def test_the_performer_of_the_checks_performs_calls_of_tools_only() -> None:
    async def perform() -> None:
        performer = Performer()
        assert isinstance(await performer(a_call()), ToolSaid)
        with pytest.raises(AssertionError, match="a SetTimer is not performed"):
            await performer(SetTimer("1.1", 1, TimerPurpose.RETRY))

    asyncio.run(perform())
