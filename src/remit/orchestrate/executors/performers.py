"""Performers of errands: one door for every kind, in the process that drives a run or in any other.

Rule 1: an errand whose performer is gone is performed again where that is safe, under the same id and key, as after a crash of
        the process that drives its run. What may have changed something is left to the claims: not done, or in doubt.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from remit.core.journal.commands import Command
from remit.kernel.state import is_safe_to_repeat
from remit.orchestrate.executors.code import retrieve, run_code
from remit.orchestrate.executors.errands import (
    Errand,
    InquiryErrand,
    JudgeErrand,
    ModelErrand,
    PlanErrand,
    ProposeErrand,
    RetrieveErrand,
    SiftErrand,
    StepErrand,
    ToolErrand,
    VoteErrand,
)
from remit.orchestrate.executors.model import ModelExecutor
from remit.orchestrate.executors.prepare import prepare
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.executors.tool import Abandoned, ToolExecutor
from remit.orchestrate.loop.claims import PerformerLost
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import Kit

_Perform = Callable[[Any, Kit], Awaitable[Report]]
# An errand over which so many performers died is what kills them; it is not given to another one.
PERFORMERS_LOST_MAX = 3
_CODE = (JudgeErrand, SiftErrand, StepErrand, PlanErrand, ProposeErrand, VoteErrand)


class Performers:
    """Performs errands with the resources of this process."""

    def __init__(self, resources: ProcessResources) -> None:
        self.resources = resources
        self._tools = ToolExecutor(resources)
        code = partial(run_code, resources=resources)
        self._by_kind: Mapping[type[Errand], _Perform] = MappingProxyType(
            {
                ModelErrand: ModelExecutor(resources),
                ToolErrand: self._tools.call,
                InquiryErrand: self._tools.reconcile,
                RetrieveErrand: partial(retrieve, resources=resources),
                **dict.fromkeys(_CODE, code),
            }
        )

    @property
    def abandoned(self) -> tuple[Abandoned, ...]:
        """The calls that still go on although no caller waits for them."""
        return self._tools.abandoned

    async def close(self) -> None:
        """Stop waiting for calls that were abandoned."""
        await self._tools.close()

    def perform(self, errand: Errand, kit: Kit) -> Awaitable[Report]:
        """Perform an errand with what its run works with; whatever goes wrong is told in the report.

        Raises PerformerLost where another process performed it and is gone.
        """
        return self._by_kind[type(errand)](errand, kit)

    def carrier(self, kit_of: Callable[[str], Kit]) -> Callable[[Live, Command], Coroutine[Any, Any, Report]]:
        """Prepares commands and performs them right here, for those who drive runs in this process."""
        fetch = self.resources.text

        async def carried(live: Live, command: Command) -> Report:
            errand, lost = await prepare(live, command, fetch), 0
            while True:
                try:
                    return await self.perform(errand, kit_of(live.run_id))
                except PerformerLost:
                    lost += 1
                    if lost == PERFORMERS_LOST_MAX or not is_safe_to_repeat(live.state, command):
                        raise

        return carried
