"""Quotas at work: caps within what a tenant has left, reserved with the first turn and settled with the last."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from remit.assemble import Settings, new_run_id, quotas_for
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, InvariantBroken, RequestRejected
from remit.core.journal.commands import ForkRun
from remit.core.journal.storage import AppendConflict, Barrier, QuotaConflict, RunListing
from remit.core.limits.budget import COUNTERS, STANDARD, UNCHARGED, Budget, Dimension
from remit.core.limits.quota import Committed, Limit, Period, Quota, quota_caps
from remit.core.record import JsonObject, replace
from remit.core.run.contract import Mode, OutputContract, SystemRequest
from remit.core.run.inference import Price
from remit.core.run.manifest import Manifest
from remit.core.run.signals import Signal
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState, pinned
from remit.orchestrate.facade import System
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.orchestrate.tenants import quota_ledger
from remit.orchestrate.tenants.quota_ledger import CONFLICTS_MAX, Quotas, charge_of, read_quotas
from tests.unit.orchestrate.house import (
    PATIENCE_S,
    STORES,
    approval,
    calls,
    helper,
    keep,
    look,
    request,
    scripted,
    signal,
    store_of,
)

TOKENS, STEPS = Dimension.OUTPUT_TOKENS, Dimension.STEPS
NOON = 1_704_110_400_000  # The first of January 2024.
DAY_MS = 86_400_000
THE_STORES = pytest.mark.parametrize("kind", STORES)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at_ms = NOON

    def now_ms(self) -> int:
        """What it was set to."""
        return self.at_ms


@asynccontextmanager
async def quoted(
    store: Store, *quotas: Quota, clock: Clock | None = None, kit: Kit | None = None
) -> AsyncIterator[System]:
    """A system under quotas. It leaves its store open for the next one."""

    async def find_kit(state: RunState) -> Kit:
        assert kit is not None, f"run {state.run_id} was taken up and has no kit"
        return kit

    system = System(store, clock=clock or Clock(), find_kit=find_kit, new_id=new_run_id, quotas=quotas)
    async with asyncio.timeout(PATIENCE_S):
        yield system
        await system.settle()
        await system._hub.close()
        await system._post.close()


def per_day(tenant: str = "acme", /, **caps: int) -> Quota:
    return Quota(tenant, Period.DAY, Budget(**caps))


def of(tenant: str = "acme", text: str = "please") -> SystemRequest:
    return replace(request(text), tenant_id=tenant)


def says(output_tokens: int, text: str = "done") -> JsonObject:
    return {"text": text, "usage": {"prompt_tokens": 5, "output_tokens": output_tokens}}


def terms(**caps: int) -> Terms:
    return Terms(budget=Budget(**caps))


async def tokens(system: System, tenant: str = "acme") -> tuple[int, int, int]:
    """What is spent, reserved and left of the first quota of a tenant."""
    at = (await system.quotas.standings(tenant))[0]
    return at.spent, at.reserved, at.left


async def caps_of(system: System, run_id: str) -> tuple[int, ...]:
    return pinned(await system.state_of(run_id)).caps


def asking(*replies: JsonObject) -> Kit:
    """A run that waits for a person to allow a write."""
    return scripted(calls("keep", text="x"), *replies or (says(3),), tools=[keep])


@pytest.mark.req("4.10")
@THE_STORES
def test_the_caps_of_a_run_are_what_boundary_request_and_quota_leave(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store = store_of(kind, tmp_path)
        async with quoted(
            store, per_day(output_tokens=100), Quota("acme", Period.TOTAL, Budget(tool_calls=7))
        ) as system:
            first = await system.run(of(), asking(), terms(output_tokens=60))
            caps = await caps_of(system, first.run_id)
            assert (caps[TOKENS], caps[Dimension.TOOL_CALLS]) == (60, 7)
            assert caps[STEPS] == STANDARD.steps
            assert await tokens(system) == (0, 60, 40)
            second = await system.run(of(), scripted(says(3)), terms(output_tokens=60))
            caps = await caps_of(system, second.run_id)
            # The first run holds every tool call there is; one can be begun without.
            assert (caps[TOKENS], caps[Dimension.TOOL_CALLS]) == (40, 0)
            assert await tokens(system) == (3, 60, 37)
        await store.close()

    asyncio.run(scene())


@pytest.mark.req("4.10")
@THE_STORES
def test_a_tenant_with_nothing_left_is_refused_at_the_door(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store = store_of(kind, tmp_path)
        async with quoted(store, per_day(output_tokens=100)) as system:
            held = await system.run(of(), asking(), terms(output_tokens=90))
            await system.run(of(), scripted(says(10)))
            with pytest.raises(RequestRejected, match="QUOTA_EXHAUSTED") as refused:
                await system.run(of(), scripted(says(1)))
            details = refused.value.details
            assert (details["tenant"], details["dimension"], details["quota"]) == ("acme", "output_tokens", 100)
            assert (details["spent"], details["reserved"], details["left"], details["needed"]) == (10, 90, 0, 1)
            assert details["renews_at"] == "2024-01-02T00:00:00Z"
            assert len(await store.catalogue.entries()) == 2
            # A user whose open run is ended gets back what it did not use.
            await system.signal(signal(Signal.CANCEL, held.run_id))
            await system.settle()
            spent, reserved, left = await tokens(system)
            assert (reserved, left) == (0, 100 - spent)
            assert (await system.run(of(), scripted(says(1)))).terminal_code is Ending.SUCCESS
        await store.close()

    asyncio.run(scene())


@THE_STORES
def test_what_a_run_did_not_use_is_released_when_it_ends(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store = store_of(kind, tmp_path)
        async with quoted(store, per_day(output_tokens=100, steps=1_000)) as system:
            response = await system.run(of(), scripted(says(12)))
            state = await system.state_of(response.run_id)
            assert await tokens(system) == (12, 0, 88)
            assert (await system.quotas.standings("acme"))[1].spent == state.used[STEPS]
        await store.close()

    asyncio.run(scene())


def test_everyone_who_is_not_named_has_the_quota_of_anyone_each_by_itself() -> None:
    async def scene() -> None:
        async with quoted(MemoryStore(), per_day(output_tokens=500), per_day("*", output_tokens=100)) as system:
            for tenant, left in (("acme", 488), ("zoe", 88), ("", 88)):
                await system.run(of(tenant), scripted(says(12)))
                assert (await tokens(system, tenant))[2] == left
            assert await system.quotas.tenants() == ["", "acme", "zoe"]

    asyncio.run(scene())


def test_a_tenant_without_a_quota_is_written_as_if_there_were_none() -> None:
    async def scene() -> None:
        store = MemoryStore()
        async with quoted(store, per_day(output_tokens=100)) as system:
            response = await system.run(of("zoe"), scripted(says(12)))
            assert (await caps_of(system, response.run_id))[TOKENS] == STANDARD.output_tokens
            assert await system.quotas.standings("zoe") == []
            assert await store.ledger.committed("zoe", quota_caps([per_day(output_tokens=1)], NOON)) == [Committed()]
            assert await system.quotas.tenants() == ["acme"]
        async with quoted(store) as system:
            assert system._quotas.journal is system._store.journal

    asyncio.run(scene())


def test_children_count_as_part_of_their_parent_and_never_by_themselves() -> None:
    async def scene() -> None:
        store = MemoryStore()
        kit = scripted(calls("helper", task="t"), says(7, "child"), says(2), tools=[helper])
        async with quoted(store, per_day(output_tokens=50_000)) as system:
            response = await system.run(of(), kit)
            assert len(await store.catalogue.entries()) == 2
            state = await system.state_of(response.run_id)
            assert state.used[Dimension.CHILD_RUNS] == 1
            assert await tokens(system) == (state.used[TOKENS], 0, 50_000 - state.used[TOKENS])
            assert list(await store.ledger.uncounted("acme", 0)) == []

    asyncio.run(scene())


def test_what_a_person_releases_beyond_the_caps_is_charged_when_the_run_ends() -> None:
    async def scene() -> None:
        store = MemoryStore()
        async with quoted(store, per_day(side_effects=0, steps=1_000)) as system:
            response = await system.run(of(), asking())
            assert (await caps_of(system, response.run_id))[Dimension.SIDE_EFFECTS] == 0
            assert response.waiting_for is not None
            await system.signal(approval(response.waiting_for.packet_ids[0]))
            await system.settle()
            at = (await system.quotas.standings("acme"))[0]
            assert (at.dimension, at.quota, at.spent, at.left) == ("side_effects", 0, 1, 0)
            # Nothing is left, and a run that needs none of it begins.
            assert (await system.run(of(), scripted(says(1)))).terminal_code is Ending.SUCCESS

    asyncio.run(scene())


@THE_STORES
def test_runs_that_begin_at_once_share_what_is_left(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store = store_of(kind, tmp_path)
        quota = per_day(output_tokens=100)
        async with quoted(store, quota) as system, quoted(store, quota) as other:
            submitted = [one.submit(of(), asking(), terms(output_tokens=30)) for one in (system, other) * 5]
            begun = await asyncio.gather(*submitted, return_exceptions=True)
            run_ids = [run_id for run_id in begun if isinstance(run_id, str)]
            refused = [error for error in begun if not isinstance(error, str)]
            assert sorted([(await caps_of(system, run_id))[TOKENS] for run_id in run_ids]) == [10, 30, 30, 30]
            assert all(isinstance(error, RequestRejected) and error.code == "QUOTA_EXHAUSTED" for error in refused)
            assert await tokens(system) == (0, 100, 0)
        await store.close()

    asyncio.run(scene())


@THE_STORES
def test_a_run_settles_in_the_period_in_which_it_began(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store, clock, kit = store_of(kind, tmp_path), Clock(), asking()
        async with quoted(store, per_day(output_tokens=5_000), clock=clock, kit=kit) as system:
            response = await system.run(of(), kit)
            clock.at_ms += DAY_MS
            assert await tokens(system) == (0, 0, 5_000)
            assert response.waiting_for is not None
            await system.signal(approval(response.waiting_for.packet_ids[0], Signal.REJECT))
            await system.settle()
            assert await tokens(system) == (0, 0, 5_000)
            clock.at_ms -= DAY_MS
            spent, reserved, _ = await tokens(system)
            assert (spent > 0, reserved) == (True, 0)
        await store.close()

    asyncio.run(scene())


async def play_many(system: System) -> None:
    """An ended run, one that waits, one with a child, one that was tried again, of two tenants."""
    await system.run(of(), scripted(says(12)))
    await system.run(of("zoe"), asking())
    await system.run(of(), scripted(calls("helper", task="t"), says(7), says(2), tools=[helper]))
    failed = await system.run(of(), FAILS)
    await system.signal(signal(Signal.RETRY, failed.run_id), kit=FAILS)
    await system.settle()


FAILS = scripted(calls("look", at="it"), {"error": "INFERENCE_CONTEXT_EXCEEDED"}, tools=[look])


def forget(store: Store, home: Path) -> None:
    """Lose all that the index knows."""
    if isinstance(store, MemoryStore):
        store.ledger._charges.clear()
        return
    with closing(sqlite3.connect(home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM charges")


@THE_STORES
def test_the_index_is_rebuilt_from_the_journals_to_the_same_figures(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store = store_of(kind, tmp_path)
        everything = dict.fromkeys(
            (dimension.name.lower() for dimension in COUNTERS if dimension not in UNCHARGED), 10**9
        )
        quotas = [Quota("*", period, Budget(**everything)) for period in Period]
        async with quoted(store, *quotas) as system:
            await play_many(system)
            before = [await system.quotas.standings(tenant) for tenant in ("acme", "zoe")]
            assert any(at.reserved for at in before[1])
            forget(store, tmp_path)
            assert all(at.left == at.quota for at in await system.quotas.standings("acme"))
            # Five runs without a parent; a child is none of them.
            assert await system._quotas.rebuild() == 5
            assert [await system.quotas.standings(tenant) for tenant in ("acme", "zoe")] == before
            await system._quotas.rebuild()
            assert [await system.quotas.standings(tenant) for tenant in ("acme", "zoe")] == before
        await store.close()

    asyncio.run(scene())


@THE_STORES
def test_a_quota_that_comes_later_counts_what_there_was(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store = store_of(kind, tmp_path)
        async with quoted(store) as system:
            await system.run(of(), scripted(says(12)))
            await system.run(of(), asking(), terms(output_tokens=50))
        async with quoted(store, per_day(output_tokens=100)) as system:
            assert await tokens(system) == (12, 50, 38)
        await store.close()

    asyncio.run(scene())


@THE_STORES
def test_a_run_that_ended_where_no_system_knew_the_quota_is_counted_when_a_system_does(
    kind: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        store, kit = store_of(kind, tmp_path), asking()
        async with quoted(store, per_day(output_tokens=5_000)) as system:
            response = await system.run(of(), kit)
            assert await tokens(system) == (0, 5_000, 0)
        async with quoted(store, kit=kit) as system:
            await system.signal(signal(Signal.CANCEL, response.run_id))
            await system.settle()
            used = (await system.state_of(response.run_id)).used[TOKENS]
        async with quoted(store, per_day(output_tokens=5_000)) as system:
            assert await tokens(system) == (used, 0, 5_000 - used)
        await store.close()

    asyncio.run(scene())


@THE_STORES
def test_a_fork_counts_with_what_it_adds_from_when_it_began(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store, clock = store_of(kind, tmp_path), Clock()
        async with quoted(store, per_day(output_tokens=50_000), clock=clock) as system:
            failed = await system.run(of(), FAILS)
            (first_day,) = await system.quotas.standings("acme")
            clock.at_ms += DAY_MS
            succeeds = scripted(calls("look", at="it"), says(9), tools=[look])
            heard = await system.signal(signal(Signal.RETRY, failed.run_id), kit=succeeds)
            await system.settle()
            fork = await system.state_of(heard.fork_id)
            assert first_day.spent == (await system.state_of(failed.run_id)).used[TOKENS]
            (second_day,) = await system.quotas.standings("acme")
            # What the model said before that was the origin's.
            assert (fork.end.ending, second_day.spent) == (Ending.SUCCESS, 9)
            assert fork.used[TOKENS] > 9
            clock.at_ms -= DAY_MS
            assert await system.quotas.standings("acme") == [first_day]
        await store.close()

    asyncio.run(scene())


@THE_STORES
def test_a_fork_counts_from_when_it_was_wanted_however_much_of_it_was_copied(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store, clock = store_of(kind, tmp_path), Clock()
        async with quoted(store, per_day(output_tokens=50_000), clock=clock) as system:
            failed = await system.run(of(), FAILS)
            clock.at_ms += DAY_MS
            fork_id = (await system.signal(signal(Signal.RETRY, failed.run_id), kit=FAILS)).fork_id
            await system.settle()
            turns = await store.journal.read(fork_id)
            # The process that copies it may be killed after any turn, and what it counts is then found out from those there are.
            counted = [charge_of(fork_id, turns[:written]) for written in range(1, len(turns) + 1)]
            assert {charge.at_ms for charge in counted} == {NOON + DAY_MS}
            before = await system.quotas.standings("acme")
            await system._quotas.rebuild()
            assert await system.quotas.standings("acme") == before
        await store.close()

    asyncio.run(scene())


@THE_STORES
def test_a_fork_that_finds_no_room_waits_since_its_caps_cannot_be_less(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        store = store_of(kind, tmp_path)
        async with quoted(store, per_day(output_tokens=5_000)) as system:
            failed = await system.run(of(), FAILS)
            held = await system.run(of(), asking(), terms(output_tokens=100))
            with pytest.raises(RequestRejected, match="FORK_DEFERRED: the retry is recorded; resume run") as refused:
                await system.signal(signal(Signal.RETRY, failed.run_id), kit=FAILS)
            assert refused.value.details["code"] == "QUOTA_EXHAUSTED"
            assert refused.value.details["reserved"] == 100
            assert refused.value.details["needed"] > refused.value.details["left"]
            assert {entry.run_id for entry in await store.catalogue.entries()} == {failed.run_id, held.run_id}
            # What is recorded is what the sender was told.
            assert [type(command) for command in (await system.state_of(failed.run_id)).commands.parting] == [ForkRun]
        await store.close()

    asyncio.run(scene())


def test_a_fork_whose_origin_is_gone_reserves_all_of_its_caps() -> None:
    async def scene() -> None:
        store = MemoryStore()
        async with quoted(store, per_day(output_tokens=5_000)) as system:
            failed = await system.run(of(), FAILS)
            fork = (await system.signal(signal(Signal.RETRY, failed.run_id), kit=FAILS)).fork_id
            await system.settle()
            manifest = pinned(await system.state_of(fork))
            assert manifest.forked_from is not None
            lost = replace(manifest, forked_from=replace(manifest.forked_from, run_id="gone"))
            listing = await system._quotas.reserving(RunListing(NOON, tenant_id="acme"), lost)
            assert listing.reserves is not None
            assert dict(listing.reserves.amounts)[TOKENS] == manifest.caps[TOKENS]

    asyncio.run(scene())


def test_of_very_many_tenants_it_is_looked_again_whether_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.orchestrate.tenants.quota_ledger._TENANTS_MAX", 1)

    async def scene() -> None:
        async with quoted(MemoryStore(), per_day("*", output_tokens=100)) as system:
            for tenant in ("acme", "zoe", "acme"):
                await system.run(of(tenant), scripted(says(12)))
            assert (await tokens(system), await tokens(system, "zoe")) == ((24, 0, 76), (12, 0, 88))

    asyncio.run(scene())


def test_a_damaged_run_does_not_keep_its_tenant_from_working(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        store = MemoryStore()
        async with quoted(store) as system:
            run_id = (await system.run(of(), scripted(says(12)))).run_id
        store.journal._runs[run_id][1] = b"damaged"
        with pytest.raises(InvariantBroken):
            charge_of(run_id, await store.journal.read(run_id))
        async with quoted(store, per_day(output_tokens=100)) as system:
            assert (await system.run(of(), scripted(says(1)))).terminal_code is Ending.SUCCESS
            assert await tokens(system) == (1, 0, 99)

    asyncio.run(scene())
    assert "cannot be counted" in caplog.text


VOTE = OutputContract({"type": "object", "properties": {"n": {"type": "integer"}}})


def price(output: int = 0) -> Price:
    return Price(0, output)


@pytest.mark.parametrize(
    ("quota", "asked", "kit", "dimension"),
    [
        ({"steps": 0}, of(), scripted(says(1)), "steps"),
        ({"input_tokens": 0}, of(), scripted(says(1)), "input_tokens"),
        ({"child_runs": 2}, replace(of(), mode=Mode.REDUNDANT, output=VOTE), scripted(says(1)), "child_runs"),
        ({"steps": 5}, replace(of(), mode=Mode.REDUNDANT, output=VOTE), scripted(says(1)), "steps"),
        (
            {"inference_cost_microusd": 0},
            of(),
            engine_kit(ScriptedEngine([says(1)], price=price(1))),
            "inference_cost_microusd",
        ),
    ],
)
def test_a_run_that_could_do_nothing_is_not_begun(
    quota: dict[str, int], asked: SystemRequest, kit: Kit, dimension: str
) -> None:
    async def scene() -> None:
        store = MemoryStore()
        async with quoted(store, per_day("acme", **quota)) as system:
            with pytest.raises(RequestRejected, match="QUOTA_EXHAUSTED") as refused:
                await system.submit(asked, kit)
            assert refused.value.details["dimension"] == dimension
            assert await store.catalogue.entries() == []

    asyncio.run(scene())


@pytest.mark.parametrize(
    "caps", [{"inference_cost_microusd": 0}, {"tool_calls": 0, "human_reviews": 0, "child_runs": 0}]
)
def test_a_run_begins_without_what_it_may_never_need(caps: dict[str, int]) -> None:
    async def scene() -> None:
        async with quoted(MemoryStore(), per_day("acme", **caps)) as system:
            assert (await system.run(of(), scripted(says(1)))).terminal_code is Ending.SUCCESS

    asyncio.run(scene())


def test_under_a_quota_of_money_a_model_without_a_price_is_not_asked() -> None:
    async def scene() -> None:
        unpriced = engine_kit(ScriptedEngine([says(1)], price=None))
        async with quoted(MemoryStore(), per_day("acme", inference_cost_microusd=1_000)) as system:
            response = await system.run(of(), unpriced)
            assert (response.terminal_code, response.warnings) == (Ending.BUDGET_EXHAUSTED, ())
        async with quoted(MemoryStore(), per_day("acme", tool_calls=5)) as system:
            response = await system.run(of(), unpriced)
            assert (response.terminal_code, len(response.warnings)) == (Ending.SUCCESS, 1)

    asyncio.run(scene())


def test_a_run_whose_own_caps_forbid_what_it_needs_is_not_the_quotas_matter() -> None:
    async def scene() -> None:
        async with quoted(MemoryStore(), per_day(output_tokens=0)) as system:
            response = await system.run(of(), scripted(says(1)), terms(output_tokens=0))
            assert response.terminal_code is Ending.BUDGET_EXHAUSTED

    asyncio.run(scene())


def test_of_several_quotas_the_refusal_names_the_one_that_lasts_longest() -> None:
    async def scene() -> None:
        quotas = [Quota("acme", period, Budget(output_tokens=0)) for period in (Period.HOUR, Period.MONTH, Period.DAY)]
        async with quoted(MemoryStore(), *quotas) as system:
            with pytest.raises(RequestRejected) as refused:
                await system.submit(of(), scripted(says(1)))
            assert refused.value.details["renews_at"] == "2024-02-01T00:00:00Z"

    asyncio.run(scene())


def test_a_writer_that_is_always_too_slow_learns_it_in_the_end() -> None:
    async def scene() -> None:
        tries: list[Manifest] = []

        async def lose(manifest: Manifest) -> None:
            tries.append(manifest)
            raise QuotaConflict("acme", Limit(Period.DAY, int(TOKENS), 100, 0, 1), 100, 99)

        async with quoted(MemoryStore(), per_day(output_tokens=100)) as system:
            run_id = (await system.run(of(), scripted(says(1)))).run_id
            manifest = pinned(await system.state_of(run_id))
            with pytest.raises(QuotaConflict, match="QUOTA_CONTENDED") as lost:
                await system._quotas.begin(manifest, lose)
            assert "output_tokens=99 left this day and 100 were to be reserved" in lost.value.message
            assert len(tries) == CONFLICTS_MAX
            assert {manifest.caps[TOKENS] for manifest in tries} == {99}

    asyncio.run(scene())


def test_who_writes_an_ending_too_late_is_told_so_and_settles_nothing() -> None:
    async def scene() -> None:
        store = MemoryStore()
        async with quoted(store, per_day(output_tokens=100)) as system:
            run_id = (await system.run(of(), scripted(says(12)))).run_id
            with pytest.raises(AppendConflict):
                await system._quotas.journal.append(run_id, b"late", after=0, barrier=Barrier("SUCCESS"))
            assert await tokens(system) == (12, 0, 88)
            # Turns of runs that are not listed are written, and count for no user.
            await system._quotas.journal.append("unlisted", b"turn", after=-1, barrier=Barrier("SUCCESS"))
            assert list(await system._quotas.journal.read("unlisted")) == [b"turn"]

    asyncio.run(scene())


def test_quotas_that_cannot_hold_make_no_system() -> None:
    def bad() -> Iterable[Quota]:
        yield Quota("acme", Period.DAY, Budget(depth=1))

    with pytest.raises(RequestRejected, match="QUOTA_INVALID"):
        Quotas(MemoryStore(), bad(), Clock())


GOOD = """
quotas:
  - tenant: acme
    period: day
    caps:
      output_tokens: 100000
      tool_calls: 0
  - tenant: "*"
    period: month
    caps: {inference_cost_microusd: 2000000}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "quotas.yaml"
    path.write_text(text)
    return path


def test_a_file_says_what_python_would(tmp_path: Path) -> None:
    quotas = (
        Quota("acme", Period.DAY, Budget(output_tokens=100_000, tool_calls=0)),
        Quota("*", Period.MONTH, Budget(inference_cost_microusd=2_000_000)),
    )
    assert read_quotas(written(tmp_path, GOOD)) == quotas
    assert quotas_for(Settings(tmp_path)) == quotas


def test_a_folder_without_the_file_has_no_quotas(tmp_path: Path) -> None:
    assert quotas_for(Settings(tmp_path)) == ()


ONE = "quotas:\n- {tenant: a, period: day, caps: {steps: 1}}\n"


@pytest.mark.parametrize(
    ("text", "code", "line", "said"),
    [
        ("", "FILE_VALUE_INVALID", 0, "the file must be a mapping"),
        ("quota: []\n", "FILE_KEY_UNKNOWN", 1, "did you mean 'quotas'?"),
        ("quotas: 3\n", "FILE_VALUE_INVALID", 1, "quotas must be a list, not 3"),
        ("quotas: [1]\n", "FILE_VALUE_INVALID", 1, "quotas[0] must be a mapping"),
        (ONE + "- {tenat: a}\n", "FILE_KEY_UNKNOWN", 3, "did you mean 'tenant'?"),
        (ONE + "- {tenant: 7}\n", "FILE_VALUE_INVALID", 3, "must be a text in quotes"),
        (ONE + "- {tenant: *}\n", "FILE_NOT_YAML", 3, "is not YAML"),
        (ONE + "- {tenant: b, period: year}\n", "FILE_VALUE_INVALID", 3, "one of hour, day, month, total, not 'year'"),
        (ONE + "- {tenant: b, period: [day]}\n", "FILE_VALUE_INVALID", 3, "one of hour, day, month, total"),
        (ONE + "- {tenant: b, period: day}\n", "FILE_VALUE_INVALID", 3, "quotas[1].caps must be a mapping"),
        (ONE + "- {tenant: b, period: day, caps: {step: 1}}\n", "FILE_KEY_UNKNOWN", 3, "did you mean 'steps'?"),
        (ONE + "- {tenant: b, period: day, caps: {steps: }}\n", "FILE_VALUE_INVALID", 3, "whole number, not None"),
        (ONE + "- {tenant: b, period: day, caps: {steps: many}}\n", "FILE_VALUE_INVALID", 3, "not 'many'"),
        (ONE + "- {tenant: b, period: day, caps: {steps: -1}}\n", "FILE_VALUE_INVALID", 3, "steps=-1"),
        (ONE + "- {tenant: b, period: day, caps: {depth: 1}}\n", "FILE_VALUE_INVALID", 3, "does not add up"),
        (ONE + "- {tenant: a, period: day, caps: {steps: 2}}\n", "FILE_VALUE_INVALID", 3, "two quotas per day"),
        (ONE + "- {tenant: '', period: day, caps: {steps: 2}}\n", "FILE_VALUE_INVALID", 3, "is no name"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, code: str, line: int, said: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        read_quotas(written(tmp_path, text))
    assert (refused.value.code, refused.value.details["line"]) == (code, line)
    assert said in refused.value.message
    assert "quotas.yaml" in refused.value.message


def test_a_file_of_more_quotas_than_people_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_ledger, "QUOTAS_MAX", 1)
    with pytest.raises(RequestRejected, match="quotas has 2 entries, more than quotas_max=1"):
        read_quotas(written(tmp_path, GOOD))
