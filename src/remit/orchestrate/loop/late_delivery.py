"""Late delivery: outcomes that came late and ends of children, for runs that no caller waits for any more.

Rule 1: only a caller that closes the hub waits for this; a hub that is being closed begins none of it.
Rule 2: what could not be told now is found out when the run is resumed.
Rule 3: a process that finds the parent of an ended child held elsewhere leaves it to the holder, which looks for children
        that have ended once it has let the parent go: whichever comes later sees what the other did.
Rule 4: a call that returned although it was said not to have happened is told to people, wherever its run heard of that.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from remit.core.failure import RemitError
from remit.core.journal.commands import StartChild
from remit.core.journal.storage import RunHeld
from remit.kernel.state import RunState, pinned
from remit.observe.logs import run_fields
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.loop.patience import insist

if TYPE_CHECKING:
    from remit.orchestrate.loop.hub import Hub

# How long, and how often, an outcome that came late is offered to a run that another process drives.
LATE_WAIT_MS_MAX = 10_000
LATE_POLL_MS = 100
OUTCOME_CONTRADICTED = "OUTCOME_CONTRADICTED"

_log = logging.getLogger(__name__)


class LateDelivery:
    """The work that a hub does beside driving."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        # Keeps a letter about a call of a run, with a code and why, where processes share a store.
        self.on_letter: Callable[[str, str, str, str], None] | None = None
        self._tasks: dict[asyncio.Task[None], str] = {}

    def under_way(self) -> list[tuple[asyncio.Task[None], str]]:
        """The tasks that are not over, each with its run."""
        return list(self._tasks.items())

    def late(self, run_id: str, report: Report) -> None:
        """Have a run hear an outcome that came after no caller waited for it any more."""
        self._begin(run_id, self._hear_late(run_id, report))

    def tell_parent(self, state: RunState) -> None:
        """Have the parent of a run that has ended find out."""
        parent = pinned(state).parent
        if parent is not None:
            self._begin(parent.run_id, self.child_ended(parent.run_id, parent.command_id))

    def look_after(self, state: RunState) -> None:
        """Have a run that was let go taken up again where a child that waited for people has ended meanwhile.

        One that stands still would do nothing with that; its resume finds out.
        """
        if state.children.waiting and not state.place.paused:
            self._begin(
                state.run_id, self._look_after(state.run_id, dict(state.children.runs), list(state.children.waiting))
            )

    async def _look_after(self, run_id: str, runs: Mapping[str, str], held: Sequence[str]) -> None:
        for command_id in held:
            if (await self._hub.runner.load(runs[command_id])).state.end.ending is not None:
                await self.child_ended(run_id, command_id)

    async def child_ended(self, run_id: str, command_id: str) -> None:
        """Let a parent find out how its child ended: here, or not at all when another process drives it."""
        hub = self._hub
        if (driver := hub.drivers.get(run_id)) is not None:
            command = driver.live.state.commands.open.get(command_id)
            if isinstance(command, StartChild):
                hub.dispatch.send(driver.live, command)
            return
        try:
            if isinstance((await hub.runner.load(run_id)).state.commands.open.get(command_id), StartChild):
                await hub.take_up(run_id)
        except RunHeld:
            return  # The holder looks after its children itself.
        except RemitError as error:
            # What cannot be taken up now can be resumed later.
            _log.warning("a run was not taken up although its child ended: %s", error, extra=run_fields(run_id))

    async def _hear_late(self, run_id: str, report: Report) -> None:
        for _ in range(LATE_WAIT_MS_MAX // LATE_POLL_MS):
            try:
                # It may be just what the run waits for, so it is let go on.
                await insist(partial(self._hear, run_id, report), run_id)
            except RunHeld:
                await asyncio.sleep(LATE_POLL_MS / 1000)
                continue
            except RemitError as error:
                _log.warning("a run did not hear a late outcome: %s", error, extra=run_fields(run_id))
            return
        _log.warning("a run did not hear a late outcome: another process drives it", extra=run_fields(run_id))

    async def _hear(self, run_id: str, report: Report) -> None:
        await self._hub.hear(run_id, report)

    def contradicted(self, run_id: str, command_id: str) -> None:
        """Warn the operator of a call that was said not to have happened and has returned after all."""
        why = f"call {command_id} was said not to have happened and returned after all: its effect may have happened twice"
        _log.warning("%s: %s", OUTCOME_CONTRADICTED, why, extra=run_fields(run_id))
        if self.on_letter is not None:
            self.on_letter(run_id, command_id, OUTCOME_CONTRADICTED, why)

    def _begin(self, run_id: str, work: Coroutine[Any, Any, None]) -> None:
        if self._hub.is_closing:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks[task] = run_id
        task.add_done_callback(self._tasks.pop)
