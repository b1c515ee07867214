"""Whole runs whose answer is not certain: a reviewer lets it stand, or does not."""

import asyncio

import pytest

from remit.core.failure import Ending
from remit.core.run.signals import Signal
from remit.core.work.goal import Goal
from remit.orchestrate.setup.kit import Terms
from tests.unit.orchestrate.house import approval, in_memory, request, scripted, signal

UNSURE = Terms(goal=Goal("be sure", confidence_ppm_min=900_000))


@pytest.mark.parametrize(
    ("said", "ending"), [(Signal.APPROVE, Ending.SUCCESS), (Signal.REJECT, Ending.VALIDATION_FAIL)]
)
def test_a_reviewer_decides_whether_a_doubtful_answer_stands(said: Signal, ending: Ending) -> None:
    async def play() -> None:
        kit = scripted({"text": "perhaps"})
        async with in_memory() as system:
            waiting = await system.run(request(), kit, UNSURE)
            assert waiting.waiting_for is not None
            assert waiting.waiting_for.ending is Ending.LOW_CONFIDENCE
            await system.signal(approval(waiting.waiting_for.packet_ids[0], said), kit=kit)
            await system.settle()
            ended = await system.result(waiting.run_id)
        assert (ended.terminal_code, ended.content) == (ending, "perhaps")

    asyncio.run(play())


def test_feedback_is_no_yes_to_a_doubtful_answer() -> None:
    async def play() -> None:
        kit = scripted({"text": "perhaps"})
        async with in_memory() as system:
            waiting = await system.run(request(), kit, UNSURE)
            await system.signal(signal(Signal.FEEDBACK, waiting.run_id, text="yes, let it stand"), kit=kit)
            await system.settle()
            still = await system.result(waiting.run_id)
        assert (still.terminal_code, still.waiting_for) == (None, waiting.waiting_for)

    asyncio.run(play())
