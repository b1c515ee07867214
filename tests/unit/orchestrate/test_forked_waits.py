"""Forks of runs whose child waits for a person: the fork has a child of its own, and a clock that is right for that one."""

from collections.abc import Awaitable, Callable

import pytest

from remit.core.failure import Ending
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints
from remit.core.run.signals import Signal
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit
from tests.unit.orchestrate.house import approval, calls, helper, in_memory, keep, request, scripted, signal
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.test_late_children import HOUR_MS, MINUTE_MS, Wall, wall

__all__ = ["wall"]

PATIENT = replace(request(), hints=ExecutionHints(timeout_ms=MINUTE_MS))


def house() -> Kit:
    """A model that delegates, and one beneath it that wants to change something."""
    asks = ({"when": '"task"', **calls("keep", text="x")}, {"when": "^kept", "text": "safe"}) * 2
    return scripted(*asks, calls("helper", task="keep it"), *[{"text": "thanks"}] * 2, tools=[keep, helper])


async def answered(system: System, run_id: str, kind: Signal = Signal.APPROVE) -> None:
    """Answer what the only child of a run asks."""
    (child_id,) = (await system.state_of(run_id)).children.runs.values()
    asking = (await system.result(child_id)).waiting_for
    assert asking is not None
    await system.signal(approval(asking.packet_ids[0], kind))
    await system.settle(run_id)


async def fork_first(system: System, run_id: str, kit: Kit) -> str:
    """The child of the origin is answered after the fork."""
    heard = await system.fork(run_id, by="dan", kit=kit)
    await system.settle(heard.fork_id)
    await answered(system, run_id)
    return heard.fork_id


async def answer_first(system: System, run_id: str, kit: Kit) -> str:
    """The child of the origin is answered, and has ended with it, before there is a fork."""
    at = (await system.state_of(run_id)).seq
    await answered(system, run_id)
    return (await system.fork(run_id, at=at, by="dan", kit=kit)).fork_id


async def retried(system: System, run_id: str, kit: Kit) -> str:
    """The origin was cancelled while its child waited, and is tried again."""
    await system.signal(signal(Signal.CANCEL, run_id))
    return (await system.signal(signal(Signal.RETRY, run_id), kit=kit)).fork_id


@pytest.mark.parametrize("copied", [fork_first, answer_first, retried])
def test_the_time_of_a_fork_stands_while_its_own_child_waits_and_not_before(
    wall: Wall, copied: Callable[[System, str, Kit], Awaitable[str]]
) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = house()
            origin = await system.run(PATIENT, kit)
            assert origin.waiting_for is not None
            wall.ahead_ms += HOUR_MS
            fork_id = await copied(system, origin.run_id, kit)
            await system.settle(fork_id)
            waiting = await system.result(fork_id)
            assert waiting.waiting_for is not None
            wall.ahead_ms += HOUR_MS // 2
            await answered(system, fork_id)
            response = await system.result(fork_id)
            assert (response.terminal_code, response.content) == (Ending.SUCCESS, "thanks")
            state = await system.state_of(fork_id)
            worked = state.at_ms - state.clock.started_at_ms - state.clock.stood_ms
            assert 0 <= worked < MINUTE_MS

    play(story())


def test_a_fork_that_is_paused_before_it_goes_on_waits_for_no_child(wall: Wall) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = house()
            origin = await system.run(PATIENT, kit)
            await system.halt("smoke", by="ada", tool="helper")
            heard = await system.fork(origin.run_id, by="dan", kit=kit)
            await system.settle(heard.fork_id)
            state = await system.state_of(heard.fork_id)
            assert (state.children.waiting, (await system.result(heard.fork_id)).waiting_for) == ({}, None)
            wall.ahead_ms += HOUR_MS
            await system.lift(by="ada", tool="helper")
            await system.resume(heard.fork_id, kit=kit)
            assert (await system.result(heard.fork_id)).waiting_for is not None
            wall.ahead_ms += HOUR_MS // 2
            await answered(system, heard.fork_id)
            assert (await system.result(heard.fork_id)).terminal_code is Ending.SUCCESS

    play(story())
