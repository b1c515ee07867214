"""Threads are bounded daemons, work in the context of their caller, and survive a fork."""

import asyncio
import os
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from remit.tool.call import threads as room
from remit.tool.call.threads import THREADS_MAX, Threads, in_thread, threads

PLACE: ContextVar[str] = ContextVar("PLACE", default="nowhere")


def test_work_is_done_in_a_daemon_thread_with_the_context_of_its_caller() -> None:
    PLACE.set("here")
    pool = Threads()
    assert pool.submit(PLACE.get).result(10) == "here"
    assert pool.submit(lambda: threading.current_thread().daemon).result(10)


def test_an_error_reaches_the_waiting_task_and_the_thread_lives_on() -> None:
    pool = Threads()
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(10)
    assert pool.submit(lambda: 1).result(10) == 1


def test_no_more_threads_than_allowed_are_made_and_withdrawn_work_never_begins() -> None:
    pool, release, begun = Threads(), threading.Event(), []
    running = [pool.submit(lambda: release.wait(10)) for _ in range(THREADS_MAX)]
    waiting = pool.submit(lambda: begun.append(1))
    withdrawn = pool.submit(lambda: begun.append(2))
    assert not waiting.done()
    assert withdrawn.cancel()
    release.set()
    assert all(future.result(10) for future in running)
    waiting.result(10)
    assert pool.submit(lambda: list(begun)).result(10) == [1]
    assert pool._count == THREADS_MAX


def test_a_thread_that_is_free_is_used_again() -> None:
    pool = Threads()
    for _ in range(20):
        pool.submit(threading.get_ident).result(10)
        # The thread is free a moment after its result is there.
        while not pool._idle:
            os.sched_yield()
    assert pool._count == 1


def test_each_process_has_threads_of_its_own() -> None:
    assert threads() is threads()
    assert threads() is room._threads_of(os.getpid())
    assert threads() is not room._threads_of(-1)


def test_a_function_in_a_thread_returns_or_raises_as_if_it_were_called() -> None:
    def interrupted() -> None:
        raise SystemExit(3)

    assert asyncio.run(in_thread(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(divmod, 7, 0))
    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(in_thread(next, iter(())))
    with pytest.raises(RuntimeError, match="SystemExit was raised in a thread: 3"):
        asyncio.run(in_thread(interrupted))


FORK = """
import asyncio, os, sys
from remit.tool.call.threads import in_thread
assert asyncio.run(in_thread(divmod, 7, 2)) == (3, 1)
child = os.fork()
answer = asyncio.run(asyncio.wait_for(in_thread(divmod, 9, 2), 20))
if child == 0:
    os._exit(answer != (4, 1))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

HANG = """
import asyncio, threading
from remit.tool.declare.decorator import tool
from remit.tool.call.performing import Attempt, perform

@tool
def hangs() -> None:
    threading.Event().wait()

async def play():
    attempt = Attempt(hangs, {}, "k")
    try:
        await asyncio.wait_for(perform(attempt), 0.01)
    except TimeoutError:
        assert attempt.is_abandoned
    else:
        raise AssertionError("it returned")

asyncio.run(play())
"""


@pytest.mark.parametrize("program", [FORK, HANG], ids=["fork", "hang"])
def test_neither_a_fork_nor_a_hanging_thread_holds_up_a_process(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
