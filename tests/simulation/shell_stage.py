"""What simulated systems work with: a model, tools and effects of a seed, which take their time and can be cut off anywhere."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from remit.core.failure import ErrorCode
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import STANDARD
from remit.core.limits.tools import ToolCall
from remit.core.record import Record, replace
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Message, Role
from remit.core.run.usage import TokenUsage
from remit.inference.engine import EngineFault, StreamHandler
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.testing.scripts import USAGE
from remit.tool.declare.decorator import Tool, tool
from remit.tool.delegate import delegate
from remit.tool.registry import Registry
from tests.simulation.seeded_loop import PROCESS

MODEL = ModelInfo("staged", 100_000, Price(1_000, 2_000))
LEASE = {
    "input_tokens": 20_000,
    "output_tokens": 4_000,
    "tool_calls": 4,
    "steps": 20,
    "human_reviews": 3,
    "side_effects": 2,
    "external_api_calls": 2,
    "inference_cost_microusd": 200_000,
}
# Room for what children are lent: a run that may change nothing by itself has nothing to lend, and no child begins. Or people
# are asked before anything changes. And now and then time runs out meanwhile.
_LENDING = replace(STANDARD, budget=Budget(side_effects=8))
TERMS = (
    Terms(_LENDING, Budget(child_runs=3)),
    Terms(_LENDING, Budget(child_runs=3, wall_clock_ms=40_000)),
    Terms(budget=Budget(child_runs=3)),
)
# How long a model or a tool takes: mostly no time to speak of, sometimes longer than any sender may be kept waiting.
_SOON_S, _LATE_S = 0.3, 100.0
_IS_LATE = 0.1
_CLEANS_UP = 0.3
# The tool of which a call may be repeated with its key.
IDEMPOTENT = "put"
# What a child does, whatever it was asked.
_OF_CHILDREN = ((("look", 1),), (("pay", 2),), (("look", 3),))
# How often a model wants one call alone; else it wants two at once.
_ALONE = 0.6
_TOOLS = ("look", "write", "put", "pay", "helper")


# The calls that a model wants at once: of which tool, about which number.
Step = tuple[tuple[str, int], ...]


class Made(Record):
    """An effect of a tool: its key, the tool, its arguments; how many leases there were then; when it began, and acted; where."""

    key: str
    tool: str
    arguments: str
    leased: int
    began_s: float = 0.0
    acted_s: float = 0.0
    process: str = ""


class Stage:
    """A model and its tools; all of them belong to the world and outlive every process."""

    def __init__(
        self,
        chance: Random,
        leased: Callable[[], int] = lambda: 0,
        late: float = _IS_LATE,
        is_broken: Callable[[], bool] = lambda: False,
    ) -> None:
        self.chance = chance
        self.late = late
        # Whether the model is not to be had just now.
        self.is_broken = is_broken
        self.leased = leased
        self.made: list[Made] = []
        self.effects: dict[str, str] = {}
        self._scripts: list[tuple[Step, ...]] = []
        self.kit: Kit = engine_kit(StagedModel(self), Registry(self._tools()))

    def new_task(self) -> str:
        """A task with a script of its own."""
        steps = [self._new_step() for _ in range(self.chance.randrange(4))]
        self._scripts.append(tuple(steps))
        return f"task {len(self._scripts) - 1}"

    def reply_to(self, messages: Sequence[Message]) -> ModelResult:
        """What the model says, by the task it was given and how often it has answered since."""
        asked = [str(message.content) for message in messages if message.role is Role.USER]
        number = next((text.split()[1] for text in asked if text.startswith("task ")), "")
        given = sum(message.role is Role.ASSISTANT for message in messages)
        script = self._scripts[int(number)] if number else _OF_CHILDREN
        if given >= len(script):
            return ModelResult("done", usage=USAGE, finish_reason=FinishReason.STOP, model=MODEL.name)
        calls = [
            ToolCall(f"call-{given}-{place}", name, {"task": f"subtask {n}"} if name == "helper" else {"n": n})
            for place, (name, n) in enumerate(script[given])
        ]
        return ModelResult("", "", tuple(calls), TokenUsage(8, 0, 4), FinishReason.TOOL, MODEL.name)

    def _new_step(self) -> Step:
        """One call, or several at once."""
        count = 1 if self.chance.random() < _ALONE else 2
        return tuple((self.chance.choice(_TOOLS), self.chance.randrange(4)) for _ in range(count))

    async def take_time(self) -> None:
        """Let time pass; who is told to stop takes a while to clean up, now and then."""
        span_s = _LATE_S if self.chance.random() < self.late else _SOON_S
        try:
            await asyncio.sleep(self.chance.random() * span_s)
        except asyncio.CancelledError:
            if self.chance.random() < _CLEANS_UP:
                await asyncio.sleep(self.chance.random() * _SOON_S)
            raise

    async def act(self, name: str, n: int, key: str) -> str:
        """Change something, once for a key, at some moment of the call."""
        loop = asyncio.get_running_loop()
        # Its run may go to another process in the middle of it, and the call is still one of this.
        began_s, leased = loop.time(), self.leased()
        await self.take_time()
        self.made.append(Made(key, name, str(n), leased, began_s, loop.time(), PROCESS.get()))
        self.effects.setdefault(key, str(n))
        await self.take_time()
        return f"kept {n}"

    def _tools(self) -> list[Tool]:
        @tool(effect="read", network=False)
        async def look(n: int) -> str:
            """Look at something."""
            await self.take_time()
            return f"seen {n}"

        @tool(effect="write", verify=_is_kept)
        async def write(n: int, idempotency_key: str) -> str:
            """Write something."""
            return await self.act("write", n, idempotency_key)

        @tool(effect="write", idempotent=True, verify=_is_kept)
        async def put(n: int, idempotency_key: str) -> str:
            """Put something."""
            return await self.act("put", n, idempotency_key)

        @tool(effect="external", verify=_is_kept)
        async def pay(n: int, idempotency_key: str) -> str:
            """Pay something."""
            return await self.act("pay", n, idempotency_key)

        return [look, write, put, pay, delegate("helper", description="Have a helper do a task.", lease=LEASE)]


class StagedModel:
    """The model of a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What the script of the task says, after a while."""
        await self._stage.take_time()
        if self._stage.is_broken():
            raise EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "it is not to be had just now")
        return self._stage.reply_to(request.messages)

    def model_info(self) -> ModelInfo:
        """The model that the stage plays."""
        return MODEL


async def _is_kept(arguments: dict[str, int], result: str) -> bool:
    """Whether the effect is what was asked for. One that is no coroutine would be called in a thread."""
    return result == f"kept {arguments['n']}"
