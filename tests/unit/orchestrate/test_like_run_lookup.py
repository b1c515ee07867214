"""When a run begins, what runs like it needed is pinned in its manifest, and finding that out is bounded."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.journal.commands import StartChild
from remit.core.journal.rulings import StoppedEarly
from remit.core.journal.storage import RunEntry
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.foresight import RUNS_MIN, Foresight
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest
from remit.kernel.state import pinned
from remit.observe.cost.like_runs import likeness_of
from remit.observe.linked_turns import states
from remit.observe.reading import reading_of
from remit.observe.views.explain import explain
from remit.orchestrate.facade import System
from remit.orchestrate.loop.offspring import child_manifest
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.ports import Store
from remit.orchestrate.setup import like_run_lookup
from remit.orchestrate.setup.kit import STANDARD_TERMS, Kit, Terms
from remit.orchestrate.setup.like_run_lookup import KINDS_MAX, RUNS_MAX, USES_MAX, USES_SETTLED_MAX, LikeRunLookup
from remit.tool.declare.decorator import tool
from tests.unit.kernel import builders as built
from tests.unit.orchestrate.house import STORES, calls, in_memory, request, scripted, store_of, systems

CALLS = int(Dimension.TOOL_CALLS)


@tool(effect="read")
def look(n: int) -> str:
    """Look something up."""
    return f"number {n}"


def kit() -> Kit:
    """A model that looks twice and answers."""
    return scripted(calls("look", n=1), calls("look", n=2), {"text": "done"}, tools=[look])


async def succeed(system: System, times: int, terms: Terms = STANDARD_TERMS) -> list[str]:
    """So many runs of that kind."""
    responses = [await system.run(request(), kit(), terms) for _ in range(times)]
    assert {response.terminal_code for response in responses} == {"SUCCESS"}
    return [response.run_id for response in responses]


async def manifest_of(system: System, run_id: str) -> Manifest:
    return pinned(await system.state_of(run_id))


class Counted:
    """A store that counts what is asked of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked = 0
        self.read_ids: list[str] = []
        # What is like everything, where a test says so.
        self.always: Sequence[RunEntry] = ()

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        self.asked += 1
        return self.always or await self.store.catalogue.alike(likeness, limit=limit)

    async def read(self, run_id: str, *, after: int = -1) -> Sequence[bytes]:
        self.read_ids.append(run_id)
        return await self.store.journal.read(run_id, after=after)


def lookup(store: Store) -> tuple[LikeRunLookup, Counted]:
    counted = Counted(store)
    return LikeRunLookup(counted, counted), counted  # type: ignore[arg-type]  # it is asked nothing else


@pytest.mark.parametrize("kind", STORES)
def test_a_run_is_begun_with_what_enough_runs_like_it_needed(kind: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            *_, last = await succeed(system, RUNS_MIN)
            assert (await manifest_of(system, last)).foresight is None
            (next_one,) = await succeed(system, 1)
            foresight = (await manifest_of(system, next_one)).foresight
            assert foresight is not None
            assert foresight.runs == RUNS_MIN
            assert [dict(milestone.least).get(CALLS, 0) for milestone in foresight.milestones] == [2, 1, 0]

    asyncio.run(play())


def test_a_run_that_cannot_finish_is_stopped_before_it_asks_anybody() -> None:
    async def play() -> None:
        async with in_memory() as system:
            await succeed(system, RUNS_MIN)
            response = await system.run(request(), kit(), Terms(budget=Budget(tool_calls=1)))
            assert response.terminal_code == "BUDGET_EXHAUSTED"
            assert response.token_usage.total_tokens == 0
            told = await system.archive.told(response.run_id)
            rulings = [one for turn in told.turns for one in turn.decisions if isinstance(one, StoppedEarly)]
            assert [(one.dimension, one.left, one.needed) for one in rulings] == [(CALLS, 1, 2)]
            assert told.explanation.stopped is not None
            assert told.explanation.stopped.dimension == "tool_calls"

    asyncio.run(play())


def test_an_open_run_of_a_known_kind_says_what_it_needs() -> None:
    async def play() -> None:
        async with in_memory() as system:
            await succeed(system, RUNS_MIN)
            (run_id,) = await succeed(system, 1)
            history = await system.archive.history(run_id)
            turn, state = next(iter(states(history)))
            needs = {need.dimension: (need.least, need.most) for need in explain(state, reading_of((turn,))).needs}
            assert needs["tool_calls"] == (2, 2)

    asyncio.run(play())


@pytest.mark.parametrize(
    "terms",
    [Terms(boundary=Boundary(name="other")), Terms(boundary=Boundary(stops_early=False))],
    ids=["another boundary", "never stopped early"],
)
def test_a_run_unlike_the_others_is_foreseen_nothing(terms: Terms) -> None:
    async def play() -> None:
        async with in_memory() as system:
            await succeed(system, RUNS_MIN)
            (run_id,) = await succeed(system, 1, terms)
            assert (await manifest_of(system, run_id)).foresight is None

    asyncio.run(play())


def test_runs_that_are_never_stopped_early_ask_the_store_nothing() -> None:
    async def play() -> None:
        async with in_memory() as system:
            (run_id,) = await succeed(system, 1, Terms(boundary=Boundary(stops_early=False)))
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            assert await looking.foresight_of(manifest) is None
            assert (counted.asked, counted.read_ids) == (0, [])

    asyncio.run(play())


def test_where_few_runs_are_alike_no_journal_is_read() -> None:
    async def play() -> None:
        async with in_memory() as system:
            (run_id, *_) = await succeed(system, RUNS_MIN - 1)
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            assert await looking.foresight_of(manifest) is None
            assert (counted.asked, counted.read_ids) == (1, [])

    asyncio.run(play())


def test_what_was_found_is_used_again_and_each_run_is_read_once() -> None:
    async def play() -> None:
        async with in_memory() as system:
            (run_id, *_) = await succeed(system, RUNS_MIN)
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            found = [await looking.foresight_of(manifest) for _ in range(USES_MAX)]
            assert all(one is found[0] for one in found)
            # Once whether there are enough of them, once for all of them.
            assert (counted.asked, len(counted.read_ids)) == (2, RUNS_MIN)
            await succeed(system, 2)
            later = await looking.foresight_of(manifest)
            assert later is not None
            assert later.runs == RUNS_MIN + 2
            assert (counted.asked, len(counted.read_ids)) == (3, RUNS_MIN + 2)

    asyncio.run(play())


def test_of_many_runs_that_begin_at_once_one_learns_for_all() -> None:
    async def play() -> None:
        async with in_memory() as system:
            (run_id, *_) = await succeed(system, RUNS_MIN)
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            found = await asyncio.gather(*(looking.foresight_of(manifest) for _ in range(USES_MAX)))
            assert all(one is not None for one in found)
            assert len(counted.read_ids) == RUNS_MIN

    asyncio.run(play())


def test_what_as_many_runs_said_as_are_learned_from_serves_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(like_run_lookup, "RUNS_MAX", RUNS_MIN)

    async def play() -> None:
        async with in_memory() as system:
            (run_id, *_) = await succeed(system, RUNS_MIN)
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            for _ in range(USES_SETTLED_MAX):
                await looking.foresight_of(manifest)
            assert counted.asked == 2
            await looking.foresight_of(manifest)
            assert counted.asked == 3

    asyncio.run(play())


def test_only_the_newest_runs_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(like_run_lookup, "RUNS_MAX", RUNS_MIN + 1)
    assert RUNS_MAX > RUNS_MIN

    async def play() -> None:
        async with in_memory() as system:
            first, *_, last = await succeed(system, RUNS_MIN + 2)
            looking, counted = lookup(system.store)
            await looking.foresight_of(await manifest_of(system, last))
            assert counted.read_ids[0] == last
            assert first not in counted.read_ids

    asyncio.run(play())


def test_no_more_turns_are_read_than_a_beginning_may_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with in_memory() as system:
            (run_id, *_) = await succeed(system, RUNS_MIN)
            entry = await system.store.catalogue.entry(run_id)
            assert entry is not None
            monkeypatch.setattr(like_run_lookup, "TURNS_MAX", entry.turns * (RUNS_MIN - 1))
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            assert await looking.foresight_of(manifest) is None
            assert len(counted.read_ids) == RUNS_MIN - 1
            later = [await looking.foresight_of(manifest) for _ in range(USES_MAX)]
            # What was read is known by then, and the rest can be read too.
            assert isinstance(later[-1], Foresight)
            assert len(counted.read_ids) == RUNS_MIN

    asyncio.run(play())


def test_runs_that_are_known_stay_known_beside_newer_ones_that_take_all_the_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play() -> None:
        async with in_memory() as system:
            (run_id, *_) = await succeed(system, RUNS_MIN)
            entry = await system.store.catalogue.entry(run_id)
            assert entry is not None
            monkeypatch.setattr(like_run_lookup, "TURNS_MAX", entry.turns * (RUNS_MIN - 1))
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            await looking.foresight_of(manifest)
            await succeed(system, RUNS_MIN - 1)
            later = [await looking.foresight_of(manifest) for _ in range(USES_MAX)]
            assert len(counted.read_ids) == 2 * (RUNS_MIN - 1)
            foresight = later[-1]
            assert foresight is not None
            assert foresight.runs == 2 * (RUNS_MIN - 1)

    asyncio.run(play())


def test_a_journal_that_does_not_add_up_keeps_nobody_from_beginning() -> None:
    async def play() -> None:
        async with in_memory() as system:
            run_ids = await succeed(system, RUNS_MIN + 1)
            store = system.store
            assert isinstance(store, MemoryStore)
            turns = store.journal._runs[run_ids[0]]
            kept = list(turns)
            turns[1] = turns[2]
            found = await lookup(store)[0].foresight_of(await manifest_of(system, run_ids[1]))
            turns[:] = kept
            assert found is not None
            assert found.runs == RUNS_MIN

    asyncio.run(play())


def test_so_many_kinds_are_remembered_and_no_more() -> None:
    async def play() -> None:
        async with in_memory() as system:
            (run_id, *_) = await succeed(system, RUNS_MIN)
            looking, counted = lookup(system.store)
            manifest = await manifest_of(system, run_id)
            await looking.foresight_of(manifest)
            entries = await system.store.catalogue.alike(likeness_of(manifest), limit=RUNS_MAX)
            counted.always = entries
            for number in range(KINDS_MAX):
                versions = replace(manifest.versions, graph=str(number))
                await looking.foresight_of(replace(manifest, versions=versions))
            assert len(looking._kinds) == KINDS_MAX
            assert likeness_of(manifest) not in looking._kinds

    asyncio.run(play())


def test_another_process_learns_from_what_this_one_left(tmp_path: Path) -> None:
    async def play() -> None:
        async with systems(EmbeddedStore.open(tmp_path)) as (system,):
            await succeed(system, RUNS_MIN)
        async with systems(EmbeddedStore.open(tmp_path)) as (system,):
            (run_id,) = await succeed(system, 1)
            assert (await manifest_of(system, run_id)).foresight is not None

    asyncio.run(play())


def test_tenants_do_not_learn_from_each_other() -> None:
    async def play() -> None:
        async with in_memory() as system:
            await succeed(system, RUNS_MIN)
            other: SystemRequest = replace(request(), tenant_id="other")
            response = await system.run(other, kit(), Terms())
            assert (await manifest_of(system, response.run_id)).foresight is None

    asyncio.run(play())


def test_a_child_is_not_foreseen_by_what_runs_like_its_parent_needed() -> None:
    parent = replace(built.manifest_of(), foresight=Foresight(RUNS_MIN, ()))
    order = StartChild("1.1", "run.1.1", "look", (), 1, 0, ())
    assert child_manifest(parent, order, chat_graph()).foresight is None
