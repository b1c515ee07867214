"""Tasks end, also where a cancellation is lost."""

import asyncio

import pytest

from remit.core import task_end
from remit.core.task_end import end_tasks


def test_a_task_that_loses_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_end, "AGAIN_S", 0.01)
    lost: list[str] = []

    async def forgetful() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost.append("once")
        await asyncio.Event().wait()

    async def failing() -> None:
        raise ValueError

    async def story() -> None:
        tasks = [asyncio.create_task(forgetful()), asyncio.create_task(failing())]
        await asyncio.sleep(0)
        await end_tasks([*tasks, None])
        assert all(task.done() for task in tasks)
        await end_tasks(())

    asyncio.run(story())
    assert lost == ["once"]
