"""Speed at the door: whole runs through the public classes, with declared tools, beside a floor of the same run.

Run it alone: `python -m benchmarks.doors`. The folder `benchmarks/peers` holds the same work for a harness that measures
other frameworks, too.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeAlias

from benchmarks.bare import play_bare
from benchmarks.constrain import SCHEMA, TEXT
from benchmarks.measure import FULL, Effort, Figure, Work, compare, together
from benchmarks.silent import REQUEST, TERMS, SilentModel, expect_success, look, reading_kit
from benchmarks.tables import table
from remit import (
    AgentLoop,
    ModelInfo,
    ModelRequest,
    ModelResult,
    Price,
    RedundantLoop,
    SpecializedLoop,
    StreamHandler,
    System,
    TokenUsage,
    system_in_memory,
)
from remit.core.schema.json_schema import compile_schema

LOOPS = 50
REPLICAS = 3
# What is reached for: how many floors a loop costs, and microseconds of a start with its end.
LOOP_RATIO_WANTED = 8
START_MICROS_WANTED = 300

Coroutines: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

_BAD = TEXT.replace("36", '"many"')
_BARE, _READ = "a bare asyncio loop", "json.loads and jsonschema-rs"


class Speaker:
    """Answers with a text that fits, at once or after it was asked again."""

    def __init__(self, first: str) -> None:
        self._first = first
        self._info = ModelInfo("speaker", context_window=10**9, price=Price(0, 0))

    def model_info(self) -> ModelInfo:
        """A window and a price that stop nothing."""
        return self._info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The first answer, and what fits once that stands among the messages."""
        is_again = any(message.role == "assistant" for message in request.messages)
        return ModelResult(TEXT if is_again else self._first, usage=TokenUsage(prompt_tokens=10, output_tokens=5))


def measure_doors(effort: Effort, loops: int = LOOPS) -> list[Figure]:
    """CPU microseconds through each class: of a loop, of a run without any, and of a call with a schema."""
    fits = compile_schema(SCHEMA).fits
    with asyncio.Runner() as runner:
        # A runner sets the handler of signals anew for each thing that it runs, which costs some 40 µs of no contender.
        run, system = runner.get_loop().run_until_complete, system_in_memory()

        def of(name: str, work: Coroutines, floor: str, floor_work: Work, operations: int = 1) -> Figure:
            return compare(name, lambda: run(work()), floor, floor_work, operations=operations, effort=effort)

        def bare(count: int) -> Work:
            return lambda: run(play_bare(count))

        def read(times: int) -> Work:
            return lambda: [fits(json.loads(TEXT)) for _ in range(times)]

        figures = [
            of("System.run, no loop", lambda: run_of(system, 0), _BARE, bare(0)),
            of(f"System.run, a loop of {loops}", lambda: run_of(system, loops), _BARE, bare(loops), loops),
            of("AgentLoop.chat, no loop", lambda: chat_of(system, 0), _BARE, bare(0)),
            of(f"AgentLoop.chat, a loop of {loops}", lambda: chat_of(system, loops), _BARE, bare(loops), loops),
            of("SpecializedLoop.call", lambda: call_of(system, TEXT), _READ, read(1)),
            of("SpecializedLoop.call, asked again", lambda: call_of(system, _BAD), _READ, read(2)),
            of(f"RedundantLoop.call, {REPLICAS} replicas", lambda: vote_of(system), _READ, read(REPLICAS)),
        ]
        run(system.close())
    return figures


async def run_of(system: System, loops: int) -> None:
    """One run of so many loops through the facade."""
    expect_success(await system.run(REQUEST, reading_kit(loops), TERMS))


async def chat_of(system: System, loops: int) -> None:
    """The same with a new agent."""
    rounds = max(loops, 1)
    agent = AgentLoop(
        SilentModel(loops), tools=[look], boundary=TERMS.boundary, max_tool_iterations=rounds, system=system
    )
    expect_success(await agent.chat("Look some numbers up."))


async def call_of(system: System, first: str) -> None:
    """A call with a schema, whose first answer this is."""
    loop = SpecializedLoop(Speaker(first), schema=SCHEMA, boundary=TERMS.boundary, system=system)
    expect_success(await loop.call("Who was she?"))


async def vote_of(system: System) -> None:
    """A vote of replicas that agree."""
    loop = RedundantLoop(Speaker(TEXT), schema=SCHEMA, n=REPLICAS, boundary=TERMS.boundary, system=system)
    expect_success((await loop.call("Who was she?")).response)


def doors_in_rounds(effort: Effort) -> list[Figure]:
    """Everything here, measured in rounds."""
    rounds = [measure_doors(effort) for _ in range(effort.rounds)]
    return [together(same) for same in zip(*rounds, strict=True)]


def door_lines(figures: Sequence[Figure]) -> Iterator[str]:
    """The figures as a table, and what is reached for."""
    yield "Through the public classes, with declared tools, in memory (CPU time)"
    yield from table(figures)
    yield f"  reached for: {LOOP_RATIO_WANTED} floors a loop, {START_MICROS_WANTED} µs for a run without any"


if __name__ == "__main__":
    print(*door_lines(doors_in_rounds(FULL)), sep="\n")
