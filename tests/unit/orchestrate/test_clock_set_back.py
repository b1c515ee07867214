"""A clock that is set back while a run goes on: its time is as long as it was promised, and what is cut off was cut off by it."""

import asyncio
from pathlib import Path

import pytest

import remit
from remit import Budget, Ending, ScriptedEngine, Signal, Terms, UserSignal, tool
from remit.backend.clock import WallClock
from remit.orchestrate.setup.kit import engine_kit

PERSON_MS, TIME_MS, BACK_MS = 300, 600, 60_000


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_run_whose_time_was_moved_by_a_person_ends_when_that_is_up_though_the_clock_was_set_back(
    *, is_paused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms, is_told, may_stop = WallClock.now_ms, asyncio.Event(), asyncio.Event()

    @tool(effect="external", network=True)
    async def pay(to: str) -> str:
        """Pay a firm."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            is_told.set()
            await may_stop.wait()
            raise
        return f"paid {to}"

    async def scene() -> None:
        engine = ScriptedEngine([{"tool_calls": [{"name": "pay", "arguments": {"to": "acme"}}]}, {"text": "Done."}])
        async with remit.open(tmp_path) as system:
            run = await system.start(
                "Pay acme.", engine_kit(engine, [pay]), Terms(budget=Budget(wall_clock_ms=TIME_MS))
            )
            asked = (await run).waiting_for
            assert asked is not None
            await asyncio.sleep(PERSON_MS / 1000)
            await system.signal(
                UserSignal("s", Signal.APPROVE, run.id, "ann", payload={"packet_id": asked.packet_ids[0]})
            )
            if not is_paused:
                may_stop.set()
                monkeypatch.setattr(WallClock, "now_ms", lambda clock: now_ms(clock) - BACK_MS)
            else:
                # The alarm has rung, and its turn waits for the call to stop.
                await is_told.wait()
                monkeypatch.setattr(WallClock, "now_ms", lambda clock: now_ms(clock) - BACK_MS)
                await system.signal(UserSignal("p", Signal.PAUSE, run.id, "ann"))
                may_stop.set()
            ended = await asyncio.wait_for(run.result(), 10)
            assert ended.terminal_code is Ending.TIMEOUT

    asyncio.run(scene())
