"""Children that begin long after they were ordered: they have the time that their run has left by then."""

import dataclasses
import time
from collections.abc import Awaitable, Callable

import pytest

from remit.core.failure import Ending
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import StartChild
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, Mode, OutputContract
from remit.core.run.signals import Signal
from remit.core.work.plan import ExecutionPlan, Step
from remit.kernel.state import RunState
from remit.orchestrate.facade import System
from remit.orchestrate.patterns.handlers import InferHandler
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.delegate import delegate
from tests.unit.orchestrate.house import LEASE, calls, helper, in_memory, request, scripted, signal
from tests.unit.orchestrate.stage import play

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
PATIENT = ExecutionHints(timeout_ms=MINUTE_MS)
SHEEP = {"when": "count sheep", "text": "Twelve sheep."}


class Wall:
    """The clock of the machine, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    clock = Wall()
    monkeypatch.setattr("remit.backend.clock.wall_clock_ms", clock.now_ms)
    return clock


def delegating() -> Kit:
    return scripted(SHEEP, calls("helper", task="count sheep"), {"text": "Twelve, it said."}, tools=[helper])


async def endings(system: System) -> list[str]:
    """How every run of a store has ended, children included."""
    await system.settle()
    return [entry.ending for entry in await system.store.catalogue.entries()]


async def deadlines(system: System, parent: RunState) -> list[int]:
    """The deadlines that the children of a run began with."""
    firsts = [decode_turn((await system.store.journal.read(run_id))[0]) for run_id in parent.children.runs.values()]
    started = [turn.arrival for turn in firsts]
    return [arrival.manifest.deadline_at_ms for arrival in started if isinstance(arrival, RunStarted)]


async def seq_of(system: System, run_id: str, number: int = 0) -> int:
    """The turn of a run that orders its child, or that hears of the first so many of them."""
    turns = [decode_turn(data) for data in await system.store.journal.read(run_id)]
    (first, *_) = [turn.seq for turn in turns if any(isinstance(one, StartChild) for one in turn.decisions)]
    return first + number


def test_a_child_that_a_fork_starts_has_the_time_of_the_fork(wall: Wall) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = delegating()
            ended = await system.run(replace(request(), hints=PATIENT), kit)
            wall.ahead_ms += HOUR_MS
            at = await seq_of(system, ended.run_id)
            heard = await system.fork(ended.run_id, by="dan", at=at, kit=kit)
            assert (await system.result(heard.fork_id)).content == "Twelve, it said."
            assert await endings(system) == [Ending.SUCCESS] * 4
            fork = await system.state_of(heard.fork_id)
            assert await deadlines(system, fork) == [fork.clock.deadline_at_ms]

    play(story())


def test_the_replicas_that_a_fork_starts_have_the_time_of_the_fork(wall: Wall) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = scripted(*[{"text": '{"n": 42}'}] * 3)
            output = OutputContract({"type": "object", "properties": {"n": {"type": "integer"}}})
            asked = replace(request(), mode=Mode.REDUNDANT, hints=PATIENT, output=output)
            ended = await system.run(asked, kit)
            assert ended.terminal_code is Ending.SUCCESS
            for heard_of in range(3):
                wall.ahead_ms += HOUR_MS
                at = await seq_of(system, ended.run_id, heard_of)
                heard = await system.fork(ended.run_id, by="dan", at=at, kit=kit)
                assert (await system.result(heard.fork_id)).terminal_code is Ending.SUCCESS
            assert set(await endings(system)) == {Ending.SUCCESS}

    play(story())


def test_the_steps_that_a_fork_of_a_plan_starts_have_the_time_of_the_fork(wall: Wall) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = scripted({"text": "one"}, {"text": "two"})
            kit = dataclasses.replace(kit, handlers={"infer": InferHandler(next(iter(kit.engines.values())))})
            step = Step("a", "infer", "say one", instruction="Say one.", timeout_ms=MINUTE_MS // 2)
            plan = ExecutionPlan((step,))
            asked = replace(request(), mode=Mode.PLAN, hints=PATIENT)
            ended = await system.run(asked, kit, Terms(plan=plan))
            assert ended.terminal_code is Ending.SUCCESS
            wall.ahead_ms += HOUR_MS
            at = await seq_of(system, ended.run_id)
            heard = await system.fork(ended.run_id, by="dan", at=at, kit=kit)
            assert (await system.result(heard.fork_id)).terminal_code is Ending.SUCCESS
            (deadline,) = await deadlines(system, await system.state_of(heard.fork_id))
            assert MINUTE_MS // 3 < deadline - wall.now_ms() <= MINUTE_MS // 2

    play(story())


async def cancelled_and_retried(system: System, run_id: str, kit: Kit) -> str:
    """A run whose child was under way is cancelled, and tried again."""
    await system.signal(signal(Signal.CANCEL, run_id))
    return (await system.signal(signal(Signal.RETRY, run_id), kit=kit)).fork_id


async def lifted(system: System, run_id: str, kit: Kit) -> str:
    """What kept the child from being started is lifted, and the run resumed."""
    await system.lift(by="bob", tool="helper")
    await system.resume(run_id, kit=kit)
    return run_id


@pytest.mark.parametrize("go_on", [cancelled_and_retried, lifted])
def test_a_child_that_was_held_back_by_a_halt_has_the_time_of_the_run_that_starts_it_later(
    wall: Wall, go_on: Callable[[System, str, Kit], Awaitable[str]]
) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = delegating()
            await system.halt("smoke", by="ada", tool="helper")
            waiting = await system.run(replace(request(), hints=PATIENT), kit)
            assert waiting.halted is not None
            wall.ahead_ms += HOUR_MS
            if go_on is cancelled_and_retried:
                await system.lift(by="bob", tool="helper")
            run_id = await go_on(system, waiting.run_id, kit)
            assert (await system.result(run_id)).content == "Twelve, it said."
            state = await system.state_of(run_id)
            assert [child > wall.now_ms() for child in await deadlines(system, state)] == [True]

    play(story())


def test_a_child_that_begins_while_its_run_is_paused_has_the_time_that_the_run_would_have_now(wall: Wall) -> None:
    slow = delegate("slow", description="Have a helper do a task.", lease=LEASE)

    async def story() -> None:
        async with in_memory() as system:
            kit = scripted(SHEEP, calls("slow", task="count sheep"), {"text": "Twelve."}, tools=[slow])
            await system.halt("smoke", by="ada", tool="slow")
            waiting = await system.run(replace(request(), hints=PATIENT), kit)
            live = await system._runner.load(waiting.run_id)
            (command,) = [one for one in live.state.commands.open.values() if isinstance(one, StartChild)]
            wall.ahead_ms += HOUR_MS
            manifest = await system._children._manifest(live, command)
            assert 0 < manifest.deadline_at_ms - wall.now_ms() <= MINUTE_MS

    play(story())


def test_a_child_that_begins_at_once_has_the_deadline_of_its_order() -> None:
    async def story() -> None:
        async with in_memory() as system:
            ended = await system.run(replace(request(), hints=PATIENT), delegating())
            state = await system.state_of(ended.run_id)
            turns = [decode_turn(data) for data in await system.store.journal.read(ended.run_id)]
            orders = [one for turn in turns for one in turn.decisions if isinstance(one, StartChild)]
            assert await deadlines(system, state) == [order.deadline_at_ms for order in orders]

    play(story())
