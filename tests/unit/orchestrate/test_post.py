"""The post: the holder of a run hears what is left for it; the sender who left it learns what became of it."""

import asyncio
import logging
from pathlib import Path

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, IllegalArrival, RemitError
from remit.core.journal.codec import encode_signal
from remit.core.journal.commands import CallModel, CallTool, Command
from remit.core.journal.storage import EntrySettled
from remit.core.run.signals import Signal
from remit.kernel.state import RunState, waiting_for
from remit.orchestrate.bus import post
from remit.orchestrate.bus.post import GOES_ON, REJECT_LOADS_NOTHING, SIGNAL_UNHEARD
from remit.orchestrate.executors.reports import PersonSaid
from remit.orchestrate.facade import RUN_STILL_DRIVEN
from tests.unit.orchestrate.house import (
    STORES,
    calls,
    in_memory,
    keep,
    request,
    scripted,
    signal,
    store_of,
    systems,
    until,
)
from tests.unit.orchestrate.stage import play

SLOW = {"text": "at last", "delay_ms": 20_000}


def test_it_is_known_of_every_signal_whether_a_run_goes_on_after_it() -> None:
    assert set(GOES_ON) == set(Signal)


def test_what_was_left_while_nobody_listened_is_heard_when_the_run_is_taken_up() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            kit = scripted(calls("keep", text="x"), tools=[keep])
            response = await system.run(request(), kit)
            number = await store.inbox.put(response.run_id, encode_signal(signal(Signal.CANCEL, response.run_id)))
            resumed = await system.resume(response.run_id)
            assert resumed.terminal_code is Ending.USER_CANCEL
            assert await store.inbox.outcome(number) == ("", "")

    play(story())


def test_a_process_that_finds_an_earlier_answer_sees_it_through_and_learns_that_it_was_late() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            asked = await system.run(request(), scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep]))
            assert asked.waiting_for is not None
            packet_id = asked.waiting_for.packet_ids[0]
            earlier = signal(Signal.APPROVE, asked.run_id, packet_id=packet_id)
            number = await store.inbox.put(asked.run_id, encode_signal(earlier))
            with pytest.raises(RemitError, match=r"QUESTION_SETTLED: .* was approved by ada"):
                await system.signal(signal(Signal.REJECT, asked.run_id, packet_id=packet_id))
            assert await store.inbox.outcome(number) == ("", "")
            assert (await system.result(asked.run_id)).terminal_code is Ending.SUCCESS

    play(story())


def test_a_holder_that_refuses_a_signal_says_so_to_its_sender() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store, store) as (holder, other):
            run_id = await holder.submit(request(), scripted(SLOW))
            for system in (holder, other):
                with pytest.raises(IllegalArrival, match="NOT_PAUSED"):
                    await system.signal(signal(Signal.RESUME, run_id))
            with pytest.raises(RemitError, match="PACKET_UNKNOWN"):
                await other.signal(signal(Signal.APPROVE, run_id, packet_id="another/1.1"))
            await holder.signal(signal(Signal.CANCEL, run_id))

    play(story())


@pytest.mark.slow
def test_an_entry_that_cannot_be_read_is_settled_with_its_code_and_harms_nobody() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            run_id = await system.submit(request(), scripted(SLOW))
            number = await store.inbox.put(run_id, b"no signal")

            async def is_settled() -> bool:
                return await store.inbox.outcome(number) is not None

            await until(is_settled)
            outcome = await store.inbox.outcome(number)
            assert outcome is not None
            assert outcome[0] == "SIGNAL_UNREADABLE"
            await system.signal(signal(Signal.CANCEL, run_id))

    play(story())


@pytest.mark.slow
def test_entries_for_runs_of_others_are_left_to_them() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            run_id = await system.submit(request(), scripted(SLOW))
            theirs = await store.inbox.put("theirs", encode_signal(signal(Signal.CANCEL, "theirs")))
            ours = await store.inbox.put(run_id, encode_signal(signal(Signal.CANCEL, run_id)))
            await system.result(run_id)
            assert await store.inbox.outcome(ours) == ("", "")
            assert await store.inbox.outcome(theirs) is None

    play(story())


def test_a_signal_that_no_holder_hears_in_time_stays_and_its_sender_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "OUTCOME_WAIT_MS_MAX", 60)

    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            response = await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))
            assert await store.leases.take(response.run_id) is not None  # A holder of the run that does nothing.
            with pytest.raises(RemitError) as told:
                await system.signal(signal(Signal.CANCEL, response.run_id))
            assert told.value.code == SIGNAL_UNHEARD
            assert [entry.run_id for entry in await store.inbox.pending(after=0)] == [response.run_id]

    play(story())


def test_a_sender_takes_the_run_up_itself_once_its_holder_is_gone() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            response = await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))
            token = await store.leases.take(response.run_id)
            assert token is not None
            sent = asyncio.create_task(system.signal(signal(Signal.CANCEL, response.run_id)))

            async def is_left() -> bool:
                return bool(await store.inbox.pending(after=0))

            await until(is_left)
            await store.leases.release(response.run_id, token)
            await sent
            assert (await system.result(response.run_id)).terminal_code is Ending.USER_CANCEL

    play(story())


@pytest.mark.slow
def test_an_inbox_that_cannot_be_read_is_logged_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        store = MemoryStore()
        readable, troubles = store.inbox.pending, [RemitError("STORE_BUSY", "try again")]

        async def pending(*, after: int) -> object:
            if troubles:
                raise troubles.pop()
            return await readable(after=after)

        async with systems(store) as (system,):
            run_id = await system.submit(request(), scripted(SLOW))
            monkeypatch.setattr(store.inbox, "pending", pending)
            number = await store.inbox.put(run_id, encode_signal(signal(Signal.CANCEL, run_id)))
            assert (await system.result(run_id)).terminal_code is Ending.USER_CANCEL
            assert await store.inbox.outcome(number) == ("", "")

    with caplog.at_level(logging.WARNING, "remit.orchestrate.bus.post"):
        play(story())
    assert "the inbox could not be read" in caplog.text


def test_a_house_that_never_drove_anything_closes_without_ado() -> None:
    async def story() -> None:
        async with in_memory():
            pass

    play(story())


def test_a_no_is_heard_without_the_objects_a_run_worked_with_and_nothing_is_ordered(tmp_path: Path) -> None:
    async def story() -> None:
        kit = scripted(calls("keep", text="x"), {"text": "well then"}, tools=[keep])
        stores = store_of("embedded", tmp_path), store_of("embedded", tmp_path)
        async with systems(*stores) as (here, there):
            asked = await here.run(request(), kit)
            assert asked.waiting_for is not None
            run_id, (packet_id,) = asked.run_id, asked.waiting_for.packet_ids
            with pytest.raises(RemitError, match="ENGINE_NOT_REOPENABLE"):
                await there.signal(signal(Signal.APPROVE, run_id, packet_id=packet_id))
            # A no to something else is not wanted, and leaves the run as it was.
            with pytest.raises(RemitError, match="PACKET_UNKNOWN"):
                await there.signal(signal(Signal.REJECT, run_id, packet_id=f"{run_id}/9.9"))
            assert not (await there.state_of(run_id)).place.paused
            heard = await there.signal(signal(Signal.REJECT, run_id, packet_id=packet_id))
            assert heard.rests_because == REJECT_LOADS_NOTHING
            state = await there.state_of(run_id)
            assert (state.place.paused, waiting_for(state), open_calls(state)) == (True, None, [])
            await here.signal(signal(Signal.RESUME, run_id), kit=kit)
            ended = await here.result(run_id)
            assert (ended.terminal_code, ended.content) == (Ending.PERMISSION_DENIED, "well then")

    play(story())


def open_calls(state: RunState) -> list[Command]:
    """What a run has ordered and an executor would have to do."""
    return [command for command in state.commands.open.values() if isinstance(command, CallModel | CallTool)]


def test_a_person_who_answered_a_run_that_another_process_drives_waits_for_its_next_rest(tmp_path: Path) -> None:
    async def story() -> None:
        slow = {"text": "at last", "delay_ms": 300}
        kit = scripted(calls("keep", text="x"), calls("keep", text="y"), slow, tools=[keep])
        stores = store_of("embedded", tmp_path), store_of("embedded", tmp_path)
        async with systems(*stores) as (here, there):
            run_id = await here.submit(request(), kit)
            first = await here.result(run_id)
            assert first.waiting_for is not None
            await here.signal(signal(Signal.APPROVE, run_id, packet_id=first.waiting_for.packet_ids[0]))
            second = await here.result(run_id)
            assert second.waiting_for is not None
            answer = signal(Signal.APPROVE, run_id, packet_id=second.waiting_for.packet_ids[0])
            await here.signal(answer)
            # It goes on here; elsewhere it is unknown how it stands before it rests.
            assert (await there.result(run_id)).terminal_code is None
            with pytest.raises(RemitError, match=RUN_STILL_DRIVEN):
                await there.rested(run_id, wait_ms_max=50)
            await there.rested(run_id)
            ended = await there.result(run_id)
            assert (ended.terminal_code is not None, ended.content) == (True, "at last")
            await there.rested(run_id)

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_turn_that_answers_an_entry_which_was_settled_before_is_not_written(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of(kind, tmp_path)
        async with systems(store) as (system,):
            run_id = (await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))).run_id
            number = await store.inbox.put(run_id, encode_signal(signal(Signal.FEEDBACK, run_id, text="more")))
            await store.inbox.settle(number, "REFUSED", "not now")
            turns = len(await store.journal.read(run_id))
            with pytest.raises(EntrySettled):
                await system._hub.note(run_id, PersonSaid("ada", "more"), entry=number)
            assert len(await store.journal.read(run_id)) == turns
            assert await store.inbox.outcome(number) == ("REFUSED", "not now")

    play(story())


def test_a_person_who_cannot_be_heard_here_is_not_heard_later_either() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            run_id = (await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))).run_id
            system._hub._kits.clear()
            number = await store.inbox.put(run_id, encode_signal(signal(Signal.RESUME, run_id)))
            with pytest.raises(RemitError) as refused:
                await system._post._wait(signal(Signal.RESUME, run_id), number)
            assert await store.inbox.outcome(number) == (refused.value.code, refused.value.message)

    play(story())


@pytest.mark.parametrize("kind", [Signal.PAUSE, Signal.FEEDBACK])
def test_nothing_is_said_to_a_run_once_its_system_is_closed(kind: Signal) -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            run_id = (await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))).run_id
            await system.close()
            turns = len(await store.journal.read(run_id))
            with pytest.raises(RemitError, match="SYSTEM_CLOSED"):
                await system.signal(signal(kind, run_id, text="more"))
            assert len(await store.journal.read(run_id)) == turns

    play(story())
