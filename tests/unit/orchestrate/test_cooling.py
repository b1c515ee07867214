"""A tool that failed is really left alone for a while before it is called again."""

import time

import pytest

from remit.core.failure import Ending
from remit.kernel.budget.backoff import BACKOFF_MS_FIRST
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import calls, in_memory, request, scripted
from tests.unit.orchestrate.stage import play


@pytest.mark.req("4.28")
def test_a_tool_that_failed_is_called_again_after_a_pause_and_then_at_once() -> None:
    moments: list[float] = []

    @tool(effect="read")
    def look(at: int) -> str:
        """Look at something."""
        moments.append(time.monotonic())
        if len(moments) == 1:
            raise OSError("it is not there yet")
        return f"seen {at}"

    async def story() -> None:
        looks = [calls("look", at=at) for at in range(3)]
        async with in_memory() as system:
            ended = await system.run(request(), scripted(*looks, {"text": "done"}, tools=(look,)))
            assert ended.terminal_code is Ending.SUCCESS
        first, second, third = moments
        assert second - first >= BACKOFF_MS_FIRST / 2 / 1000
        assert third - second < second - first

    play(story())
