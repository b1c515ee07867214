"""What a tenant may halt, page through and acknowledge, and what it is told of what others do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.codec import NO_HASH
from remit.core.journal.storage import RunEntry
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.queue import QueueLimits
from remit.core.limits.quota import Period, Quota
from remit.core.run.contract import SystemRequest
from remit.core.run.halt import HALT_UNKNOWN, HALTED, HaltKind
from remit.core.run.messages import user_message
from remit.core.run.principal import PRINCIPAL_FOREIGN, SCOPE_LACKING, Principal, Scope
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import calls, request, scripted, systems

EVERYTHING = tuple(scope for scope in Scope if scope is not Scope.OPERATE)
ADA, EVE = Principal("acme", "ada", EVERYTHING), Principal("acme", "eve", EVERYTHING)
BOB = Principal("globex", "bob", EVERYTHING)
OPERATOR = Principal("*", "op", tuple(Scope))


@tool(effect="external", category="email_calendar")
def change(what: str) -> str:
    """Change something."""
    return what


Scene = Callable[[System], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    """A scene on one store."""

    async def whole() -> None:
        async with systems(MemoryStore()) as (system,):
            await scene(system)

    asyncio.run(whole())


@asynccontextmanager
async def refused(code: str) -> AsyncIterator[RemitError]:
    """What is refused with a code."""
    with pytest.raises(RemitError) as caught:
        yield caught  # type: ignore[misc]
    assert caught.value.code == code


async def answered(system: System, principal: Principal, **fields: Any) -> str:
    """A run of a principal that has ended."""
    asked = SystemRequest((user_message("please"),), **fields)
    return (await system.acting_for(principal).run(asked, scripted({"text": "done"}))).run_id


async def asking(system: System, principal: Principal) -> str:
    """A run of a principal that waits for a person."""
    kit = scripted(calls("change", what="a"), {"text": "done"}, tools=[change])
    return (await system.acting_for(principal).run(request(), kit)).run_id


def test_a_tenant_halts_itself_and_its_runs_and_nothing_else() -> None:
    async def scene(system: System) -> None:
        ada, bob = system.acting_for(ADA), system.acting_for(BOB)
        run_id, others = await asking(system, ADA), await asking(system, BOB)
        halted = await ada.halt("odd", tenant="acme")
        assert (halted.halt.by, halted.halt.tenant_id) == ("ada", "acme")
        await ada.halt("odd", run=run_id)
        assert {halt.scope.kind for halt in ada.halts()} == {HaltKind.TENANT, HaltKind.RUN}
        assert {(halt.number, halt.previous) for halt in ada.halts()} == {(0, NO_HASH)}
        assert bob.halts() == ()
        assert len(system.halts()) == 2
        async with refused(HALTED):
            await answered(system, ADA)
        await answered(system, BOB)
        async with refused("RUN_NOT_FOUND"):
            await ada.halt("odd", run=others)
        async with refused(PRINCIPAL_FOREIGN):
            await ada.halt("odd", tenant="globex")
        async with refused(SCOPE_LACKING):
            await ada.halt("odd")
        async with refused(HALT_UNKNOWN):
            await bob.lift(tenant="globex")
        lifted = await ada.lift(tenant="acme")
        assert (lifted.is_lift, lifted.by) == (True, "ada")
        await ada.lift(run=run_id)
        assert system.halts() == ()

    play(scene)


def test_what_the_operator_halted_no_tenant_lifts() -> None:
    async def scene(system: System) -> None:
        await system.acting_for(OPERATOR).halt("unpaid", tenant="acme")
        await system.halt("look", by="op", tool="change")
        ada = system.acting_for(ADA)
        assert [str(halt.scope) for halt in ada.halts()] == ["tenant acme", "tool change"]
        assert [str(halt.scope) for halt in system.acting_for(BOB).halts()] == ["tool change"]
        async with refused(SCOPE_LACKING):
            await ada.lift(tenant="acme")
        await system.acting_for(OPERATOR).lift(tenant="acme")
        assert [str(halt.scope) for halt in ada.halts()] == ["tool change"]

    play(scene)


def test_runs_are_read_page_by_page_within_a_tenant() -> None:
    async def scene(system: System) -> None:
        mine = [await answered(system, principal) for principal in (ADA, BOB, ADA, BOB, ADA)][::2]
        archive = system.acting_for(ADA).archive
        pages: list[list[RunEntry]] = []
        while page := await archive.runs(before=pages[-1][-1].run_id if pages else "", limit=2):
            pages.append(page)
        assert [entry.run_id for page in pages for entry in page] == mine[::-1]
        assert [len(page) for page in pages] == [2, 1]
        async with refused("RUN_NOT_FOUND"):
            await archive.runs(before="nobody")

    play(scene)


def test_a_page_lists_a_run_above_one_that_asks_as_it_stands() -> None:
    async def scene(system: System) -> None:
        run_id = await asking(system, ADA)
        (entry,) = await system.acting_for(ADA).archive.runs(waiting_only=True, limit=1)
        assert (entry.run_id, entry.waiting_for) == (run_id, "CONFIRM_REQUIRED")

    play(scene)


def test_a_queue_has_its_room_for_each_tenant() -> None:
    async def whole() -> None:
        from remit.assemble import system_on

        system = system_on(MemoryStore(), queues=[QueueLimits("user", load_max=1)])
        try:
            ours = [await asking(system, principal) for principal in (ADA, BOB, ADA)]
            items = {item.run_id: item for item in await system.queues.items()}
            (queue,) = {item.queue for item in items.values()}
            assert queue == "user"
            assert [items[run_id].is_outside for run_id in ours] == [False, False, True]
            assert [items[run_id].tenant_id for run_id in ours] == ["acme", "globex", "acme"]
            eve = system.acting_for(EVE)
            assert {item.run_id for item in await eve.queues.items()} == {ours[0], ours[2]}
            (late,) = [item.id for item in await eve.queues.items() if item.is_outside]
            yes = UserSignal("s", Signal.APPROVE, ours[2], "", payload={"packet_id": late})
            with pytest.raises(RequestRejected) as full:
                await eve.signal(yes)
            assert full.value.code == "QUEUE_FULL"
            assert ours[1] not in full.value.message
        finally:
            await system.close()

    asyncio.run(whole())


def test_an_ending_is_acknowledged_by_its_tenant_in_the_name_of_the_principal() -> None:
    async def scene(system: System) -> None:
        spent = Terms(Boundary("small"), Budget(output_tokens=0))
        run_id = (await system.acting_for(ADA).run(request(), scripted({"text": "Done."}), spent)).run_id
        eve = system.acting_for(EVE)
        (item,) = await eve.queues.items()
        assert (item.run_id, item.tenant_id) == (run_id, "acme")
        async with refused("RUN_NOT_FOUND"):
            await system.acting_for(BOB).queues.acknowledge(run_id, "")
        async with refused(PRINCIPAL_FOREIGN):
            await eve.queues.acknowledge(run_id, "bob")
        reader = system.acting_for(Principal("acme", "rea", (Scope.READ,)))
        async with refused(SCOPE_LACKING):
            await reader.queues.acknowledge(run_id, "")
        assert (await eve.queues.acknowledge(run_id, "")).by == "eve"
        assert await eve.queues.items() == []
        assert await system.acting_for(BOB).queues.items() == []

    play(scene)


def test_quotas_are_told_of_ones_own_tenant_alone() -> None:
    async def whole() -> None:
        from remit.assemble import system_on

        quotas = [Quota("acme", Period.DAY, Budget(steps=500)), Quota("globex", Period.DAY, Budget(steps=9))]
        system = system_on(MemoryStore(), quotas=quotas)
        try:
            acting = system.acting_for(ADA)
            assert await acting.quotas.tenants() == ["acme"]
            (at,) = await acting.quotas.standings("acme")
            assert (at.tenant, at.quota) == ("acme", 500)
            for name in ("globex", "nobody"):
                assert await acting.quotas.standings(name) == []
            assert await system.acting_for(OPERATOR).quotas.tenants() == ["acme", "globex"]
            (theirs,) = await system.acting_for(OPERATOR).quotas.standings("globex")
            assert theirs.quota == 9
        finally:
            await system.close()

    asyncio.run(whole())


def test_an_operator_with_a_name_sees_every_tenant_and_acts_under_it() -> None:
    async def scene(system: System) -> None:
        ours = {await answered(system, principal) for principal in (ADA, BOB)}
        op = system.acting_for(OPERATOR)
        assert {entry.run_id for entry in await op.archive.runs()} == ours
        asked = SystemRequest((user_message("please"),), tenant_id="acme")
        state = await op.state_of((await op.run(asked, scripted({"text": "done"}))).run_id)
        assert state.manifest is not None
        assert (state.manifest.request.tenant_id, state.manifest.started_by, state.manifest.owner) == ("acme", "op", "")
        await op.settle()
        removed = await op.delete(state.run_id)
        assert removed.runs == 1

    play(scene)


def test_a_tenant_deletes_and_redacts_its_own() -> None:
    async def scene(system: System) -> None:
        mine, others = await answered(system, ADA), await answered(system, BOB)
        ada = system.acting_for(ADA)
        for run_id in (others, "nobody"):
            async with refused("RUN_NOT_FOUND"):
                await ada.delete(run_id)
            async with refused("RUN_NOT_FOUND"):
                await ada.redact(run_id, text="please", why="shown")
        assert (await ada.delete(mine)).runs == 1
        async with refused("RUN_NOT_FOUND"):
            await ada.result(mine)
        await ada.settle(await answered(system, ADA))

    play(scene)


@tool(effect="read", network=False, permissions=["vault.open"])
def peek(what: str) -> str:
    """Look into the vault."""
    return what


def test_a_run_that_another_process_takes_up_still_acts_for_its_principal(tmp_path: Path) -> None:
    def kit() -> Kit:
        return scripted(calls("change", what="a"), calls("peek", what="a"), {"text": "done"}, tools=[change, peek])

    async def whole() -> None:
        terms = Terms(Boundary("wide", permissions=("vault.open",), budget=Budget(side_effects=5)))
        async with systems(EmbeddedStore.open(tmp_path)) as (system,):
            run_id = (await system.acting_for(ADA).run(request(), kit(), terms)).run_id
        async with systems(EmbeddedStore.open(tmp_path)) as (system,):
            # The person who answers has more than the run was begun with, which gives the run nothing.
            eve = system.acting_for(Principal("acme", "eve", ("*",)))
            (question,) = await eve.archive.approvals(run_id)
            await eve.signal(UserSignal("s", Signal.APPROVE, run_id, "", payload={"packet_id": question.id}), kit=kit())
            response = await eve.result(run_id)
            made = {call.name: call.code or "done" for call in response.tool_calls_made}
            assert made["peek"] == "PERMISSION_DENIED"
            assert made["change"] in ("done", "EFFECT_UNVERIFIED")

    asyncio.run(whole())


def test_losses_and_heads_are_those_of_the_tenants_runs() -> None:
    async def scene(system: System) -> None:
        mine, others = await answered(system, ADA), await answered(system, BOB)
        archive = system.acting_for(ADA).archive
        verified = [found.run_id async for found in archive.verify_all()]
        assert verified == [mine]
        assert (await archive.doubts()).runs == ()
        assert (await archive.verify(mine)).turns == 2
        async with refused("RUN_NOT_FOUND"):
            await archive.verify(others)
        log = archive._shelf.log
        assert await log.losses() == type(await log.losses())()
        assert (await log.last(others), await log.doubt(others, 3), await log.deletion(mine)) == (None, "", None)
        catalogue = archive._shelf.catalogue
        assert list(await catalogue.entries(tenant_id="globex")) == []
        assert list(await catalogue.alike("", limit=3)) == []

    play(scene)
