"""How long a cancel takes to reach what is under way, from the signal until the run has ended. Figures, no promises.

Wall time, since most of it is waiting: for a process to die, or for a child to be told.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Effort
from benchmarks.silent import REQUEST, TERMS
from benchmarks.stuck import Marker, StuckModel, stuck_in_process, stuck_tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.delegate import delegate
from remit.tool.registry import Registry

MILLIS_PER_SECOND = 1_000


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the signal to the end, as every repeat found them."""

    name: str
    taken: tuple[float, ...]


def measure_cancels(effort: Effort) -> list[Latency]:
    """Cancelling a model call, an asynchronous tool, a tool in a process of its own, and a child."""
    return [
        Latency(name, tuple(asyncio.run(_cancelled(make)) for _ in range(effort.cancels)))
        for name, make in _KINDS.items()
    ]


def _model_kit(marker: Marker) -> Kit:
    return engine_kit(StuckModel(marker))


def _tool_kit(marker: Marker) -> Kit:
    return engine_kit(StuckModel(marker, "stuck_tool", {}), Registry([stuck_tool(marker)]))


def _process_kit(marker: Marker) -> Kit:
    return engine_kit(
        StuckModel(marker, "stuck_in_process", {"marker": str(marker.path)}), Registry([stuck_in_process])
    )


def _child_kit(marker: Marker) -> Kit:
    helper = delegate("helper", description="Hands a task over.", lease={"steps": 5})
    return engine_kit(StuckModel(marker, "helper", {"task": "wait"}), Registry([helper]))


_KINDS: dict[str, Callable[[Marker], Kit]] = {
    "a model call": _model_kit,
    "an asynchronous tool": _tool_kit,
    "a tool in its own process": _process_kit,
    "a child in a model call": _child_kit,
}


async def _cancelled(make: Callable[[Marker], Kit]) -> float:
    system = system_in_memory()
    with TemporaryDirectory() as folder:
        marker = Marker(Path(folder) / "reached")
        run_id = await system.submit(REQUEST, make(marker), TERMS)
        await marker.reached()
        began = time.perf_counter()
        await system.signal(UserSignal("1", Signal.CANCEL, run_id, "bench"))
        response = await system.result(run_id)
        taken = (time.perf_counter() - began) * MILLIS_PER_SECOND
        assert response.terminal_code is Ending.USER_CANCEL, f"{response.terminal_code}: {response.error}"
        await system.close()
    return taken
