"""Copies of runs that people ask for: forks, restored runs, and what a retry ordered.

Rule 1: the caller that has a run copied must hold every permission that the copy may use.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import ResumeRequested
from remit.core.journal.commands import ForkRun
from remit.core.journal.storage import RunHeld
from remit.core.run.manifest import EarlierEffect, Origin, permissions_of
from remit.core.run.principal import Principal, expect_permissions
from remit.kernel.state import RunState, pinned
from remit.orchestrate.executors.child import ChildExecutor
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.history.fork_run import FORK_DEFERRED, begin_fork, origin_at, rests_because
from remit.orchestrate.history.repair import lost_turns
from remit.orchestrate.loop.hub import Hub
from remit.orchestrate.loop.offspring import Lineages
from remit.orchestrate.setup.kit import Kit


class Copied(NamedTuple):
    """The id of a copy, and why it rests, if it does."""

    fork_id: str
    rests_because: str


class Copies:
    """Makes copies of runs and lets them go on."""

    def __init__(
        self,
        hub: Hub,
        children: ChildExecutor,
        custody: Custody,
        sealer: Sealer,
        lineages: Lineages,
        new_id: Callable[[], str],
    ) -> None:
        self._hub = hub
        self._children = children
        self._custody = custody
        self._sealer = sealer
        self._lineages = lineages
        self._new_id = new_id

    async def may_be_had(self, run_id: str, principal: Principal) -> RunState:
        """The run as it stands, if a principal may have a copy of it."""
        state = (await self._hub.runner.load(run_id)).state
        expect_permissions(principal, permissions_of(pinned(state)), run_id)
        return state

    async def fork(self, state: RunState, at: int | None, by: str, why: str, kit: Kit | None) -> Copied:
        """Copy a run up to a turn and let the copy go on."""
        await self._custody.expect_kept(state, state.run_id)
        return await self._forked(origin_at(state, at, by, why, self._hub.runner.clock.now_ms()), kit)

    async def restore(self, state: RunState, by: str, why: str, kit: Kit | None) -> Copied:
        """Copy what is left of a run of which turns are missing, and let the copy go on."""
        custody, run_id, last = self._custody, state.run_id, state.seq
        await custody.expect_vouched(run_id)
        beyond, doubt = await custody.beyond(run_id, last), await custody.log_doubt(run_id, last)
        lost = lost_turns(run_id, last, beyond, why, doubt)
        return await self._forked(origin_at(state, None, by, why, self._hub.runner.clock.now_ms()), kit, lost)

    async def retried(self, run_id: str, fork_id: str, kit: Kit | None) -> Copied:
        """See to it that the fork is made that a retry of a run ordered, whose id may not be known yet."""
        live = await self._hub.runner.load(run_id)
        forks = [command for command in live.state.commands.parting if isinstance(command, ForkRun)]
        # An entry that was settled before answers named forks says nothing; then it is the newest.
        order = next((command for command in forks if command.run_id == fork_id), forks[-1])
        # The process that heard the retry has made the fork, as a rule; if that failed, the sender learns why.
        if kit is not None:
            self._hub.lend(order.run_id, kit)
        try:
            await self._children.fork(live, order)
        except RequestRejected as error:
            message = f"the retry is recorded; resume run {run_id} to have it done, which is not yet: {error.message}"
            details = {**error.details, "run_id": run_id, "code": error.code}
            raise RequestRejected(FORK_DEFERRED, message, details) from error
        rests = ""
        with suppress(RunHeld):  # Then another process drives it.
            rests = rests_because((await self._hub.take_up(order.run_id, kit)).live.state)
        return Copied(order.run_id, rests)

    async def _forked(self, origin: Origin, kit: Kit | None, *lost: EarlierEffect) -> Copied:
        fork_id = self._new_id()
        known = kit or self._hub.known_kit(origin.run_id)
        sealed = self._sealer.origin(origin, fork_id, await self._lineages.family(origin.run_id))
        if known is not None:
            self._hub.lend(fork_id, known)
        copy = partial(begin_fork, self._hub.runner.journal, sealed, fork_id, lost)
        return Copied(fork_id, await self._hub.fork(fork_id, ResumeRequested(origin.by), copy))
