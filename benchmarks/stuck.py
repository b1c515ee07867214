"""What is cancelled: a model and tools that wait for ever, and tell when they have begun to."""

import asyncio
import time
from pathlib import Path
from typing import Any

from remit.core.limits.tools import ToolCall
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.inference.engine import StreamHandler
from remit.tool.declare.decorator import Tool, tool

# Longer than any benchmark takes; a process that no test cancels ends by itself all the same.
FOR_EVER_S = 600
# How often, and how long, a process is awaited that is to leave its mark.
LOOK_S = 0.002
LOOKS_MAX = 15_000


class Marker:
    """A file that says: it has begun. A tool that shares this process only says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_reached = False

    def set(self) -> None:
        """Say that it has begun."""
        self._is_reached = True

    async def reached(self) -> None:
        """Wait until it has begun."""
        for _ in range(LOOKS_MAX):
            if self._is_reached or self.path.exists():
                return
            await asyncio.sleep(LOOK_S)
        raise AssertionError(f"nothing began within {LOOK_S * LOOKS_MAX:.0f} s")


class StuckModel:
    """Asks for one call of a tool, if it was given one; in every other run, and without a tool, it never answers."""

    def __init__(self, marker: Marker, tool_name: str = "", arguments: dict[str, Any] | None = None) -> None:
        self._marker = marker
        self._call = ToolCall("call", tool_name, arguments or {}) if tool_name else None
        self._has_called = False

    def model_info(self) -> ModelInfo:
        """A window and a price that stop no run."""
        return ModelInfo("stuck", context_window=1_000_000, price=Price(0, 0))

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The call, once; then silence."""
        if self._call is not None and not self._has_called:
            self._has_called = True
            return ModelResult("", tool_calls=(self._call,))
        self._marker.set()
        await asyncio.sleep(FOR_EVER_S)
        raise AssertionError("a model that never answers was not cancelled")


def stuck_tool(marker: Marker) -> Tool:
    """A tool that never returns, on the event loop."""

    @tool(effect="read", network=False, name="stuck_tool")
    async def stuck() -> str:
        """Wait."""
        marker.set()
        await asyncio.sleep(FOR_EVER_S)
        return ""

    return stuck


@tool(effect="read", network=False, isolate=True)
def stuck_in_process(marker: str) -> str:
    """Wait, in a process of its own, after leaving a mark."""
    Path(marker).touch()
    time.sleep(FOR_EVER_S)
    return ""
