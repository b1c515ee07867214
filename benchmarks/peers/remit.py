"""remit as a contender of a harness: `BENCH_ADAPTERS` names this folder. Public names alone, and declared tools.

The harness brings a module `common`: the work of the tool, its arguments, the last answer, a schema with a good and a bad
text. Without a flavour every run goes through `System.run`; the flavour `agent` makes an AgentLoop for each.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import remit
from remit import (
    AgentLoop,
    Boundary,
    Budget,
    ExecutionHints,
    ModelInfo,
    ModelRequest,
    ModelResult,
    Price,
    RedundantLoop,
    Registry,
    SpecializedLoop,
    StreamHandler,
    System,
    SystemRequest,
    Terms,
    TokenUsage,
    ToolCall,
    kit_of,
    system_in_memory,
    tool,
    user_message,
)

common: Any = import_module("common")

IMPORT = "remit:AgentLoop,remit:tool"
VARIANTS = ["sqlite_full"]
PLENTY, ROUNDS_MAX, REPLICAS = 10**9, 1_000, 3
BOUNDARY = Boundary(
    name="bench", budget=Budget(tool_calls=PLENTY, steps=PLENTY, input_tokens=PLENTY, output_tokens=PLENTY)
)
TERMS = Terms(BOUNDARY)
REQUEST = SystemRequest((user_message(common.PROMPT),), hints=ExecutionHints(max_iterations=ROUNDS_MAX))
INFO = ModelInfo("silent", context_window=PLENTY, price=Price(0, 0))
USAGE = TokenUsage(prompt_tokens=10, output_tokens=5)

Run = Callable[[], Awaitable[Any]]


@tool(effect="read", network=False)
async def lookup(q: str, n: int) -> str:
    """Look an item up."""
    found: str = common.do_lookup(q, n)
    return found


@tool(effect="write")
async def keep(q: str, n: int) -> str:
    """Keep an item."""
    found: str = common.do_lookup(q, n)
    return found


class Model:
    """Calls a tool so often and then answers; where it stands it counts in the messages."""

    def __init__(self, calls: int, name: str = "lookup") -> None:
        self._calls, self._name = calls, name

    def model_info(self) -> ModelInfo:
        """A window and a price that stop nothing."""
        return INFO

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The next call, or the answer."""
        turn = len(request.messages) // 2
        if turn >= self._calls:
            return ModelResult(common.FINAL, usage=USAGE)
        call = ToolCall(f"call_{turn}", self._name, common.args_for(turn))
        return ModelResult("", tool_calls=(call,), usage=USAGE)


class Speaker:
    """Answers with a bad text first and with a good one when it is asked again; with `is_right` at once."""

    def __init__(self, *, is_right: bool = False) -> None:
        self._is_right = is_right

    def model_info(self) -> ModelInfo:
        """The same as of any model here."""
        return INFO

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """A text of the schema."""
        is_right = self._is_right or any(message.role == "assistant" for message in request.messages)
        return ModelResult(common.GOOD_JSON if is_right else common.BAD_JSON, usage=USAGE)


def loop(k: int) -> Run:
    """One run of so many calls in memory."""
    system = system_in_memory()
    return _chat(system, k) if common.FLAVOR == "agent" else _run(system, k)


def _run(system: System, k: int) -> Run:
    kit = kit_of(Model(k), Registry([lookup]))

    async def run() -> Any:
        return (await system.run(REQUEST, kit, TERMS)).content

    return run


def _chat(system: System, k: int) -> Run:
    async def run() -> Any:
        rounds = max(k + 1, 10)
        agent = AgentLoop(Model(k), tools=[lookup], boundary=BOUNDARY, max_tool_iterations=rounds, system=system)
        return (await agent.chat(common.PROMPT)).content

    return run


def durable(k: int, folder: str, variant: str) -> Run:
    """The same on the disk."""
    door, kit, opened = remit.open(Path(folder) / "store"), kit_of(Model(k), Registry([lookup])), list[System]()

    async def run() -> Any:
        if not opened:
            opened.append(await door.__aenter__())
        return (await opened[0].run(REQUEST, kit, TERMS)).content

    async def aclose() -> None:
        await door.__aexit__()

    run.aclose = aclose  # type: ignore[attr-defined]  # the harness looks for it there
    return run


def resume(k: int, at: int, folder: str, variant: str) -> tuple[Run, Run, None]:
    """A run that was written, read back by a system that does not know it."""
    home, ids, doors = Path(folder) / "store", list[str](), list[remit.Door]()

    async def prepare() -> None:
        async with remit.open(home) as system:
            ids.append((await system.run(REQUEST, kit_of(Model(at), Registry([lookup])), TERMS)).run_id)

    async def load() -> int:
        while doors:
            await doors.pop().__aexit__()
        doors.append(remit.open(home))
        return len((await (await doors[0].__aenter__()).state_of(ids[0])).calls.made)

    return prepare, load, None


def structured() -> Run:
    """A bad answer, one repair, a value that fits."""
    call = SpecializedLoop(Speaker(), schema=common.schema(), boundary=BOUNDARY, system=system_in_memory()).call

    async def run() -> Any:
        return (await call(common.PROMPT)).structured_output

    return run


def vote() -> Run:
    """Replicas that agree."""
    speaker, system = Speaker(is_right=True), system_in_memory()
    call = RedundantLoop(speaker, schema=common.schema(), n=REPLICAS, boundary=BOUNDARY, system=system).call

    async def run() -> Any:
        return (await call(common.PROMPT)).response.structured_output

    return run


def agent() -> Callable[[], AgentLoop]:
    """Makes an agent with ten tools."""
    system, model, tools = system_in_memory(), Model(1), common.ten_tools(tool(effect="read"))
    return lambda: AgentLoop(model, tools=tools, boundary=BOUNDARY, system=system)


def suspend() -> Callable[[int], Awaitable[str]]:
    """Brings a run to where it waits for an approval."""
    system, kit = system_in_memory(), kit_of(Model(1, "keep"), Registry([keep]))

    async def start(number: int) -> str:
        response = await system.run(REQUEST, kit, TERMS)
        assert response.waiting_for is not None, response
        return response.run_id

    return start
