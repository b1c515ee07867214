"""SingleRuns: a call is a run of its own, is kept while a person is asked, and leaves nothing behind otherwise."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit import System
from remit.agents.single_runs import KitFor, SingleRuns, listening
from remit.assemble import system_in_memory
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, IllegalArrival, RemitError, RequestRejected
from remit.core.home import HOME_INVALID
from remit.core.record import JsonObject
from remit.core.run.contract import NOTHING_OPEN, SystemResponse
from remit.core.run.lineage import derived_id
from remit.core.run.signals import PACKET_UNKNOWN, SIGNAL_INVALID, Signal
from remit.inference.engine import Restarted, StreamChunk
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.loop_config import LoopConfig
from remit.orchestrate.loop.recover import RUN_NOT_FOUND
from remit.orchestrate.setup.kit import STANDARD_TERMS
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import Said, approval, calls, helper, keep, request, scripted, signal, systems
from tests.unit.orchestrate.stage import play


async def response_of(_: System, response: SystemResponse) -> SystemResponse:
    return response


ASKS = (calls("keep", text="x"), {"text": "kept"})
LATE: JsonObject = {"text": "late", "delay_ms": 20_000}


async def of_no_other(system: System, run_id: str) -> None:
    """Take up nothing that another loop has begun."""
    raise RequestRejected("RUN_OF_ANOTHER", run_id)


def kit_for(*replies: JsonObject, tools: tuple[Tool, ...] = (), seen: list[System] | None = None) -> KitFor:
    """A kit with a scripted model; `seen` learns in which systems it was used."""

    def make(system: System) -> Any:
        if seen is not None:
            seen.append(system)
        return scripted(*replies, tools=tools), Listener()

    return make


async def is_closed(system: System) -> bool:
    """Whether nothing can be begun in a system any more."""
    try:
        await system.submit(request(), scripted({"text": "hello"}))
    except RemitError:
        return True
    return False


def test_calls_of_one_loop_work_in_one_system_until_it_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        seen: list[System] = []
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, home=tmp_path)
        with pytest.raises(RequestRejected):
            await runs.call(request(""), kit_for({"text": "hello"}, seen=seen), STANDARD_TERMS)
        responses = [
            await runs.call(request(), kit_for({"text": "hello"}, seen=seen), STANDARD_TERMS) for _ in range(2)
        ]
        assert [response.content for response in responses] == ["hello"] * 2
        assert responses[0].session_id != responses[1].session_id
        assert seen == [seen[0]] * 3
        assert not await is_closed(seen[0])
        await runs.close()
        assert await is_closed(seen[0])

    play(story())


def test_a_loop_cancels_every_call_that_has_not_ended_and_says_where_there_is_none() -> None:
    async def story() -> None:
        system = system_in_memory()
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system)
        slow = await runs.start(request(), kit_for(LATE), STANDARD_TERMS, chunks=False)
        waiting = await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS)
        done = await runs.call(request(), kit_for({"text": "hello"}), STANDARD_TERMS)
        await runs.cancel(by="ada", reason="enough")
        endings = [(await system.result(run_id)).terminal_code for run_id in (slow.id, waiting.run_id, done.run_id)]
        assert endings == [Ending.USER_CANCEL, Ending.USER_CANCEL, Ending.SUCCESS]
        with pytest.raises(RequestRejected) as refused:
            await runs.cancel()
        assert refused.value.code == NOTHING_OPEN

    play(story())


def test_what_ended_elsewhere_is_no_call_to_cancel() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store, store) as (here, there):
            runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=here)
            asked = await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS)
            await there.signal(signal(Signal.CANCEL, asked.run_id))
            with pytest.raises(RequestRejected) as refused:
                await runs.cancel()
            assert refused.value.code == NOTHING_OPEN

    play(story())


def test_a_system_that_was_given_stays_open_after_a_call() -> None:
    async def story() -> None:
        system = system_in_memory()
        await SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system).call(
            request(), kit_for({"text": "hello"}), STANDARD_TERMS
        )
        assert not await is_closed(system)

    play(story())


def test_a_call_keeps_the_session_that_its_request_names() -> None:
    async def story() -> None:
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory())
        response = await runs.call(request(session_id="mine"), kit_for({"text": "hello"}), STANDARD_TERMS)
        assert response.session_id == "mine"

    play(story())


@pytest.mark.parametrize(
    ("answer", "ending"),
    [
        (lambda runs, packet: runs.approve(packet, by="ada"), Ending.SUCCESS),
        (lambda runs, packet: runs.reject(packet, by="ada", reason="no"), Ending.PERMISSION_DENIED),
    ],
)
def test_a_call_that_asks_stays_open_until_it_was_answered(
    answer: Callable[[SingleRuns[SystemResponse], str], Any], ending: Ending, tmp_path: Path
) -> None:
    async def story() -> None:
        seen: list[System] = []
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, home=tmp_path)
        asked = await runs.call(request(), kit_for(*ASKS, tools=(keep,), seen=seen), STANDARD_TERMS)
        assert asked.waiting_for is not None
        assert not await is_closed(seen[0])
        (packet,) = asked.waiting_for.packet_ids
        assert (await answer(runs, packet)).terminal_code is ending
        with pytest.raises(RequestRejected) as refused:
            await runs.approve(packet, by="ada")
        assert refused.value.code == "QUESTION_SETTLED"

    play(story())


def test_an_approval_may_change_the_arguments_and_a_call_may_ask_again() -> None:
    async def story() -> None:
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory())
        replies = (calls("keep", text="x"), calls("keep", text="y"), {"text": "kept"})
        asked = await runs.call(request(), kit_for(*replies, tools=(keep,)), STANDARD_TERMS)
        assert asked.waiting_for is not None
        again = await runs.approve(asked.waiting_for.packet_ids[0], by="ada", arguments={"text": "z"})
        assert again.waiting_for is not None
        done = await runs.approve(again.waiting_for.packet_ids[0], by="ada")
        assert [call.result for call in done.tool_calls_made] == ["kept z", "kept y"]

    play(story())


def test_several_calls_may_wait_at_once_and_each_is_answered_for_itself() -> None:
    async def story() -> None:
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory())
        asked = [await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS) for _ in range(2)]
        packets = [one.waiting_for.packet_ids[0] for one in asked if one.waiting_for is not None]
        answered = [await runs.approve(packet, by="ada") for packet in reversed(packets)]
        assert [one.run_id for one in answered] == [one.run_id for one in reversed(asked)]

    play(story())


def test_what_a_child_asks_is_answered_through_the_call_that_started_it() -> None:
    async def story() -> None:
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory())
        replies = (
            {"when": '"task"', **calls("keep", text="x")},
            {"when": "^kept x", "text": "safe"},
            calls("helper", task="keep"),
            {"text": "thanks"},
        )
        asked = await runs.call(request(), kit_for(*replies, tools=(keep, helper)), STANDARD_TERMS)
        assert asked.waiting_for is not None
        (packet,) = asked.waiting_for.packet_ids
        assert packet.startswith(f"{derived_id(asked.run_id, '1.2')}/")
        assert (await runs.approve(packet, by="ada")).content == "thanks"

    play(story())


@pytest.mark.parametrize(
    ("packet", "code"), [("", PACKET_UNKNOWN), ("1.2", PACKET_UNKNOWN), ("nobody/1.2", RUN_NOT_FOUND)]
)
def test_a_packet_of_no_call_that_waits_is_refused(packet: str, code: str) -> None:
    async def story() -> None:
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory())
        await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS)
        with pytest.raises(RequestRejected) as refused:
            await runs.reject(packet, by="ada")
        assert refused.value.code == code

    play(story())


def test_a_question_that_was_answered_elsewhere_is_settled() -> None:
    async def story() -> None:
        async with systems(MemoryStore()) as (system,):
            runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system)
            asked = await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS)
            assert asked.waiting_for is not None
            (packet,) = asked.waiting_for.packet_ids
            await system.signal(approval(packet))
            await system.settle()
            with pytest.raises(RequestRejected) as refused:
                await runs.approve(packet, by="ada")
            assert refused.value.code == "QUESTION_SETTLED"

    play(story())


def test_an_answer_that_is_not_wanted_leaves_the_call_to_be_answered_again(tmp_path: Path) -> None:
    async def story() -> None:
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, home=tmp_path)
        asked = await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS)
        assert asked.waiting_for is not None
        with pytest.raises(RequestRejected, match="PACKET_UNKNOWN"):
            await runs.approve(f"{asked.run_id}/9.9", by="ada")
        assert (await runs.approve(asked.waiting_for.packet_ids[0], by="ada")).content == "kept"

    play(story())


def test_a_call_is_answered_in_a_later_loop_of_the_program(tmp_path: Path) -> None:
    runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, home=tmp_path)
    asked = play(runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS))
    assert asked.waiting_for is not None
    assert play(runs.approve(asked.waiting_for.packet_ids[0], by="ada")).content == "kept"


def test_a_caller_that_stops_waiting_for_a_call_ends_its_run() -> None:
    async def story() -> None:
        system = system_in_memory()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system).call(
                    request(), kit_for(LATE), STANDARD_TERMS
                )
        await system.settle()
        (entry,) = await system.store.catalogue.entries()
        assert entry.ending == Ending.USER_CANCEL
        response = await system.result(entry.run_id)
        assert response.error is not None
        assert response.error.message == "cancelled by caller: its caller stopped waiting"

    play(story())


def test_a_call_that_is_given_up_takes_its_children_along_and_only_the_call_is_told() -> None:
    async def story() -> None:
        system = system_in_memory()
        thinking = asyncio.Event()

        @tool(effect="read")
        async def ponder() -> str:
            """Never come back."""
            thinking.set()
            await asyncio.Event().wait()
            return ""

        replies = ({"when": '"task"', **calls("ponder")}, calls("helper", task="think"))
        kit = kit_for(*replies, tools=(helper, ponder))
        unwanted = asyncio.create_task(
            SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system).call(
                request(), kit, STANDARD_TERMS
            )
        )
        await thinking.wait()
        unwanted.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unwanted
        await system.settle()
        entries = await system.store.catalogue.entries()
        assert [entry.ending for entry in entries] == [Ending.USER_CANCEL] * 2
        errors = {entry.run_id: (await system.result(entry.run_id)).error for entry in entries}
        told = [run_id for run_id, error in errors.items() if error and "by caller" in error.message]
        assert told == [entry.run_id for entry in entries if not entry.listing.parent_id]

    play(story())


@pytest.mark.parametrize("steps", range(6))
def test_a_call_that_is_given_up_at_any_moment_leaves_no_run_open(steps: int) -> None:
    async def story() -> None:
        system = system_in_memory()
        unwanted = asyncio.create_task(
            SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system).call(
                request(), kit_for(LATE), STANDARD_TERMS
            )
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        unwanted.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unwanted
        await system.settle()
        assert all(entry.ending for entry in await system.store.catalogue.entries())

    play(story())


def test_a_call_that_ended_before_it_was_given_up_stays_as_it_ended() -> None:
    async def story() -> None:
        async with systems(MemoryStore()) as (system,):
            runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system)
            unwanted: list[asyncio.Task[Any]] = []

            def give_up_at_the_end(state: Any, turn: Any) -> None:
                if state.end.ending is not None:
                    unwanted[0].cancel()

            equipped = scripted({"text": "hello"}), Listener(give_up_at_the_end)
            unwanted.append(asyncio.create_task(runs.call(request(), lambda _: equipped, STANDARD_TERMS)))
            with pytest.raises(asyncio.CancelledError):
                await unwanted[0]
            (entry,) = await system.store.catalogue.entries()
            assert entry.ending == Ending.SUCCESS

    play(story())


def test_a_call_that_was_paused_is_answered_once_it_was_resumed() -> None:
    async def story() -> None:
        system = system_in_memory()
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system)
        asked = await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS)
        await system.signal(signal(Signal.PAUSE, asked.run_id))
        assert asked.waiting_for is not None
        with pytest.raises(IllegalArrival):
            await runs.approve(asked.waiting_for.packet_ids[0], by="ada")
        await system.signal(signal(Signal.RESUME, asked.run_id))
        assert (await runs.approve(asked.waiting_for.packet_ids[0], by="ada")).content == "kept"

    play(story())


def test_listeners_of_the_settings_hear_their_own_call_and_not_its_children() -> None:
    async def story() -> None:
        heard: list[StreamChunk | Restarted] = []
        replies: tuple[JsonObject, ...] = (
            {"when": '"task"', "text": "murmur"},
            calls("helper", task="think"),
            {"text": "aloud"},
        )
        config = LoopConfig(ScriptedEngine(replies), Registry([helper]), stream=heard.append)
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory())
        for _ in range(2):
            await runs.call(request(), listening(config), STANDARD_TERMS)
        assert heard == [StreamChunk("aloud")] * 2

    play(story())


@pytest.mark.parametrize("said", [{}, {"arguments": {"words": "x"}}])
def test_two_who_answer_at_once_leave_the_call_of_the_first_to_its_end(said: JsonObject, tmp_path: Path) -> None:
    async def story() -> None:
        working, may_end = asyncio.Event(), asyncio.Event()
        sent: list[str] = []

        @tool(effect="write")
        async def send(text: str) -> Said:
            """Send a text."""
            working.set()
            await may_end.wait()
            sent.append(text)
            return "sent"

        seen: list[System] = []
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, home=tmp_path)
        replies = kit_for(calls("send", text="x"), {"text": "done"}, tools=(send,), seen=seen)
        asked = await runs.call(request(), replies, STANDARD_TERMS)
        assert asked.waiting_for is not None
        (packet,) = asked.waiting_for.packet_ids
        first = asyncio.create_task(runs.approve(packet, by="ada"))
        await working.wait()
        with pytest.raises(RemitError) as refused:
            await runs.approve(packet, by="bob", **said)
        assert refused.value.code == "QUESTION_SETTLED"
        may_end.set()
        assert ((await first).terminal_code, sent) == (Ending.SUCCESS, ["x"])

    play(story())


def test_an_answer_that_was_refused_leaves_the_call_waiting_for_the_right_one(tmp_path: Path) -> None:
    async def story() -> None:
        runs = SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, home=tmp_path)
        asked = await runs.call(request(), kit_for(*ASKS, tools=(keep,)), STANDARD_TERMS)
        assert asked.waiting_for is not None
        (packet,) = asked.waiting_for.packet_ids
        with pytest.raises(RemitError):
            await runs.approve(packet, by="ada", arguments={"nothing": 1})
        outcomes = await asyncio.gather(
            runs.approve(packet, by="ada"),
            runs.approve(packet, by="bob"),
            return_exceptions=True,
        )
        assert [type(outcome).__name__ for outcome in outcomes] == ["SystemResponse", "RequestRejected"]
        assert getattr(outcomes[0], "terminal_code", None) is Ending.SUCCESS

    play(story())


@pytest.mark.parametrize(
    ("packet", "by", "code"),
    [(5, "ada", PACKET_UNKNOWN), (None, "ada", PACKET_UNKNOWN), ("run/1.2", 5, SIGNAL_INVALID)],
)
def test_an_answer_in_other_things_than_words_is_refused(packet: Any, by: Any, code: str) -> None:
    for answer in (
        SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory()).approve,
        SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, system=system_in_memory()).reject,
    ):
        with pytest.raises(RequestRejected) as refused:
            play(answer(packet, by=by))
        assert refused.value.code == code


def test_a_home_that_is_no_path_is_refused_before_any_call() -> None:
    with pytest.raises(RequestRejected) as refused:
        SingleRuns(response_of, kit_for({"text": "no"}), of_no_other, home=3)  # type: ignore[arg-type]  # as a caller without types may
    assert refused.value.code == HOME_INVALID
