"""Interrupting what a command does."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from remit.adapters.cli.event_loop import Interrupted, heeding, in_loop


async def interrupted_by(number: int, seen: list[object]) -> None:
    """Be interrupted, and note what a second interrupt would meet."""
    os.kill(os.getpid(), number)
    try:
        await asyncio.Event().wait()
    finally:
        seen.append(signal.getsignal(number))


@pytest.mark.parametrize(
    ("number", "afterwards", "exit_code"),
    [(signal.SIGINT, signal.default_int_handler, 130), (signal.SIGTERM, signal.SIG_DFL, 143)],
)
def test_the_first_signal_ends_cleanly_and_the_second_at_once(number: int, afterwards: object, exit_code: int) -> None:
    seen: list[object] = []
    with pytest.raises(Interrupted) as caught:
        in_loop(interrupted_by(number, seen))
    assert seen == [afterwards]
    assert caught.value.exit_code == exit_code
    assert caught.value.in_run("r").message == "run r stopped; go on with: remit resume r"


def test_work_that_ends_by_itself_leaves_no_handler_behind() -> None:
    async def work() -> int:
        return 3

    before = signal.getsignal(signal.SIGTERM)
    assert in_loop(work()) == 3
    assert signal.getsignal(signal.SIGTERM) == before


def test_work_that_was_cancelled_from_within_is_not_interrupted() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        in_loop(work())


def test_a_listener_for_the_first_signal_hears_its_number() -> None:
    told: list[int] = []
    # A shell that started the tests in the background has them ignore an interrupt.
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted):
        in_loop(interrupted_by(signal.SIGINT, []), on_first=told.append, on_second=told.append)
    assert told == [signal.SIGINT]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_an_interrupt_may_be_met_gently_and_the_work_ends_by_itself() -> None:
    async def scene() -> str:
        ended = asyncio.Event()

        async def work() -> str:
            os.kill(os.getpid(), signal.SIGINT)
            await ended.wait()
            return "ended by itself"

        async def gently() -> bool:
            ended.set()
            return True

        return await heeding(work(), gently=gently)

    assert asyncio.run(scene()) == "ended by itself"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_cannot_be_ended_gently_and_every_termination_cuts_the_work_off(number: int) -> None:
    asked: list[bool] = []

    async def gently() -> bool:
        asked.append(True)
        return False

    async def scene() -> None:
        await heeding(interrupted_by(number, []), gently=gently)

    with pytest.raises(Interrupted):
        asyncio.run(scene())
    assert asked == ([True] if number == signal.SIGINT else [])


SECOND = """
import asyncio, os, signal, sys
from remit.adapters.cli.event_loop import in_loop

async def deaf() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

in_loop(deaf(), on_second=lambda number: print("last words", number, flush=True))
"""


def test_a_second_interrupt_ends_the_process_at_once_whatever_it_is_busy_with() -> None:
    done = subprocess.run([sys.executable, "-c", SECOND], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "last words 2\n", "")


def test_a_user_who_does_not_wait_is_told_what_is_kept() -> None:
    stopped = Interrupted(signal.SIGINT)
    assert stopped.at_once("").message == "stopped at once"
    assert stopped.at_once("r").message.endswith("it goes on with: remit resume r")
    assert stopped.at_once("r").details == {"run_id": "r"}
