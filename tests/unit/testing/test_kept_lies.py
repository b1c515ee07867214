"""Stores that lie about sessions, lists, heads, what was removed and what has begun: some check of their suite finds each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.journal.signing import Signer
from remit.core.record import replace
from remit.orchestrate.executors.reports import PERFORMED
from remit.orchestrate.loop.claims import _Standing
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.testing.conformance.custody.head_log import HEAD_LOG_CHECKS
from remit.testing.conformance.custody.retention import RETENTION_CHECKS
from remit.testing.conformance.processes.dispatch import DISPATCH_CHECKS
from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS
from tests.simulation.seeded_loop import SeededLoop
from tests.unit.orchestrate.stage import HandClock
from tests.unit.testing.test_lies import breaks

SIGNER = Signer.generate()
# Makes a store, or a dispatch, lie.
Lie = Callable[[Any], None]


# Sessions, and how runs are listed.


def a_session_ends_with_its_first_run_that_ended(store: Any) -> None:
    session = store.catalogue.session

    async def told(session_id: str, *, tenant_id: str | None = None) -> Any:
        return [entry for entry in await session(session_id, tenant_id=tenant_id) if not entry.ending]

    store.catalogue.session = told


def an_ended_run_gives_its_place_away(store: Any) -> None:
    append = store.journal.append

    async def frees(run_id: str, data: bytes, after: int, barrier: Any = None, *rest: Any, **more: Any) -> Any:
        place = await append(run_id, data, after, barrier, *rest, **more)
        if barrier is not None and barrier.ending:
            store.journal._sessions.clear()
        return place

    store.journal.append = frees


def a_session_of_every_tenant_is_that_of_none(store: Any) -> None:
    session = store.catalogue.session
    store.catalogue.session = lambda session_id, *, tenant_id=None: session(session_id, tenant_id=tenant_id or "")


def a_session_is_told_as_its_runs_began(store: Any) -> None:
    async def told(session_id: str, *, tenant_id: str | None = None) -> Any:
        entries = reversed(await store.catalogue.entries(tenant_id=tenant_id))
        return [entry for entry in entries if entry.listing.session_id == session_id]

    store.catalogue.session = told


def a_turn_without_a_barrier_lets_a_run_go_on(store: Any) -> None:
    append = store.journal.append

    async def cleared(run_id: str, data: bytes, after: int, barrier: Any = None, *rest: Any, **more: Any) -> Any:
        place = await append(run_id, data, after, barrier, *rest, **more)
        if barrier is None and run_id in store.journal._entries:
            store.journal._entries[run_id] = replace(store.journal._entries[run_id], waiting_for="")
        return place

    store.journal.append = cleared


def who_waits_has_no_name(store: Any) -> None:
    named = store.catalogue.named

    async def told(name: str, tenant_id: str) -> Any:
        return [entry for entry in await named(name, tenant_id) if not entry.waiting_for]

    store.catalogue.named = told


def half_a_success_is_like_a_whole_one(store: Any) -> None:
    async def alike(likeness: str, *, limit: int) -> Any:
        found = [await store.catalogue.entry(run_id) for run_id in reversed(store.journal._alike.get(likeness, []))]
        return [entry for entry in found if entry.ending.endswith("SUCCESS")][:limit]

    store.catalogue.alike = alike


def who_waits_is_of_any_parent(store: Any) -> None:
    entries = store.catalogue.entries

    async def told(*, parent_id: str | None = None, waiting_only: bool = False, **more: Any) -> Any:
        return await entries(parent_id=None if waiting_only else parent_id, waiting_only=waiting_only, **more)

    store.catalogue.entries = told


def who_waits_is_of_any_tenant(store: Any) -> None:
    entries = store.catalogue.entries

    async def told(*, tenant_id: str | None = None, waiting_only: bool = False, **more: Any) -> Any:
        return await entries(tenant_id=None if waiting_only else tenant_id, waiting_only=waiting_only, **more)

    store.catalogue.entries = told


def every_page_is_the_first(store: Any) -> None:
    entries = store.catalogue.entries

    async def told(*, before: str = "", **more: Any) -> Any:
        return await entries(**more)

    store.catalogue.entries = told


# Heads, with the turns and in the log.


def heads_are_kept_by_lowered_names(store: Any) -> None:
    heads = store.catalogue.heads

    async def told(run_id: str) -> Any:
        alike = [name for name in store.journal._heads if name.lower() == run_id.lower()]
        return [head for name in alike for head in await heads(name)]

    store.catalogue.heads = told


def an_ended_run_is_never_behind(store: Any) -> None:
    losses = store.log.losses

    async def told() -> Any:
        lost = await losses()
        return replace(lost, behind=tuple([name for name in lost.behind if not store.journal._entries[name].ending]))

    store.log.losses = told


def a_deleted_run_has_no_last_head(store: Any) -> None:
    last = store.log.last

    async def told(run_id: str) -> Any:
        return None if await store.log.deletion(run_id) is not None else await last(run_id)

    store.log.last = told


# Retention.


def an_open_run_needs_no_texts(store: Any) -> None:
    referred = store.retention._referred

    def told(besides: Any = ()) -> Any:
        runs = store.journal._runs
        opened = {name: turns for name, turns in runs.items() if not store.journal._entries[name].ending}
        for name in opened:
            del runs[name]
        found = referred(besides)
        runs.update(opened)
        return found

    store.retention._referred = told


def before_a_time_means_at_it(store: Any) -> None:
    gc = store.retention.gc

    async def later(*, ended_before_ms: int, dry_run: bool = False) -> Any:
        return await gc(ended_before_ms=ended_before_ms + 1, dry_run=dry_run)

    store.retention.gc = later


def letters_to_children_stay(store: Any) -> None:
    remove = store.retention._remove

    def removed(runs: Any) -> Any:
        children = {name for name in runs if store.journal.parent_of(name)}
        kept = [letter for letter in store.inbox._entries if letter.run_id in children]
        found = remove(runs)
        store.inbox._entries += kept
        return found

    store.retention._remove = removed


def a_feed_tells_of_the_deleted(store: Any) -> None:
    since, delete, gone = store.feed.since, store.retention.delete, list[Any]()

    async def told(place: int, *, limit: int) -> Any:
        return [*gone, *await since(place, limit=limit)][:limit]

    async def deleted(run_id: str) -> Any:
        gone.extend([turn for turn in await since(-1, limit=10**6) if turn.run_id == run_id])
        return await delete(run_id)

    store.feed.since, store.retention.delete = told, deleted


def a_deletion_frees_every_place(store: Any) -> None:
    delete = store.retention.delete

    async def freed(run_id: str) -> Any:
        removed = await delete(run_id)
        store.journal._sessions.clear()
        return removed

    store.retention.delete = freed


# Claims of a dispatch.


def what_was_left_is_still_offered(dispatch: Any) -> None:
    dispatch._claims.forget = lambda run_id: None


def what_is_sent_again_has_not_begun(dispatch: Any) -> None:
    def offer(run_id: str, command_id: str) -> None:
        dispatch._claims._standing.setdefault(run_id, {})[command_id] = _Standing.OFFERED

    dispatch._claims.offer = offer


def what_is_forgotten_is_forgotten_of_all(dispatch: Any) -> None:
    dispatch._claims.forget = lambda run_id: dispatch._claims._standing.clear()


def who_asks_again_may_begin(dispatch: Any) -> None:
    claim, asked = dispatch._claims.claim, set[tuple[str, str]]()

    def worn(run_id: str, command_id: str, *, is_repeatable: bool = False) -> bool:
        is_again = (run_id, command_id) in asked
        asked.add((run_id, command_id))
        return is_again or claim(run_id, command_id, is_repeatable=is_repeatable)

    dispatch._claims.claim = worn


def all_who_ask_may_begin(dispatch: Any) -> None:
    claims = dispatch._claims
    claims.claim = lambda run_id, command_id, **_: (
        not claims.is_revoked(run_id, command_id)
        and (type(claims).claim(claims, run_id, command_id, is_repeatable=True))
    )


STORES: dict[str, tuple[Lie, ...]] = {
    "catalogue": (
        a_session_ends_with_its_first_run_that_ended,
        an_ended_run_gives_its_place_away,
        a_session_of_every_tenant_is_that_of_none,
        a_session_is_told_as_its_runs_began,
        a_turn_without_a_barrier_lets_a_run_go_on,
        who_waits_has_no_name,
        half_a_success_is_like_a_whole_one,
        who_waits_is_of_any_parent,
        who_waits_is_of_any_tenant,
        every_page_is_the_first,
        heads_are_kept_by_lowered_names,
    ),
    "log": (an_ended_run_is_never_behind,),
    "retention": (
        a_deleted_run_has_no_last_head,
        an_open_run_needs_no_texts,
        before_a_time_means_at_it,
        letters_to_children_stay,
        a_feed_tells_of_the_deleted,
        a_deletion_frees_every_place,
    ),
}
CLAIMS: tuple[Lie, ...] = (
    what_was_left_is_still_offered,
    what_is_sent_again_has_not_begun,
    what_is_forgotten_is_forgotten_of_all,
    who_asks_again_may_begin,
    all_who_ask_may_begin,
)
CHECKS: dict[str, Any] = {"catalogue": CATALOGUE_CHECKS, "log": HEAD_LOG_CHECKS, "retention": RETENTION_CHECKS}


def found_by(suite: str, lie: Lie | None) -> list[str]:
    """The checks of a suite that a store which lies so does not hold."""

    @asynccontextmanager
    async def opened(now_ms: Callable[[], int] = lambda: 1) -> AsyncIterator[Any]:
        store: Any = MemoryStore(SIGNER, now_ms=now_ms)
        if lie is not None:
            lie(store)
        yield {"catalogue": (store.journal, store.catalogue), "log": (store.journal, store.log)}.get(suite, store)

    return [check.__name__ for check in CHECKS[suite] if breaks(asyncio.run, check(opened))]


def claims_found(lie: Lie | None) -> list[str]:
    """The checks that a dispatch which lies so does not hold, in virtual time."""

    @asynccontextmanager
    async def opened(perform: Any, halts: Halts) -> AsyncIterator[Any]:
        executors = dict.fromkeys(PERFORMED, lambda _, command: perform(command))
        dispatch: Any = InProcessDispatch(executors, HandClock(), halts=halts)
        if lie is not None:
            lie(dispatch)
        yield dispatch
        await dispatch.finish()

    def play(work: Any) -> None:
        loop = SeededLoop(Random(0))
        try:
            loop.run_until_complete(work)
        finally:
            loop.close()

    return [check.__name__ for check in DISPATCH_CHECKS if breaks(play, check(opened))]


def test_who_tells_the_truth_passes() -> None:
    assert [*(found_by(suite, None) for suite in CHECKS), claims_found(None)] == [[], [], [], []]


@pytest.mark.parametrize(("suite", "lie"), [(suite, lie) for suite, lies in STORES.items() for lie in lies])
def test_a_lie_of_a_store_is_found(suite: str, lie: Lie) -> None:
    assert found_by(suite, lie) != []


@pytest.mark.parametrize("lie", CLAIMS)
def test_a_lie_about_what_has_begun_is_found(lie: Lie) -> None:
    assert claims_found(lie) != []
