"""The facade: requests become runs, runs become responses, on both stores and beside other processes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.core.failure import Ending, ErrorCode, RemitError, RequestRejected
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import RUN_HELD
from remit.core.limits.boundary import Boundary
from remit.core.record import replace
from remit.core.run.contract import CallStatus, ExecutionHints, Mode, OutputContract, SystemRequest
from remit.core.run.manifest import Origin
from remit.core.run.messages import Message
from remit.core.run.run_events import SYSTEM_CLOSED
from remit.core.run.signals import Signal
from remit.core.work.graph import EXITS, TERMINALS, Ask, Edge, Graph, Node, NodeKind
from remit.inference.specs import open_engine
from remit.kernel.state import pinned
from remit.orchestrate.exchange.sessions import SESSION_ENTRY_INVALID
from remit.orchestrate.facade import System
from remit.orchestrate.loop.recover import RUN_NOT_FOUND
from remit.orchestrate.patterns.planners import PLAN_MISSING
from remit.orchestrate.setup.kit import Terms, engine_kit
from remit.tool.loader import TOOL_SOURCE_CHANGED, load_tools
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import (
    STORES,
    Listening,
    approval,
    calls,
    in_memory,
    keep,
    look,
    request,
    scripted,
    signal,
    store_of,
    systems,
    unaudited,
    until,
)
from tests.unit.orchestrate.stage import play

SLOW = {"text": "at last", "delay_ms": 20_000}


@pytest.mark.parametrize("kind", STORES)
def test_a_run_answers_on_either_store(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            response = await system.run(request(), scripted({"text": "hello"}))
            assert (response.terminal_code, response.content, response.error) == (Ending.SUCCESS, "hello", None)
            assert await system.result(response.run_id) == response

    play(story())


@pytest.mark.req("0.2")
def test_a_request_without_ids_is_given_some_and_keeps_those_it_has() -> None:
    async def story() -> None:
        async with in_memory() as system:
            given = await system.run(request(), scripted({"text": "hello"}))
            UUID(given.request_id)
            assert len(pinned(await system.state_of(given.run_id)).request.trace_id) == 32
            own = replace(request(), request_id="mine", trace_id="trace")
            kept = await system.run(own, scripted({"text": "hello"}))
            assert kept.request_id == "mine"
            assert pinned(await system.state_of(kept.run_id)).request.trace_id == "trace"

    play(story())


@pytest.mark.req("0.3")
@pytest.mark.parametrize(
    ("wanted", "allowed", "offered"),
    [
        ((), None, ["look", "keep"]),
        ((), ("look",), ["look"]),
        (("keep",), None, ["keep"]),
    ],
)
def test_a_request_without_tools_is_offered_all_that_the_boundary_allows(
    wanted: tuple[str, ...], allowed: tuple[str, ...] | None, offered: list[str]
) -> None:
    async def story() -> None:
        engine = Listening({"text": "hello"})
        async with in_memory() as system:
            terms = Terms(Boundary(allowed_tools=allowed))
            await system.run(replace(request(), tools=wanted), engine_kit(engine, Registry([look, keep])), terms)
        assert [tool.name for tool in engine.asked[0].tools] == offered

    play(story())


@pytest.mark.req("0.5")
def test_the_calls_that_were_made_are_listed_in_order_with_what_came_of_them() -> None:
    async def story() -> None:
        kit = scripted(calls("look", at="sky"), calls("look", at="sea"), {"text": "blue"}, tools=[look])
        async with in_memory() as system:
            made = (await system.run(request(), kit)).tool_calls_made
        assert [(call.name, call.arguments, call.result, call.status) for call in made] == [
            ("look", {"at": "sky"}, "seen sky", CallStatus.COMMITTED),
            ("look", {"at": "sea"}, "seen sea", CallStatus.COMMITTED),
        ]
        assert all(call.duration_ms >= 0 for call in made)

    play(story())


@pytest.mark.req("0.7")
def test_a_run_that_fails_half_way_returns_the_words_it_had() -> None:
    async def story() -> None:
        half = {"text": "Let me look.", **calls("look", at="sky")}
        kit = scripted(half, {"error": "INFERENCE_CONTEXT_EXCEEDED"}, tools=[look])
        async with in_memory() as system:
            response = await system.run(request(), kit)
        assert response.error is not None
        assert response.error.code == ErrorCode.INFERENCE_CONTEXT_EXCEEDED
        assert response.content == "Let me look."

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_watcher_sees_every_turn_until_the_end(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            run_id = await system.submit(request(), scripted(calls("look", at="sky"), {"text": "blue"}, tools=[look]))
            seen = [turn async for turn in system.watch(run_id)]
            assert [turn.seq for turn in seen] == list(range(len(seen)))
            assert isinstance(seen[-1].decisions[-1], RunEnded)
            assert [turn.seq async for turn in system.watch(run_id, after=seen[-2].seq)] == [seen[-1].seq]

    play(story())


def test_a_watcher_leaves_when_the_run_waits_for_a_person() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), scripted(calls("keep", text="x"), tools=[keep]))
            assert [turn async for turn in system.watch(run_id)]
            assert (await system.result(run_id)).waiting_for is not None

    play(story())


def test_runs_of_one_system_go_on_beside_each_other_and_beside_their_host() -> None:
    async def story() -> None:
        async with in_memory() as system:
            kits = [scripted({"text": f"answer {number}", "delay_ms": 20}) for number in range(3)]
            responses = await asyncio.gather(*(system.run(request(), kit) for kit in kits))
        assert [response.content for response in responses] == ["answer 0", "answer 1", "answer 2"]

    play(story())


async def _watched(system: System, run_id: str) -> None:
    _ = [turn async for turn in system.watch(run_id)]


@pytest.mark.parametrize(
    "say",
    [
        lambda system: system.result("nobody"),
        lambda system: system.resume("nobody"),
        lambda system: system.signal(signal(Signal.CANCEL, "nobody")),
        lambda system: system.note("nobody", "ada", "key", "1"),
        lambda system: _watched(system, "nobody"),
    ],
)
def test_a_run_that_nobody_started_is_not_found_by_any_verb(say: Callable[[System], Awaitable[object]]) -> None:
    async def story() -> None:
        async with in_memory() as system:
            with pytest.raises(RequestRejected) as refused:
                await say(system)
        assert refused.value.code == RUN_NOT_FOUND

    play(story())


def test_a_plan_is_asked_for_with_a_plan_or_a_planner() -> None:
    async def story() -> None:
        async with in_memory() as system:
            with pytest.raises(RequestRejected) as refused:
                await system.run(replace(request(), mode=Mode.PLAN), scripted({"text": "hello"}))
            assert refused.value.code == PLAN_MISSING
            assert await system.store.catalogue.entries() == []

    play(story())


ASKS_IN_VAIN = Graph(
    "vain",
    "think",
    (Node("think", NodeKind.MODEL, ask=Ask(grammar="root ::= nobody")), *TERMINALS),
    (Edge("think", "done"),),
    EXITS,
)


@pytest.mark.parametrize(
    ("asked", "terms", "named"),
    [
        (replace(request(), output=OutputContract(grammar="root ::= nobody")), Terms(), "nobody"),
        (request(), Terms(graph=ASKS_IN_VAIN), "node 'think' of graph 'vain'"),
    ],
)
def test_a_grammar_that_is_none_is_refused_at_the_door(asked: SystemRequest, terms: Terms, named: str) -> None:
    async def story() -> None:
        async with in_memory() as system:
            with pytest.raises(RequestRejected, match=named) as refused:
                await system.run(asked, scripted({"text": "hello"}), terms)
            assert refused.value.code == GRAMMAR_INVALID
            assert await system.store.catalogue.entries() == []

    play(story())


def test_an_answer_to_a_question_lets_the_run_go_on() -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = scripted(calls("keep", text="x"), {"text": "done"}, tools=[keep])
            waiting = (await system.run(request(), kit)).waiting_for
            assert waiting is not None
            await system.signal(approval(waiting.packet_ids[0]))
            response = await system.result(waiting.packet_ids[0].partition("/")[0])
        assert (response.content, response.tool_calls_made[0].status) == ("done", CallStatus.COMMITTED)

    play(story())


@pytest.mark.req("2.20")
@pytest.mark.parametrize("kind", STORES)
def test_a_cancel_reaches_a_run_in_the_middle_of_a_model_call(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            run_id = await system.submit(request(), scripted(SLOW))
            await system.signal(signal(Signal.CANCEL, run_id, reason="enough"))
            response = await system.result(run_id)
        assert response.terminal_code is Ending.USER_CANCEL
        assert response.error is not None
        assert response.error.message == "cancelled by ada: enough"

    play(story())


@pytest.mark.req("4.49")
def test_a_retry_makes_a_fork_that_names_its_parent_and_leaves_the_failed_run_as_it_was() -> None:
    async def story() -> None:
        kit = scripted({"text": "hello", "delay_ms": 50})
        async with in_memory() as system:
            run_id = await system.submit(request(), kit)
            await system.signal(signal(Signal.CANCEL, run_id))
            failed = await system.result(run_id)
            heard = await system.signal(signal(Signal.RETRY, run_id), kit=kit)
            again = await system.result(heard.fork_id)
            origin = pinned(await system.state_of(heard.fork_id)).forked_from
            assert isinstance(origin, Origin)
            assert (origin.run_id, again.content, again.terminal_code) == (run_id, "hello", Ending.SUCCESS)
            assert (await system.result(run_id)).terminal_code is failed.terminal_code is Ending.USER_CANCEL

    play(story())


@pytest.mark.req("4.49")
def test_a_run_that_succeeded_is_tried_again_only_with_a_reason_which_the_model_is_told() -> None:
    async def story() -> None:
        kit = scripted({"text": "hello"})
        async with in_memory() as system:
            response = await system.run(request(), kit)
            for reason in ({}, {"reason": "  "}):
                with pytest.raises(RemitError, match="NOT_RETRYABLE"):
                    await system.signal(signal(Signal.RETRY, response.run_id, **reason))
            heard = await system.signal(signal(Signal.RETRY, response.run_id, reason="too short"), kit=kit)
            await system.result(heard.fork_id)
            fork = await system.state_of(heard.fork_id)
            assert any(isinstance(said, Message) and said.content == "too short" for said in fork.talk.context)
            assert (await system.result(response.run_id)).terminal_code is Ending.SUCCESS

    play(story())


def test_a_system_that_is_closed_tells_its_waiters_and_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of("embedded", tmp_path)
        async with unaudited(store) as (system,):
            waiting = asyncio.create_task(system.run(request(), scripted(SLOW)))

            async def is_listed() -> bool:
                return bool(await store.catalogue.entries())

            await until(is_listed)
            (entry,) = await store.catalogue.entries()
            await system.close()
            with pytest.raises(RemitError) as told:
                await waiting
            assert told.value.code == SYSTEM_CLOSED
        async with unaudited(store_of("embedded", tmp_path)) as (again,):
            assert (await again.resume(entry.run_id, kit=scripted({"text": "hello"}))).content == "hello"

    play(story())


def test_a_caller_that_stops_waiting_does_not_stop_the_run() -> None:
    async def story() -> None:
        async with in_memory() as system:
            waiting = asyncio.create_task(system.run(request(), scripted({"text": "hello", "delay_ms": 30})))

            async def is_listed() -> bool:
                return bool(await system.store.catalogue.entries())

            await until(is_listed)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            (entry,) = await system.store.catalogue.entries()
            assert (await system.result(entry.run_id)).content == "hello"

    play(story())


def test_an_ended_run_is_resumed_without_its_engine_and_tells_how_it_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of("embedded", tmp_path)) as (system,):
            response = await system.run(request(), scripted({"text": "hello"}))
        async with systems(store_of("embedded", tmp_path)) as (again,):
            assert await again.resume(response.run_id) == response

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_run_that_another_process_drives_cannot_be_resumed_but_hears_signals(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        first = store_of(kind, tmp_path)
        second = first if kind == "memory" else store_of(kind, tmp_path)
        async with systems(first, second) as (holder, other):
            run_id = await holder.submit(request(), scripted(SLOW))
            with pytest.raises(RemitError) as refused:
                await other.resume(run_id)
            assert refused.value.code == RUN_HELD
            await other.signal(signal(Signal.FEEDBACK, run_id, text="be brief"))
            with pytest.raises(RemitError, match="NOT_PAUSED"):
                await other.signal(signal(Signal.RESUME, run_id))
            await other.signal(signal(Signal.CANCEL, run_id))
            assert (await holder.result(run_id)).terminal_code is Ending.USER_CANCEL
            assert (await other.result(run_id)).terminal_code is Ending.USER_CANCEL

    play(story())


def test_a_retry_that_another_process_heard_is_still_made() -> None:
    async def story() -> None:
        store = store_of("memory", Path())
        kit = scripted({"text": "hello", "delay_ms": 50})
        async with systems(store, store) as (holder, other):
            run_id = await holder.submit(request(), kit)
            await holder.signal(signal(Signal.CANCEL, run_id))
            await holder.result(run_id)
            token = await store.leases.take(run_id)
            assert token is not None
            asked = asyncio.create_task(other.signal(signal(Signal.RETRY, run_id), kit=kit))

            async def is_left() -> bool:
                return bool(await store.inbox.pending(after=0))

            await until(is_left)
            await store.leases.release(run_id, token)
            heard = await asked
            assert (await other.result(heard.fork_id)).content == "hello"

    play(story())


def test_a_tool_file_that_changed_is_refused_until_a_person_accepts_it(tmp_path: Path) -> None:
    text = (
        "from remit import tool\n\n"
        "@tool(effect='write', idempotent=True)\n"
        "def store(text: str) -> str:\n    '''Store it.'''\n    return 'stored ' + text\n"
    )
    file, script = tmp_path / "tools.py", tmp_path / "replies.json"
    file.write_text(text)
    script.write_text('{"replies": [{"tool_calls": [{"name": "store", "arguments": {"text": "x"}}]}, {"text": "ok"}]}')

    async def story() -> None:
        async with systems(store_of("embedded", tmp_path / "home")) as (system,):
            kit = engine_kit(open_engine(f"scripted:{script}", base=tmp_path), load_tools(str(file)))
            waiting = (await system.run(request(), kit)).waiting_for
        assert waiting is not None
        file.write_text(text.replace("'stored '", "'kept '"))
        run_id = waiting.packet_ids[0].partition("/")[0]
        async with systems(store_of("embedded", tmp_path / "home")) as (system,):
            with pytest.raises(RemitError) as refused:
                await system.signal(approval(waiting.packet_ids[0]))
            assert refused.value.code == TOOL_SOURCE_CHANGED
            source = (await system.state_of(run_id)).sources["store"]
            accepted = (replace(source, digest=str(refused.value.details["found"])),)
            anew = (await system.resume(run_id, accepted=accepted, by="ada")).waiting_for
            assert anew is not None
            with pytest.raises(RemitError) as replayed:
                await system.signal(approval(waiting.packet_ids[0]))
            assert replayed.value.code == "QUESTION_SETTLED"
            assert f"and is asked as {anew.packet_ids[0]} now" in replayed.value.message
            await system.signal(approval(anew.packet_ids[0]))
            response = await system.result(run_id)
            assert (response.content, response.tool_calls_made[0].result) == ("ok", "kept x")

    play(story())


def test_an_entry_is_noted_for_the_session_of_a_run() -> None:
    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(request(session_id="s"), scripted({"text": "hello"}))
            await system.note(response.run_id, "ada", "language", '"en"')
            assert (await system.session("s")).entries == (("language", '"en"'),)

    play(story())


@pytest.mark.parametrize(
    ("key", "value"), [("", "1"), ("a\nb", "1"), ("a" * 257, "1"), ("a", "no json"), ("a", '"' + "x" * 5000 + '"')]
)
def test_an_entry_that_no_session_should_keep_is_refused(key: str, value: str) -> None:
    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(request(session_id="s"), scripted({"text": "hello"}))
            with pytest.raises(RequestRejected) as refused:
                await system.note(response.run_id, "ada", key, value)
            assert refused.value.code == SESSION_ENTRY_INVALID
            assert (await system.session("s")).entries == ()

    play(story())


def test_a_run_within_its_limits_hears_that_they_are_reached() -> None:
    async def story() -> None:
        async with in_memory() as system:
            limited = replace(request(), hints=ExecutionHints(max_iterations=1))
            response = await system.run(limited, scripted(calls("look", at="a"), calls("look", at="b"), tools=[look]))
        assert response.error is not None
        assert response.error.code == ErrorCode.ORCHESTRATION_ITERATION_LIMIT

    play(story())
