"""Children as their executor sees them: begun once, taken up again, told to end, or waited for elsewhere."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remit.backend.clock import WallClock
from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending
from remit.core.journal.arrivals import ChildSuspended, RetryRequested
from remit.core.journal.codec import decode_signal, decode_turn
from remit.core.journal.commands import CancelCommand, ForkRun, StartChild
from remit.core.journal.storage import StoreUnusable
from remit.core.limits.tools import Effect
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, Mode, OutputContract
from remit.core.run.lineage import derived_id
from remit.core.run.signals import Signal
from remit.core.work.graph import EXITS, TERMINALS, Ask, Edge, Graph, Node, NodeKind
from remit.orchestrate.executors.child import PARENT
from remit.orchestrate.executors.reports import ChildSaid
from remit.orchestrate.facade import System
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.patterns.structured_graph import structured_graph
from remit.orchestrate.setup.kit import Terms, engine_kit
from remit.tool.declare.decorator import tool
from remit.tool.delegate import delegate
from tests.unit.orchestrate.house import (
    Listening,
    approval,
    calls,
    helper,
    in_memory,
    keep,
    request,
    scripted,
    signal,
    systems,
    until,
)
from tests.unit.orchestrate.stage import play

TO_CHILD = '"task"'
DELEGATES = calls("helper", task="look around")
deeper = delegate(
    "deeper",
    description="Have another agent do it.",
    lease={"input_tokens": 5_000, "output_tokens": 1_000, "tool_calls": 2, "steps": 8, "human_reviews": 1},
)
ASKS = {"when": TO_CHILD, **calls("keep", text="x")}


async def asked(system: System) -> tuple[Live, StartChild]:
    """A parent whose child waits for a person, and the command that started it."""
    response = await system.run(request(), scripted(ASKS, DELEGATES, {"text": "thanks"}, tools=[keep, helper]))
    live = await system._runner.load(response.run_id)
    (command,) = [command for command in live.state.commands.open.values() if isinstance(command, StartChild)]
    return live, command


def test_starting_a_child_twice_takes_up_the_one_there_is() -> None:
    async def story() -> None:
        async with in_memory() as system:
            live, command = await asked(system)
            report = await system._children.start(live, command)
            assert report == ChildSuspended(command.id, Ending.CONFIRM_REQUIRED)
            assert len(await system.store.catalogue.entries()) == 2

    play(story())


def test_a_child_that_another_process_began_at_the_same_moment_is_taken_up() -> None:
    async def story() -> None:
        async with in_memory() as system:
            live, command = await asked(system)
            read, unseen = system.store.journal.read, ["once"]

            async def not_there_yet(run_id: str, *, after: int = -1) -> object:
                return () if run_id == command.run_id and unseen and unseen.pop() else await read(run_id, after=after)

            system._runner.journal.read = not_there_yet  # type: ignore[method-assign, assignment]
            report = await system._children.start(live, command)
            assert report == ChildSuspended(command.id, Ending.CONFIRM_REQUIRED)

    play(story())


def test_a_child_that_a_person_paused_waits_for_a_review() -> None:
    async def story() -> None:
        slow = {"when": TO_CHILD, "text": "slow", "delay_ms": 100}
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted(slow, DELEGATES, {"text": "thanks"}, tools=[helper]))
            child_id = derived_id(run_id, "1.2")

            async def is_known() -> bool:
                return await system.store.catalogue.entry(child_id) is not None

            await until(is_known)
            await system.signal(signal(Signal.PAUSE, child_id))
            response = await system.result(run_id)
            assert response.waiting_for is not None
            assert response.waiting_for.ending is Ending.REVIEW_REQUIRED
            await system.signal(signal(Signal.RESUME, child_id))
            await system.settle(run_id)
            assert (await system.result(run_id)).content == "thanks"

    play(story())


def test_a_child_that_has_ended_is_reported_with_what_it_said_and_spent() -> None:
    async def story() -> None:
        async with in_memory() as system:
            live, command = await asked(system)
            await system.signal(signal(Signal.CANCEL, command.run_id))
            report = await system._children.start(live, command)
            assert isinstance(report, ChildSaid)
            assert (report.ending, report.command_id) == (Ending.USER_CANCEL, command.id)
            assert dict(report.spent)[0] > 0
            await system.settle()

    play(story())


@pytest.mark.req("4.11")
@pytest.mark.parametrize("is_halted", [True, False])
def test_what_a_child_had_proposed_when_it_was_cancelled_keeps_its_parent_from_success(*, is_halted: bool) -> None:
    async def story() -> None:
        async with in_memory() as system:
            live, command = await asked(system)
            if is_halted:
                await system.halt("smoke", by="ada", run=command.run_id)
                await system.lift(by="ada", run=command.run_id)
            await system.signal(signal(Signal.CANCEL, command.run_id))
            await system.settle()
            response = await system.result(live.run_id)
            assert (response.terminal_code, response.content) == (Ending.PARTIAL_SUCCESS, "thanks")
            assert response.warnings == (f"not done: keep (in child {command.id})",)

    play(story())


@pytest.mark.req("4.11")
def test_what_was_proposed_beneath_a_child_that_was_cancelled_keeps_its_parent_from_success() -> None:
    async def story() -> None:
        async with in_memory() as system:
            script = (
                {"when": '"go deeper"', **calls("deeper", task="keep it")},
                {"when": '"keep it"', **calls("keep", text="x")},
                calls("helper", task="go deeper"),
                {"text": "thanks"},
            )
            run_id = (await system.run(request(), scripted(*script, tools=[keep, helper, deeper]))).run_id
            (child_id,) = (await system._runner.load(run_id)).state.children.runs.values()
            (beneath_id,) = (await system._runner.load(child_id)).state.children.runs.values()
            await system.signal(signal(Signal.CANCEL, child_id))
            await system.settle()
            assert (await system.result(beneath_id)).terminal_code is Ending.USER_CANCEL
            response = await system.result(run_id)
            assert (response.terminal_code, response.content) == (Ending.PARTIAL_SUCCESS, "thanks")
            assert response.warnings == ("not done: keep (in child 1.2)",)

    play(story())


def test_a_child_that_has_ended_is_reported_with_how_long_it_waited() -> None:
    async def story() -> None:
        async with in_memory() as system:
            live, command = await asked(system)
            await asyncio.sleep(0.05)
            await system.signal(signal(Signal.CANCEL, command.run_id))
            report = await system._children.start(live, command)
            assert isinstance(report, ChildSaid)
            assert report.stood_ms == (await system._runner.load(command.run_id)).state.clock.stood_ms >= 50
            await system.settle()
            assert (await system._runner.load(live.run_id)).state.clock.supposed_ms == 0

    play(story())


@pytest.mark.slow
def test_children_that_are_answered_at_once_and_then_work_use_up_the_time_of_their_parent() -> None:
    @tool(effect=Effect.READ)
    async def ponder() -> str:
        """Take one's time."""
        await asyncio.sleep(1.2)
        return "pondered"

    async def story() -> None:
        work = ({"when": "^kept", **calls("ponder")}, {"when": "^pondered", "text": "safe"})
        tasks = (calls("helper", task=f"part {number}") for number in range(3))
        kit = scripted(*[ASKS] * 3, *work * 3, *tasks, {"text": "thanks"}, tools=[keep, helper, ponder])
        async with in_memory() as system:
            run_id = await system.submit(replace(request(), hints=ExecutionHints(timeout_ms=2_000)), kit)
            while (response := await system.result(run_id)).waiting_for is not None:
                children = (await system._runner.load(run_id)).state.children.waiting
                for child_id in [derived_id(run_id, command_id) for command_id in children]:
                    asking = (await system.result(child_id)).waiting_for
                    assert asking is not None
                    await system.signal(approval(asking.packet_ids[0]))
                await system.settle(run_id)
            assert response.terminal_code is Ending.TIMEOUT
            state = (await system._runner.load(run_id)).state
            assert state.clock.stood_ms < 1_000
            assert len([trace for trace in state.calls.made.values() if trace.content]) < 3

    play(story())


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_cancel_of_a_child_that_has_ended_or_never_began_is_no_trouble(has_begun: bool) -> None:
    async def story() -> None:
        async with in_memory() as system:
            live, command = await asked(system)
            child_id = command.run_id if has_begun else "nobody"
            for _ in range(2):
                await system._children.cancel(live, CancelCommand("9.1", command.id, run_id=child_id))
            await system.settle()

    play(story())


def test_a_cancel_for_a_child_that_another_process_drives_is_left_in_its_inbox() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            live, command = await asked(system)
            assert await store.leases.take(command.run_id) is not None
            await system._children.cancel(live, CancelCommand("9.1", command.id, run_id=command.run_id))
            (entry,) = await store.inbox.pending(after=0)
            left = decode_signal(entry.data)
            assert (left.type, left.run_id, left.user_id) == (Signal.CANCEL, command.run_id, PARENT)

    play(story())


@pytest.mark.slow
def test_a_parent_that_goes_on_beside_its_child_learns_that_another_process_finished_it() -> None:
    go_on = asyncio.Event()

    @tool(effect=Effect.READ)
    async def ponder() -> str:
        """Take one's time."""
        await go_on.wait()
        return "pondered"

    async def story() -> None:
        both = {"tool_calls": [*DELEGATES["tool_calls"], *calls("ponder")["tool_calls"]]}
        kit = scripted(
            ASKS, {"when": "^kept x", "text": "safe"}, both, {"text": "thanks"}, tools=[keep, helper, ponder]
        )
        store = MemoryStore()
        async with systems(store, store) as (here, there):
            run_id = await here.submit(request(), kit)
            parent = here._hub.drivers[run_id].live.state

            async def is_held() -> bool:
                return bool(parent.children.waiting)

            await until(is_held)
            await there.signal(approval(f"{derived_id(run_id, '1.2')}/1.2"), kit=kit)

            async def is_released() -> bool:
                return not parent.children.waiting

            await until(is_released)
            go_on.set()
            assert (await here.result(run_id)).content == "thanks"

    play(story())


def test_a_parent_that_rests_just_as_another_process_finishes_its_child_goes_on() -> None:
    async def story() -> None:
        kit = scripted(ASKS, {"when": "^kept x", "text": "safe"}, DELEGATES, {"text": "thanks"}, tools=[keep, helper])
        store, elsewhere = MemoryStore(), list[System]()
        append = store.journal.append

        async def finish_first(run_id: str, data: bytes, *rest: Any) -> int:
            """Let the child be finished elsewhere while its parent, still held here, is told that the child waits."""
            if isinstance(decode_turn(data).arrival, ChildSuspended):
                child = derived_id(run_id, "1.2")
                await elsewhere[0].signal(approval(f"{child}/1.2"), kit=kit)
                assert (await elsewhere[0].result(child)).content == "safe"
                await elsewhere[0].settle()
            return await append(run_id, data, *rest)

        store.journal.append = finish_first  # type: ignore[assignment, method-assign]
        async with systems(store, store) as (here, there):
            elsewhere.append(there)
            run_id = await here.submit(request(), kit)
            await here.settle()
            assert (await here.result(run_id)).content == "thanks"

    play(story())


def test_a_child_that_cannot_be_told_to_end_is_logged_and_its_parent_ends_all_the_same(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(run_id: str, data: bytes) -> int:
        raise StoreUnusable("STORE_FULL", "there is no room left")

    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            live, command = await asked(system)
            assert await store.leases.take(command.run_id) is not None
            monkeypatch.setattr(store.inbox, "put", full)
            await system.signal(signal(Signal.CANCEL, live.run_id))
            assert (await system.result(live.run_id)).terminal_code is Ending.USER_CANCEL

    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.in_process"):
        play(story())
    assert "CancelCommand was not done" in caplog.text
    assert "STORE_FULL" in caplog.text


async def forget(store: EmbeddedStore, run_id: str) -> None:
    """Delete a child although its parent is open, as an earlier remit did."""
    with closing(sqlite3.connect(store.home / DATABASE)) as connection:
        (found,) = connection.execute("SELECT run_no, run_id FROM runs WHERE run_id = ?", (run_id,)).fetchall()
        connection.isolation_level = None
        store.retention._remove_runs(connection, dict([found]))


def test_a_child_that_was_deleted_is_lost_and_never_begins_again(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        async with systems(store) as (system,):
            live, command = await asked(system)
            await forget(store, command.run_id)
            # A child that is gone keeps no caller waiting.
            assert (await system.result(live.run_id)).waiting_for is None
            kit = scripted({"text": "sorry"}, tools=[keep, helper])
            response = await system.resume(live.run_id, kit=kit)
            assert response.content == "sorry"
            assert await store.catalogue.entry(command.run_id) is None
            state = await system.state_of(live.run_id)
            assert state.children.failed == 1

    play(story())


def test_a_child_that_was_taken_out_of_the_store_is_lost_and_never_begins_again(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        async with systems(store) as (system,):
            live, command = await asked(system)
            with closing(sqlite3.connect(store.home / DATABASE)) as connection, connection:
                connection.execute("DELETE FROM runs WHERE run_id = ?", (command.run_id,))
            kit = scripted({"text": "sorry"}, tools=[keep, helper])
            assert (await system.resume(live.run_id, kit=kit)).content == "sorry"
            assert await store.catalogue.entry(command.run_id) is None

    play(story())


HELLO = {"text": "hello", "delay_ms": 50}


async def ordered(system: System) -> tuple[str, ForkRun]:
    """A run that was cancelled, and the fork that a retry ordered in a process that died at once."""
    run_id = await system.submit(request(), scripted(HELLO))
    await system.signal(signal(Signal.CANCEL, run_id))
    await system.result(run_id)
    clock, store = WallClock(), system.store
    dead = Runner(journal=store.journal, blobs=store.blobs, clock=clock, dispatch=InProcessDispatch({}, clock))
    turn = await dead.rule_on(await dead.load(run_id), RetryRequested("ada"))
    (order,) = (decision for decision in turn.decisions if isinstance(decision, ForkRun))
    return run_id, order


def test_a_fork_whose_process_died_before_it_was_made_is_made_when_the_run_is_taken_up() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id, order = await ordered(system)
            for _ in range(2):
                await system.resume(run_id, kit=scripted(HELLO))
                await system.settle()
                assert (await system.result(order.run_id)).content == "hello"
            assert len(await system.store.catalogue.entries()) == 2

    play(story())


def test_a_fork_that_cannot_go_on_here_is_logged_and_made_with_the_next_try(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id, order = await ordered(system)
            with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.in_process"):
                await system.resume(run_id)
                await system.settle()
            (record,) = caplog.records
            assert "ForkRun was not done" in record.getMessage()
            assert (getattr(record, "run_id", ""), getattr(record, "span_id", "")) == (run_id, order.id)
            assert (await system.result(order.run_id)).terminal_code is None
            await system.resume(run_id, kit=scripted(HELLO))
            await system.settle()
            assert (await system.result(order.run_id)).content == "hello"

    play(story())


def test_a_fork_that_another_process_holds_is_made_here_only_once_it_is_let_go() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id, order = await ordered(system)
            token = await system.store.leases.take(order.run_id)
            assert token is not None
            await system.resume(run_id, kit=scripted(HELLO))
            assert not await system.store.journal.read(order.run_id)
            await system.store.leases.release(order.run_id, token)
            await system.settle()
            assert (await system.result(order.run_id)).terminal_code is not None

    play(story())


def test_a_fork_that_was_deleted_is_not_made_again(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        async with systems(store) as (system,):
            run_id, order = await ordered(system)
            await system.resume(run_id, kit=scripted(HELLO))
            await system.settle()
            await store.retention.delete(order.run_id)
            await system.resume(run_id, kit=scripted(HELLO))
            await system.settle()
            assert [entry.run_id for entry in await store.catalogue.entries()] == [run_id]

    play(story())


def test_a_child_that_a_node_declares_runs_its_own_graph_on_its_own_task() -> None:
    ask = Ask("Be brief.", tools=(), schema='{"type":"object"}')
    inner = structured_graph(ask.schema, is_prepared=True)
    child = Node("child", NodeKind.CHILD, prompt="Count the cups.", inner=inner, ask=ask)
    graph = Graph("errand", "child", (child, *TERMINALS), (Edge("child", "done"),), EXITS)
    model = Listening({"text": '{"cups":7}'})

    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(request(), engine_kit(model), Terms(graph=graph))
            assert response.terminal_code is Ending.SUCCESS
            (trace,) = (await system.state_of(response.run_id)).children.ended
            assert trace.text == '{"cups":7}'
            assert [message.content for message in model.asked[0].messages] == ["Be brief.", "Count the cups."]

    play(story())


def test_what_people_say_to_a_vote_reaches_the_replicas_that_are_still_to_be_asked() -> None:
    async def story() -> None:
        async with in_memory() as system:
            engine = Listening({"text": '{"a":1}', "delay_ms": 20})
            asked_for = replace(request(), mode=Mode.REDUNDANT, output=OutputContract({"type": "object"}))
            run_id = await system.submit(asked_for, engine_kit(engine))

            async def has_been_asked() -> bool:
                return bool(engine.asked)

            await until(has_been_asked)
            await system.signal(signal(Signal.FEEDBACK, run_id, text="be brief"))
            assert (await system.result(run_id)).terminal_code is Ending.SUCCESS
            last_words = [question.messages[-1].content for question in engine.asked]
            assert last_words[0] != "be brief"
            assert last_words[-1] == "be brief"

    play(story())
