"""A deadline ends what is late, and never swallows anybody else's cancellation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from remit.orchestrate.loop.deadlines import TimeRanOut, within
from tests.unit.orchestrate.stage import play

# Long enough never to pass in a test, short enough never to be waited for by mistake.
FAR_MS = 60_000


async def for_ever() -> None:
    await asyncio.Event().wait()


async def at_once() -> str:
    return "at once"


async def soon() -> str:
    await asyncio.sleep(0)
    return "soon"


async def breaks_at_once() -> str:
    raise LookupError("at once")


async def breaks_soon() -> str:
    await asyncio.sleep(0)
    raise LookupError("soon")


async def is_late_by_itself() -> str:
    await asyncio.sleep(0)
    raise TimeoutError("my own")


async def returns_when_cancelled() -> str:
    try:
        await for_ever()
    except asyncio.CancelledError:
        return "anyway"
    raise AssertionError("this event is never set")


async def breaks_when_cancelled() -> str:
    try:
        await for_ever()
    except asyncio.CancelledError:
        raise LookupError("on the way out") from None
    raise AssertionError("this event is never set")


async def cleans_up_slowly(done: list[str]) -> None:
    try:
        await for_ever()
    finally:
        await asyncio.sleep(0)
        done.append("cleaned up")


async def cancelled(work: Callable[[], Awaitable[Any]]) -> str:
    """What becomes of a task that does this work under a deadline and is cancelled from outside while it waits."""
    task = asyncio.create_task(outcome(within(FAR_MS, work())))
    await asyncio.sleep(0)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return "cancelled"


async def outcome(awaitable: Awaitable[Any]) -> str:
    try:
        return str(await awaitable)
    except LookupError as error:
        return f"raised {error}"


@pytest.mark.parametrize("work", [at_once, soon], ids=["at once", "soon"])
def test_what_is_in_time_is_returned(work: Callable[[], Awaitable[str]]) -> None:
    assert play(within(FAR_MS, work())) == work.__name__.replace("_", " ")


@pytest.mark.parametrize("work", [breaks_at_once, breaks_soon], ids=["at once", "soon"])
def test_what_is_raised_in_time_is_raised(work: Callable[[], Awaitable[str]]) -> None:
    with pytest.raises(LookupError):
        play(within(FAR_MS, work()))


def test_a_future_and_a_task_can_be_awaited_as_well() -> None:
    async def scene() -> tuple[str, str]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, "future")
        return await within(FAR_MS, future), await within(FAR_MS, asyncio.create_task(soon()))

    assert play(scene()) == ("future", "soon")


def test_a_future_that_is_done_needs_no_waiting() -> None:
    async def scene() -> str:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        future.set_result("done")
        return await within(0, future)

    assert play(scene()) == "done"


@pytest.mark.parametrize("timeout_ms", [-5, 0, 1, 20])
def test_what_is_late_ends_with_the_name_of_the_limit(timeout_ms: int) -> None:
    with pytest.raises(TimeRanOut, match=f"timeout_ms={timeout_ms}"):
        play(within(timeout_ms, for_ever()))


def test_what_never_waits_is_in_time_whatever_the_limit() -> None:
    assert play(within(0, at_once())) == "at once"


def test_what_is_late_has_ended_when_the_caller_goes_on() -> None:
    done: list[str] = []
    with pytest.raises(TimeRanOut):
        play(within(1, cleans_up_slowly(done)))
    assert done == ["cleaned up"]


def test_a_task_that_was_late_is_no_longer_being_cancelled() -> None:
    async def scene() -> int:
        with pytest.raises(TimeRanOut):
            await within(1, for_ever())
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(0)
        return task.cancelling()

    assert play(scene()) == 0


def test_a_timeout_of_the_awaited_things_own_is_told_apart() -> None:
    with pytest.raises(TimeoutError, match="my own") as caught:
        play(within(FAR_MS, is_late_by_itself()))
    assert not isinstance(caught.value, TimeRanOut)


def test_a_result_that_comes_in_spite_of_the_deadline_is_a_result() -> None:
    async def scene() -> tuple[str, int]:
        result = await within(1, returns_when_cancelled())
        task = asyncio.current_task()
        assert task is not None
        return result, task.cancelling()

    assert play(scene()) == ("anyway", 0)


def test_an_error_that_comes_in_spite_of_the_deadline_is_that_error() -> None:
    with pytest.raises(LookupError, match="on the way out"):
        play(within(1, breaks_when_cancelled()))


def test_a_timer_that_was_not_needed_does_not_ring() -> None:
    async def scene() -> str:
        assert await within(5, soon()) == "soon"
        # Due after the first deadline: a step that is cancelled before was cancelled by a timer left behind.
        later: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, later.set_result, "undisturbed")
        return await within(FAR_MS, later)

    assert play(scene()) == "undisturbed"


@pytest.mark.parametrize(
    "work", [for_ever, returns_when_cancelled, breaks_when_cancelled], ids=["lets go", "returns", "raises"]
)
def test_a_cancellation_from_outside_wins_whatever_the_awaited_thing_makes_of_it(
    work: Callable[[], Awaitable[Any]],
) -> None:
    assert play(cancelled(work)) == "cancelled"


@pytest.mark.parametrize(
    "work", [for_ever, returns_when_cancelled, breaks_when_cancelled], ids=["lets go", "returns", "raises"]
)
def test_a_cancellation_from_outside_wins_over_a_deadline_of_the_same_moment(
    work: Callable[[], Awaitable[Any]],
) -> None:
    async def scene() -> bool:
        task = asyncio.create_task(outcome(within(1, work())))
        # Both timers are due in the same round of the loop, whichever comes first.
        asyncio.get_running_loop().call_later(0.001, task.cancel)
        await asyncio.wait([task])
        return task.cancelled()

    assert play(scene())


def test_a_task_that_cleans_up_after_a_cancellation_has_a_deadline_too() -> None:
    async def scene() -> list[str]:
        heard = []

        async def work() -> None:
            try:
                await for_ever()
            finally:
                try:
                    await within(1, for_ever())
                except TimeRanOut:
                    heard.append("late")
                heard.append(await within(FAR_MS, soon()))

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return heard

    assert play(scene()) == ["late", "soon"]


def test_the_nearer_of_two_deadlines_counts() -> None:
    async def scene() -> list[str]:
        heard = []
        for inner_ms, outer_ms in ((1, FAR_MS), (FAR_MS, 1)):
            try:
                await within(outer_ms, within(inner_ms, for_ever()))
            except TimeRanOut as error:
                heard.append(str(error))
        return heard

    assert play(scene()) == ["no result within timeout_ms=1"] * 2


def test_a_cancellation_from_within_is_no_deadline() -> None:
    async def cancels_itself() -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    async def scene() -> str:
        try:
            await within(FAR_MS, cancels_itself())
        except asyncio.CancelledError:
            return "passed on"
        return "swallowed"

    assert play(scene()) == "passed on"


def test_what_survives_one_cancellation_can_wait_again_and_be_late() -> None:
    async def stubborn() -> str:
        try:
            await for_ever()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return "in the end"

    assert play(within(1, stubborn())) == "in the end"
