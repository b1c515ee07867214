"""What people tell a fork while it is being made: it is heard and holds, and the person who asked for the fork meets no error."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RemitError, RequestRejected
from remit.core.journal.arrivals import PauseRequested, ResumeRequested
from remit.core.journal.codec import decode_turn
from remit.core.journal.turn import Turn
from remit.core.run.signals import Signal, SignalOutcome, UserSignal
from remit.orchestrate.facade import System
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import Kit
from tests.unit.orchestrate.house import calls, helper, look, request, scripted, signal, systems, until
from tests.unit.orchestrate.stage import play

# Makes a fork of a run that has ended.
Fork = Callable[[System, str, Kit], Awaitable[SignalOutcome]]


async def forked(system: System, run_id: str, kit: Kit) -> SignalOutcome:
    return await system.fork(run_id, by="ann", at=1, kit=kit)


async def retried(system: System, run_id: str, kit: Kit) -> SignalOutcome:
    return await system.signal(signal(Signal.RETRY, run_id, by="ann", reason="again"), kit=kit)


def looking() -> Kit:
    return scripted(calls("look", at="it"), {"text": "seen"}, tools=[look])


def told_meanwhile(
    system: System, other: System, run_id: str, kind: Signal, **payload: object
) -> list[asyncio.Task[SignalOutcome]]:
    """Have the other system tell a fork of the run something between its copying and its resume."""
    hear, sent = system._hub.on_taken, list[asyncio.Task[SignalOutcome]]()

    async def hear_later(live: Live) -> None:
        if live.state.place.is_copy and not sent:
            told = UserSignal("stop", kind, live.run_id, "bob", payload=payload)
            sent.append(asyncio.create_task(other.signal(told)))

            async def is_left() -> bool:
                return bool(await system.store.inbox.pending(after=0))

            await until(is_left)
        assert hear is not None
        await hear(live)

    system._hub.on_taken = hear_later
    return sent


@asynccontextmanager
async def two() -> AsyncIterator[tuple[System, System]]:
    store = MemoryStore()
    async with systems(store, store) as (one, other):
        yield one, other


async def turns_of(system: System, run_id: str) -> list[Turn]:
    return [decode_turn(data) for data in await system.store.journal.read(run_id)]


@pytest.mark.req("3.8")
@pytest.mark.parametrize("fork", [forked, retried])
def test_a_pause_that_reaches_a_fork_in_the_making_holds(fork: Fork) -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            sent = told_meanwhile(one, other, ended.run_id, Signal.PAUSE)
            heard = await fork(one, ended.run_id, kit)
            await sent[0]
            assert heard.rests_because == "bob paused it; resume it"
            await one.settle()
            since = [turn.arrival for turn in await turns_of(one, heard.fork_id)]
            assert PauseRequested("bob") in since
            assert not any(isinstance(arrival, ResumeRequested) for arrival in since)
            with pytest.raises(RemitError, match=r"ALREADY_PAUSED: .* is paused already, by bob"):
                await other.signal(signal(Signal.PAUSE, heard.fork_id, by="cy"))
            # To resume the origin, which makes its forks where they are missing, is not to resume the fork.
            await one.resume(ended.run_id, kit=kit)
            assert (await other.state_of(heard.fork_id)).place.paused_by == "bob"
            await one.signal(signal(Signal.RESUME, heard.fork_id, by="bob"), kit=kit)
            assert (await one.result(heard.fork_id)).terminal_code is Ending.SUCCESS

    play(story())


@pytest.mark.req("3.8")
@pytest.mark.parametrize("fork", [forked, retried])
@pytest.mark.parametrize(
    ("kind", "payload", "ending"),
    [
        (Signal.CANCEL, {}, Ending.USER_CANCEL),
        (Signal.FEEDBACK, {"text": "be brief"}, Ending.SUCCESS),
        (Signal.RESUME, {}, Ending.SUCCESS),
    ],
)
def test_what_else_reaches_a_fork_in_the_making_is_heard_and_is_no_error_of_the_person_who_forked(
    fork: Fork, kind: Signal, payload: dict[str, object], ending: Ending
) -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            sent = told_meanwhile(one, other, ended.run_id, kind, **payload)
            heard = await fork(one, ended.run_id, kit)
            await sent[0]
            assert (heard.fork_id != "", heard.rests_because) == (True, "")
            assert (await one.result(heard.fork_id)).terminal_code is ending
            by = [getattr(turn.arrival, "by", "") for turn in await turns_of(one, heard.fork_id)]
            assert by.count("bob") == 1

    play(story())


def test_a_note_for_a_fork_in_the_making_is_kept_and_the_fork_goes_on() -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            heard = await one.fork(ended.run_id, by="ann", at=0, kit=kit)
            await one.result(heard.fork_id)
            await other.note(heard.fork_id, "bob", "city", '"Rome"')
            assert (await one.state_of(heard.fork_id)).session == {"city": '"Rome"'}

    play(story())


def test_a_pause_of_a_fork_whose_process_died_before_it_went_on_holds_when_its_origin_is_resumed() -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            # The copy is made, and no process is left to resume it.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("remit.orchestrate.loop.hub.let_go_on", AsyncMock())
                heard = await retried(one, ended.run_id, kit)
            await one.settle()
            assert (await other.state_of(heard.fork_id)).place.is_copy
            await other.signal(signal(Signal.PAUSE, heard.fork_id, by="bob"))
            await one.resume(ended.run_id, kit=kit)
            await one.settle()
            fork = await other.state_of(heard.fork_id)
            assert (fork.place.paused, fork.place.paused_by, fork.place.is_copy) == (True, "bob", True)

    play(story())


@pytest.mark.parametrize("fork", [forked, retried])
def test_a_fork_whose_process_died_before_it_went_on_goes_on_when_it_is_resumed(fork: Fork) -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("remit.orchestrate.loop.hub.let_go_on", AsyncMock())
                heard = await fork(one, ended.run_id, kit)
                await one.settle()
            assert (await other.state_of(heard.fork_id)).place.is_copy
            assert (await other.resume(heard.fork_id, kit=kit)).terminal_code is Ending.SUCCESS
            said = [turn.arrival for turn in await turns_of(one, heard.fork_id)]
            assert said.count(ResumeRequested("ann")) == 1

    play(story())


@pytest.mark.parametrize("at", [0, 1])
def test_a_fork_whose_copying_was_cut_off_goes_on_when_it_is_resumed(at: int) -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            write, written = one._hub.runner.journal.append, list[str]()

            async def cut_off(run_id: str, *more: Any, **said: Any) -> Any:
                if run_id != ended.run_id and len(written) == at:
                    raise OSError("the disk is gone")
                written.append(run_id)
                return await write(run_id, *more, **said)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(one._hub.runner.journal, "append", cut_off)
                with pytest.raises(OSError, match="gone"):
                    await one.fork(ended.run_id, by="ann", at=1, kit=kit)
            if at:
                (fork_id,) = set(written)
                assert (await other.resume(fork_id, kit=kit)).terminal_code is Ending.SUCCESS

    play(story())


def test_a_resume_of_a_fork_that_a_person_paused_in_the_making_lets_it_rest() -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            sent = told_meanwhile(one, other, ended.run_id, Signal.PAUSE)
            heard = await forked(one, ended.run_id, kit)
            await sent[0]
            await one.resume(heard.fork_id, kit=kit)
            assert (await one.state_of(heard.fork_id)).place.paused_by == "bob"

    play(story())


def test_retries_at_the_same_moment_are_done_and_nothing_else_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            ended = await one.run(request(), kit)
            each = [retried(system, ended.run_id, kit) for system in (one, other, one, other)]
            heard = await asyncio.gather(*each)
            assert len({outcome.fork_id for outcome in heard}) == 4
            for outcome in heard:
                assert (await one.resume(outcome.fork_id, kit=kit)).terminal_code is Ending.SUCCESS

    with caplog.at_level("WARNING"):
        play(story())
    assert caplog.messages == []


def test_a_retry_from_before_a_crash_that_cannot_be_done_here_is_told_to_the_operator(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (one,):
            kit = looking()
            ended = await one.run(request(), kit)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(one._hub, "_fork", AsyncMock(side_effect=RequestRejected("GONE", "killed")))
                with pytest.raises(RequestRejected, match="FORK_DEFERRED"):
                    await one.signal(signal(Signal.RETRY, ended.run_id, by="ann", reason="again"))
            with caplog.at_level("WARNING"):
                await one.resume(ended.run_id)
                await one.settle()

    play(story())
    assert [message for message in caplog.messages if "ForkRun was not done: ENGINE_NOT_REOPENABLE" in message]


def test_a_fork_that_was_paused_before_it_went_on_starts_neither_calls_nor_children_until_it_is_resumed() -> None:
    async def story() -> None:
        async with two() as (one, other):
            child = {"when": "count sheep", "text": "Twelve."}
            kit = scripted(child, calls("helper", task="count sheep"), {"text": "thanks"}, tools=[helper])
            ended = await one.run(request(), kit)
            sent = told_meanwhile(one, other, ended.run_id, Signal.PAUSE)
            heard = await forked(one, ended.run_id, kit)
            await sent[0]
            await one.resume(heard.fork_id, kit=kit)
            await one.settle()
            runs = {entry.run_id for entry in await one.store.catalogue.entries()}
            assert len(runs) == 3  # The run, its child, and the fork.
            await one.signal(signal(Signal.RESUME, heard.fork_id), kit=kit)
            assert (await one.result(heard.fork_id)).content == "thanks"
            assert len(await one.store.catalogue.entries()) == 4

    play(story())


def test_a_pause_that_a_person_asks_for_during_a_halt_lasts_longer_than_the_halt() -> None:
    async def story() -> None:
        async with two() as (one, other):
            kit = looking()
            await one.halt("smoke", by="ada", tool="look")
            stands = await one.run(request(), kit)
            assert stands.halted is not None
            await other.signal(signal(Signal.PAUSE, stands.run_id, by="bob"))
            await one.lift(by="ada", tool="look")
            resting = await one.resume(stands.run_id, kit=kit)
            assert (resting.terminal_code, resting.halted) == (None, None)
            assert (await other.state_of(stands.run_id)).place.paused_by == "bob"
            await one.signal(signal(Signal.RESUME, stands.run_id, by="bob"), kit=kit)
            assert (await one.result(stands.run_id)).terminal_code is Ending.SUCCESS

    play(story())
