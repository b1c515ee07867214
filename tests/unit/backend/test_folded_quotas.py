"""What runs count for their tenants in a store over logs: reservations of the dead, charges that were cut off, rivals."""

import asyncio

import pytest

from remit.core.journal.storage import START, AppendConflict, Barrier, QuotaConflict, RunListing, SessionConflict
from remit.core.limits.quota import Committed
from remit.core.record import replace
from tests.unit.backend.logs import Ground, begin, charged, committed, end, go_on, spending


def test_processes_that_reserve_at_the_same_time_never_reserve_more_than_there_is() -> None:
    async def scene() -> None:
        ground = Ground()
        for number in range(3):
            await ground.leases.take(f"run{number}")
        rivals = [begin(ground.process(), f"run{number}", spending(40)) for number in range(3)]
        outcomes = await asyncio.gather(*rivals, return_exceptions=True)
        assert sum(isinstance(outcome, QuotaConflict) for outcome in outcomes) == 1
        assert await committed(ground.process()) == Committed(0, 80)

    asyncio.run(scene())


def test_what_a_dead_run_reserved_is_given_back_only_when_room_is_needed() -> None:
    async def scene() -> None:
        ground = Ground()
        await ground.cut_off(ground.process(), "dead", spending(60))
        store = ground.process()
        assert await committed(store) == Committed(0, 60)
        await begin(store, "small", spending(40))
        assert await committed(store) == Committed(0, 100)
        await begin(store, "large", spending(60))
        for process in (store, ground.process()):
            assert await committed(process) == Committed(0, 100)
            assert await process.index.names() == ["small", "large"]
            assert list(await process.journal.read("dead")) == []

    asyncio.run(scene())


def test_what_a_run_of_a_living_process_reserved_is_not_given_back() -> None:
    async def scene() -> None:
        ground = Ground()
        stop = ground.log.stop("run:slow")
        await ground.leases.take("slow")
        begun = asyncio.create_task(begin(ground.process(), "slow", spending(60)))
        await stop.reached.wait()
        with pytest.raises(QuotaConflict, match="output_tokens=40 left this total and 41 were to be reserved"):
            await begin(ground.process(), "rival", spending(41))
        stop.go.set()
        await begun
        assert await committed(ground.process()) == Committed(0, 60)

    asyncio.run(scene())


def test_what_a_run_that_has_begun_reserved_stays_though_nobody_holds_it() -> None:
    async def scene() -> None:
        ground = Ground()
        await begin(ground.process(), "open", spending(60))
        with pytest.raises(QuotaConflict):
            await begin(ground.process(), "rival", spending(60))
        assert await committed(ground.process()) == Committed(0, 60)

    asyncio.run(scene())


def test_a_run_that_comes_late_to_what_it_reserved_is_refused_and_reserves_nothing_again() -> None:
    async def scene() -> None:
        ground = Ground()
        late, other = ground.process(), ground.process()
        stop = ground.log.stop("run:late")
        begun = asyncio.create_task(begin(late, "late", spending(60)))
        await stop.reached.wait()
        await begin(other, "next", spending(60))
        await end(other, "next", 10)
        stop.go.set()
        with pytest.raises(AppendConflict):
            await begun
        with pytest.raises(AppendConflict):
            await begin(late, "late", spending(60))
        assert (await late.journal.read("late")).place == START
        assert await committed(late) == Committed(10, 0)

    asyncio.run(scene())


def test_a_run_that_lost_its_place_gives_back_what_it_reserved_too() -> None:
    async def scene() -> None:
        ground = Ground()
        await ground.cut_off(ground.process(), "dead", replace(spending(60), session_id="session"))
        store = ground.process()
        await begin(store, "next", RunListing(1, session_id="session"))
        assert await committed(store) == Committed(0, 60)
        await begin(store, "large", spending(100))
        assert await committed(store) == Committed(0, 100)
        with pytest.raises(SessionConflict):
            await begin(store, "dead", replace(spending(60), session_id="session"))
        assert await committed(store) == Committed(0, 100)

    asyncio.run(scene())


def test_what_a_run_came_to_takes_the_place_of_its_reservation_everywhere() -> None:
    async def scene() -> None:
        ground = Ground()
        one, other = ground.process(), ground.process()
        await begin(one, "first", spending(60))
        await begin(other, "second", spending(40))
        await asyncio.gather(end(one, "first", 25), end(other, "second", 5))
        for store in (one, other, ground.process()):
            assert await committed(store) == Committed(30, 0)
            assert await store.ledger.uncounted("acme", 0) == []
            assert await store.ledger.tenants() == ["acme"]

    asyncio.run(scene())


def test_a_run_whose_charge_was_cut_off_is_named_and_counted_anew() -> None:
    async def scene() -> None:
        ground = Ground()
        await begin(ground.process(), "run", spending(60))
        stop = ground.log.stop("tenant:acme")
        ended = asyncio.create_task(end(ground.process(), "run", 25))
        await stop.reached.wait()
        ended.cancel()
        await asyncio.wait([ended])
        store = ground.process()
        assert await committed(store) == Committed(0, 60)
        assert await store.ledger.uncounted("acme", 0) == ["run"]
        await store.ledger.count([charged("run", 25)])
        for process in (store, ground.process()):
            assert await committed(process) == Committed(25, 0)
            assert await process.ledger.uncounted("acme", 0) == []

    asyncio.run(scene())


def test_a_run_that_ended_while_it_was_counted_is_left_as_it_ended() -> None:
    async def scene() -> None:
        ground = Ground()
        one, other = ground.process(), ground.process()
        await begin(one, "run", spending(60))
        await end(other, "run", 25)
        await one.ledger.count([charged("run", 60, is_open=True), charged("nobody", 7)])
        assert await committed(one) == Committed(25, 0)

    asyncio.run(scene())


def test_a_charge_that_always_comes_second_leaves_its_run_to_be_counted_again() -> None:
    async def scene() -> None:
        ground = Ground()
        store = ground.process()
        await begin(store, "run", spending(60))
        ground.log.crowded = "tenant:acme"
        await end(store, "run", 25)
        assert await store.ledger.uncounted("acme", 0) == ["run"]
        ground.log.crowded = ""
        await store.ledger.count([charged("run", 25)])
        assert await committed(store) == Committed(25, 0)

    asyncio.run(scene())


def test_a_reservation_that_always_comes_second_begins_nothing() -> None:
    async def scene() -> None:
        ground = Ground()
        ground.log.crowded = "tenant:acme"
        with pytest.raises(AppendConflict) as caught:
            await begin(ground.process(), "run", spending(60))
        assert caught.value.details == {"run_id": "run"}
        assert ground.log.entries == []

    asyncio.run(scene())


def test_a_turn_that_ends_nothing_charges_nothing() -> None:
    async def scene() -> None:
        ground = Ground()
        store = ground.process()
        await begin(store, "run", spending(60))
        await go_on(store, "run", Barrier(waiting_for="REVIEW_REQUIRED"))
        assert await committed(ground.process()) == Committed(0, 60)

    asyncio.run(scene())
