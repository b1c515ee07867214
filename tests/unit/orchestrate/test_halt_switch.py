"""Halting dispatch: nothing goes out, in any process on the store; what was under way is called off, and nothing is lost."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit.agents.guard_in_memory import GuardInMemory
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RequestRejected
from remit.core.journal.signing import Signer
from remit.core.journal.storage import AppendConflict, Barrier, Losses, SignedHead
from remit.core.run.contract import HaltedBy, SystemRequest
from remit.core.run.halt import HALT_UNKNOWN, HALTED, HALTS, Halt, HaltKind, HaltScope
from remit.core.run.messages import user_message
from remit.core.run.signals import Signal
from remit.inference.chain import ChainEngine
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.facade import System
from remit.orchestrate.loop.halt_switch import HALT_INVALID, Halts
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import (
    STORES,
    calls,
    helper,
    in_memory,
    request,
    scripted,
    signal,
    store_of,
    systems,
    unaudited,
    until,
)
from tests.unit.orchestrate.house import look as seen

DONE = {"text": "Done."}


class Hands:
    """Tools that note when they begin and when they are told to stop; each waits until it is let go."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.stopped: list[str] = []
        self.go = asyncio.Event()

    def tool(self, name: str, effect: str, **declared: Any) -> Tool:
        async def work(at: str = "") -> str:
            """Work."""
            self.began.append(name)
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.stopped.append(name)
                raise
            return "worked"

        work.__name__ = name
        return tool(effect=effect, timeout_ms=60_000, **declared)(work)


async def asked_to_stop(system: System, why: str = "smoke", **scope: str) -> Halt:
    return (await system.halt(why, by="ada", **scope)).halt


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("scope", [{}, {"tenant": "acme"}, {"model": "scripted"}, {"model": "scripted:none"}])
def test_while_everything_its_tenant_or_its_model_is_halted_no_run_begins(
    kind: str, scope: dict[str, str], tmp_path: Path
) -> None:
    async def scene() -> None:
        async with systems(store_of(kind, tmp_path / "store")) as (system,):
            engine = ScriptedEngine([DONE])
            name = engine.model_info().name
            wanted = {key: name if key == "model" else value for key, value in scope.items()}
            await asked_to_stop(system, **wanted)
            asked = SystemRequest((user_message("please"),), tenant_id="acme")
            with pytest.raises(RequestRejected) as raised:
                await system.run(asked, engine_kit(engine))
            assert raised.value.code == HALTED
            assert "halted by ada: smoke" in raised.value.message
            await system.lift(by="bob", **wanted)
            assert (await system.run(asked, engine_kit(engine))).terminal_code is Ending.SUCCESS

    asyncio.run(scene())


def test_a_run_that_nothing_halted_stands_in_the_way_of_goes_on() -> None:
    async def scene() -> None:
        async with in_memory() as system:
            await asked_to_stop(system, tenant="acme")
            await asked_to_stop(system, tool="pay")
            await asked_to_stop(system, model="other")
            kit = scripted(calls("look", at="it"), DONE, tools=[seen])
            assert (await system.run(request(), kit)).terminal_code is Ending.SUCCESS

    asyncio.run(scene())


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_call_that_is_held_back_was_not_made_and_is_made_once_after_the_lift(
    kind: str, effect: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        hands = Hands()
        hands.go.set()
        kit = scripted(calls("work", at="it"), DONE, tools=[hands.tool("work", effect, idempotent=False)])
        async with systems(store_of(kind, tmp_path / "store")) as (system,):
            await asked_to_stop(system, tool="work")
            response = await system.run(request(), kit, Terms())
            if response.waiting_for is not None:
                (packet,) = response.waiting_for.packet_ids
                await system.signal(signal(Signal.APPROVE, response.run_id, packet_id=packet))
                response = await system.result(response.run_id)
            assert hands.began == []
            assert response.halted == HaltedBy("tool work", "ada", "smoke")
            with pytest.raises(RequestRejected) as raised:
                await system.resume(response.run_id, kit=kit)
            assert raised.value.code == HALTED
            with pytest.raises(RequestRejected):
                await system.signal(signal(Signal.RESUME, response.run_id), kit=kit)
            (entry,) = await system.archive.runs()
            assert entry.waiting_for == HALTED
            await system.lift(by="bob", tool="work")
            again = await system.resume(response.run_id, kit=kit)
            assert again.terminal_code is not None
            assert hands.began == ["work"]

    asyncio.run(scene())


def test_a_signal_resumes_a_halted_run_too_once_the_halt_is_lifted() -> None:
    async def scene() -> None:
        async with in_memory() as system:
            await asked_to_stop(system, tool="look")
            kit = scripted(calls("look", at="it"), DONE, tools=[seen])
            run_id = (await system.run(request(), kit)).run_id
            await system.lift(by="bob", tool="look")
            await system.signal(signal(Signal.RESUME, run_id), kit=kit)
            assert (await system.result(run_id)).terminal_code is Ending.SUCCESS

    asyncio.run(scene())


async def halted_elsewhere(
    home: Path, kit: Kit, is_under_way: Callable[[], bool], scene: Callable[[System, System, str], Any], **scope: str
) -> None:
    """A run is driven by one process; another halts it, and then the scene is played by both."""
    async with systems(EmbeddedStore.open(home), EmbeddedStore.open(home)) as (driver, other):
        run_id = await driver.submit(request(), kit)

        async def began() -> bool:
            return is_under_way()

        await until(began)
        done = await other.halt("smoke", by="ada", **({"run": run_id} if scope == {"run": "it"} else scope))
        assert done.under_way == ()
        await driver.settle()
        await scene(driver, other, run_id)


@pytest.mark.parametrize("scope", [{}, {"run": "it"}, {"model": "scripted"}])
def test_a_model_call_under_way_in_another_process_is_called_off_and_made_again_after_the_lift(
    scope: dict[str, str], tmp_path: Path
) -> None:
    engine = ScriptedEngine([{"delay_ms": 60_000, **DONE}])
    scope = {key: engine.model_info().name if key == "model" else value for key, value in scope.items()}

    async def scene(driver: System, other: System, run_id: str) -> None:
        response = await driver.result(run_id)
        assert response.halted is not None
        assert response.halted.by == "ada"
        (halt,) = other.halts()
        await other.lift(by="bob", **({halt.scope.kind.value: halt.scope.name} if halt.scope.name else {}))
        quick = engine_kit(ScriptedEngine([DONE]))
        assert (await other.resume(run_id, kit=quick)).terminal_code is Ending.SUCCESS

    asyncio.run(halted_elsewhere(tmp_path / "store", engine_kit(engine), lambda: True, scene, **scope))


@pytest.mark.parametrize("is_beside_others", [False, True])
def test_a_read_under_way_is_told_to_stop_and_repeated_after_the_lift(is_beside_others: bool, tmp_path: Path) -> None:
    async def play() -> None:
        hands = Hands()
        both = {"tool_calls": [{"name": "work", "arguments": {"at": at}} for at in ("a", "b")[: 1 + is_beside_others]]}
        kit = scripted(both, DONE, tools=[hands.tool("work", "read")])
        count = 1 + is_beside_others

        async def scene(driver: System, other: System, run_id: str) -> None:
            assert hands.stopped == ["work"] * count
            assert (await driver.result(run_id)).halted is not None
            await other.lift(by="bob")
            hands.go.set()
            assert (await driver.resume(run_id, kit=kit)).terminal_code is Ending.SUCCESS
            assert hands.began == ["work"] * (2 * count)

        await halted_elsewhere(tmp_path / "store", kit, lambda: len(hands.began) == count, scene)

    asyncio.run(play())


def test_a_mutating_call_under_way_is_in_doubt_and_a_person_is_asked_after_the_lift(tmp_path: Path) -> None:
    async def play() -> None:
        hands = Hands()
        kit = scripted(calls("work", at="it"), DONE, tools=[hands.tool("work", "write", idempotent=False)])
        async with systems(EmbeddedStore.open(tmp_path / "store")) as (system,):
            asked = await system.run(request(), kit)
            assert asked.waiting_for is not None
            (packet,) = asked.waiting_for.packet_ids
            await system.signal(signal(Signal.APPROVE, asked.run_id, packet_id=packet))

            async def began() -> bool:
                return bool(hands.began)

            await until(began)
            await asked_to_stop(system, tool="work")
            response = await system.result(asked.run_id)
            assert response.halted is not None
            assert [call.status.value for call in response.tool_calls_made] == ["outcome_unknown"]
            await system.lift(by="bob", tool="work")
            later = await system.resume(asked.run_id, kit=kit)
            assert hands.began == ["work"], "a call in doubt is not made again"
            assert later.waiting_for is not None, "a person is asked what became of it"

    asyncio.run(play())


def test_a_halt_of_a_run_reaches_its_children_and_the_lift_lets_the_family_go_on(tmp_path: Path) -> None:
    async def play() -> None:
        hands = Hands()
        kit = engine_kit(
            ScriptedEngine([{"when": "dig", **calls("work", at="it")}, calls("helper", task="dig"), DONE, DONE]),
            Registry([helper, hands.tool("work", "read")]),
        )

        async def scene(driver: System, other: System, run_id: str) -> None:
            family = await driver.archive.runs(with_children=True)
            assert {entry.waiting_for for entry in family} == {HALTED}
            await other.lift(by="bob", run=run_id)
            hands.go.set()
            assert (await driver.resume(run_id, kit=kit)).terminal_code is not None
            assert all(entry.ending for entry in await driver.archive.runs(with_children=True))

        await halted_elsewhere(tmp_path / "store", kit, lambda: bool(hands.began), scene, run="it")

    asyncio.run(play())


def test_a_run_whose_child_is_halted_says_so_and_goes_on_after_the_lift(tmp_path: Path) -> None:
    async def play() -> None:
        hands = Hands()
        kit = engine_kit(
            ScriptedEngine([{"when": "dig", **calls("work", at="it")}, calls("helper", task="dig"), DONE, DONE]),
            Registry([helper, hands.tool("work", "read")]),
        )

        async def scene(driver: System, other: System, run_id: str) -> None:
            assert (await driver.result(run_id)).halted == HaltedBy("tool work", "ada", "smoke")
            await other.lift(by="bob", tool="work")
            hands.go.set()
            assert (await driver.resume(run_id, kit=kit)).terminal_code is not None

        await halted_elsewhere(tmp_path / "store", kit, lambda: bool(hands.began), scene, tool="work")

    asyncio.run(play())


def test_a_tool_that_was_waited_for_is_asked_about_again_just_before_it_is_called() -> None:
    async def play() -> None:
        hands = Hands()
        async with in_memory() as system:

            async def available() -> bool:
                await system._halts.write(HaltScope(HaltKind.TOOL, "work"), by="ada", why="smoke")
                return True

            kit = scripted(calls("work", at="it"), DONE, tools=[hands.tool("work", "read", available=available)])
            response = await system.run(request(), kit)
            assert response.halted is not None
            assert hands.began == []

    asyncio.run(play())


def test_a_member_of_a_chain_that_is_halted_holds_the_chain() -> None:
    async def play() -> None:
        chain = ChainEngine([ScriptedEngine([DONE]), ScriptedEngine([DONE])])
        async with in_memory() as system:
            await asked_to_stop(system, model=ScriptedEngine([DONE]).model_info().name)
            with pytest.raises(RequestRejected) as raised:
                await system.run(request(), engine_kit(chain))
            assert raised.value.code == HALTED

    asyncio.run(play())


@pytest.mark.parametrize(
    ("scope", "by", "why"),
    [
        ({"tool": "a", "model": "b"}, "ada", "why"),
        ({"tool": "a" * 300}, "ada", "why"),
        ({"tool": "a\x00b"}, "ada", "why"),
        ({}, "", "why"),
        ({}, "a" * 300, "why"),
        ({}, "ada", "w" * 2_000),
    ],
)
def test_a_halt_that_cannot_be_written_down_is_refused(scope: dict[str, str], by: str, why: str) -> None:
    async def play() -> None:
        async with in_memory() as system:
            with pytest.raises(RequestRejected) as raised:
                await system.halt(why, by=by, **scope)
            assert raised.value.code == HALT_INVALID
            assert system.halts() == ()

    asyncio.run(play())


@pytest.mark.parametrize("scope", [HaltScope(HaltKind.TOOL), HaltScope(HaltKind.EVERYTHING, "all")])
def test_a_scope_has_a_name_exactly_where_it_needs_one(scope: HaltScope) -> None:
    async def play() -> None:
        async with in_memory() as system:
            with pytest.raises(RequestRejected) as raised:
                await system._halts.write(scope, by="ada", why="why")
            assert raised.value.code == HALT_INVALID

    asyncio.run(play())


def test_only_what_is_halted_can_be_lifted() -> None:
    async def play() -> None:
        async with in_memory() as system:
            await asked_to_stop(system, tool="pay")
            with pytest.raises(RequestRejected) as raised:
                await system.lift(by="ada")
            assert raised.value.code == HALT_UNKNOWN
            assert "halted are: tool pay" in raised.value.message

    asyncio.run(play())


def test_of_two_who_halt_at_once_both_are_written(tmp_path: Path) -> None:
    async def play() -> None:
        home = tmp_path / "store"
        async with systems(EmbeddedStore.open(home), EmbeddedStore.open(home)) as made:
            await asyncio.gather(*(system.halt("smoke", by="ada", tool=f"t{at}") for at, system in enumerate(made)))
            for system in made:
                assert {str(halt.scope) for halt in system.halts()} == {"tool t0", "tool t1"}
                assert [entry.number for entry in system._halts.entries] == [1, 2]

    asyncio.run(play())


def test_a_journal_of_halts_that_is_always_a_step_ahead_is_given_up_on() -> None:
    class Ahead:
        async def refresh(self) -> None:
            pass

        def news(self, number: int) -> list[bytes]:
            return []

        def since(self, number: int) -> list[bytes]:
            return []

        def signed(self) -> tuple[int, bytes]:
            return 0, b""

        async def append(self, data: bytes, *, after: int, head: SignedHead | None = None) -> None:
            raise AppendConflict(HALTS)

    class Noon:
        def now_ms(self) -> int:
            return 0

    with pytest.raises(RequestRejected) as raised:
        asyncio.run(Halts(Ahead(), Noon()).write(HaltScope(), by="ada", why="why"))
    assert raised.value.code == HALT_INVALID


def test_a_damaged_journal_of_halts_stops_everything(tmp_path: Path) -> None:
    async def play() -> None:
        store = EmbeddedStore.open(tmp_path / "store")
        async with unaudited(store) as (system,):
            kit = scripted(calls("look", at="it"), DONE, tools=[seen])
            await store.journal.append(HALTS, b"nonsense", -1, Barrier())
            with pytest.raises(Exception, match="does not decode"):
                await system.run(request(), kit)
            stopping = system._halts.stopping
            halt = stopping(None, None)  # type: ignore[arg-type]  # nothing is looked at
            assert halt is not None
            assert halt.by == "remit"
            found = await system.archive.verify_halts()
            assert any("does not decode" in one for one in found)

    asyncio.run(play())


def test_the_journal_of_halts_verifies_and_shows_what_was_altered(tmp_path: Path) -> None:
    async def play() -> None:
        home = tmp_path / "store"
        store = EmbeddedStore.open(home)
        async with unaudited(store) as (system,):
            system.archive._signer = lambda: store.signer
            await asked_to_stop(system, tool="pay")
            await system.lift(by="bob", tool="pay")
            assert await system.archive.verify_halts() == ()
            store._connection.execute("DELETE FROM turns WHERE seq = 1")
            (found,) = await system.archive.verify_halts()
            assert found == "entry 2 was signed, and the journal ends with entry 1"
            store._connection.execute("UPDATE turns SET data = x'00'")
            found_all = await system.archive.verify_halts()
            assert "entry 1 is not the one that was signed" in found_all
            assert "no signed head vouches for entry 1" in found_all
            store._connection.execute("UPDATE heads SET signature = x'00'")
            assert any("not signed by the key" in one for one in await system.archive.verify_halts())
            assert await system.archive.runs() == []

    asyncio.run(play())


def test_a_store_without_a_key_has_its_entries_checked_all_the_same() -> None:
    async def play() -> None:
        async with unaudited(MemoryStore()) as (system,):
            await asked_to_stop(system)
            assert await system.archive.verify_halts() == ()

    asyncio.run(play())


def test_a_store_in_memory_with_a_key_vouches_for_its_entries() -> None:
    async def play() -> None:
        signer = Signer.generate()
        store = MemoryStore(signer)
        async with unaudited(store) as (system,):
            await asked_to_stop(system)
            assert await system.archive.verify_halts(signer.did) == ()
            # The journal of halts is no run, so none is missing.
            assert await store.log.losses() == Losses()

    asyncio.run(play())


@pytest.mark.parametrize(("scope", "is_begun"), [({}, False), ({"tenant": "acme"}, False), ({"tool": "pay"}, True)])
def test_a_guard_lets_nothing_pass_that_is_halted(scope: dict[str, str], is_begun: bool) -> None:
    async def play() -> None:
        async with in_memory() as system:
            judge = GuardInMemory(lambda: system._halts.standing)
            tools = [{"name": "pay", "effect": "read", "parameters": {"type": "object", "properties": {}}}]
            start = {"op": "start", "run": "r1", "prompt": "go", "tools": tools, "tenant": "acme"}
            call = {"op": "call", "run": "r1", "id": "c1", "tool": "pay", "args": {}}
            if not is_begun:
                await asked_to_stop(system, **scope)
                answer = judge.line(json.dumps(start).encode())
                assert answer is not None
                assert (answer["ok"], answer["code"]) == (False, HALTED)
                await system.lift(by="ada", **scope)
            assert judge.line(json.dumps(start).encode()) == {"ok": True}
            await asked_to_stop(system, **scope)
            answer = judge.line(json.dumps(call).encode())
            assert answer is not None
            assert (answer.get("decision"), answer["code"]) == (None, HALTED)
            await system.lift(by="ada", **scope)
            answer = judge.line(json.dumps(call).encode())
            assert answer is not None
            assert answer["decision"] == "allow"

    asyncio.run(play())
