"""The division of work: what performs the commands of its runs, here or through workers.

Rule 1: without workers everything is performed in this process. With them, models and tools are theirs; code of the user,
        retrieval and children stay with the process that drives the run.
Rule 2: where processes share claims, every call that changes something is claimed there, no matter who performs it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from remit.core.journal.commands import CancelCommand, ForkRun, StartChild
from remit.kernel.state import RunState, is_safe_to_repeat
from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.executors.child import ChildExecutor
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.prepare import ERRANDS
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.hub import FindKit, Hub
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.ports import Clock
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.setup.reloaded_kit import pinned_kit
from remit.tool.secrets.vault import Vault

if TYPE_CHECKING:
    from remit.orchestrate.errand_ports import Carriage, SharedClaims
    from remit.orchestrate.executors.carrier import Carrier


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
        )
        performers = Performers(resources)
        self._executors |= {
            **dict.fromkeys(ERRANDS, performers.carrier(hub.kit_of)),
            StartChild: children.start,
            CancelCommand: children.cancel,
            ForkRun: children.carry_out,
        }
        if self.division.carriage is not None:
            # Only those who have workers pay for it.
            from remit.orchestrate.executors.carrier import CARRIED, Carrier

            dispatch.carried = CARRIED
            self.carrier = Carrier(self.division.carriage, runner.blobs, runner.text, dispatch.look_after)
            dispatch.on_ended = self.carrier.ended
            self._executors |= dict.fromkeys(CARRIED, self.carrier)
        return performers

    async def _claim(self, hub: Hub, run_id: str, command_id: str) -> bool:
        """Whether a call that is performed here may begin."""
        driver = hub.drivers.get(run_id)
        command = None if driver is None else driver.live.state.commands.open.get(command_id)
        is_repeatable = driver is not None and command is not None and is_safe_to_repeat(driver.live.state, command)
        return await self.dispatch.claim(run_id, command_id, is_repeatable=is_repeatable)
