"""Steps are finished whether or not a caller waits for them, and one of a run after the other."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from remit.orchestrate.loop.driver import Steps
from tests.unit.orchestrate.stage import play


@pytest.mark.parametrize("ask", [Steps.finish, Steps.begin])
def test_a_step_is_finished_although_its_caller_stops_waiting(ask: Callable[..., Coroutine[Any, Any, None]]) -> None:
    async def story() -> None:
        steps, done, gate = Steps(), list[str](), asyncio.Event()

        async def step() -> None:
            await gate.wait()
            await asyncio.sleep(0)
            done.append("step")

        asking = asyncio.create_task(ask(steps, "run", step()))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert [run_id for _, run_id in steps.under_way()] == ["run"]
        gate.set()
        await steps.wait()
        assert (done, steps.under_way()) == (["step"], [])

    play(story())


def test_a_beginning_that_never_waits_takes_no_task_and_what_it_raises_is_heard() -> None:
    async def story() -> None:
        steps, here = Steps(), asyncio.current_task()

        async def step() -> bool:
            return asyncio.current_task() is here

        async def broken() -> None:
            raise LookupError("no such run")

        assert await steps.begin("run", step())
        with pytest.raises(LookupError):
            await steps.begin("run", broken())
        assert steps.under_way() == []

    play(story())


def test_steps_of_one_run_wait_for_each_other_and_those_of_others_do_not() -> None:
    async def story() -> None:
        steps, order, gate = Steps(), list[str](), asyncio.Event()

        async def step(name: str, *, waits: bool) -> str:
            order.append(f"{name} begins")
            if waits:
                await gate.wait()
            order.append(f"{name} ends")
            return name

        first = asyncio.create_task(steps.finish("run", step("first", waits=True)))
        second = asyncio.create_task(steps.finish("run", step("second", waits=False)))
        third = asyncio.create_task(steps.finish("run", step("third", waits=False)))
        assert await steps.finish("other", step("other", waits=False)) == "other"
        gate.set()
        assert [await first, await second, await third] == ["first", "second", "third"]
        assert order.index("other ends") < order.index("first ends")
        own = [line for line in order if not line.startswith("other")]
        assert own == ["first begins", "first ends", "second begins", "second ends", "third begins", "third ends"]

    play(story())


def test_a_waiter_hears_what_a_step_raised_and_a_caller_that_left_finds_it_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        steps, gate = Steps(), asyncio.Event()

        async def step() -> None:
            await gate.wait()
            raise LookupError("nobody there")

        with caplog.at_level(logging.DEBUG, logger="remit"):
            leaving = asyncio.create_task(steps.finish("run", step()))
            staying = asyncio.create_task(steps.finish("run", step()))
            await asyncio.sleep(0)
            leaving.cancel()
            gate.set()
            with pytest.raises(LookupError):
                await staying
            await steps.wait()

    play(story())
    assert "a step raised LookupError" in caplog.text


def test_a_step_that_is_cancelled_while_it_waits_for_its_turn_lets_the_next_one_pass() -> None:
    async def story() -> None:
        steps, gate = Steps(), asyncio.Event()

        async def step() -> str:
            await gate.wait()
            return "done"

        first = asyncio.create_task(steps.finish("run", step()))
        second = asyncio.create_task(steps.finish("run", step()))
        third = asyncio.create_task(steps.finish("run", step()))
        await asyncio.sleep(0)
        steps.under_way()[1][0].cancel()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert (await first, await third) == ("done", "done")

    play(story())


def test_a_beginning_whose_task_is_cancelled_before_it_began_lets_go_and_lets_the_next_one_pass() -> None:
    async def story() -> None:
        steps, order, gate = Steps(), list[str](), asyncio.Event()

        async def step() -> None:
            try:
                await gate.wait()
            finally:
                await asyncio.sleep(0)
                order.append("let go")

        async def following() -> None:
            order.append("next")

        begin = asyncio.ensure_future(steps.begin("run", step()))
        asyncio.get_running_loop().call_soon(lambda: [task.cancel() for task, _ in steps.under_way()])
        with pytest.raises(asyncio.CancelledError):
            await begin
        await asyncio.wait_for(steps.finish("run", following()), 5)
        assert (order, steps.under_way()) == (["let go", "next"], [])

    play(story())
