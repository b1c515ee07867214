"""The embedded journal: one commit per tick, signed heads, barriers, and batches in which something goes wrong."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from remit.backend.embedded.disk import database, writer
from remit.backend.embedded.disk.writer import AT_ONCE_MAX, SOLO_TICKS
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import InvariantBroken
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import is_head_signed
from remit.core.journal.storage import AppendConflict, Barrier, RunListing, SessionConflict, StoreUnusable
from remit.core.record import digest_of
from tests.unit.backend.embedded_scenes import play
from tests.unit.backend.signed import journal_of

Scene = Callable[[EmbeddedStore], Awaitable[None]]


def rows(home: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(home / "remit.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def commits_of(store: EmbeddedStore) -> list[str]:
    """Filled with a word for each commit from now on."""
    seen: list[str] = []
    store._connection.set_trace_callback(lambda text: seen.append(text) if text == "COMMIT" else None)
    return seen


def test_turns_survive_the_closing_of_the_store(tmp_path: Path) -> None:
    async def write(store: EmbeddedStore) -> None:
        await journal_of(store).append("run", b"first", after=-1)
        await journal_of(store).append("run", b"second", after=0)

    async def read(store: EmbeddedStore) -> None:
        assert await store.journal.read("run") == [b"first", b"second"]

    play(tmp_path, write)
    play(tmp_path, read)


def test_what_is_appended_in_one_tick_is_one_commit(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        commits = commits_of(store)
        await asyncio.gather(*(journal_of(store).append(f"run{number}", b"turn", after=-1) for number in range(100)))
        assert len(commits) == 1

    play(tmp_path, scene)


def test_a_run_that_has_been_alone_for_a_while_does_not_wait_for_the_tick(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        for number in range(SOLO_TICKS):
            await journal_of(store).append("run", b"turn", after=number - 1)
        later: list[str] = []
        asyncio.get_running_loop().call_soon(later.append, "the tick has ended")
        for number in range(SOLO_TICKS, SOLO_TICKS + AT_ONCE_MAX):
            await journal_of(store).append("run", b"turn", after=number - 1)
        assert later == []
        # Others get their turn before it goes on like that.
        await journal_of(store).append("run", b"turn", after=SOLO_TICKS + AT_ONCE_MAX - 1)
        assert later == ["the tick has ended"]
        assert len(await store.journal.read("run")) == SOLO_TICKS + AT_ONCE_MAX + 1

    play(tmp_path, scene)


def test_company_ends_the_solitude(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        for number in range(SOLO_TICKS):
            await journal_of(store).append("run", b"turn", after=number - 1)
        commits = commits_of(store)
        await asyncio.gather(*(journal_of(store).append(f"run{number}", b"turn", after=-1) for number in range(100)))
        assert len(commits) <= AT_ONCE_MAX + 1
        commits.clear()
        await asyncio.gather(*(journal_of(store).append(f"run{number}", b"turn", after=0) for number in range(100)))
        assert len(commits) == 1

    play(tmp_path, scene)


def test_a_text_is_committed_together_with_the_turn_that_follows_it(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        commits = commits_of(store)
        await store.blobs.put(digest_of(b"text"), b"text")
        assert await store.blobs.get(digest_of(b"text")) == b"text"
        await journal_of(store).append("run", b"turn", after=-1)
        assert len(commits) == 1
        assert await store.blobs.get(digest_of(b"text")) == b"text"

    play(tmp_path, scene)
    assert rows(tmp_path, "SELECT data FROM blobs") == [(b"text",)]


def test_a_text_that_no_turn_follows_is_committed_all_the_same(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await store.blobs.put(digest_of(b"text"), b"text")

    play(tmp_path, scene)
    assert rows(tmp_path, "SELECT data FROM blobs") == [(b"text",)]


def test_texts_beyond_the_queue_wait_for_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUEUED_BYTES_MAX", 100)

    async def scene(store: EmbeddedStore) -> None:
        for number in range(5):
            data = b"%d" % number * 60
            await store.blobs.put(digest_of(data), data)
            assert store._writer._texts_bytes <= 100

    play(tmp_path, scene)
    assert len(rows(tmp_path, "SELECT 1 FROM blobs")) == 5


def test_a_text_that_no_store_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "TEXT_BYTES_MAX", 10)

    async def scene(store: EmbeddedStore) -> None:
        with pytest.raises(InvariantBroken, match="11 bytes exceeds 10"):
            await store.blobs.put(digest_of(b"x" * 11), b"x" * 11)

    play(tmp_path, scene)


def test_a_barrier_leaves_a_signed_head_in_the_store_and_in_the_log(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await journal_of(store).append("run", b"first", after=-1, listing=RunListing(1))
        # The first turn of a run names its code, so a key vouches for it from the beginning.
        (first,) = await store.catalogue.heads("run")
        assert (first.seq, first.head, is_head_signed(first)) == (0, hash_turn(b"first"), True)
        await journal_of(store).append("run", b"second", after=0, barrier=Barrier("SUCCESS"))
        head = (await store.catalogue.heads("run"))[-1]
        assert (head.run_id, head.seq, head.head, head.ending) == ("run", 1, hash_turn(b"second"), "SUCCESS")
        assert head.signer == store.did
        assert is_head_signed(head)
        assert await store.catalogue.last_head("run") == await store.log.last("run") == head
        assert await store.log.heads("run") == [first, head]

    play(tmp_path, scene)


def test_heads_are_logged_in_the_order_of_turns(tmp_path: Path) -> None:
    async def drive(store: EmbeddedStore, run_id: str) -> None:
        for after in range(-1, 4):
            await journal_of(store).append(run_id, b"%d" % after, after=after, barrier=Barrier())

    async def scene(store: EmbeddedStore) -> None:
        await asyncio.gather(*(drive(store, f"run{number}") for number in range(20)))
        for number in range(20):
            heads = await store.log.heads(f"run{number}")
            assert [head.seq for head in heads] == [0, 1, 2, 3, 4]
            assert heads == await store.catalogue.heads(f"run{number}")

    play(tmp_path, scene)


def test_a_refused_turn_leaves_no_head(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await journal_of(store).append("run", b"first", after=-1)
        with pytest.raises(AppendConflict):
            await journal_of(store).append("run", b"second", after=-1, barrier=Barrier("SUCCESS"))
        assert await store.catalogue.heads("run") == []
        assert await store.log.heads("run") == []

    play(tmp_path, scene)


def test_the_entry_of_the_inbox_that_a_turn_answers_is_settled_with_it(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        heard, other = await store.inbox.put("run", b"approve"), await store.inbox.put("run", b"pause")
        commits = commits_of(store)
        await journal_of(store).append("run", b"turn", after=-1, barrier=Barrier(heard=heard))
        assert len(commits) == 1
        assert await store.inbox.outcome(heard) == ("", "")
        assert await store.inbox.outcome(other) is None

    play(tmp_path, scene)


def test_a_refused_turn_settles_nothing_in_the_inbox(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        heard = await store.inbox.put("run", b"approve")
        with pytest.raises(AppendConflict):
            await journal_of(store).append("run", b"turn", after=3, barrier=Barrier(heard=heard))
        assert await store.inbox.outcome(heard) is None

    play(tmp_path, scene)


def test_a_conflict_of_one_run_leaves_the_others_of_the_batch_alone(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await journal_of(store).append("taken", b"turn", after=-1, listing=RunListing(1, session_id="s"))
        commits = commits_of(store)
        outcomes = await asyncio.gather(
            journal_of(store).append("one", b"turn", after=-1),
            journal_of(store).append("taken", b"turn", after=-1),
            journal_of(store).append("rival", b"turn", after=-1, listing=RunListing(1, session_id="s")),
            journal_of(store).append("gap", b"turn", after=4),
            journal_of(store).append("two", b"turn", after=-1, barrier=Barrier()),
            return_exceptions=True,
        )
        assert len(commits) == 1
        assert [type(outcome) for outcome in outcomes] == [
            int,
            AppendConflict,
            SessionConflict,
            AppendConflict,
            int,
        ]
        assert isinstance(outcomes[3], AppendConflict)
        assert outcomes[3].details == {"run_id": "gap"}
        assert await store.journal.read("one") == [b"turn"] == await store.journal.read("two")

    play(tmp_path, scene)
    assert rows(tmp_path, "SELECT run_id FROM runs ORDER BY run_no") == [("taken",), ("one",), ("two",)]


def test_what_no_store_can_hold_leaves_the_others_of_the_batch_alone(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        outcomes = await asyncio.gather(
            journal_of(store).append("one", b"turn", after=-1),
            journal_of(store).append("\ud800", b"turn", after=-1),
            journal_of(store).append("two", b"turn", after=-1, listing=RunListing(2**70)),
            journal_of(store).append("three", b"turn", after=-1),
            return_exceptions=True,
        )
        assert [getattr(outcome, "code", None) for outcome in outcomes] == [
            None,
            "STORE_VALUE_UNFIT",
            "STORE_VALUE_UNFIT",
            None,
        ]

    play(tmp_path, scene)
    assert rows(tmp_path, "SELECT run_id FROM runs") == [("one",), ("three",)]
    assert len(rows(tmp_path, "SELECT 1 FROM turns")) == 2


def test_a_run_whose_name_is_no_unicode_reads_as_nothing(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        assert await store.journal.read("\ud800") == []
        assert await store.catalogue.entry("\ud800") is None
        assert await store.log.heads("\ud800") == []

    play(tmp_path, scene)


def test_a_bug_in_a_batch_leaves_nobody_waiting(tmp_path: Path) -> None:
    def broken(cursor: sqlite3.Cursor) -> tuple[None, None]:
        raise ZeroDivisionError

    async def submit(store: EmbeddedStore) -> None:
        await store._writer.submit(broken)

    async def scene(store: EmbeddedStore) -> None:
        complaints: list[BaseException | None] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context.get("exception")))
        outcomes = await asyncio.gather(
            journal_of(store).append("run", b"turn", after=-1), submit(store), return_exceptions=True
        )
        assert [getattr(outcome, "code", None) for outcome in outcomes] == ["STORE_BATCH_BROKEN"] * 2
        assert [type(complaint) for complaint in complaints] == [ZeroDivisionError]
        await journal_of(store).append("run", b"turn", after=-1)

    play(tmp_path, scene)


def test_an_append_that_was_cancelled_before_its_batch_is_not_written(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        future = asyncio.ensure_future(journal_of(store).append("run", b"turn", after=-1))
        other = asyncio.ensure_future(journal_of(store).append("other", b"turn", after=-1))
        asyncio.get_running_loop().call_soon(future.cancel)
        await other
        assert future.cancelled()
        await journal_of(store).append("run", b"instead", after=-1)
        assert await store.journal.read("run") == [b"instead"]

    play(tmp_path, scene)


def test_a_barrier_that_was_cancelled_while_it_is_synced_is_written(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        future = asyncio.ensure_future(journal_of(store).append("run", b"turn", after=-1, barrier=Barrier()))
        committed = asyncio.Event()
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(committed.set))
        await committed.wait()
        assert await store.journal.read("run") == [b"turn"]
        future.cancel()
        await asyncio.wait([future])
        await journal_of(store).append("run", b"next", after=0, barrier=Barrier())
        assert [head.seq for head in await store.log.heads("run")] == [0, 1]

    play(tmp_path, scene)


def test_a_store_serves_several_event_loops_one_after_the_other(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path)
    for after in range(-1, 3):
        asyncio.run(journal_of(store).append("run", b"turn", after=after, barrier=Barrier()))
    asyncio.run(store.close())
    assert len(rows(tmp_path, "SELECT 1 FROM turns")) == 4


def test_what_a_loop_left_behind_is_dropped_and_its_texts_are_written(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path)
    loop = asyncio.new_event_loop()

    async def leave() -> None:
        await store.blobs.put(digest_of(b"text"), b"text")
        store._writer.submit(lambda cursor: (None, None))
        loop.stop()

    task = loop.create_task(leave())
    loop.run_forever()
    assert task.done()
    loop.close()
    asyncio.run(store.close())
    assert rows(tmp_path, "SELECT data FROM blobs") == [(b"text",)]


def test_two_event_loops_at_once_are_refused(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await journal_of(store).append("run", b"turn", after=-1)
        with pytest.raises(InvariantBroken, match="STORE_IN_TWO_LOOPS"):
            await asyncio.to_thread(asyncio.run, journal_of(store).append("run", b"turn", after=0))

    play(tmp_path, scene)


def test_nothing_is_written_after_the_closing(tmp_path: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.close()
        await store.close()
        with pytest.raises(StoreUnusable, match="STORE_CLOSED"):
            await journal_of(store).append("run", b"turn", after=-1)
        with pytest.raises(StoreUnusable, match="STORE_CLOSED"):
            await store.journal.read("run")

    asyncio.run(scene())


def test_an_append_waits_while_another_connection_writes(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        rival = database.connect_to_database(tmp_path / "remit.db")
        rival.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(journal_of(store).append("run", b"turn", after=-1))
        ticks = 0
        while store._writer._pause_s < 0.01:
            ticks += 1
            await asyncio.sleep(0)
        # The loop went on meanwhile.
        assert ticks > 3
        assert not waiting.done()
        rival.execute("ROLLBACK")
        rival.close()
        await waiting
        assert await store.journal.read("run") == [b"turn"]

    play(tmp_path, scene)


def test_an_append_gives_up_when_another_connection_never_stops_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUSY_WAIT_MS_MAX", 20)

    async def scene(store: EmbeddedStore) -> None:
        rival = database.connect_to_database(tmp_path / "remit.db")
        rival.execute("BEGIN IMMEDIATE")
        await store.blobs.put(digest_of(b"text"), b"text")
        with pytest.raises(StoreUnusable, match="STORE_BUSY"):
            await journal_of(store).append("run", b"turn", after=-1)
        rival.execute("ROLLBACK")
        rival.close()
        await journal_of(store).append("run", b"turn", after=-1)

    play(tmp_path, scene)
    assert rows(tmp_path, "SELECT data FROM blobs") == [(b"text",)]


def test_a_full_disk_fails_the_batch_and_loses_nothing(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await journal_of(store).append("run", b"first", after=-1, listing=RunListing(1))
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        large = bytes(100_000)
        await store.blobs.put(digest_of(large), large)
        outcomes = await asyncio.gather(
            journal_of(store).append("run", b"second", after=0),
            journal_of(store).append("new", b"first", after=-1),
            return_exceptions=True,
        )
        assert [getattr(outcome, "code", None) for outcome in outcomes] == ["STORE_FULL", "STORE_FULL"]
        assert await store.journal.read("run") == [b"first"]
        assert await store.catalogue.entry("new") is None
        # The text waits in front of the next turn, so that none is ever written without it.
        assert await store.blobs.get(digest_of(large)) == large
        with pytest.raises(StoreUnusable, match="STORE_FULL"):
            await journal_of(store).append("run", b"second", after=0)
        store._connection.execute("PRAGMA max_page_count = 100000")
        await journal_of(store).append("run", b"second", after=0)
        assert await store.journal.read("run") == [b"first", b"second"]

    play(tmp_path, scene)
    assert rows(tmp_path, "SELECT length(data) FROM blobs") == [(100_000,)]
