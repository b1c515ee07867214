"""Places of a session in a store over logs: two want one, a process dies between its claim and its turn, one comes late."""

import asyncio

import pytest

from remit.backend.folded.log import session_log
from remit.backend.folded.store import FoldedStore
from remit.core.journal.storage import START, AppendConflict, SessionConflict
from tests.unit.backend.logs import Ground, begin, exchange


async def in_session(store: FoldedStore) -> list[str]:
    return [entry.run_id for entry in await store.catalogue.session("session")]


def test_of_many_runs_that_want_a_place_one_has_it() -> None:
    async def scene() -> None:
        ground = Ground()
        for number in range(3):
            await ground.leases.take(f"run{number}")
        rivals = [begin(ground.process(), f"run{number}", exchange()) for number in range(3)]
        outcomes = await asyncio.gather(*rivals, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, SessionConflict)]
        assert [outcome.code for outcome in refused] == ["SESSION_BUSY"] * 2
        assert len(await in_session(ground.process())) == 1

    asyncio.run(scene())


def test_two_places_of_a_session_are_claimed_at_the_same_time() -> None:
    async def scene() -> None:
        ground = Ground()
        one, other = ground.process(), ground.process()
        await asyncio.gather(begin(one, "first", exchange(0)), begin(other, "second", exchange(1)))
        assert await in_session(one) == await in_session(other) == ["first", "second"]

    asyncio.run(scene())


def test_a_run_that_has_begun_keeps_its_place_though_nobody_holds_it() -> None:
    async def scene() -> None:
        ground = Ground()
        await begin(ground.process(), "first", exchange())
        with pytest.raises(SessionConflict, match="exchange 0 of session 'session' has begun already"):
            await begin(ground.process(), "second", exchange())

    asyncio.run(scene())


def test_a_run_whose_process_lives_keeps_its_place_before_its_first_turn() -> None:
    async def scene() -> None:
        ground = Ground()
        one, other = ground.process(), ground.process()
        stop = ground.log.stop("run:first")
        await ground.leases.take("first")
        begun = asyncio.create_task(begin(one, "first", exchange()))
        await stop.reached.wait()
        with pytest.raises(SessionConflict):
            await begin(other, "second", exchange())
        stop.go.set()
        await begun
        assert await in_session(other) == ["first"]

    asyncio.run(scene())


def test_a_run_that_claimed_a_place_and_died_gives_way_to_the_next() -> None:
    async def scene() -> None:
        ground = Ground()
        await ground.cut_off(ground.process(), "dead", exchange())
        other = ground.process()
        await begin(other, "next", exchange())
        assert await in_session(other) == ["next"]
        assert await other.catalogue.entry("dead") is None
        assert await other.index.names() == ["next"]

    asyncio.run(scene())


def test_a_run_that_comes_late_to_the_place_it_claimed_is_refused_and_reads_as_nothing() -> None:
    async def scene() -> None:
        ground = Ground()
        late, other = ground.process(), ground.process()
        stop = ground.log.stop("run:late")
        begun = asyncio.create_task(begin(late, "late", exchange()))
        await stop.reached.wait()
        await begin(other, "next", exchange())
        stop.go.set()
        with pytest.raises(SessionConflict, match="SESSION_BUSY"):
            await begun
        for store in (late, other, ground.process()):
            turns = await store.journal.read("late")
            assert (list(turns), turns.place) == ([], START)
            assert await in_session(store) == ["next"]
        with pytest.raises(SessionConflict, match="SESSION_BUSY"):
            await begin(late, "late", exchange())

    asyncio.run(scene())


def test_a_run_that_begins_in_the_last_moment_keeps_its_place() -> None:
    async def scene() -> None:
        ground = Ground()
        beginning = ground.log.stop("run:slow")
        begun = asyncio.create_task(begin(ground.process(), "slow", exchange()))
        await beginning.reached.wait()
        forestalling = ground.log.stop("run:slow")
        rival = asyncio.create_task(begin(ground.process(), "rival", exchange()))
        await forestalling.reached.wait()
        beginning.go.set()
        await begun
        forestalling.go.set()
        with pytest.raises(SessionConflict):
            await rival
        assert await in_session(ground.process()) == ["slow"]

    asyncio.run(scene())


def test_of_two_runs_that_come_upon_a_dead_one_only_one_has_its_place() -> None:
    async def scene() -> None:
        ground = Ground()
        await ground.cut_off(ground.process(), "dead", exchange())
        slow, fast = ground.process(), ground.process()
        for run_id in ("slow", "fast"):
            await ground.leases.take(run_id)
        stop = ground.log.stop("run:dead")
        rival = asyncio.create_task(begin(slow, "slow", exchange()))
        await stop.reached.wait()
        await begin(fast, "fast", exchange())
        stop.go.set()
        with pytest.raises(SessionConflict, match="SESSION_BUSY"):
            await rival
        for store in (slow, fast, ground.process()):
            assert await in_session(store) == ["fast"]

    asyncio.run(scene())


def test_a_run_goes_on_with_the_place_that_it_claimed_before() -> None:
    async def scene() -> None:
        ground = Ground()
        await ground.cut_off(ground.process(), "run", exchange())
        await begin(ground.process(), "run", exchange())
        assert await in_session(ground.process()) == ["run"]

    asyncio.run(scene())


def test_a_run_is_begun_once_and_the_conflict_names_it() -> None:
    async def scene() -> None:
        ground = Ground()
        store = ground.process()
        place = await begin(store, "run", exchange())
        for after in (START, place):
            with pytest.raises(AppendConflict) as caught:
                await ground.process().journal.append("run", b"again", after, None, exchange())
            assert caught.value.details == {"run_id": "run"}
        await store.journal.append("run", b"next", place)
        with pytest.raises(AppendConflict) as caught:
            await store.journal.append("run", b"late", place)
        assert caught.value.details == {"run_id": "run"}
        assert list(await store.journal.read("run", after=0)) == [b"next"]

    asyncio.run(scene())


def test_a_place_that_is_never_free_when_it_is_looked_at_is_refused_in_the_end() -> None:
    async def scene() -> None:
        ground = Ground()
        ground.log.crowded = session_log("", "session")
        with pytest.raises(SessionConflict):
            await begin(ground.process(), "run", exchange())
        assert ground.log.entries == []

    asyncio.run(scene())
