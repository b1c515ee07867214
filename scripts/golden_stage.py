"""The stage on which golden journals are made: a world of one script, whose clock moves with every report."""

from typing import TypeVar

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import ErrorCode
from remit.core.journal import commands
from remit.core.journal.commands import Command
from remit.core.limits.tools import ToolResult
from remit.core.record import JsonObject
from remit.core.run.inference import ModelResult
from remit.core.run.manifest import Manifest
from remit.orchestrate.executors import reports
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner

BEGINS_AT_MS = 1_000_000
# Between any two reports.
STEP_MS = 1_000
DONE = '{"ok": true}'

C = TypeVar("C", bound=Command)


class Stage:
    """A world of one script: its clock moves with every report, and no executor performs anything unasked."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.runner = Runner(journal=self.journal, blobs=MemoryBlobs(), clock=self, dispatch=self)
        # The runs to be stored: the name of the file, and whose journal it holds.
        self.names: dict[str, str] = {}
        self._at_ms = BEGINS_AT_MS

    def now_ms(self) -> int:
        """The time of the latest report."""
        return self._at_ms

    def send(self, live: Live, command: Command) -> None:
        """Do nothing: the script says what becomes of a command."""

    async def revoke(self, run_id: str, command_id: str) -> bool:
        """It is not known what has begun."""
        return False

    def carries(self, command: Command) -> bool:
        """Nothing: no other process performs what is sent here."""
        return False

    async def receive(self, live: Live) -> Report | None:
        """No caller waits here: the script hands every report in."""
        return None

    def forget(self, live: Live) -> None:
        """Nothing is under way."""

    async def start(self, name: str, manifest: Manifest) -> Live:
        """Begin a run whose journal is stored under a name."""
        self.names[name] = manifest.run_id
        return await self.runner.start(manifest)

    async def hear(self, live: Live, *heard: Report) -> None:
        """Let reports arrive, one step after the other; each of them must be judged."""
        for report in heard:
            self._at_ms += STEP_MS
            await self.runner.rule_on(live, report)

    async def answer(self, live: Live, *results: ModelResult) -> None:
        """Let the model answer the call that is open, as often as there are results."""
        for result in results:
            await self.hear(live, reports.ModelSaid(asked(live, commands.CallModel).id, result))

    async def give(self, live: Live, content: str = DONE) -> None:
        """Let the oldest open tool call return."""
        call = asked(live, commands.CallTool)
        await self.hear(live, reports.ToolSaid(call.id, ToolResult(call.call_id, call.tool, content), duration_ms=40))

    async def lose_track(self, live: Live) -> None:
        """Let the oldest open tool call run out of time."""
        call = asked(live, commands.CallTool)
        await self.hear(live, reports.ToolBroke(call.id, ErrorCode.TOOL_TIMEOUT, "it took too long", call.timeout_ms))

    async def approve(self, live: Live, arguments: JsonObject | None = None) -> None:
        """Let a person say yes to the oldest question."""
        await self.hear(live, reports.PersonApproved(asked(live, commands.AskHuman).id, "ada", arguments))


def asked(live: Live, kind: type[C]) -> C:
    """The oldest open command of a kind."""
    return next(command for command in live.state.commands.open.values() if isinstance(command, kind))
