"""What several tests of the tool room need: performing from a test, and watching processes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from remit.tool.call.outcomes import Performed, ToolFault
from remit.tool.call.performing import Attempt, perform
from remit.tool.declare.decorator import Tool
from remit.tool.loader import load_tools

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


def running_in(folder: Path) -> list[int]:
    """The processes that work in a folder, which is how one is known whose number is its own affair."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
    return found
