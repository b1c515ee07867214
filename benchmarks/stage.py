"""The stage: one tool-loop run through the real runner, dispatch and journal, with a model and a tool that do nothing.

The model proposes one call in each of n loops and then answers; the tool takes one integer and reads.
"""

import time
from collections.abc import Sequence

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import Ending
from remit.core.journal.codec import NO_HASH, decode_turn, hash_turn
from remit.core.journal.commands import CallModel, CallTool
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import UNCHARGED, Dimension, budget_of
from remit.core.limits.tools import Effect, ToolCall, ToolDefinition, ToolResult
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, ModelResult, Price
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.core.run.request_checks import ITERATIONS_MAX
from remit.core.run.usage import TokenUsage
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.orchestrate.executors.reports import ModelSaid, ToolSaid
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.patterns.chat_graph import chat_graph

RUN_ID = "bench"
TOOL = "look"
# No cap may end a run that is there to be measured; real budgets are smaller.
PLENTY = 10**9
GENEROUS = budget_of([0 if dimension in UNCHARGED else PLENTY for dimension in Dimension])

_LOOK = ToolDefinition(
    TOOL,
    "Look a number up.",
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    effect=Effect.READ,
    network=False,
)
_USAGE = TokenUsage(prompt_tokens=10, output_tokens=5)
_DONE = ModelResult("done", usage=_USAGE)


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


class Stage:
    """A runner that outlives its runs, as a deployment's does; every run gets a new journal and dispatch."""

    def __init__(self) -> None:
        self.manifest = tool_loop_manifest()
        self.clock = SystemClock()
        self.runner = Runner(
            journal=MemoryJournal(), blobs=MemoryBlobs(), clock=self.clock, dispatch=self._dispatch(loops=0)
        )

    async def play(self, loops: int) -> None:
        """One whole run, from its first turn to its ending."""
        self.runner.journal = MemoryJournal()
        self.runner.dispatch = self._dispatch(loops)
        live = await self.runner.start(self.manifest)
        await self.runner.drive(live)
        assert live.state.end.ending is Ending.SUCCESS, f"{live.state.end.ending}: {live.state.end.message}"

    async def load(self) -> Live:
        """The last run, folded from its journal."""
        return await self.runner.load(RUN_ID)

    async def written(self) -> Sequence[bytes]:
        """The journal of the last run."""
        return await self.runner.journal.read(RUN_ID)

    def _dispatch(self, loops: int) -> InProcessDispatch:
        left = loops

        async def model(live: Live, command: CallModel) -> ModelSaid:
            nonlocal left
            live.conversation.catch_up(live.state)
            if left == 0:
                return ModelSaid(command.id, _DONE)
            left -= 1
            call = ToolCall(f"call-{left}", TOOL, {"n": left})
            return ModelSaid(command.id, ModelResult("", tool_calls=(call,), usage=_USAGE))

        async def tool(live: Live, command: CallTool) -> ToolSaid:
            return ToolSaid(command.id, ToolResult(command.call_id, TOOL, "42"))

        return InProcessDispatch({CallModel: model, CallTool: tool}, self.clock)


def tool_loop_manifest() -> Manifest:
    """A chat with one reading tool and nothing that could stop it. One graph serves runs of every length."""
    return make_manifest(
        run_id=RUN_ID,
        request=SystemRequest((user_message("Look some numbers up."),)),
        boundary=Boundary(name="bench", budget=GENEROUS),
        graph=chat_graph(tool_rounds_max=ITERATIONS_MAX),
        models=(ModelInfo("silent", context_window=PLENTY, price=Price(0, 0)),),
        tools=(_LOOK,),
    )


def read_turns(written: Sequence[bytes]) -> list[tuple[Turn, bytes]]:
    """The turns of a journal, each with the hash of its bytes."""
    return [(decode_turn(data), hash_turn(data)) for data in written]


def fold(turns: Sequence[tuple[Turn, bytes]]) -> RunState:
    """The state after these turns."""
    state = RunState(head=NO_HASH)
    for turn, head in turns:
        apply(state, turn, head)
    return state
