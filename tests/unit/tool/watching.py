"""What several tests of the tool room need: performing from a test, and watching processes."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remit.tool.declare import Tool
from remit.tool.loading import load_tools
from remit.tool.outcomes import Performed, ToolFault
from remit.tool.performing import Attempt, perform

SAMPLE_FILE = Path(__file__).with_name("sample_tools.py")

# Far more than starting an interpreter takes on a busy machine.
PATIENCE_S = 30.0
POLL_S = 0.01


def sample(name: str) -> Tool:
    found = load_tools(str(SAMPLE_FILE)).get(name)
    assert found is not None
    return found


async def called(tool: Tool, key: str = "key", **arguments: Any) -> Performed:
    return await perform(Attempt(tool, arguments, key))


def content(tool: Tool, **arguments: Any) -> str:
    return asyncio.run(called(tool, **arguments)).content


def fault(tool: Tool, **arguments: Any) -> ToolFault:
    try:
        done = asyncio.run(called(tool, **arguments))
    except ToolFault as found:
        return found
    raise AssertionError(f"no fault, but {done}")


async def until(is_so: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for something that another thread or process brings about."""
    async with asyncio.timeout(patience_s):
        while not is_so():  # noqa: ASYNC110  # another process has no event to set
            await asyncio.sleep(POLL_S)


def is_running(pid: int) -> bool:
    """Whether a process still does something; one that only waits to be collected does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state not in {"Z", "X"}
