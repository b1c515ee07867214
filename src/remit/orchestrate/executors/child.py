"""Children: a run beneath another, started, awaited, cancelled; and forks, which are nobody's children.

Rule 1: a child's id follows from the command that starts it, so starting it twice takes up the one there is.
Rule 2: a child that only waits for people is left alone, and its parent is told that it waits.
Rule 3: a cancel reaches a child as a cancel of its own, so that it ends properly and cancels its own children.
Rule 4: a child that another process drives is neither lost nor out of reach: its end is waited for, and a cancel is
        left in its inbox.
"""

import asyncio

from remit.core.arrivals import CancelRequested, ChildSuspended
from remit.core.codec import encode_signal
from remit.core.commands import CancelCommand, ForkRun, StartChild
from remit.core.failure import Ending, IllegalArrival
from remit.core.signals import Signal, UserSignal
from remit.kernel.state import RunState, pinned, waiting_for
from remit.orchestrate.fork import fork
from remit.orchestrate.hub import Driver, Hub, RunHeld
from remit.orchestrate.kit import Kit
from remit.orchestrate.offspring import child_manifest, spent_by
from remit.orchestrate.patterns.chat import chat_graph
from remit.orchestrate.ports import Inbox, Live
from remit.orchestrate.reports import ChildSaid, Report

# Whom a child hears a cancel from.
PARENT = "parent"
# How often a parent looks whether a child that another process drives can be taken up.
HELD_POLL_MS = 100


class ChildExecutor:
    """Performs StartChild, CancelCommand and ForkRun with the hub that drives all runs of this process."""

    def __init__(self, hub: Hub, inbox: Inbox) -> None:
        self._hub = hub
        self._inbox = inbox

    async def start(self, live: Live, command: StartChild) -> Report:
        """Have a child run until it ends or waits for people."""
        driver = await self._driver_at_last(live, command)
        driver.is_awaited = True
        try:
            state = await self._hub.at_rest(driver)
        finally:
            driver.is_awaited = False
        if state.ending is None:
            # A child that somebody paused waits under no code; whoever paused it has to look after it.
            return ChildSuspended(command.id, waiting_for(state) or Ending.REVIEW_REQUIRED)
        return await self._ended(command, state)

    async def cancel(self, live: Live, command: CancelCommand) -> None:
        """Tell a child to end."""
        try:
            await self._hub.note(command.run_id, CancelRequested(PARENT))
        except IllegalArrival:
            return  # It has ended already, or never began.
        except RunHeld:
            signal = UserSignal(command.id, Signal.CANCEL, command.run_id, PARENT)
            await self._inbox.put(command.run_id, encode_signal(signal))

    async def fork(self, live: Live, command: ForkRun, kit: Kit | None = None) -> Driver:
        """Make the fork that a retry orders, and drive it."""
        known = self._hub.drivers.get(command.run_id)
        copied = await fork(self._hub.runner, live.run_id, command, live=known.live if known else None)
        if known is None:
            self._hub.dispatch.forget(copied)  # What it has open is sent again when it is taken up.
        return await self._hub.take_up(command.run_id, kit)

    async def _driver_at_last(self, live: Live, command: StartChild) -> Driver:
        """Who drives the child here, once nobody else does; the deadline of the parent bounds the wait."""
        while True:
            try:
                return await self._driver(live, command)
            except RunHeld:
                await asyncio.sleep(HELD_POLL_MS / 1000)

    async def _driver(self, live: Live, command: StartChild) -> Driver:
        hub = self._hub
        if command.run_id in hub.drivers or await hub.runner.journal.read(command.run_id):
            return await hub.take_up(command.run_id, hub.kit_of(live.run_id))
        manifest = child_manifest(pinned(live.state), command, chat_graph())
        try:
            return await hub.begin(manifest, hub.kit_of(live.run_id))
        except IllegalArrival:  # Somebody else began it at the same moment.
            return await hub.take_up(command.run_id, hub.kit_of(live.run_id))

    async def _ended(self, command: StartChild, state: RunState) -> Report:
        assert state.ending is not None, "a child that has not ended is suspended"
        text = await self._hub.runner.text(state.answer)
        return ChildSaid(command.id, state.ending, text, spent_by(state))
