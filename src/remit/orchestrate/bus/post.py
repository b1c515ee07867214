"""The post: what people say to runs, no matter which process drives them.

Rule 1: the holder of a run is rung for what is left for it, or looks; without a holder, the sender decides itself.
Rule 2: an entry is settled together with the turn that answers it, so nothing is heard twice and nothing is lost.
Rule 3: the sender learns whether it was heard, and if not, why.
Rule 4: to say no loads nothing. A run that is driven here, or whose kit is at hand, goes on; any other hears the no and is
        paused, so that nothing is done and its time does not run out until it is resumed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType

from remit.core.failure import ArrivalFault, IllegalArrival, InvariantBroken, RemitError, RequestRejected
from remit.core.journal.arrivals import PauseRequested
from remit.core.journal.codec import decode_signal, decode_turn, encode_signal
from remit.core.journal.storage import EntrySettled, RunHeld, Topic
from remit.core.journal.turn import Turn
from remit.core.run.signals import Signal, UserSignal, never_asked, packet_named
from remit.kernel.decide import take_turn
from remit.kernel.state import RunState
from remit.observe.logs import NO_RUN
from remit.observe.people.packets import too_late
from remit.orchestrate.executors.human import answer_to
from remit.orchestrate.executors.reports import PERFORMED, Report, fork_of
from remit.orchestrate.loop.deadlines import TimeRanOut, within
from remit.orchestrate.loop.durability import answer_of
from remit.orchestrate.loop.hub import Hub
from remit.orchestrate.loop.live import Live
from remit.orchestrate.ports import Bell, Catalogue, Inbox
from remit.tool.loader import SourceFault

# How often a holder looks for children that have ended elsewhere; promised are 200 ms, half of them for a busy machine.
INBOX_POLL_MS = 100
# How often a sender looks for its answer, and how long before it gives up: a holder that has not heard by then hangs.
OUTCOME_POLL_MS = 20
OUTCOME_WAIT_MS_MAX = 10_000

SIGNAL_UNHEARD = "SIGNAL_UNHEARD"
REJECT_LOADS_NOTHING = "a no loads no tools and asks no model"

# Why an answer is refused where the question was settled, or was never asked.
_MAYBE_LATE = (ArrivalFault.DUPLICATE, ArrivalFault.UNKNOWN_COMMAND, ArrivalFault.RUN_ENDED)
# The codes of what a run cannot hear as it stands.
_FAULTS = frozenset(map(str, ArrivalFault))

# Whether a run goes on after a signal, when no process was driving it.
GOES_ON: Mapping[Signal, bool] = MappingProxyType(
    {
        Signal.CANCEL: False,
        Signal.PAUSE: False,
        Signal.FEEDBACK: False,
        Signal.RETRY: False,
        Signal.RESUME: True,
        Signal.APPROVE: True,
        Signal.REJECT: True,
    }
)

# Refuses an answer that the queue of its question does not hear.
CheckAnswer = Callable[[RunState, UserSignal], Awaitable[None]]

_log = logging.getLogger(__name__)


class Post:
    """Delivers signals."""

    def __init__(
        self, hub: Hub, inbox: Inbox, catalogue: Catalogue, bell: Bell, check_answer: CheckAnswer | None = None
    ) -> None:
        self.hub = hub
        self._inbox = inbox
        self.catalogue = catalogue
        self._bell = bell
        self.check_answer = check_answer
        self._rounds: asyncio.Task[None] | None = None
        # The drivers beside the hub, and what wakes every reader of the inbox in this process.
        self._attending: set[asyncio.Task[None]] = set()
        self._ears: set[asyncio.Event] = set()

    async def deliver(self, signal: UserSignal) -> tuple[str, str]:
        """Have a run hear a signal: here, or through its holder.

        Gives the fork that it ordered, if it did, and why the run rests when it heard and cannot go on. Raises
        IllegalArrival where the run cannot hear it as it stands, and RequestRejected where it is refused otherwise, whichever
        process drives the run. Who answers what others have settled is told what became of it, whenever that was, and who
        answers what was never asked, that.
        """
        try:
            return await self._delivered(signal)
        except (IllegalArrival, RequestRejected) as error:
            if signal.type is Signal.RETRY and error.code == ArrivalFault.DUPLICATE:
                return fork_of(signal), ""  # It was delivered before, and its fork is told again.
            if signal.type not in (Signal.APPROVE, Signal.REJECT) or error.code not in _MAYBE_LATE:
                raise
            turns = [decode_turn(data) for data in await self.hub.runner.journal.read(signal.run_id)]
            command_id = packet_named(str(signal.payload["packet_id"]), signal.run_id)
            late = too_late(signal.run_id, turns, command_id)
            raise late or never_asked(signal.run_id, command_id) from error

    async def _delivered(self, signal: UserSignal) -> tuple[str, str]:
        try:
            turn, why = await self._say(signal)
            return answer_of(turn), why
        except RunHeld:
            number = await self._inbox.put(signal.run_id, encode_signal(signal))
            for rung in self._ears:
                rung.set()  # The bell of a store need not ring in the process that rings it.
        return await self._wait(signal, number)

    def keep_watch(self) -> None:
        """Look into the inbox for as long as runs are driven here."""
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.create_task(self._go_round())

    def attend(self, hear: Callable[[], Awaitable[None]], is_needed: Callable[[], bool]) -> asyncio.Task[None]:
        """Call a function whenever something may have been left in the inbox, as long as it is needed."""
        task = asyncio.create_task(self._attend(hear, is_needed))
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)
        return task

    async def hear_waiting(self, live: Live) -> None:
        """Let a run that was just taken up hear what was left for it while no process held it."""
        await self.hear_for({live.run_id: live}.get)

    async def hear_for(self, live_of: Callable[[str], Live | None]) -> None:
        """Let the runs that are held here hear what was left for them."""
        for entry in await self._inbox.pending(after=0):
            if (live := live_of(entry.run_id)) is not None:
                await self._hear(live, entry.number, entry.data)

    async def close(self) -> None:
        """Stop looking."""
        looking = [*self._attending, *([] if self._rounds is None else [self._rounds])]
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)

    async def _say(self, signal: UserSignal) -> tuple[Turn, str]:
        hub, run_id = self.hub, signal.run_id
        driver = hub.drivers.get(run_id)
        state = driver.live.state if driver is not None else (await hub.runner.load(run_id)).state
        report = await self._report(state, signal)
        if not GOES_ON[signal.type]:
            return (await hub.note(run_id, report))[1], ""
        if signal.type is Signal.REJECT and not hub.has_kit(run_id):
            return await self._say_and_rest(signal, state, report, REJECT_LOADS_NOTHING)
        try:
            return (await hub.hear(run_id, report))[1], ""
        except (SourceFault, RequestRejected) as error:
            if signal.type is not Signal.REJECT:
                raise
            return await self._say_and_rest(signal, state, report, str(error))

    async def _report(self, state: RunState, signal: UserSignal) -> Report:
        """What a signal reports to its run, unless a halt or the queue of what it answers keeps it from being heard."""
        report = answer_to(state, signal)
        if self.check_answer is not None:
            await self.check_answer(state, signal)
        if signal.type is Signal.APPROVE and self.hub.halts is not None:
            asked = packet_named(str(signal.payload["packet_id"]), signal.run_id)
            await self.hub.halts.check_yes(state, state.commands.open.get(asked))
        return report

    async def _say_and_rest(
        self, signal: UserSignal, state: RunState, report: Report, why: str, entry: int = 0
    ) -> tuple[Turn, str]:
        """Let a run hear a no that it does not act on now, and order nothing; gives why it rests, where it does."""
        runner = self.hub.runner
        # Judged for nothing first: a no that is not wanted must not pause the run.
        at_ms = max(state.at_ms, runner.clock.now_ms())
        turn = take_turn(state, runner.facts.complete(state, report, []), at_ms)
        # Where nothing would be done anyway, because others are still asked or the run ends, it need not stand still.
        is_idle = not any(type(decision) in PERFORMED for decision in turn.decisions)
        before = () if state.place.paused or is_idle else (PauseRequested(signal.user_id),)
        turn = await self.hub.note_and_rest(signal.run_id, (*before, report), entry=entry)
        return turn, "" if is_idle else why

    async def _wait(self, signal: UserSignal, number: int) -> tuple[str, str]:
        """Wait for the holder's answer; when the holder is gone, let the run hear the inbox. Gives what deliver() gives."""
        try:
            return await within(OUTCOME_WAIT_MS_MAX, self._answered(signal, number))
        except TimeRanOut:
            # It may have been answered while a round of looking was cut off.
            if (outcome := await self._inbox.outcome(number)) is not None:
                return _accepted(outcome), ""
            raise RequestRejected(
                SIGNAL_UNHEARD,
                f"the process that drives run {signal.run_id} has not heard the signal within {OUTCOME_WAIT_MS_MAX} ms; "
                "it stays in the inbox and is heard when the run is resumed",
                {"run_id": signal.run_id},
            ) from None

    async def _answered(self, signal: UserSignal, number: int) -> tuple[str, str]:
        run_id = signal.run_id
        while True:
            await asyncio.sleep(OUTCOME_POLL_MS / 1000)
            outcome = await self._inbox.outcome(number)
            if outcome is not None:
                return _accepted(outcome), ""
            try:
                if signal.type is Signal.REJECT and not self.hub.has_kit(run_id):
                    state = (await self.hub.runner.load(run_id)).state
                    report = await self._report(state, signal)
                    return "", (await self._say_and_rest(signal, state, report, REJECT_LOADS_NOTHING, number))[1]
                await self.hub.take_up(run_id)
            except (RunHeld, EntrySettled):
                continue
            except (IllegalArrival, RequestRejected, SourceFault) as error:
                # A signal that is refused must not be heard later; where the run was faster, that counts.
                await self._inbox.settle(number, str(error.code), error.message)
                if (outcome := await self._inbox.outcome(number)) == (str(error.code), error.message):
                    raise
                if outcome is not None:  # Else a turn that answers it is being written by the holder of the run.
                    return _accepted(outcome), ""

    async def _go_round(self) -> None:
        await self._attend(self._look, lambda: bool(self.hub.drivers))

    async def _attend(self, hear: Callable[[], Awaitable[None]], is_needed: Callable[[], bool]) -> None:
        rung = asyncio.Event()
        hang_up = self._bell.listen(Topic.POST, lambda _: rung.set())
        self._ears.add(rung)
        try:
            while is_needed():
                # That a child has ended elsewhere rings for no process here, and is looked for as long as a caller waits for it.
                is_awaiting = any(driver.live.state.children.waiting for driver in self.hub.drivers.values())
                look_ms = min(INBOX_POLL_MS, self._bell.look_ms) if is_awaiting else self._bell.look_ms
                # No `wait_for`: in Python 3.11 it forgets that it was cancelled where it is rung at the same moment.
                with suppress(TimeoutError):
                    async with asyncio.timeout(look_ms / 1000):
                        await rung.wait()
                rung.clear()
                try:
                    await hear()
                except RemitError as error:
                    _log.warning("the inbox could not be read: %s", error, extra=NO_RUN)
        finally:
            self._ears.discard(rung)
            hang_up()

    async def _look(self) -> None:
        self.hub.call_off()
        drivers = self.hub.drivers
        await self.hear_for(lambda run_id: drivers[run_id].live if run_id in drivers else None)
        # Children that were waiting may have been finished by another process.
        for driver in list(self.hub.drivers.values()):
            for command_id in list(driver.live.state.children.waiting):
                child = await self.catalogue.entry(driver.live.state.children.runs[command_id])
                if child is not None and child.ending:
                    await self.hub.late_delivery.child_ended(driver.live.run_id, command_id)

    async def _hear(self, live: Live, number: int, data: bytes) -> None:
        try:
            report = await self._report(live.state, decode_signal(data))
            if live.run_id in self.hub.drivers:
                await self.hub.hear(live.run_id, report, entry=number)
            else:
                await self.hub.runner.rule_on(live, report, entry=number)
        except (EntrySettled, RunHeld):
            return  # Another process was faster, and its answer stays; or it holds the run, and hears the entry.
        except (IllegalArrival, RequestRejected, InvariantBroken) as error:
            token = 0 if live.warrant is None else live.warrant.token
            await self._inbox.settle(number, str(error.code), error.message, token=token)


def _accepted(outcome: tuple[str, str]) -> str:
    """What the holder says to a sender that was heard; raises what it says to one that was not."""
    code, message = outcome
    if code in _FAULTS:
        raise IllegalArrival(ArrivalFault(code), message)
    if code:
        raise RequestRejected(code, message)
    return message
