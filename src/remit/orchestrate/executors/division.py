"""The division of work: what performs the commands of its runs, here or through workers.

Rule 1: without workers everything is performed in this process. With them, models and tools are theirs; code of the user,
        retrieval and children stay with the process that drives the run.
Rule 2: where processes share claims, every call that changes something is claimed there, no matter who performs it.
Rule 3: there none is known to be dead, so a tool's no about a call whose performer fell silent, was cut off or ran out of time
        may be early. It is asked for again when the time of the call has passed since, and some more, and then it holds.
        Meanwhile the call stays in doubt, and what its performer reports settles it. Where its time is longer than a run is
        kept waiting for, a person is asked, and reads that the tool says no and that the call may still be under way.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import CallTool, CancelCommand, Command, ForkRun, ReconcileTool, StartChild
from remit.kernel.results.doubt import LOST
from remit.kernel.state import RunState, is_safe_to_repeat
from remit.observe.logs import run_fields
from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.executors.child import ChildExecutor
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.prepare import ERRANDS
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import Report, ToolAccounted
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.hub import FindKit, Hub
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.ports import Clock
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.setup.reloaded_kit import pinned_kit
from remit.tool.secrets.vault import Vault

if TYPE_CHECKING:
    from remit.orchestrate.errand_ports import Carriage, SharedClaims
    from remit.orchestrate.executors.carrier import Carrier


# Added to the time of a call: a worker that wakes up needs it to report, and none begins a call so long after its claim.
GRACE_MS = 5_000
# A run is kept waiting no longer for a call that may be under way.
WAIT_MS_MAX = 300_000
# How often it is looked whether the call was settled meanwhile.
LOOK_S = 0.2
# A question of this attempt was asked after the time of its call.
LATE_ATTEMPT = 1_000

# Of these nobody has said that its function ended.
_UNHEARD = (LOST, ErrorCode.TOOL_TIMEOUT, ErrorCode.CANCELLED_SIGNAL)

# Asks a tool; the attempt is a name for the question where it is carried to a worker.
Ask = Callable[[Live, Command, int], Awaitable[Report]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Division:
    """Who does what, where several processes share a store: claims, and workers that are given models and tools.

    With `leaves`, this process only begins runs and tells them what people say; loop workers drive them.
    """

    claims: "SharedClaims | None" = None
    carriage: "Carriage | None" = None
    leaves: bool = False

    def finder(self, find_kit: FindKit) -> FindKit:
        """What finds the kit of a run: where workers have its models and tools, neither is loaded."""
        return find_kit if self.carriage is None else _pinned


ALONE = Division()


def division_of(store: object) -> Division:
    """Who does what, by what a store says: this process everything, under claims that all share where a store has them."""
    if not hasattr(store, "queue"):
        return ALONE
    # Only those who share a store pay for it.
    from remit.orchestrate.errand_ports import SharedStore

    assert isinstance(store, SharedStore), "a store with a queue has all that workers share"
    return Division(store.claims, store.queue, leaves=True) if store.leaves else Division(store.claims)


async def _unsure(run_id: str, command_id: str) -> bool:
    """Let no call begin whose claim took long: another process may drive its run by now."""
    return False


async def _pinned(state: RunState) -> Kit:
    return pinned_kit(state)


class DividedWork:
    """The performers of a system: of commands here, and of errands by workers."""

    def __init__(self, clock: Clock, vault: Vault, halts: Halts, division: Division = ALONE) -> None:
        self._clock, self._vault, self._halts = clock, vault, halts
        self.division = division
        self._executors: dict[type, Callable[..., object]] = {}
        self.dispatch = InProcessDispatch(
            self._executors,  # type: ignore[arg-type]  # filled below, one row per command
            clock,
            vault,
            halts,
            division.claims,
        )
        self.carrier: Carrier | None = None

    def equip(self, hub: Hub, children: ChildExecutor, sealer: Sealer, bus: Bus) -> Performers:
        """Have commands performed for the runs of a hub; gives what performs those that stay here."""
        dispatch, runner = self.dispatch, hub.runner
        late = dispatch.on_late = hub.late_delivery.late
        resources = ProcessResources(
            text=runner.text,
            vault=self._vault,
            sealer=sealer,
            halts=self._halts,
            clock=self._clock,
            on_late=late,
            claim=partial(self._claim, hub),
            bus=bus,
            is_wanted=None if self.division.claims is None else _unsure,
        )
        performers = Performers(resources)
        here = performers.carrier(hub.kit_of)
        self._executors |= {
            **dict.fromkeys(ERRANDS, here),
            StartChild: children.start,
            CancelCommand: children.cancel,
            ForkRun: children.carry_out,
        }
        if self.division.carriage is not None:
            # Only those who have workers pay for it.
            from remit.orchestrate.executors.carrier import CARRIED, Carrier

            dispatch.carried = CARRIED
            self.carrier = Carrier(
                self.division.carriage,
                runner.blobs,
                fetch=runner.text,
                look_after=dispatch.look_after,
                revoke=dispatch.revoke,
                tell=late,
            )
            dispatch.on_ended = self.carrier.ended
            self._executors |= dict.fromkeys(CARRIED, self.carrier)
        if self.division.claims is not None:
            # Another process may be at a call whose tool is asked, and not be known to be dead.
            async def ask(live: Live, command: Command, _: int) -> Report:
                return await here(live, command)

            self._executors[ReconcileTool] = partial(ask_account, self.carrier or ask)
            hub.late_delivery.on_letter = self.division.claims.put_aside
        return performers

    async def _claim(self, hub: Hub, run_id: str, command_id: str) -> bool:
        """Claim a call that is performed here; False where it may not begin."""
        driver = hub.drivers.get(run_id)
        command = None if driver is None else driver.live.state.commands.open.get(command_id)
        is_repeatable = driver is not None and command is not None and is_safe_to_repeat(driver.live.state, command)
        return await self.dispatch.claim(run_id, command_id, is_repeatable=is_repeatable)


async def ask_account(ask: Ask, live: Live, command: Command) -> Report:
    """Ask a tool what became of a call; a no is asked for again while it may be early."""
    assert isinstance(command, ReconcileTool), "only tools keep accounts"
    report = await ask(live, command, 1)
    call = _under_way(live, command)
    if call is None or not isinstance(report, ToolAccounted) or report.happened is not Happened.NO:
        return report
    wait_ms = call.timeout_ms + GRACE_MS
    if wait_ms > WAIT_MS_MAX:
        why = (
            f"{command.tool} says that it did not happen, and it may still be under way: its performer fell silent or was cut "
            f"off, and timeout_ms={call.timeout_ms} is more than a run waits to ask again ({WAIT_MS_MAX - GRACE_MS})"
        )
        return ToolAccounted(command.id, Happened.UNKNOWN, why=why)
    fields = run_fields(live.run_id, live.state, command_id=command.about)
    _log.info(
        "%s says no to a call that may be under way; it is asked again in %d ms", command.tool, wait_ms, extra=fields
    )
    until_s = asyncio.get_running_loop().time() + wait_ms / 1000
    while (left_s := until_s - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(min(left_s, LOOK_S))
        if command.id not in live.state.commands.open:
            # What its performer has reported meanwhile settled the call, and no answer is waited for.
            return ToolAccounted(command.id, Happened.UNKNOWN)
    return await ask(live, command, LATE_ATTEMPT)


def _under_way(live: Live, command: ReconcileTool) -> CallTool | None:
    """The call that is asked about, where its function may still be at work."""
    commands = live.state.commands
    call = commands.open.get(command.about)
    is_unheard = commands.doubted.get(command.about) in _UNHEARD
    return call if isinstance(call, CallTool) and is_unheard else None
