"""Interrupting what a command does."""

import asyncio
import os
import signal

import pytest

from remit.adapters.cli.looping import Interrupted, in_loop


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
