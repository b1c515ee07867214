"""One contender in a process of its own: `python -P worker.py ADAPTER FLAVOUR` prints its figures as JSON.

It needs nothing but the standard library and what its adapter imports, since each contender has an environment of its own.
Every run is checked: the tool was called as often as it should be, and the answer is the right one.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

LOOPS, MANY, MANY_LOOPS = 50, 200, 5
# A repeat takes at least so long, which is long against the grain of the clock; all of them together about so long at most.
WINDOW_S, REPEATS, ALL_S = 0.05, 9, 1.0
HERE = Path(__file__).parent

Run = Callable[[], Awaitable[Any]]


def module_at(path: Path, name: str) -> ModuleType:
    """A module from a file, under a name that shadows no package."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def best_micros(run: Run, operations: int = 1) -> float:
    """CPU microseconds of an operation: the best of some repeats, each of as many runs as fill its window."""
    began_s = time.process_time()
    await run()
    times = max(1, int(WINDOW_S / max(time.process_time() - began_s, 1e-6)))
    taken: list[float] = []
    until_s = time.process_time() + ALL_S
    while not taken or (len(taken) < REPEATS and time.process_time() < until_s):
        gc.collect()
        began_s = time.process_time()
        for _ in range(times):
            await run()
        taken.append((time.process_time() - began_s) / times / operations * 1e6)
    return min(taken)


async def figures_of(adapter: ModuleType, common: Any) -> dict[str, float]:
    """Everything that a contender can do, in CPU microseconds."""

    async def checked(run: Run, calls: int) -> None:
        before = common.calls
        said = await run()
        assert common.FINAL in str(said), said
        assert common.calls == before + calls, "the tool was not called as often as the model wished"

    await checked(adapter.loop(LOOPS), LOOPS)
    run = adapter.loop(MANY_LOOPS)

    async def many() -> None:
        await asyncio.gather(*[run() for _ in range(MANY)])

    figures = {
        "start": await best_micros(adapter.loop(0)),
        "loop": await best_micros(adapter.loop(LOOPS), LOOPS),
        "many": await best_micros(many, MANY),
    }
    if hasattr(adapter, "structured"):
        figures["structured"] = await best_micros(adapter.structured())
    return figures


def main(name: str, flavour: str) -> None:
    """Measure one contender and print what was found."""
    common: Any = module_at(HERE / "work.py", "common")
    common.FLAVOR = flavour
    adapter = module_at(HERE / f"{name}.py", f"adapter_of_{name}")
    print(json.dumps(asyncio.run(figures_of(adapter, common))))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
