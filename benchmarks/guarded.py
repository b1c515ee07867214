"""Guarded runs: what the journal adds to a judged call, from its line to its answer.

The same conversation is held with a guard in memory and with one on a store, in turn: an effect that is allowed, its
result, a read that is allowed. The times are those of a clock on the wall, since what a store adds is mostly waiting: the
turn that allows an effect is on the disk before the answer goes out, the others are not waited for.

Run it alone: `python -m benchmarks.guarded`.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.authorization import PLENTY, at_share, varied
from benchmarks.errand import FOUND, MAIL, PROMPT, TOOLS, mails
from remit.agents.guard_in_memory import guard_in_memory
from remit.assemble import opened_system, settings_of
from remit.core.record import JsonObject
from remit.orchestrate.guard.guard import Guard

ROUNDS, CALLS = 3, 100
STEPS = ("an effect is allowed", "its result is taken in", "a read is allowed")


class Figure(NamedTuple):
    """One step of the conversation: microseconds in memory and on a store, of the best round."""

    name: str
    memory: float
    store: float


class _Host:
    """An agent that asks a guard, and how long each step took."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.taken: dict[str, list[float]] = {name: [] for name in STEPS}

    async def says(self, op: str, step: str = "", **fields: object) -> JsonObject:
        line = json.dumps({"op": op, "run": "r", **fields}).encode()
        began = time.perf_counter_ns()
        answer = await self._guard.line(line) or {}
        if step:
            self.taken[step].append((time.perf_counter_ns() - began) / 1_000)
        return answer

    async def talks(self, calls: int) -> list[float]:
        """Hold a conversation of so many effects and reads; the median of each step."""
        assert await self.says("start", prompt=PROMPT, tools=TOOLS, boundary=PLENTY) == {"ok": True}
        for number, (tool, arguments, content) in enumerate(FOUND):
            await self.says("call", id=f"f{number}", tool=tool, args=arguments)
            await self.says("result", id=f"f{number}", tool=tool, content=content)
        for number in range(calls):
            allowed = await self.says("call", STEPS[0], id=f"e{number}", tool="send_mail", args=varied(MAIL))
            assert allowed["decision"] == "allow", allowed
            await self.says("result", STEPS[1], id=f"e{number}", tool="send_mail", content="sent")
            query = {"query": f"report {number}"}
            read = await self.says("call", STEPS[2], id=f"s{number}", tool="search_mails", args=query)
            assert read["decision"] == "allow", read
            await self.says("result", id=f"s{number}", tool="search_mails", content=mails(number))
        await self.says("end")
        return [at_share(self.taken[name], 0.5) for name in STEPS]


async def _on_store(calls: int) -> list[float]:
    with TemporaryDirectory() as folder:
        settings = settings_of({"REMIT_TRUST": f"{folder}/stores.jsonl"}, home=Path(folder) / "store")
        async with opened_system(settings) as system:
            return await _Host(system.guard()).talks(calls)


async def _measured(rounds: int, calls: int) -> list[Figure]:
    pairs = [(await _Host(guard_in_memory()).talks(calls), await _on_store(calls)) for _ in range(rounds)]
    return [
        Figure(name, min(memory[place] for memory, _ in pairs), min(store[place] for _, store in pairs))
        for place, name in enumerate(STEPS)
    ]


def measure_guarded(rounds: int = ROUNDS, calls: int = CALLS) -> list[Figure]:
    """Every step in memory and on a store, in turn; of the rounds the one with the least median counts."""
    return asyncio.run(_measured(rounds, calls))


def guarded_lines(found: list[Figure]) -> Iterator[str]:
    """What the report says of guarded runs."""
    yield f"Guarded runs: one line of the protocol, median µs\n  {'':<26}{'memory':>10}{'store':>10}{'journal adds':>14}"
    for one in found:
        yield f"  {one.name:<26}{one.memory:>10,.0f}{one.store:>10,.0f}{one.store - one.memory:>14,.0f}"


def main() -> None:
    """Measure, then print."""
    print(*guarded_lines(measure_guarded()), sep="\n")


if __name__ == "__main__":
    main()
