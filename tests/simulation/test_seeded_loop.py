"""The loop of chance and virtual time: what it promises, what it refuses, and what it says when nothing moves."""

import asyncio
import gc
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from tests.simulation.seeded_loop import PROCESS, WORLD, SeededLoop, Stalled, Turns

DAY_S = 86_400.0


@contextmanager
def opened(seed: int = 0, on_step: Callable[[str], None] | None = None) -> Iterator[SeededLoop]:
    """A loop of a seed, closed afterwards."""
    loop = SeededLoop(Random(seed), on_step)
    try:
        yield loop
    finally:
        loop.close()


def played(work: Coroutine[Any, Any, Any], seed: int = 0) -> Any:
    """What something comes to that belongs to the world."""
    with opened(seed) as loop:
        return loop.run_until_complete(work)


async def heard_from(loop: SeededLoop, heard: list[str], *names: str) -> None:
    """Let processes speak three times each, a turn of the loop apart."""

    async def speak(name: str) -> None:
        for number in range(3):
            heard.append(f"{name}{number}")
            await Turns(1)

    await asyncio.gather(*(loop.spawn(name[0], speak(name)) for name in names))


def order_of(seed: int, *names: str) -> list[str]:
    heard: list[str] = []
    with opened(seed) as loop:
        loop.run_until_complete(heard_from(loop, heard, *names))
    return heard


def test_within_a_process_callbacks_run_in_the_order_of_asyncio() -> None:
    async def of_asyncio(heard: list[str]) -> None:
        async def speak(name: str) -> None:
            for number in range(3):
                heard.append(f"{name}{number}")
                await asyncio.sleep(0)

        await asyncio.gather(speak("ax"), speak("ay"))

    expected: list[str] = []
    asyncio.run(of_asyncio(expected))
    assert {tuple(order_of(seed, "ax", "ay")) for seed in range(20)} == {tuple(expected)}


def test_between_processes_the_seed_decides() -> None:
    assert order_of(7, "a", "b", "c") == order_of(7, "a", "b", "c")
    assert len({tuple(order_of(seed, "a", "b")) for seed in range(20)}) > 2


def test_each_process_keeps_its_own_order_whatever_the_seed() -> None:
    for seed in range(20):
        heard = order_of(seed, "a", "b")
        assert [said for said in heard if said.startswith("a")] == ["a0", "a1", "a2"]
        assert [said for said in heard if said.startswith("b")] == ["b0", "b1", "b2"]


def test_time_jumps_to_the_next_alarm_and_stands_still_in_between() -> None:
    async def wait() -> list[float]:
        loop, seen = asyncio.get_running_loop(), []
        for span_s in (0.0, DAY_S, 0.5):
            await asyncio.sleep(span_s)
            seen.append(loop.time())
        await Turns(100)
        return [*seen, loop.time()]

    assert played(wait()) == [0.0, DAY_S, DAY_S + 0.5, DAY_S + 0.5]


def test_of_two_alarms_for_one_moment_the_first_set_rings_first() -> None:
    async def ring() -> list[str]:
        loop, rung = asyncio.get_running_loop(), list[str]()
        for name, at_s in (("late", 2.0), ("first", 1.0), ("second", 1.0)):
            loop.call_at(at_s, rung.append, name)
        await asyncio.sleep(3)
        return rung

    assert played(ring()) == ["first", "second", "late"]


def test_a_cancelled_alarm_does_not_ring_and_is_not_waited_for() -> None:
    async def ring() -> tuple[list[str], float]:
        loop, rung = asyncio.get_running_loop(), list[str]()
        loop.call_later(1, rung.append, "kept")
        loop.call_later(DAY_S, rung.append, "never").cancel()
        loop.call_soon(rung.append, "never").cancel()
        loop.call_later(0.5, rung.append, "never").cancel()
        await asyncio.sleep(2)
        return rung, loop.time()

    assert played(ring()) == (["kept"], 2.0)


def test_a_crashed_process_runs_no_finally_and_others_go_on() -> None:
    done: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.sleep(1)
        finally:
            done.append(name)

    with opened() as loop:

        async def play() -> None:
            loop.spawn("a", work("a"))
            survivor = loop.spawn("b", work("b"))
            await Turns(3)
            loop.crash("a")
            await survivor

        loop.run_until_complete(play())
        assert done == ["b"]
        assert loop.has_crashed("a")
        assert not loop.has_crashed("b")


def test_nothing_of_a_crashed_process_is_resumed_by_anyone() -> None:
    heard: list[str] = []

    async def listen(news: "asyncio.Future[None]") -> None:
        await news
        heard.append("told")

    with opened() as loop:

        async def play() -> None:
            news = loop.create_future()
            loop.spawn("a", listen(news))
            await Turns(2)
            loop.crash("a")
            news.set_result(None)
            loop.spawn("a", listen(news))
            await asyncio.sleep(1)

        loop.run_until_complete(play())
        assert heard == []


def test_an_onlooker_may_crash_a_process_before_any_callback() -> None:
    steps: list[str] = []

    def look(process: str) -> None:
        steps.append(process)
        if steps.count("a") == 2:
            loop.crash("a")

    heard: list[str] = []
    with opened(on_step=look) as loop:

        async def play() -> None:
            # A task that waits for a process that has crashed waits for ever.
            loop.spawn("a", heard_from(loop, heard, "a"))
            await asyncio.sleep(1)

        loop.run_until_complete(play())
    assert heard == []
    assert set(steps) == {"a"}, "what belongs to the world is no step of a process"


def test_every_callback_counts_as_one_step() -> None:
    with opened() as loop:
        loop.run_until_complete(heard_from(loop, [], "a"))
        before = loop.steps
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert loop.steps == before + 1


def test_what_a_process_begins_belongs_to_it() -> None:
    async def name() -> str:
        return PROCESS.get()

    async def of_child() -> str:
        return await asyncio.create_task(name())

    with opened() as loop:

        async def play() -> list[str]:
            return [await loop.spawn("a", of_child()), await loop.create_task(name())]

        assert loop.run_until_complete(play()) == ["a", WORLD]


def test_the_tasks_of_a_process_are_those_not_done() -> None:
    async def wait(news: Awaitable[None]) -> None:
        await news

    with opened() as loop:

        async def play() -> None:
            news = loop.create_future()
            first, second = loop.spawn("a", wait(news)), loop.spawn("a", wait(asyncio.sleep(1)))
            other = loop.spawn("b", wait(asyncio.sleep(1)))
            assert loop.tasks_of("a") == [first, second]
            await asyncio.wait([second, other])
            assert loop.tasks_of("a") == [first]
            news.set_result(None)
            await first
            assert loop.tasks_of("a") == []

        loop.run_until_complete(play())


def test_a_stalled_loop_says_who_waits_and_for_what() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with opened() as loop:
        loop.spawn("a", wait_for_ever())
        loop.spawn("gone", wait_for_ever())
        loop.crash("gone")
        with pytest.raises(Stalled, match="nothing will happen any more") as stalled:
            loop.run_until_complete(wait_for_ever())
    assert "a:test_a_stalled_loop" in str(stalled.value)
    assert "wait_for_ever" in str(stalled.value)
    assert "gone" not in str(stalled.value)


def test_a_loop_that_only_waits_for_the_crashed_waits_for_nothing() -> None:
    with opened() as loop:
        loop.crash("a")
        waiting = loop.spawn("a", asyncio.sleep(0))
        with pytest.raises(Stalled, match="waited for: nothing"):
            loop.run_until_complete(waiting)


def test_a_loop_that_is_told_to_stop_does_not_wait() -> None:
    with opened() as loop:
        loop.call_later(DAY_S, loop.stop)
        loop.run_forever()
        assert loop.time() == DAY_S
        loop.stop()
        loop.run_forever()
        assert loop.time() == DAY_S


def test_a_thread_that_calls_in_is_refused() -> None:
    async def be_called() -> None:
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(print,))
        thread.start()
        thread.join()
        await asyncio.sleep(1)

    with pytest.raises(RuntimeError, match="a thread called into the simulated loop"):
        played(be_called())


def test_the_loop_may_call_itself_as_a_thread_would() -> None:
    async def call() -> list[str]:
        heard: list[str] = []
        asyncio.get_running_loop().call_soon_threadsafe(heard.append, "heard")
        await Turns(1)
        return heard

    assert played(call()) == ["heard"]


def test_what_an_executor_is_given_is_done_at_once_and_told_a_turn_later() -> None:
    async def ask() -> tuple[bool, bool, int]:
        begun: list[threading.Thread] = []

        def work(number: int) -> int:
            begun.append(threading.current_thread())
            return number + 1

        told = asyncio.get_running_loop().run_in_executor(None, work, 1)
        return begun == [threading.current_thread()], told.done(), await told

    assert played(ask()) == (True, False, 2)


def test_what_breaks_in_an_executor_is_told_to_its_waiter() -> None:
    def work() -> None:
        raise ValueError("it broke")

    async def ask() -> None:
        await asyncio.to_thread(work)

    with pytest.raises(ValueError, match="it broke"):
        played(ask())


def test_a_caller_that_no_longer_waits_for_an_executor_is_told_nothing() -> None:
    def work() -> None:
        raise ValueError("it broke")

    async def ask() -> list[bool]:
        loop = asyncio.get_running_loop()
        given = [loop.run_in_executor(None, print), loop.run_in_executor(None, work)]
        for told in given:
            told.cancel()
        await Turns(2)
        return [told.cancelled() for told in given]

    assert played(ask()) == [True, True]


def test_closing_lets_go_of_what_never_came_to_its_end(recwarn: pytest.WarningsRecorder) -> None:
    left: list[str] = []

    async def inner(unbegun: Coroutine[Any, Any, None]) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            left.append("inner")
        await unbegun

    async def stubborn() -> None:
        try:
            await inner(asyncio.sleep(0))
        finally:
            # A coroutine that is closed may not wait for anything any more.
            await asyncio.sleep(1)

    with opened() as loop:
        loop.spawn("a", stubborn())
        loop.run_until_complete(asyncio.sleep(1))
        loop.spawn("a", asyncio.sleep(0))
        assert left == []
    gc.collect()
    assert left == ["inner"], "a coroutine that the world leaves behind is closed with it"
    assert loop.is_closed()
    assert [str(warning.message) for warning in recwarn] == []


def test_what_nobody_heard_because_they_crashed_is_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    async def break_down() -> None:
        raise ValueError("unheard")

    with caplog.at_level(logging.ERROR, "asyncio"):
        with opened() as loop:
            loop.crash("a")
            loop.run_until_complete(unheard(loop, break_down))
        gc.collect()
        assert caplog.messages == []
        with opened() as loop:
            loop.run_until_complete(unheard(loop, break_down))
        gc.collect()
        assert [message.split("\n")[0] for message in caplog.messages] == ["Task exception was never retrieved"]


async def unheard(loop: SeededLoop, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have something break that no task waits for."""
    loop.spawn("b", work())
    await asyncio.sleep(1)


def test_a_callback_that_breaks_is_a_complaint_after_a_crash_too(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        loop.call_soon(int, "no number")
        await asyncio.sleep(1)

    with caplog.at_level(logging.ERROR, "asyncio"), opened() as loop:
        loop.crash("a")
        loop.run_until_complete(play())
    assert [message.split("(")[0] for message in caplog.messages] == ["Exception in callback int"]
