"""Functions of the user's: where they run, and what comes back of them."""

import threading
from functools import partial
from typing import Any

import pytest

from remit.tool.call.threads import call_user_code
from tests.unit.orchestrate.stage import play


async def echo(text: str) -> str:
    return f"{text} on {threading.current_thread().name}"


class Echo:
    async def __call__(self, text: str) -> str:
        return await echo(text)


@pytest.mark.parametrize("function", [echo, Echo(), partial(echo)])
def test_coroutines_run_on_the_loop(function: Any) -> None:
    assert play(call_user_code(function, "a")) == f"a on {threading.main_thread().name}"


def test_plain_functions_run_in_a_thread_and_what_they_return_is_awaited() -> None:
    assert play(call_user_code(lambda text: threading.current_thread().name, "a")) != threading.main_thread().name
    assert play(call_user_code(lambda text: echo(text + "!"), "a")) == f"a! on {threading.main_thread().name}"


@pytest.mark.parametrize("error", [StopIteration("done"), LookupError("gone")])
def test_whatever_a_function_raises_reaches_the_task_that_awaits_it(error: Exception) -> None:
    def raises() -> None:
        raise error

    with pytest.raises((RuntimeError, LookupError)):
        play(call_user_code(raises))


def test_an_exit_in_a_thread_is_no_exit_of_the_process() -> None:
    def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit was raised in a thread: 3"):
        play(call_user_code(leaves))
