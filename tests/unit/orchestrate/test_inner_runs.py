"""What the function of a step is told of runs that came to nothing, and whether it looked."""

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from remit.core.failure import Ending, RunFailed
from remit.core.run.contract import SystemResponse, WaitingFor
from remit.orchestrate.inner_runs import InnerRuns, inner_runs, told_to_step

WAITS = SystemResponse("q", "s", "r", waiting_for=WaitingFor(Ending.CONFIRM_REQUIRED, ("r/1.1",)))
DONE = SystemResponse("q", "s", "r", Ending.SUCCESS, content="done")


@dataclass(frozen=True)
class Result:
    """A result that holds a response."""

    response: Any


async def own(said: Any) -> Any:
    return said


async def give(said: Any) -> Any:
    return await told_to_step(own(said))


async def work_with(said: Any) -> Any:
    async def work() -> str:
        await give(said)
        return "made of it"

    return await told_to_step(work())


def told(verb: Callable[[Any], Any], said: Any) -> tuple[Any, InnerRuns]:
    with inner_runs() as inner:
        return asyncio.run(verb(said)), inner


@pytest.mark.parametrize("said", [WAITS, Result(WAITS)])
def test_a_run_that_nobody_looked_at_fails_the_step(said: Any) -> None:
    _, inner = told(give, said)
    with pytest.raises(RunFailed, match="run r came to nothing") as failed:
        inner.expect_seen()
    assert failed.value.code == Ending.CONFIRM_REQUIRED


@pytest.mark.parametrize("name", ["error", "terminal_code", "waiting_for"])
def test_to_read_how_a_run_ended_is_to_look(name: str) -> None:
    given, inner = told(give, WAITS)
    assert (given.content, getattr(given, name)) == ("", getattr(WAITS, name))
    inner.expect_seen()


def test_to_raise_for_an_error_is_to_look() -> None:
    given, inner = told(give, Result(WAITS))
    with pytest.raises(RunFailed):
        given.response.raise_for_error()
    inner.expect_seen()


def test_a_copy_is_a_response_that_says_nothing_when_it_is_read() -> None:
    given, inner = told(give, WAITS)
    assert copy.copy(given).error is None
    with pytest.raises(RunFailed):
        inner.expect_seen()


def test_the_same_run_may_succeed_later() -> None:
    with inner_runs() as inner:
        for said in (WAITS, DONE):
            asyncio.run(give(said))
    inner.expect_seen()


@pytest.mark.parametrize("said", [DONE, Result(DONE), Result("a text"), "a text", InnerRuns])
def test_what_succeeded_or_is_no_response_is_given_as_it_is(said: Any) -> None:
    given, inner = told(give, said)
    assert given is said
    inner.expect_seen()


def test_what_a_verb_itself_works_with_is_no_concern_of_the_step() -> None:
    given, inner = told(work_with, WAITS)
    assert given == "made of it"
    inner.expect_seen()


def test_outside_of_a_step_a_response_is_given_as_it_is() -> None:
    assert asyncio.run(give(WAITS)) is WAITS
