"""What runs cost, asked of a system: the same sums as `remit cost`, within the tenant of the caller."""

from datetime import UTC, datetime

import pytest

from remit import Grouping, Prices, Principal, RemitError, Scope, user_message
from remit.core.failure import InvariantBroken
from remit.core.limits.budget import FIELDS
from remit.core.run.contract import SystemRequest
from remit.observe.linked_turns import History
from remit.orchestrate.facade import System
from tests.unit.orchestrate.house import calls, helper, in_memory, scripted
from tests.unit.orchestrate.stage import play

ANN = Principal("acme", "ann", (Scope.READ,))


async def run(system: System, tenant_id: str) -> str:
    request = SystemRequest((user_message("Say hello."),), tenant_id=tenant_id)
    return (await system.run(request, scripted({"text": "Hello."}))).run_id


def test_costs_are_told_by_tenant_by_day_and_by_run_and_add_up() -> None:
    async def story() -> None:
        async with in_memory() as system:
            ours, theirs = await run(system, "acme"), await run(system, "globex")
            by_run = await system.costs()
            assert {row.name for row in by_run.rows} == {ours, theirs}
            by_tenant = await system.costs(by="tenant")
            assert [(row.name, row.runs) for row in by_tenant.rows] == [("acme", 1), ("globex", 1)]
            (entry,) = [one for one in await system.archive.runs() if one.run_id == ours]
            began_ms = entry.listing.started_at_ms
            day = datetime.fromtimestamp(began_ms / 1000, UTC).date().isoformat()
            by_day = await system.costs(by=Grouping.DAY)
            assert day in [row.name for row in by_day.rows]
            assert by_run.total == by_tenant.total == by_day.total
            assert [row.name for row in (await system.costs(ours)).rows] == [ours]
            assert (await system.costs(since_ms=began_ms + 3_600_000)).rows == ()
            (one,) = (await system.costs(tenant_id="acme", prices=Prices(human_review_microusd=5))).rows
            assert one.name == ours

    play(story())


def test_a_principal_is_told_what_its_own_tenant_spent_and_nothing_of_others() -> None:
    async def story() -> None:
        async with in_memory() as system:
            ours, theirs = await run(system, "acme"), await run(system, "globex")
            ann = system.acting_for(ANN)
            assert [row.name for row in (await ann.costs()).rows] == [ours]
            assert [row.name for row in (await ann.costs(by="tenant")).rows] == ["acme"]
            for tenant in ("globex", "no-such-tenant"):
                assert (await ann.costs(tenant_id=tenant)).rows == ()
            for asked, code in (
                (ann.costs(theirs), "RUN_NOT_FOUND"),
                (ann.costs("no-such-run"), "RUN_NOT_FOUND"),
                (system.acting_for(Principal("acme", "bob")).costs(), "SCOPE_LACKING"),
                (system.costs(by="week"), "COSTS_INVALID"),
            ):
                with pytest.raises(RemitError) as refused:
                    await asked
                assert refused.value.code == code

    play(story())


def test_every_view_of_a_tree_tells_the_same_figures_as_its_cost() -> None:
    async def story() -> None:
        async with in_memory() as system:
            child = {"when": "count sheep", "text": "Twelve.", "usage": {"prompt_tokens": 900, "output_tokens": 2}}
            kit = scripted(child, calls("helper", task="count sheep"), {"text": "thanks"}, tools=[helper])
            tree = await system.run(SystemRequest((user_message("Count."),)), kit)
            (row,) = (await system.costs(tree.run_id)).rows
            told = {one.dimension: one.used for one in (await system.archive.told(tree.run_id)).explanation.spent}
            charged = {FIELDS[dimension]: used for dimension, used in row.used}
            assert {**told, "wall_clock_ms": 0} == {**charged, "wall_clock_ms": 0}
            assert (told["context_tokens"], told["depth"]) == (900, 1)

    play(story())


def test_a_run_that_cannot_be_read_is_named_and_in_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kept, damaged = await run(system, "acme"), await run(system, "acme")
            history = system.archive.history

            async def read(run_id: str) -> History:
                if run_id == damaged:
                    raise InvariantBroken("JOURNAL_CHAIN_BROKEN", "turn 1 is not there")
                return await history(run_id)

            monkeypatch.setattr(system.archive, "history", read)
            report = await system.costs()
            assert (report.unread, [row.name for row in report.rows]) == ((damaged,), [kept])

    play(story())
