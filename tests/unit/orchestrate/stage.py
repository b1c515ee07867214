"""A real runner over memory, with a clock that tests turn, a scripted model and scripted tools."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import ErrorCode
from remit.core.journal import arrivals, commands
from remit.core.journal.codec import read_json
from remit.core.journal.commands import CallModel, CallTool, Command
from remit.core.journal.storage import Barrier, Place, RunListing, Stretch, Warrant
from remit.core.limits.tools import ToolResult
from remit.core.record import JsonObject
from remit.orchestrate.executors.reports import ModelSaid, Report, ToolBroke, ToolSaid
from remit.orchestrate.loop.in_process import Executor, InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.ports import Journal
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import Breaks, Model, in_turn, says
from tests.unit.kernel.builders import BEGINS_AT_MS

T = TypeVar("T")
Tool = Callable[[JsonObject], str]
Hook = Callable[[str, int], Coroutine[Any, Any, None]]

# Longer than anything here takes by far; a test that hangs should say so before anybody loses patience.
PATIENCE_S = 20


def play(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, or fail when it hangs."""

    async def patiently() -> T:
        async with asyncio.timeout(PATIENCE_S):
            return await coroutine

    return asyncio.run(patiently())


class HandClock:
    """A clock that stands still until it is turned, unless something ticks in it."""

    def __init__(self, at_ms: int = BEGINS_AT_MS, *, ticks: Callable[[], int] = lambda: 0) -> None:
        self.at_ms = at_ms
        self._ticks = ticks

    def now_ms(self) -> int:
        """What it shows."""
        return self.at_ms + self._ticks()


def loop_clock() -> HandClock:
    """A clock that goes with the event loop, so that waiting takes time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    return HandClock(ticks=lambda: int((loop.time() - began) * 1000))


class WatchedJournal:
    """A journal in memory with a rival beside it who does something around every append, or before every read."""

    def __init__(self, *, beside_append: Hook | None = None, before_read: Hook | None = None) -> None:
        self.kept = MemoryJournal()
        self._beside_append = beside_append
        self._before_read = before_read

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        """Write a turn, with the hook before and after it."""
        if self._beside_append is not None:
            await self._beside_append(run_id, after)
        place = await self.kept.append(run_id, data, after, barrier, listing, warrant, orders)
        if self._beside_append is not None:
            await self._beside_append(run_id, after)
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns of a run, once the hook is done."""
        if self._before_read is not None:
            await self._before_read(run_id, after)
        return await self.kept.read(run_id, after=after)


async def let_others_run(run_id: str, after: int) -> None:
    """A moment in which other tasks get their turn, as with every journal that is not in memory."""
    await asyncio.sleep(0)


class Stage:
    """One process: a runner and its dispatch. Two stages on one journal are two processes."""

    def __init__(
        self,
        model: Model | None = None,
        *,
        tools: Mapping[str, Tool] | None = None,
        executors: Mapping[type[Command], Executor] | None = None,
        journal: Journal | None = None,
        clock: HandClock | None = None,
    ) -> None:
        self.model = model or in_turn(says("done"))
        self.tools = tools or {}
        self.performed: list[Command] = []
        self.clock = clock or HandClock()
        self.journal = journal if journal is not None else MemoryJournal()
        self.blobs = MemoryBlobs()
        chosen: dict[type[Command], Executor] = {CallModel: self._call_model, CallTool: self._call_tool}
        self.dispatch = InProcessDispatch({**chosen, **(executors or {})}, self.clock)
        self.runner = Runner(journal=self.journal, blobs=self.blobs, clock=self.clock, dispatch=self.dispatch)

    async def run(self, run_id: str = "run") -> SimulatedRun:
        """A run as its journal tells it."""
        return SimulatedRun(run_id, await self.journal.read(run_id))

    def performed_of(self, kind: type[T]) -> list[T]:
        """The commands of a kind that were really performed, in order."""
        return [command for command in self.performed if isinstance(command, kind)]

    async def _call_model(self, live: Live, command: CallModel) -> Report:
        self.performed.append(command)
        answer = self.model(live.conversation.catch_up(live.state), Random(0))
        if isinstance(answer, Breaks):
            return arrivals.ModelFailed(command.id, answer.code, was_cut=answer.was_cut)
        return ModelSaid(command.id, answer)

    async def _call_tool(self, live: Live, command: CallTool) -> Report:
        self.performed.append(command)
        try:
            content = self.tools[command.tool](read_json(await self.runner.text(command.arguments)))
        except RuntimeError as error:
            return ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, str(error))
        return ToolSaid(command.id, ToolResult(command.call_id, command.tool, content))


def ok(arguments: JsonObject) -> str:
    """A tool that succeeds."""
    return '{"ok": true}'


async def hang(live: Live, command: Command) -> Report:
    """An executor that never comes back by itself."""
    await asyncio.Event().wait()
    raise AssertionError("this event is never set")


ALL_PERFORMED = (
    commands.CallModel,
    commands.CallTool,
    commands.ReconcileTool,
    commands.CallCode,
    commands.Retrieve,
    commands.StartChild,
)
