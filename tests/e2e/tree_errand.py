"""A tree of runs in a process of its own: fifty children at once on a real store, whose models delegate further.

    python -m tests.e2e.tree_errand FOLDER begin|resume SEED ANSWERS

Models and tools answer after small random delays; after so many answers a file says that the tree is busy. It prints one
JSON object: how the root ended, what it says it used, what all journals together say was spent, and what is wrong with
that.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from random import Random

from remit.backend.clock import WallClock
from remit.backend.embedded.store import EmbeddedStore
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import COUNTERS, FIELDS, Budget
from remit.core.limits.tools import ToolCall
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.manifest import lineage_of
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import JoinRule
from remit.inference.engine import StreamHandler
from remit.kernel.state import RunState, pinned
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.testing.runs import SimulatedRun
from remit.tool.declare.decorator import Tool, tool
from remit.tool.delegate import delegate
from remit.tool.registry import Registry
from tests.e2e.crash_law import journals, prove
from tests.simulation.laws.trees import above_the_gauges, overshot, tree_of
from tests.simulation.tree_scenarios import BRANCH, CHILD, CHILDREN, LEAF, STEPS_OF_THE_ROOT, tree_graph

ROOT, STORE = "tree", "store"
# The file that says that the tree is in the middle of its work.
BUSY = "busy"
DELAY_S_MAX = 0.03
# What the root may spend beyond the leases of its first children, in leases.
LEASES_BEYOND = 5


class EagerModel:
    """Delegates whenever it may and more often than it may; it answers after a small delay, many at once."""

    def __init__(self, folder: Path, seed: int, busy_after: int) -> None:
        self._chance, self._busy_after = Random(seed), busy_after
        self._busy = folder / BUSY
        self.answers = self.under_way = self.at_once_max = 0

    def model_info(self) -> ModelInfo:
        """A model with a price, that serves everybody at once."""
        return ModelInfo("eager", 100_000, Price(1_000_000, 2_000_000), calls_at_once=1_000)

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """An answer, or up to four calls."""
        self.under_way += 1
        self.at_once_max = max(self.at_once_max, self.under_way)
        await asyncio.sleep(self._chance.random() * DELAY_S_MAX)
        self.under_way -= 1
        self.answers += 1
        if self.answers == self._busy_after:
            self._busy.touch()
        usage = TokenUsage(self._chance.randrange(150), 0, self._chance.randint(1, min(request.max_tokens, 150)))
        if self._chance.random() < 0.25:
            return ModelResult("my part is done", usage=usage)
        calls = tuple(self._call() for _ in range(self._chance.choice((1, 1, 2, 4))))
        return ModelResult(tool_calls=calls, usage=usage, finish_reason=FinishReason.TOOL)

    def _call(self) -> ToolCall:
        name = self._chance.choice(("pass_on", "split", "look"))
        number = self._chance.randrange(10**6)
        arguments = {"n": number} if name == "look" else {"task": f"part {number}"}
        return ToolCall(f"call{number}", name, arguments)


def tools(seed: int) -> tuple[Tool, ...]:
    """One tool that reads after a small delay, and two that delegate."""
    chance = Random(f"tools {seed}")

    @tool(effect="read", network=True, reads="public")
    async def look(n: int) -> str:
        """Look something up."""
        await asyncio.sleep(chance.random() * DELAY_S_MAX)
        return f"seen {n}"

    return (
        look,
        delegate("pass_on", description="Hand a part over.", lease=dict(LEAF)),
        delegate("split", description="Hand a part over that may be split again.", lease=dict(BRANCH)),
    )


def terms() -> Terms:
    """Fifty children at once, each with its lease; the root has that and a little more of everything."""
    caps = {name: amount * (CHILDREN + LEASES_BEYOND) for name, amount in CHILD}
    caps["child_runs"] += CHILDREN
    caps["steps"] += STEPS_OF_THE_ROOT
    budget = Budget(**caps, depth=2)
    return Terms(Boundary(name="tree", budget=budget), graph=tree_graph(CHILD, CHILDREN, JoinRule.ANY))


async def play(folder: Path, deed: str, seed: int, busy_after: int) -> dict[str, object]:
    """Begin the tree or go on with it, and tell what it came to."""
    model, store = EagerModel(folder, seed, busy_after), EmbeddedStore.open(folder / STORE)
    kit = engine_kit(model, Registry(tools(seed)))

    async def find_kit(state: RunState) -> Kit:
        return kit

    system = System(store, clock=WallClock(), find_kit=find_kit, new_id=lambda: ROOT)
    begun_s = time.monotonic()
    try:
        if deed == "begin":
            response = await system.run(SystemRequest((user_message("Take one part each."),)), kit, terms())
        else:
            response = await system.resume(ROOT)
        await system.settle()
        seconds = time.monotonic() - begun_s
        told = await _weighed(store, system)
    finally:
        await system.close()
    figures = {"seconds": round(seconds, 2), "answers": model.answers, "at_once": model.at_once_max}
    return {"ending": response.terminal_code, **told, **figures}


async def _weighed(store: EmbeddedStore, system: System) -> dict[str, object]:
    """What the root is explained to have used, beside what every journal there is adds up to."""
    turns = await journals(store)
    await prove(store, turns)
    runs = {run_id: SimulatedRun(run_id, data) for run_id, data in turns.items()}
    tree = tree_of(runs[ROOT], runs.get)
    explained = (await system.archive.told(ROOT)).explanation
    used = {spent.dimension: spent.used for spent in explained.spent}
    return {
        "runs": len(runs),
        "in_the_tree": sum(1 for _ in tree.runs()),
        "open": sorted(run_id for run_id, run in runs.items() if run.ending is None),
        "levels": 1 + max(len(lineage_of(pinned(run.state))) for run in runs.values()),
        "turns": sum(len(data) for data in turns.values()),
        "spent": {FIELDS[d]: tree.spent[d] for d in COUNTERS},
        "used": {FIELDS[d]: used.get(FIELDS[d], 0) for d in COUNTERS},
        "caps": {FIELDS[d]: tree.given[d] for d in COUNTERS},
        "wrong": [*overshot(tree), *above_the_gauges(tree)],
    }


if __name__ == "__main__":
    place, asked, *numbers = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(play(Path(place), asked, *map(int, numbers)))) + "\n")
