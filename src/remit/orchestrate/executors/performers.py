"""Whoever performs errands: one door for every kind, in the process that drives a run or in any other."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from remit.core.commands import Command
from remit.orchestrate.errands import (
    Errand,
    InquiryErrand,
    JudgeErrand,
    ModelErrand,
    ProposeErrand,
    RetrieveErrand,
    SiftErrand,
    StepErrand,
    ToolErrand,
    VoteErrand,
)
from remit.orchestrate.executors.bench import Bench
from remit.orchestrate.executors.code import run_code
from remit.orchestrate.executors.model import ModelExecutor
from remit.orchestrate.executors.prepare import prepare
from remit.orchestrate.executors.retrieve import retrieve
from remit.orchestrate.executors.tool import Abandoned, ToolExecutor
from remit.orchestrate.kit import Kit
from remit.orchestrate.ports import Live
from remit.orchestrate.reports import Report

_Perform = Callable[[Any, Kit], Awaitable[Report]]
_CODE = (JudgeErrand, SiftErrand, StepErrand, ProposeErrand, VoteErrand)


class Performers:
    """Performs errands with the bench of this process."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._tools = ToolExecutor(bench)
        code = partial(run_code, bench=bench)
        self._by_kind: Mapping[type[Errand], _Perform] = MappingProxyType(
            {
                ModelErrand: ModelExecutor(bench),
                ToolErrand: self._tools.call,
                InquiryErrand: self._tools.reconcile,
                RetrieveErrand: partial(retrieve, bench=bench),
                **dict.fromkeys(_CODE, code),
            }
        )

    @property
    def abandoned(self) -> tuple[Abandoned, ...]:
        """The calls that still go on although nobody waits for them."""
        return self._tools.abandoned

    def perform(self, errand: Errand, kit: Kit) -> Awaitable[Report]:
        """Perform an errand with what its run works with; whatever goes wrong is told in the report."""
        return self._by_kind[type(errand)](errand, kit)

    def carrier(self, kit_of: Callable[[str], Kit]) -> Callable[[Live, Command], Coroutine[Any, Any, Report]]:
        """Prepares commands and performs them right here, for those who drive runs in this process."""
        fetch = self._bench.text

        async def carried(live: Live, command: Command) -> Report:
            return await self.perform(await prepare(live, command, fetch), kit_of(live.run_id))

        return carried
