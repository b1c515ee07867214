"""What people say to a fork while its turns are still being copied: it is heard behind the last of them, and nothing is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import Ending, RemitError
from remit.core.journal.arrivals import FeedbackGiven, SessionNoted
from remit.core.journal.codec import decode_turn
from remit.core.run.signals import Signal
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit
from tests.unit.orchestrate.house import calls, look, request, scripted, signal, store_of, systems, unaudited
from tests.unit.orchestrate.stage import play

Say = Callable[[System, str], Awaitable[object]]
SAID: dict[str, Say] = {
    "feedback": lambda system, fork_id: system.signal(signal(Signal.FEEDBACK, fork_id, text="be brief")),
    "pause": lambda system, fork_id: system.signal(signal(Signal.PAUSE, fork_id)),
    "cancel": lambda system, fork_id: system.signal(signal(Signal.CANCEL, fork_id)),
    "note": lambda system, fork_id: system.note(fork_id, "ada", "colour", '"red"'),
}


def house() -> Kit:
    looks = [calls("look", at=f"place {number}") for number in range(3)]
    return scripted(*looks, {"text": "first"}, *looks, {"text": "second"}, tools=[look])


class Copying:
    """Stops the copying of a fork behind its second turn: until it may go on, or for good, as a process that dies."""

    def __init__(self, store: Any, *, dies: bool) -> None:
        self.append, self.origin, self.dies = store.journal.append, "", dies
        self.is_there, self.may_go_on, self.fork_id = asyncio.Event(), asyncio.Event(), ""
        store.journal.append = self._append

    async def _append(self, run_id: str, data: bytes, after: Any, *rest: Any, **more: Any) -> Any:
        if self.origin and run_id != self.origin and decode_turn(data).seq == 2 and not self.is_there.is_set():
            self.fork_id = run_id
            self.is_there.set()
            if self.dies:
                raise RemitError("DIED", "the process is gone")
            await self.may_go_on.wait()
        return await self.append(run_id, data, after, *rest, **more)


async def heard(system: System, fork_id: str, origin: str, said: str) -> None:
    """The fork has every turn of its origin, and heard what was said behind them."""
    arrivals = [decode_turn(data).arrival for data in await system.store.journal.read(fork_id)]
    copied = [decode_turn(data).arrival for data in await system.store.journal.read(origin)][:-1]
    assert [type(one) for one in arrivals[: len(copied)]] == [type(one) for one in copied]
    state = await system.state_of(fork_id)
    later = arrivals[len(copied) :]
    match said:
        case "feedback":
            assert sum(isinstance(one, FeedbackGiven) for one in later) == 1
        case "note":
            assert sum(isinstance(one, SessionNoted) for one in later) == 1
        case "pause":
            assert state.place.paused
        case "cancel":
            assert state.end.ending is Ending.USER_CANCEL


@pytest.mark.parametrize("said", ["feedback", "pause", "cancel"])
def test_a_signal_to_a_fork_that_another_process_is_copying_is_heard_behind_the_copy(said: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of("embedded", tmp_path)
        copying = Copying(store, dies=False)
        async with systems(store, store_of("embedded", tmp_path)) as (system, other):
            kit = house()
            origin = (await system.run(request(), kit)).run_id
            copying.origin = origin
            forking = asyncio.create_task(system.fork(origin, by="dan", kit=kit))
            await copying.is_there.wait()
            saying = asyncio.ensure_future(SAID[said](other, copying.fork_id))
            with pytest.raises(RemitError, match="RUN_HELD"):
                await SAID["note"](other, copying.fork_id)
            copying.may_go_on.set()
            await asyncio.gather(saying, forking)
            await system.settle()
            await heard(system, copying.fork_id, origin, said)

    play(story())


@pytest.mark.parametrize("said", SAID)
def test_a_signal_to_a_fork_whose_copying_was_cut_off_is_heard_behind_the_whole_copy(said: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of("embedded", tmp_path)
        copying = Copying(store, dies=True)
        async with unaudited(store, store_of("embedded", tmp_path)) as (system, other):
            kit = house()
            origin = (await system.run(request(), kit)).run_id
            copying.origin = origin
            with pytest.raises(RemitError, match="DIED"):
                await system.fork(origin, by="dan", kit=kit)
            assert len(await other.store.journal.read(copying.fork_id)) == 2
            await SAID[said](other, copying.fork_id)
            await heard(other, copying.fork_id, origin, said)
            found = await other.archive.verify(copying.fork_id)
            assert found.ok, found.findings

    play(story())
