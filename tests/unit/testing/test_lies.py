"""Backends that lie in one thing each, and tell the truth in everything else: some check of their suite finds them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import RemitError
from remit.core.journal.storage import START
from remit.core.record import replace
from remit.testing.conformance.processes.bell import BELL_CHECKS
from remit.testing.conformance.processes.feed import FEED_CHECKS
from remit.testing.conformance.processes.inbox import INBOX_CHECKS
from remit.testing.conformance.processes.leases import LEASES_CHECKS
from remit.testing.conformance.records.answers import ANSWERS_CHECKS
from remit.testing.conformance.records.blobs import BLOBS_CHECKS
from remit.testing.conformance.records.index import INDEX_CHECKS
from remit.testing.conformance.records.journal import JOURNAL_CHECKS
from remit.testing.conformance.records.ledger import LEDGER_CHECKS

# Makes a store in memory lie.
Lie = Callable[[Any], None]
Check = Callable[[Any], Any]


def equal_turns_of_two_runs_are_one(store: Any) -> None:
    append, seen = store.journal.append, dict[bytes, str]()

    async def once(run_id: str, data: bytes, after: int, *rest: Any, **more: Any) -> Any:
        if seen.setdefault(data, run_id) != run_id:
            return after + 1
        return await append(run_id, data, after, *rest, **more)

    store.journal.append = once


def ids_are_cut(store: Any) -> None:
    append, read = store.journal.append, store.journal.read

    async def appended(run_id: str, *rest: Any, **more: Any) -> Any:
        return await append(run_id[:16], *rest, **more)

    store.journal.append = appended
    store.journal.read = lambda run_id, **more: read(run_id[:16], **more)


def leases_are_of_cut_ids(store: Any) -> None:
    leases = store.leases

    class Cut:
        """The leases of the store, of the beginnings of ids."""

        def __getattr__(self, name: str) -> Any:
            asked = getattr(leases, name)
            return lambda run_id, *rest: asked(run_id[:16], *rest)

    store.leases = Cut()


def a_turn_of_nothing_is_dropped(store: Any) -> None:
    append = store.journal.append

    async def dropped(run_id: str, data: bytes, after: int, *rest: Any, **more: Any) -> Any:
        return await append(run_id, data, after, *rest, **more) if data else after + 1

    store.journal.append = dropped


def the_start_is_wherever_a_run_stands(store: Any) -> None:
    append = store.journal.append

    async def anywhere(run_id: str, data: bytes, after: int, *rest: Any, **more: Any) -> Any:
        if after == -1 and not any(rest) and not more:
            after = (await store.journal.read(run_id)).place
        return await append(run_id, data, after, *rest, **more)

    store.journal.append = anywhere


def a_refused_turn_is_shown_once(store: Any) -> None:
    append, read, refused = store.journal.append, store.journal.read, dict[str, bytes]()

    async def keeps(run_id: str, data: bytes, after: int, *rest: Any, **more: Any) -> Any:
        try:
            return await append(run_id, data, after, *rest, **more)
        except RemitError:
            refused[run_id] = data
            raise

    async def shows(run_id: str, *, after: int = -1) -> Any:
        found = await read(run_id, after=after)
        if after >= 0 and run_id in refused:
            return type(found)([*found, refused.pop(run_id)], found.place)
        return found

    store.journal.append, store.journal.read = keeps, shows


def equal_letters_are_one(store: Any) -> None:
    put, seen = store.inbox.put, dict[bytes, int]()

    async def once(run_id: str, data: bytes) -> int:
        if data not in seen:
            seen[data] = await put(run_id, data)
        return seen[data]

    store.inbox.put = once


def names_of_runs_are_lowered(store: Any) -> None:
    put = store.inbox.put
    store.inbox.put = lambda run_id, data: put(run_id.lower(), data)


def long_letters_are_cut(store: Any) -> None:
    put = store.inbox.put
    store.inbox.put = lambda run_id, data: put(run_id, data[:65_536])


def an_inbox_shows_a_page(store: Any) -> None:
    pending = store.inbox.pending

    async def page(*, after: int) -> Any:
        return list(await pending(after=after))[:100]

    store.inbox.pending = page


def a_long_answer_is_cut(store: Any) -> None:
    settle = store.inbox.settle

    async def cut(number: int, code: str, message: str, *, token: int = 0) -> None:
        await settle(number, code, message[:200], token=token)

    store.inbox.settle = cut


def tokens_shrink(store: Any) -> None:
    store.leases._numbers = count(1_000_000, -1)


def no_token_lets_go(store: Any) -> None:
    release = store.leases.release

    async def anybody(run_id: str, token: int) -> None:
        await release(run_id, token or store.leases._held.get(run_id, 0))

    store.leases.release = anybody


def a_token_renews_any_run(store: Any) -> None:
    async def renew(run_id: str, token: int) -> bool:
        return run_id in store.leases._held and token in store.leases._held.values()

    store.leases.renew = renew


def a_token_writes_any_run(store: Any) -> None:
    store.leases.is_current = lambda run_id, token: token in store.leases._held.values()


def letting_go_lets_all_go(store: Any) -> None:
    release = store.leases.release

    async def all_go(run_id: str, token: int) -> None:
        await release(run_id, token)
        for other in [other for other in store.leases._held if other.startswith(run_id + "/")]:
            del store.leases._held[other]

    store.leases.release = all_go


def who_asks_often_takes(store: Any) -> None:
    take, asked = store.leases.take, count(1)

    async def worn(run_id: str) -> Any:
        if next(asked) % 5 == 0:
            store.leases._held.pop(run_id, None)
        return await take(run_id)

    store.leases.take = worn


def a_text_is_stripped(store: Any) -> None:
    put = store.blobs.put
    store.blobs.put = lambda digest, data: put(digest, data.strip())


def a_text_that_was_read_is_gone(store: Any) -> None:
    get = store.blobs.get

    async def once(digest: bytes) -> bytes:
        data: bytes = await get(digest)
        store.blobs._kept.pop(digest)
        return data

    store.blobs.get = once


def the_last_text_wins(store: Any) -> None:
    put = store.blobs.put

    async def late(digest: bytes, data: bytes) -> None:
        store.blobs._kept.pop(digest, None)
        await asyncio.sleep(0)
        await put(digest, data)

    store.blobs.put = late


def a_cancelled_text_takes_others_along(store: Any) -> None:
    put = store.blobs.put

    async def fragile(digest: bytes, data: bytes) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            store.blobs._kept.clear()
            raise
        await put(digest, data)

    store.blobs.put = fragile


def a_text_is_kept_later(store: Any) -> None:
    put = store.blobs.put

    async def later(digest: bytes, data: bytes) -> None:
        asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(put(digest, data)))

    store.blobs.put = later


def a_feed_tells_others_bytes(store: Any) -> None:
    since = store.feed.since

    async def told(place: Any, *, limit: int) -> Any:
        return [replace(turn, seq=0) for turn in await since(place, limit=limit)]

    store.feed.since = told


def a_feed_forgets_the_old(store: Any) -> None:
    since = store.feed.since

    async def told(place: Any, *, limit: int) -> Any:
        return list(await since(place, limit=10**6))[-100:][:limit]

    store.feed.since = told


def a_feed_begins_anew(store: Any) -> None:
    since = store.feed.since

    async def told(place: Any, *, limit: int) -> Any:
        return await since(START, limit=limit)

    store.feed.since = told


def a_feed_tells_an_ended_run_no_more(store: Any) -> None:
    since = store.feed.since

    async def told(place: Any, *, limit: int) -> Any:
        found = await since(place, limit=limit)
        return [turn for turn in found if not (await store.catalogue.entry(turn.run_id)).ending]

    store.feed.since = told


def a_feed_tells_what_was_refused(store: Any) -> None:
    append = store.journal.append

    async def told(run_id: str, data: bytes, after: int, *rest: Any, **more: Any) -> Any:
        try:
            return await append(run_id, data, after, *rest, **more)
        except RemitError:
            store.journal._order.append((run_id, 0))
            raise

    store.journal.append = told


def the_end_of_a_feed_is_ahead(store: Any) -> None:
    end = store.feed.end

    async def ahead() -> Any:
        place = await end()
        return place + 1 if place > 5 else place

    store.feed.end = ahead


def a_strike_takes_runs_that_have_turns(store: Any) -> None:
    async def strike() -> Sequence[str]:
        return tuple(store.journal.every_run())

    store.index.strike = strike


def renewing_lists_the_first_only(store: Any) -> None:
    renew = store.index.renew
    store.index.renew = lambda runs: renew(runs[:1])


def only_the_first_limit_holds(store: Any) -> None:
    check = store.ledger.check_room

    def first(tenant_id: str, reservation: Any, *, but: str = "") -> None:
        check(tenant_id, replace(reservation, limits=reservation.limits[:1]), but=but)

    store.ledger.check_room = first


def only_the_last_limit_holds(store: Any) -> None:
    check = store.ledger.check_room

    def last(tenant_id: str, reservation: Any, *, but: str = "") -> None:
        check(tenant_id, replace(reservation, limits=reservation.limits[-1:]), but=but)

    store.ledger.check_room = last


def limits_are_told_by_dimension(store: Any) -> None:
    committed = store.ledger.committed

    async def sorted_by(tenant_id: str, limits: Any) -> Any:
        return await committed(tenant_id, sorted(limits, key=lambda limit: limit.dimension))

    store.ledger.committed = sorted_by


def a_limit_that_is_asked_twice_is_told_once(store: Any) -> None:
    committed = store.ledger.committed

    async def once(tenant_id: str, limits: Any) -> Any:
        return await committed(tenant_id, list(dict.fromkeys(limits)))

    store.ledger.committed = once


def tenants_are_lowered(store: Any) -> None:
    committed = store.ledger.committed
    store.ledger.committed = lambda tenant_id, limits: committed(tenant_id.lower(), limits)


def one_ear_hangs_up_for_all(store: Any) -> None:
    listen = store.bell.listen

    def shared(topic: Any, hear: Any) -> Any:
        listen(topic, hear)
        return store.bell._ears[topic].clear

    store.bell.listen = shared


def the_last_ear_hangs_up_in_place_of_another(store: Any) -> None:
    listen = store.bell.listen

    def shared(topic: Any, hear: Any) -> Any:
        listen(topic, hear)
        return lambda: store.bell._ears[topic] and store.bell._ears[topic].pop()

    store.bell.listen = shared


def a_bell_rings_for_every_topic(store: Any) -> None:
    ring = store.bell.ring

    def everywhere(topic: Any, word: bytes = b"") -> None:
        for other in store.bell._ears:
            ring(other, word)

    store.bell.ring = everywhere


def a_bell_rings_for_one_ear(store: Any) -> None:
    def one(topic: Any, word: bytes = b"") -> None:
        for hear in store.bell._ears[topic][:1]:
            hear(word)

    store.bell.ring = one


def words_that_were_rung_are_not_rung_again(store: Any) -> None:
    ring, rung = store.bell.ring, set[tuple[Any, bytes]]()

    def once(topic: Any, word: bytes = b"") -> None:
        if (topic, word) not in rung:
            rung.add((topic, word))
            ring(topic, word)

    store.bell.ring = once


Suite = tuple[Sequence[Check], Callable[[Any], Any]]
SUITES: dict[str, Suite] = {
    "journal": (JOURNAL_CHECKS, lambda store: store.journal),
    "inbox": (INBOX_CHECKS, lambda store: store.inbox),
    "answers": (ANSWERS_CHECKS, lambda store: (store.journal, store.inbox)),
    "leases": (LEASES_CHECKS, lambda store: (store.journal, store.leases)),
    "blobs": (BLOBS_CHECKS, lambda store: store.blobs),
    "feed": (FEED_CHECKS, lambda store: (store.journal, store.feed)),
    "index": (INDEX_CHECKS, lambda store: store),
    "bell": (BELL_CHECKS, lambda store: (store, store)),
    "ledger": (LEDGER_CHECKS, lambda store: (store.journal, store.ledger)),
}
LIES: dict[str, tuple[Lie, ...]] = {
    "journal": (
        equal_turns_of_two_runs_are_one,
        ids_are_cut,
        a_turn_of_nothing_is_dropped,
        the_start_is_wherever_a_run_stands,
        a_refused_turn_is_shown_once,
    ),
    "inbox": (
        equal_letters_are_one,
        names_of_runs_are_lowered,
        long_letters_are_cut,
        an_inbox_shows_a_page,
        a_long_answer_is_cut,
    ),
    "leases": (
        tokens_shrink,
        leases_are_of_cut_ids,
        no_token_lets_go,
        a_token_renews_any_run,
        a_token_writes_any_run,
        letting_go_lets_all_go,
        who_asks_often_takes,
    ),
    "blobs": (
        a_text_is_stripped,
        a_text_that_was_read_is_gone,
        the_last_text_wins,
        a_cancelled_text_takes_others_along,
        a_text_is_kept_later,
    ),
    "feed": (
        a_feed_tells_others_bytes,
        a_feed_forgets_the_old,
        a_feed_tells_an_ended_run_no_more,
        a_feed_begins_anew,
        a_feed_tells_what_was_refused,
        the_end_of_a_feed_is_ahead,
    ),
    "ledger": (
        only_the_first_limit_holds,
        only_the_last_limit_holds,
        limits_are_told_by_dimension,
        a_limit_that_is_asked_twice_is_told_once,
        tenants_are_lowered,
    ),
    "bell": (
        one_ear_hangs_up_for_all,
        the_last_ear_hangs_up_in_place_of_another,
        a_bell_rings_for_every_topic,
        a_bell_rings_for_one_ear,
        words_that_were_rung_are_not_rung_again,
    ),
    "index": (a_strike_takes_runs_that_have_turns, renewing_lists_the_first_only),
}


def found_by(suite: str, lie: Lie | None) -> list[str]:
    """The checks of a suite that do not hold."""
    checks, part = SUITES[suite]

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        store: Any = MemoryStore()
        if lie is not None:
            lie(store)
        yield part(store)

    return [check.__name__ for check in checks if breaks(asyncio.run, check(opened))]


def breaks(play: Callable[[Any], object], check: Any) -> bool:
    """Whether a check does not hold. A lie that is a mistake of its own must be seen, and is not one that was found."""
    try:
        play(check)
    except AssertionError as told:
        if isinstance(told.__cause__, (AttributeError, NameError, TypeError)):
            raise
        return True
    return False


@pytest.mark.parametrize("suite", SUITES)
def test_who_tells_the_truth_passes(suite: str) -> None:
    assert found_by(suite, None) == []


@pytest.mark.parametrize(("suite", "lie"), [(suite, lie) for suite, lies in LIES.items() for lie in lies])
def test_a_lie_is_found(suite: str, lie: Lie) -> None:
    assert found_by(suite, lie) != []


def test_a_backend_that_raises_what_it_must_not_is_told_in_a_sentence() -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        store: Any = MemoryStore()

        async def broken(*_: Any, **__: Any) -> None:
            raise KeyError("run")

        store.journal.append = broken
        yield store.journal

    with pytest.raises(AssertionError, match="turns come back in order: it raised KeyError") as told:
        asyncio.run(JOURNAL_CHECKS[1](opened))
    assert isinstance(told.value.__cause__, KeyError)
