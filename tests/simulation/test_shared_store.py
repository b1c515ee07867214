"""The store that simulated processes share: it waits, its leases have owners, and it notes what no process may do."""

import asyncio
from collections.abc import Callable, Coroutine
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from remit.backend.folded.log import RUN
from remit.core.journal.storage import START, AppendConflict, BlobMissing, StoreUnusable, Warrant
from tests.simulation.seeded_loop import SeededLoop, Turns
from tests.simulation.shared_store import Ground, PoorLog, SharedStore, at_once

LEASE_MS = 3_000


def store_of(ground: Ground, process: str, lease_ms: int = 0) -> SharedStore:
    """The store as a process has it open, which takes one turn of the loop wherever it waits."""

    async def pause() -> None:
        await Turns(1)

    return SharedStore(ground, process, pause, lease_ms)


def play(work: Callable[[Ground], Coroutine[Any, Any, None]]) -> Ground:
    """Play something on a ground of its own, in virtual time."""
    ground, loop = Ground(), SeededLoop(Random(0))
    try:
        loop.run_until_complete(work(ground))
    finally:
        loop.close()
    return ground


def test_the_poor_log_writes_behind_what_was_seen_only() -> None:
    log = PoorLog()
    first = at_once(log.append("run:a", b"1", START))
    other = at_once(log.append("run:b", b"2", START))
    with pytest.raises(AppendConflict):
        at_once(log.append("run:a", b"3", START))
    at_once(log.append("run:a", b"3", first))
    assert [entry.data for entry in at_once(log.news(START))] == [b"1", b"2", b"3"]
    assert [entry.data for entry in at_once(log.news(first))] == [b"2", b"3"]
    assert [entry.data for entry in at_once(log.news(other))] == [b"3"]


def test_what_is_asked_for_at_once_may_not_wait() -> None:
    async def wait() -> None:
        await Turns(1)

    waiting = wait()
    with pytest.raises(AssertionError, match="memory waits for nothing"):
        at_once(waiting)
    waiting.close()


def test_it_is_noted_who_wrote_a_turn_under_which_token_and_when() -> None:
    async def write(ground: Ground) -> None:
        await asyncio.sleep(5)
        store = store_of(ground, "p1")
        token = await store.leases.take("r1")
        assert token
        first = await store.journal.append("r1", b"turn", START, warrant=Warrant(token))
        second = await store.journal.append("r1", b"turn", first)
        assert ground.writers == {first: ("p1", token), second: ("p1", 0)}
        assert ground.written_at_s == {first: 5.0, second: 5.0}
        assert list(await store.journal.read("r1", after=0)) == [b"turn"]

    ground = play(write)
    assert list(ground.turns("r1")) == [b"turn", b"turn"]
    assert list(ground.run_ids()) == ["r1"]
    assert ground.offences == []


def test_long_texts_are_kept_for_every_process() -> None:
    digest = sha256(b"long").digest()

    async def keep(ground: Ground) -> None:
        with pytest.raises(BlobMissing):
            await store_of(ground, "p1").blobs.get(digest)
        await store_of(ground, "p1").blobs.put(digest, b"long")
        assert await store_of(ground, "p2").blobs.get(digest) == b"long"

    play(keep)


def test_a_letter_is_shown_with_what_became_of_it() -> None:
    async def leave(ground: Ground) -> None:
        inbox = store_of(ground, "p1").inbox
        number = await inbox.put("r1", b"a")
        await inbox.put("r1", b"b")
        await inbox.settle(number, "RUN_ENDED", "it has ended")

    found = [(entry.run_id, entry.data, outcome) for entry, outcome in play(leave).letters()]
    assert found == [("r1", b"a", ("RUN_ENDED", "it has ended")), ("r1", b"b", None)]


def test_a_run_has_one_holder_until_that_lets_it_go() -> None:
    async def hold(ground: Ground) -> None:
        first, second = store_of(ground, "p1").leases, store_of(ground, "p2").leases
        token = await first.take("r1")
        assert token is not None
        assert await second.take("r1") is None
        assert await second.is_held("r1")
        await second.release("r1", token + 1)
        assert await first.renew("r1", token)
        await first.release("r1", token)
        assert not await second.is_held("r1")
        assert not await first.renew("r1", token)
        later = await second.take("r1")
        assert later is not None
        assert later > token

    play(hold)


def test_what_a_crashed_process_held_is_free() -> None:
    async def hold(ground: Ground) -> None:
        first, second = store_of(ground, "p1").leases, store_of(ground, "p2").leases
        await first.take("r1")
        token = await second.take("r2")
        ground.crash("p1")
        assert await second.take("r1") is not None
        assert await second.renew("r2", token or 0)

    play(hold)


def test_a_lease_with_a_time_outlives_its_process_until_then() -> None:
    async def hold(ground: Ground) -> None:
        first, second = (store_of(ground, name, LEASE_MS).leases for name in ("p1", "p2"))
        token = await first.take("r1")
        assert token is not None
        ground.crash("p1")
        await asyncio.sleep(2)
        assert await second.take("r1") is None
        assert await first.renew("r1", token), "a renewal in time holds it for longer"
        await asyncio.sleep(2)
        assert await second.take("r1") is None
        await asyncio.sleep(2)
        assert await first.renew("r1", token), "one that is late may renew until another has taken it"
        await asyncio.sleep(4)
        assert await second.take("r1") is not None
        assert not await first.renew("r1", token)
        await first.release("r1", token)
        assert await second.is_held("r1")

    play(hold)


def test_a_process_that_leaves_with_a_run_in_hand_is_noted() -> None:
    async def leave(ground: Ground) -> None:
        honest, hasty = store_of(ground, "p1"), store_of(ground, "p2")
        token = await honest.leases.take("r1")
        await hasty.leases.take("r2")
        await honest.leases.release("r1", token or 0)
        await honest.close()
        assert ground.offences == []
        await hasty.close()

    assert play(leave).offences == [("nothing_outlives_closing", "r2", "p2 was closed and still held the run")]


def test_nobody_writes_through_a_store_that_was_closed() -> None:
    async def leave(ground: Ground) -> None:
        store = store_of(ground, "p1")
        await store.close()
        with pytest.raises(StoreUnusable, match="STORE_CLOSED: the store of p1 is closed"):
            await store.inbox.put("r1", b"letter")
        assert ground.offences == [], "a caller of a closed store is refused; only a turn is an offence"
        with pytest.raises(StoreUnusable, match="STORE_CLOSED"):
            await store.journal.append("r1", b"turn", START)

    ground = play(leave)
    assert ground.offences == [("nothing_is_written_after_closing", "r1", "p1 wrote a turn")]
    assert [entry for entry in ground.log.entries if entry.name.startswith(RUN)] == []
