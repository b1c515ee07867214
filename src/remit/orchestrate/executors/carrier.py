"""The carrier of errands: what a model or a tool is to do is queued, and its report is waited for, in whatever process.

Rule 1: an errand has one name for each attempt, so a driver that takes a run up waits for what another has sent, and sends
        nothing twice.
Rule 2: one whose worker is gone is sent again where that is safe, at most PERFORMERS_LOST_MAX times; what may have changed
        something is left to the claims.
Rule 3: a report counts for the errand that it was stored for, and only of the kinds that its command can have.
Rule 4: what came of a call that changes something counts from the worker that claimed it. One that is said to have come to
        something, and that no worker has claimed, is taken back first, so that it begins no more.
Rule 5: an errand that is not waited for any more is taken back, unless this process leaves: then the next driver waits for it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from remit.core.failure import InvariantBroken, RemitError
from remit.core.journal.arrivals import ModelFailed, RunHalted
from remit.core.journal.commands import CallModel, CallTool, Command, ReconcileTool, place_in_journal
from remit.core.journal.queued import OUTCOME_UNCLAIMED, Came, ErrandName, Lane, StoredReport
from remit.core.record import replace
from remit.kernel.results.doubt import may_be_told_again
from remit.kernel.state import is_safe_to_repeat
from remit.observe.logs import run_fields
from remit.orchestrate.errand_ports import Carriage
from remit.orchestrate.exchange.conversation import Fetch
from remit.orchestrate.executors.errands import Errand, claim_of, decode_report, encode_errand, packed
from remit.orchestrate.executors.performers import PERFORMERS_LOST_MAX
from remit.orchestrate.executors.prepare import prepare
from remit.orchestrate.executors.reports import ModelSaid, Report, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.loop.claims import PerformerLost
from remit.orchestrate.loop.live import Live
from remit.orchestrate.ports import Blobs

MODEL, TOOL = "model", "tool"
REPORT_REFUSED = "REPORT_REFUSED"

# What may be reported of each kind of command that workers perform; all others are performed where their run is driven.
REPORTS: Mapping[type[Command], tuple[type, ...]] = MappingProxyType(
    {
        CallModel: (ModelSaid, ModelFailed, RunHalted),
        CallTool: (ToolSaid, ToolBroke, RunHalted),
        ReconcileTool: (ToolAccounted, RunHalted),
    }
)
CARRIED: frozenset[type[Command]] = frozenset(REPORTS)

# Whether a call will certainly not be made, in whatever process.
Revoke = Callable[[str, str], Awaitable[bool]]
# Tells a run that has ended what one of its calls came to.
Tell = Callable[[str, Report], None]
# Waits for a task before this process leaves, in the name of a run.
LookAfter = Callable[["asyncio.Task[None]", str], None]

_log = logging.getLogger(__name__)


def lane_of(live: Live, command: Command) -> Lane:
    """Which workers perform a command."""
    if isinstance(command, CallModel):
        return Lane(MODEL, command.model)
    if isinstance(command, CallTool):
        return Lane(TOOL, command.tool, command.version)
    assert isinstance(command, ReconcileTool), f"a {type(command).__name__} is not carried"
    return Lane(TOOL, command.tool, live.state.derived.tools[command.tool].version)


class Carrier:
    """Has commands performed by workers."""

    def __init__(
        self, carriage: Carriage, blobs: Blobs, fetch: Fetch, look_after: LookAfter, revoke: Revoke, tell: Tell
    ) -> None:
        self._carriage = carriage
        self._revoke, self._tell = revoke, tell
        self._blobs = blobs
        self._fetch = fetch
        self._look_after = look_after
        # Whether this process leaves, so that what it has under way is left to the next.
        self.is_leaving = False
        # Errands that were taken back here, until their runs are forgotten.
        self._withdrawn: set[ErrandName] = set()
        self._forgetting: set[asyncio.Task[None]] = set()

    def ended(self, live: Live) -> None:
        """Forget what was sent for a run that has ended, and tell it what its calls came to that it gave up."""
        run_id, calls = live.run_id, live.state.calls.made
        self._withdrawn = {name for name in self._withdrawn if name.run_id != run_id}
        if not self.is_leaving:
            opened, late = live.state.commands.open, live.state.end.late
            tools = live.state.derived.tools
            unsure = {
                name: Lane(TOOL, call.tool, tools[call.tool].version)
                for name, call in calls.items()
                if call.mutating and (name in opened or may_be_told_again(call, late.get(name)))
            }
            task = asyncio.create_task(self._forget(run_id, unsure))
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)

    async def _forget(self, run_id: str, unsure: Mapping[str, Lane]) -> None:
        try:
            for stored in await self._carriage.forget(run_id, unsure):
                if isinstance(report := decode_report(stored.data), ToolSaid) and report.command_id in unsure:
                    self._tell(run_id, report)
        except RemitError as error:  # It expires by itself.
            _log.warning("errands of a run that has ended are left to expire: %s", error, extra=run_fields(run_id))

    async def close(self) -> None:
        """Finish forgetting."""
        if self._forgetting:
            await asyncio.wait(list(self._forgetting))

    async def __call__(self, live: Live, command: Command, attempt: int = 1) -> Report:
        """Put a command into the queue and wait for the report of a worker; raises PerformerLost where no worker can tell."""
        errand, texts = packed(await self._prepared(live, command))
        for digest, text in texts:
            await self._blobs.put(digest, text)
        data, lane, lost = encode_errand(errand), lane_of(live, command), 0
        name, is_repeatable = ErrandName(live.run_id, command.id, attempt), self._may_repeat(live, command)
        while True:
            claim = claim_of(command, name.attempt, is_repeatable=is_repeatable)
            stored = await self._waited(name, lane, data, claim, is_new=self._is_new(live, name))
            if (
                stored.is_unclaimed
                and isinstance(command, CallTool)
                and not await self._revoke(live.run_id, command.id)
            ):
                # It has begun meanwhile, so the worker that claimed it tells what it came to.
                stored = await self._waited(name, lane, data, claim, is_new=False)
            report = self._read(live, command, stored)
            if report is not None:
                if isinstance(report, RunHalted):
                    await self._carriage.retract(name, lane)
                return report
            # What was taken back is wanted again, or it would not have been sent.
            lost += stored.came is not Came.WITHDRAWN
            is_over = stored.came is Came.DEAD or lost == PERFORMERS_LOST_MAX
            if is_over or (lost and not self._may_repeat(live, command)):
                raise PerformerLost
            name = replace(name, attempt=name.attempt + 1)

    async def _prepared(self, live: Live, command: Command) -> Errand:
        return await prepare(live, command, self._fetch)

    def _may_repeat(self, live: Live, command: Command) -> bool:
        return is_safe_to_repeat(live.state, command)

    def _is_new(self, live: Live, name: ErrandName) -> bool:
        """Whether no errand of this name can have been sent before: its command was ordered here."""
        return place_in_journal(name.command_id)[0] > live.recovered_seq and name not in self._withdrawn

    async def _waited(self, name: ErrandName, lane: Lane, data: bytes, claim: int, *, is_new: bool) -> StoredReport:
        try:
            return await self._carriage.carried(name, lane, data, is_new=is_new, claim=claim)
        except asyncio.CancelledError:
            if not self.is_leaving:
                self._withdrawn.add(name)
                self._look_after(asyncio.create_task(self._withdraw(name, lane, claim)), name.run_id)
            raise

    async def _withdraw(self, name: ErrandName, lane: Lane, claim: int) -> None:
        try:
            await self._carriage.withdraw(name, lane, claim)
        except RemitError as error:  # Its worker finishes it, and what comes of it is told late.
            _log.warning("an errand could not be taken back: %s", error, extra=run_fields(name.run_id))

    def _read(self, live: Live, command: Command, stored: StoredReport) -> Report | None:
        if stored.came is not Came.DONE:
            return None
        fields = run_fields(live.run_id, live.state, command_id=command.id)
        try:
            report = decode_report(stored.data)
        except InvariantBroken as error:
            _log.warning("%s: a report of a worker cannot be read: %s", REPORT_REFUSED, error, extra=fields)
            return None
        if stored.is_unclaimed and not isinstance(report, ToolBroke | RunHalted):
            _log.warning("%s: a worker reported of a call that it has not claimed", OUTCOME_UNCLAIMED, extra=fields)
            return None
        about = report.withheld if isinstance(report, RunHalted) else (getattr(report, "command_id", ""),)
        if isinstance(report, REPORTS[type(command)]) and about == (command.id,):
            return report
        kind = type(report).__name__
        _log.warning("%s: a worker reported %s, which is not about its errand", REPORT_REFUSED, kind, extra=fields)
        return None
