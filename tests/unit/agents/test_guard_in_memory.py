"""A guard in memory answers at once, in a program without an event loop."""

import asyncio

import pytest

from remit.agents.guard_in_memory import GuardInMemory, at_once
from remit.core.failure import InvariantBroken
from tests.unit.orchestrate.test_guarding import PROMPT, TOOLS


def test_a_conversation_is_held_without_an_event_loop_and_forgotten_when_it_ends() -> None:
    guard = GuardInMemory()
    for _ in range(2):
        assert guard.answer({"op": "start", "run": "r", "prompt": PROMPT, "tools": TOOLS}) == {"ok": True}
        assert guard.runs == ("r",)
        assert guard.answer({"op": "end", "run": "r"}) == {"ok": True}
    assert guard.runs == ()


def test_work_that_waits_is_a_bug() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(InvariantBroken, match="GUARD_WAITED"):
        at_once(waits())
