"""End tasks for certain: one cancellation may be lost.

In Python 3.11 `asyncio.wait_for` forgets that it was cancelled where what it waits for comes at the same moment, and the client
of NATS waits by it. So a task that goes on is cancelled again.
"""

import asyncio
from collections.abc import Iterable

# How long a task may take to end before it is cancelled once more.
AGAIN_S = 1.0


async def end_tasks(tasks: Iterable["asyncio.Task[object] | None"]) -> None:
    """Cancel tasks until they have ended; what they raise is dropped."""
    left = {task for task in tasks if task is not None}
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=AGAIN_S)
        for task in done:
            task.cancelled() or task.exception()
