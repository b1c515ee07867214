"""What every Dispatch must do.

A check is a coroutine function. It opens a dispatch with the function it is given and a performer of its own, sends
commands of a run, and raises AssertionError with a sentence when the dispatch does not do what a hub relies on. Run each of
DISPATCH_CHECKS against your dispatch, with any test runner.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from remit.backend.clock import WallClock, wall_clock_ms
from remit.backend.memory.halts import MemoryHalts
from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import RunHalted, TimerFired
from remit.core.journal.commands import CallTool, CancelCommand, Command, SetTimer, TimerPurpose
from remit.core.limits.tools import ToolResult
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import user_message
from remit.kernel.state import RunState
from remit.orchestrate.executors.reports import PERFORMED, Report, ToolBroke, ToolSaid
from remit.orchestrate.loop.claims import PerformerLost
from remit.orchestrate.loop.halt_switch import Halts, scope_of
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.outlet import Dispatch
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import OTHER, RUN, a_manifest

# Performs a command, wherever the dispatch has it performed.
Perform = Callable[[Command], Awaitable[Report]]
# Opens a dispatch whose commands are performed so and which asks these halts, and closes it afterwards.
OpenDispatch = Callable[[Perform, Halts], AbstractAsyncContextManager[Dispatch]]
DispatchCheck = Callable[[OpenDispatch], Coroutine[Any, Any, None]]

MANY = 20
# Longer than any dispatch takes that works at all.
PATIENCE_S = 20
# In which whatever should not happen would have.
A_WHILE_S = 0.02
# A moment that no clock has come to; and how far off one is that comes soon, but not while a check lasts.
FAR_MS = 10**13
SOON_MS = 10_000


@asynccontextmanager
async def in_process_dispatch(perform: Perform, halts: Halts) -> AsyncIterator[Dispatch]:
    """The dispatch that ships, opened as the checks ask for it: what is sent is performed in this process."""

    async def performed(_: Live, command: Command) -> Report:
        return await perform(command)

    dispatch = InProcessDispatch(dict.fromkeys(PERFORMED, performed), WallClock(), halts=halts)
    yield dispatch
    await dispatch.finish()


class Performer:
    """Performs calls of tools: at once, or when it is told to; it remembers what it began and what it was told to stop."""

    def __init__(self, *, waits: bool = False) -> None:
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.may_go_on = asyncio.Event()
        # Set unless a call that is told to stop has to take its time.
        self.may_stop = asyncio.Event()
        self.may_stop.set()
        if not waits:
            self.may_go_on.set()

    async def __call__(self, command: Command) -> Report:
        """The result of a call, once it may be there."""
        assert isinstance(command, CallTool), f"a {type(command).__name__} is not performed"
        self.begun.append(command.id)
        try:
            await self.may_go_on.wait()
        except asyncio.CancelledError:
            self.stopped.append(command.id)
            await self.may_stop.wait()
            raise
        return ToolSaid(command.id, ToolResult(command.call_id, command.tool, "done"))


def no_halts() -> Halts:
    """Halts of which none stands yet."""
    return Halts(MemoryHalts(), WallClock())


def a_run(*commands: Command, run_id: str = RUN) -> Live:
    """A run with these commands open."""
    state = RunState()
    state.manifest = a_manifest(run_id, SystemRequest((user_message("please"),)))
    state.commands.open = {command.id: command for command in commands}
    return Live(run_id, state)


def a_call(command_id: str = "1.1", *, mutating: bool = False) -> CallTool:
    """A call of a tool."""
    return CallTool(
        id=command_id,
        call_id=f"call-{command_id}",
        tool="look",
        version="v",
        arguments="{}",
        arguments_hash=b"hash",
        key="key",
        timeout_ms=60_000,
        reserved=(),
        mutating=mutating,
    )


async def a_command_is_performed_once_and_reported_once(open_dispatch: OpenDispatch) -> None:
    """Whatever is sent comes back as one report about it; then there is nothing to receive."""
    performer, call = Performer(), a_call()
    async with open_dispatch(performer, no_halts()) as dispatch:
        live = a_run(call)
        dispatch.send(live, call)
        report = await _received(dispatch, live)
        assert isinstance(report, ToolSaid), f"a call that returned was reported as {report}"
        assert report.command_id == call.id, "a report is about another command"
        assert await _received(dispatch, live) is None, "there is more to receive than was sent"
        assert performer.begun == [call.id], f"one command was begun as {performer.begun}"


async def many_are_performed_beside_each_other(open_dispatch: OpenDispatch) -> None:
    """None waits for another, and each is reported once."""
    performer, calls = Performer(waits=True), [a_call(f"1.{number}") for number in range(MANY)]
    async with open_dispatch(performer, no_halts()) as dispatch:
        live = a_run(*calls)
        for call in calls:
            dispatch.send(live, call)
        first = asyncio.ensure_future(_received(dispatch, live))
        await _until(lambda: len(performer.begun) == MANY, "commands that were sent together are not all begun")
        performer.may_go_on.set()
        found = [await first, *[await _received(dispatch, live) for _ in calls[1:]]]
        told = sorted(getattr(report, "command_id", "") for report in found)
        assert told == sorted(call.id for call in calls), f"{MANY} commands were reported as {told}"


async def what_is_under_way_is_not_begun_again(open_dispatch: OpenDispatch) -> None:
    """However often it is sent."""
    performer, call = Performer(waits=True), a_call()
    async with open_dispatch(performer, no_halts()) as dispatch:
        live = a_run(call)
        dispatch.send(live, call)
        dispatch.send(live, call)
        waiting = asyncio.ensure_future(_received(dispatch, live))
        await _until(lambda: performer.begun != [], "a command that was sent is not begun")
        dispatch.send(live, call)
        performer.may_go_on.set()
        assert isinstance(await waiting, ToolSaid), "a command that was sent again is not reported"
        assert performer.begun == [call.id], f"a command that was under way was begun again: {performer.begun}"


async def one_that_breaks_is_reported(open_dispatch: OpenDispatch) -> None:
    """No caller waits for ever; and what a call that was claimed came to is not known."""
    await _broke(open_dispatch, a_call(), ErrorCode.TOOL_EXECUTION_FAILED)
    await _broke(open_dispatch, a_call(mutating=True), ErrorCode.TOOL_TIMEOUT, claims=True)


async def one_that_breaks_before_its_claim_is_certainly_not_done(open_dispatch: OpenDispatch) -> None:
    """It is said that it was not called; and a performer that is slow to claim it may not begin it any more."""
    await _broke(open_dispatch, a_call(mutating=True), ErrorCode.TOOL_UNAVAILABLE)


async def _broke(open_dispatch: OpenDispatch, call: CallTool, code: ErrorCode, *, claims: bool = False) -> None:
    for error in (ValueError("it broke"), PerformerLost()):

        async def break_off(command: Command, why: Exception = error) -> Report:
            assert not claims or await dispatch.claim(RUN, command.id), "a call that was not revoked may not begin"
            raise why

        async with open_dispatch(break_off, no_halts()) as dispatch:
            live = a_run(call)
            dispatch.send(live, call)
            report = await _received(dispatch, live)
            assert isinstance(report, ToolBroke), f"a performer that broke is reported as {report}"
            assert report.code is code, f"a performer that broke is reported as {report.code}, claimed={claims}"
            if call.mutating:
                said = "to be in doubt" if claims else "not to be made"
                assert not await dispatch.claim(RUN, call.id), f"a call that was said {said} may begin"


async def a_cancelled_command_is_stopped(open_dispatch: OpenDispatch) -> None:
    """Whether it is alone or one of several."""
    for count in (1, 2):
        await _stopped(open_dispatch, Performer(waits=True), [a_call(f"1.{number}") for number in range(count)])


async def _stopped(open_dispatch: OpenDispatch, performer: Performer, calls: list[CallTool]) -> None:
    async with open_dispatch(performer, no_halts()) as dispatch:
        live, waiting = await _waited_for(dispatch, performer, calls)
        for call in calls:
            dispatch.send(live, CancelCommand(f"2.{call.id}", call.id))
        await waiting
        await _until(lambda: len(performer.stopped) == len(calls), "a command that was cancelled goes on")


async def what_is_not_cancelled_goes_on(open_dispatch: OpenDispatch) -> None:
    """To cancel one command stops that one; the others of its run are performed and reported."""
    performer, calls = Performer(waits=True), [a_call(f"1.{number}") for number in range(3)]
    async with open_dispatch(performer, no_halts()) as dispatch:
        live, waiting = await _waited_for(dispatch, performer, calls)
        dispatch.send(live, CancelCommand("2.1", calls[1].id))
        await _until(lambda: performer.stopped != [], "a command that was cancelled goes on")
        await asyncio.sleep(A_WHILE_S)
        assert performer.stopped == [calls[1].id], f"to cancel one command has stopped {performer.stopped}"
        performer.may_go_on.set()
        found = [await waiting, *[await _received(dispatch, live) for _ in calls[1:]]]
        told = sorted(report.command_id for report in found if isinstance(report, ToolSaid))
        assert told == [calls[0].id, calls[2].id], f"beside one that was cancelled, two calls gave {found}"


async def what_was_cancelled_before_it_began_never_begins(open_dispatch: OpenDispatch) -> None:
    """It is not performed, and nothing is reported of it."""
    performer, call = Performer(), a_call()
    async with open_dispatch(performer, no_halts()) as dispatch:
        live = a_run(call)
        dispatch.send(live, call)
        dispatch.send(live, CancelCommand("2.1", call.id))
        assert await _received(dispatch, live) is None, "a command that was taken back is reported"
        assert performer.begun == [], "a command that was taken back was begun"


async def whoever_is_first_claims_or_revokes(open_dispatch: OpenDispatch) -> None:
    """A call that was claimed is in doubt, and neither claimed again nor revoked; one that was revoked certainly never begins."""
    calls = [a_call("1.1", mutating=True), a_call("1.2", mutating=True)]
    async with open_dispatch(Performer(), no_halts()) as dispatch:
        live = a_run(*calls)
        for call in calls:
            dispatch.send(live, call)
        assert await dispatch.claim(RUN, "1.1"), "a call that was not revoked may not begin"
        assert not await dispatch.claim(RUN, "1.1"), "a call that has begun may be begun by another performer"
        assert not await dispatch.revoke(RUN, "1.1"), "a call that has begun was revoked"
        assert await dispatch.revoke(RUN, "1.2"), "a call that has not begun cannot be revoked"
        assert not await dispatch.claim(RUN, "1.2"), "a call that was revoked may begin"
        assert await dispatch.revoke(RUN, "1.2"), "a call that was revoked cannot be revoked again"
        assert not await dispatch.claim(RUN, "1.2"), "a call that was revoked may begin when that is asked again"
        assert await dispatch.claim(OTHER, "1.2"), "a call of another run was revoked along"
        dispatch.send(live, calls[1])
        assert await dispatch.claim(RUN, "1.2"), "a call that was revoked and is wanted again may not begin"
        dispatch.send(live, calls[0])
        assert not await dispatch.claim(RUN, "1.1"), "a call that has begun may begin again once it was sent again"
        assert not await dispatch.revoke(RUN, "1.1"), "a call that has begun was revoked once it was sent again"


async def what_somebody_else_may_have_begun_is_not_revoked(open_dispatch: OpenDispatch) -> None:
    """A call that was never sent here, or was ordered before the run was taken up here, may have happened."""
    call = a_call("3.1", mutating=True)
    async with open_dispatch(Performer(), no_halts()) as dispatch:
        assert not await dispatch.revoke(RUN, call.id), "a call that was sent elsewhere was revoked"
        live = a_run(call)
        live.recovered_seq = 3
        dispatch.send(live, call)
        assert not await dispatch.revoke(RUN, call.id), "a call of an earlier process was revoked"
        ours, theirs = a_run(call, run_id="ours"), a_run(call, run_id="theirs")
        for one in (ours, theirs):
            dispatch.send(one, call)
        dispatch.forget(ours)
        assert not await dispatch.revoke("ours", call.id), "a call was revoked of a run that is driven elsewhere by now"
        assert await dispatch.revoke("theirs", call.id), (
            "of one run nothing is known any more, because another was left"
        )


async def whoever_waits_can_be_woken(open_dispatch: OpenDispatch) -> None:
    """Another process has judged a report, and the run may have ended by that: then there is nothing more to receive."""
    performer, calls = Performer(waits=True), [a_call("1.1"), a_call("1.2")]
    async with open_dispatch(performer, no_halts()) as dispatch:
        live, waiting = await _waited_for(dispatch, performer, calls)
        live.state.end.ending = Ending.SUCCESS
        dispatch.wake(live)
        assert await waiting is None, "a run that has ended, and was woken, is given a report"
        dispatch.forget(live)


async def whoever_waits_is_not_sent_away_while_something_is_under_way(open_dispatch: OpenDispatch) -> None:
    """Nothing to receive means that the run rests; a caller that is woken for nothing is not told so."""
    for count in (1, 2):
        performer, calls = Performer(waits=True), [a_call(f"1.{number}") for number in range(count)]
        async with open_dispatch(performer, no_halts()) as dispatch:
            live, waiting = await _waited_for(dispatch, performer, calls)
            dispatch.wake(live)
            await asyncio.sleep(A_WHILE_S)
            assert not waiting.done(), f"while {count} commands were under way, the caller was told {await waiting}"
            performer.may_go_on.set()
            assert isinstance(await waiting, ToolSaid), "a command that was under way is not reported"
            for _ in range(count - 1):
                report = await _received(dispatch, live)
                assert isinstance(report, ToolSaid), f"after a caller was woken once, the next one is told {report}"


async def what_is_halted_is_called_off_and_nothing_else(open_dispatch: OpenDispatch) -> None:
    """It is stopped and withheld, and its run hears of the halt; what is not halted goes on."""
    for count in (1, 2):
        await _called_off(open_dispatch, Performer(waits=True), [a_call(f"1.{number}") for number in range(count)])


async def _called_off(open_dispatch: OpenDispatch, performer: Performer, calls: list[CallTool]) -> None:
    halts = no_halts()
    async with open_dispatch(performer, halts) as dispatch:
        live, waiting = await _waited_for(dispatch, performer, calls)
        dispatch.call_off(live)
        await asyncio.sleep(A_WHILE_S)
        assert performer.stopped == [], "what is not halted was called off"
        await halts.write(scope_of(run=live.run_id), by="ada", why="smoke")
        dispatch.call_off(live)
        reports = [await waiting, *[await _received(dispatch, live) for _ in calls[1:]]]
        withheld = [report.withheld for report in reports if isinstance(report, RunHalted)]
        assert sorted(withheld) == [(call.id,) for call in calls], f"what a halt called off is reported as {reports}"
        await _until(lambda: len(performer.stopped) == len(calls), "what a halt called off goes on")


async def what_an_earlier_driver_sent_is_carried_or_begun_again(open_dispatch: OpenDispatch) -> None:
    """As `carries` says: what is carried comes back to the driver that sends it next, and is not performed a second time."""
    performer, call = Performer(waits=True), a_call()
    async with open_dispatch(performer, no_halts()) as earlier, open_dispatch(performer, no_halts()) as later:
        _, left = await _waited_for(earlier, performer, [call])
        live = a_run(call)
        live.recovered_seq = 1
        later.send(live, call)
        waiting = asyncio.create_task(_received(later, live))
        if later.carries(call):
            await asyncio.sleep(A_WHILE_S)
            assert performer.begun == [call.id], "a command that is said to be carried is performed again"
        else:
            await _until(
                lambda: len(performer.begun) > 1, "a command that is said not to be carried is not begun again"
            )
        performer.may_go_on.set()
        assert isinstance(await waiting, ToolSaid), "what an earlier driver sent is not reported to the later one"
        left.cancel()
        await asyncio.wait([left])


async def nothing_goes_on_for_a_run_that_is_forgotten(open_dispatch: OpenDispatch) -> None:
    """Whatever was under way for it is stopped; to wake it changes nothing."""
    performer, calls = Performer(waits=True), [a_call("1.1"), a_call("1.2")]
    async with open_dispatch(performer, no_halts()) as dispatch:
        live, waiting = await _waited_for(dispatch, performer, calls)
        dispatch.wake(live)
        dispatch.forget(live)
        dispatch.wake(live)
        await _until(lambda: len(performer.stopped) == len(calls), "what a forgotten run had under way goes on")
        performer.may_go_on.set()
        await waiting


async def runs_are_performed_apart(open_dispatch: OpenDispatch) -> None:
    """Commands of two runs have the same ids: each is performed, and what one run takes back or leaves is the other's still."""
    performer, calls = Performer(waits=True), [a_call("1.1"), a_call("1.2")]
    async with open_dispatch(performer, no_halts()) as dispatch:
        ours, theirs, gone = (a_run(*calls, run_id=name) for name in (RUN, OTHER, "gone"))
        for live in (ours, theirs, gone):
            for call in calls:
                dispatch.send(live, call)
        waiting = [asyncio.create_task(_received(dispatch, live)) for live in (ours, theirs, gone)]
        await _until(lambda: len(performer.begun) == 3 * len(calls), "of commands with the same id not all are begun")
        for call in calls:
            dispatch.send(theirs, CancelCommand(f"2.{call.id}", call.id))
        dispatch.wake(gone)
        dispatch.forget(gone)
        await _until(lambda: len(performer.stopped) == 2 * len(calls), "what a run took back or left goes on")
        performer.may_go_on.set()
        reports = [await waiting[0], await _received(dispatch, ours)]
        told = [report.command_id for report in reports if isinstance(report, ToolSaid)]
        await asyncio.gather(*waiting, return_exceptions=True)
        assert sorted(told) == ["1.1", "1.2"], f"beside what other runs took back or left, two calls gave {reports}"


async def what_was_told_to_stop_is_under_way_until_it_has(open_dispatch: OpenDispatch) -> None:
    """A process that leaves has to know what to wait for: it is named with its run, and `finish` waits for it."""
    performer, calls = Performer(waits=True), [a_call("1.1"), a_call("1.2")]
    performer.may_stop.clear()
    async with open_dispatch(performer, no_halts()) as dispatch:
        live, waiting = await _waited_for(dispatch, performer, calls)
        try:
            dispatch.forget(live)
            await _until(lambda: len(performer.stopped) == len(calls), "what a forgotten run had under way goes on")
            named = [run_id for _, run_id in dispatch.under_way()]
            assert set(named) == {live.run_id}, (
                f"what was told to stop and has not is under way for {named or 'no run'}"
            )
            leaving = asyncio.ensure_future(dispatch.finish())
            await asyncio.sleep(0.01)
            assert not leaving.done(), "a process that leaves does not wait for what was told to stop and has not"
        finally:
            # Whatever was found: the calls would keep the loop from ending.
            performer.may_stop.set()
        await leaving
        assert list(dispatch.under_way()) == [], "what has stopped is still under way"
        waiting.cancel()
        await asyncio.wait([waiting])


async def a_timer_is_reported_when_its_moment_has_come(open_dispatch: OpenDispatch) -> None:
    """A moment that is past is reported at once and once; one that has not come is not, however soon it will."""
    for due_ms in (1, FAR_MS, wall_clock_ms() + SOON_MS):
        timer = SetTimer("1.1", due_ms, TimerPurpose.RETRY)
        async with open_dispatch(Performer(), no_halts()) as dispatch:
            live = a_run(timer)
            dispatch.send(live, timer)
            if due_ms == 1:
                fired = await _received(dispatch, live)
                assert fired == TimerFired(timer.id), "a timer whose moment is past is not reported"
            waiting = asyncio.ensure_future(_received(dispatch, live))
            await asyncio.sleep(A_WHILE_S)
            told = waiting.result() if waiting.done() else None
            assert told is None, (
                f"of a timer whose moment has not come, or that was reported, the caller is told {told}"
            )
            waiting.cancel()
            await asyncio.wait([waiting])
            dispatch.forget(live)


async def nothing_has_to_be_waited_for_where_nothing_was_sent(open_dispatch: OpenDispatch) -> None:
    """A process without open calls can leave at once."""
    async with open_dispatch(Performer(), no_halts()) as dispatch:
        live = a_run()
        assert await _received(dispatch, live) is None, "there is something to receive where nothing was sent"
        await dispatch.finish()
        await dispatch.finish(RUN)
        assert list(dispatch.under_way()) == [], "something is under way where nothing was sent"
        dispatch.wake(live)
        dispatch.call_off(live)
        dispatch.forget(live)


async def _waited_for(
    dispatch: Dispatch, performer: Performer, calls: Sequence[CallTool]
) -> "tuple[Live, asyncio.Task[Report | None]]":
    """A run with these calls under way, and a task that waits for the first report."""
    live = a_run(*calls)
    for call in calls:
        dispatch.send(live, call)
    waiting = asyncio.create_task(_received(dispatch, live))
    await _until(lambda: len(performer.begun) == len(calls), "a command that was sent is not begun")
    return live, waiting


async def _received(dispatch: Dispatch, live: Live) -> Report | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await dispatch.receive(live)
    except TimeoutError:
        raise AssertionError("the caller that waits for a report is told nothing") from None


async def _until(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait for what has to come about."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110  # what a performer has done by then has no event
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(otherwise) from None


DISPATCH_CHECKS: Sequence[DispatchCheck] = in_words(
    a_command_is_performed_once_and_reported_once,
    many_are_performed_beside_each_other,
    what_is_under_way_is_not_begun_again,
    one_that_breaks_is_reported,
    one_that_breaks_before_its_claim_is_certainly_not_done,
    a_cancelled_command_is_stopped,
    what_is_not_cancelled_goes_on,
    what_was_cancelled_before_it_began_never_begins,
    whoever_is_first_claims_or_revokes,
    what_somebody_else_may_have_begun_is_not_revoked,
    whoever_waits_can_be_woken,
    whoever_waits_is_not_sent_away_while_something_is_under_way,
    what_is_halted_is_called_off_and_nothing_else,
    what_an_earlier_driver_sent_is_carried_or_begun_again,
    nothing_goes_on_for_a_run_that_is_forgotten,
    runs_are_performed_apart,
    what_was_told_to_stop_is_under_way_until_it_has,
    a_timer_is_reported_when_its_moment_has_come,
    nothing_has_to_be_waited_for_where_nothing_was_sent,
)
