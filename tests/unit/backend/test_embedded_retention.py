"""Deleting runs: exactly those, with the texts only they referred to, signed for, and no other disturbed."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from remit.backend.embedded import inbox, retention
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import Ending, RequestRejected
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import is_deletion_signed
from remit.core.journal.storage import (
    ANSWER_GRACE_MS,
    TEXT_GRACE_MS,
    Barrier,
    BlobMissing,
    Removed,
    RunListing,
    StoreUnusable,
)
from remit.core.record import BlobRef, digest_of
from remit.testing.conformance.sample_turns import last_turn
from tests.unit.backend.signed import journal_of

START_MS = 1_000_000_000_000


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at_ms = START_MS

    def now_ms(self) -> int:
        return self.at_ms


def play(home: Path, scene: Callable[[EmbeddedStore, Time], Awaitable[None]]) -> None:
    async def whole() -> None:
        time = Time()
        store = EmbeddedStore.open(home, now_ms=time.now_ms)
        try:
            await scene(store, time)
        finally:
            await store.close()

    asyncio.run(whole())


def turn(*texts: bytes) -> bytes:
    """A turn that refers to these texts, written the way turns are."""
    return b"\x01" + msgspec.msgpack.encode([b"\xc4\x20", [BlobRef(digest_of(text), len(text)) for text in texts]])


async def run(store: EmbeddedStore, run_id: str, *texts: bytes, ending: str = "SUCCESS") -> None:
    """A run of two turns that refers to these texts."""
    for text in texts:
        await store.blobs.put(digest_of(text), text)
    await journal_of(store).append(run_id, turn(*texts), after=-1, listing=RunListing(1))
    await journal_of(store).append(
        run_id, last_turn(START_MS, Ending(ending) if ending else None), after=0, barrier=Barrier(ending)
    )


async def kept(store: EmbeddedStore, *texts: bytes) -> list[bytes]:
    """Those of the texts that are still there."""
    found = []
    for text in texts:
        try:
            found.append(await store.blobs.get(digest_of(text)))
        except BlobMissing:
            continue
    return found


def test_a_deleted_run_is_gone_with_the_texts_that_only_it_referred_to(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "one", b"own" * 1000, b"shared" * 1000)
        await run(store, "two", b"shared" * 1000)
        await store.inbox.put("one", b"hello")
        removed = await store.retention.delete("one")
        assert removed == Removed(runs=1, turns=2, texts=1, text_bytes=3000, inbox_entries=1)
        assert await store.journal.read("one") == []
        assert await store.catalogue.entry("one") is None
        assert await store.catalogue.heads("one") == []
        assert await store.inbox.pending(after=0) == []
        assert await kept(store, b"own" * 1000, b"shared" * 1000) == [b"shared" * 1000]
        assert len(await store.journal.read("two")) == 2
        assert len(await store.catalogue.heads("two")) == 2

    play(tmp_path, scene)


def test_nothing_of_a_deleted_text_is_left_in_the_files(tmp_path: Path) -> None:
    secret = b"the secret of the deleted run" * 500

    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "one", secret)
        await store.retention.delete("one")

    play(tmp_path, scene)
    assert not [path.name for path in tmp_path.iterdir() if b"secret of the deleted" in path.read_bytes()]


def test_a_deletion_is_signed_in_the_log_and_leaves_its_heads_there(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "one")
        heads = await store.catalogue.heads("one")
        assert await store.log.deletion("one") is None
        await store.retention.delete("one")
        assert await store.log.heads("one") == heads
        deletion = await store.log.deletion("one")
        assert deletion is not None
        assert is_deletion_signed(deletion)
        assert (deletion.seq, deletion.head, deletion.at_ms) == (1, hash_turn(last_turn(START_MS)), START_MS)
        assert deletion.signer == store.did

    play(tmp_path, scene)


def test_deleting_what_nobody_started_removes_nothing(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        assert await store.retention.delete("nobody") == Removed()
        assert await store.log.deletion("nobody") is None

    play(tmp_path, scene)


def test_a_run_that_is_driven_is_neither_deleted_nor_redacted(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "one", ending="")
        assert store.locks.take("one")
        with pytest.raises(StoreUnusable, match=r"STORE_BUSY.*one is being driven, so it cannot be deleted"):
            await store.retention.delete("one")
        with pytest.raises(StoreUnusable, match=r"STORE_BUSY.*one is being driven, so it cannot be redacted"):
            await store.redactions.redact("one", text="words", by="ann", why="a mistake")
        store.locks.release("one")
        assert (await store.retention.delete("one")).runs == 1

    play(tmp_path, scene)


def test_a_text_put_lately_is_spared_while_others_have_the_store_open(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        other = EmbeddedStore.open(tmp_path, now_ms=time.now_ms)
        await run(store, "one", b"text" * 1000)
        removed = await store.retention.delete("one")
        assert (removed.runs, removed.texts, removed.texts_spared) == (1, 0, 1)
        assert len(await kept(store, b"text" * 1000)) == 1
        time.at_ms += TEXT_GRACE_MS + 1
        assert (await store.retention.gc(ended_before_ms=0)).texts == 1
        await other.close()

    play(tmp_path, scene)


def test_a_text_put_lately_is_spared_while_something_is_driven_here(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "one", b"text" * 1000)
        assert store.locks.take("two")
        await store.blobs.put(digest_of(b"text" * 1000), b"text" * 1000)
        assert (await store.retention.delete("one")).texts_spared == 1
        await run(store, "two", b"text" * 1000)
        assert len(await kept(store, b"text" * 1000)) == 1

    play(tmp_path, scene)


def test_a_text_put_again_counts_as_new(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        await run(store, "one", b"text" * 1000)
        time.at_ms += TEXT_GRACE_MS + 1
        assert store.locks.take("two")
        await store.blobs.put(digest_of(b"text" * 1000), b"text" * 1000)
        await store._writer.submit(lambda cursor: (None, None))
        assert (await store.retention.delete("one")).texts_spared == 1

    play(tmp_path, scene)


def test_a_collection_removes_what_ended_before_a_time(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        await run(store, "old", b"old" * 1000)
        await run(store, "open", b"open" * 1000, ending="")
        await store.blobs.put(digest_of(b"nobody's" * 1000), b"nobody's" * 1000)
        heard, waiting = await store.inbox.put("open", b"1"), await store.inbox.put("open", b"2")
        await store.inbox.settle(heard, "", "")
        time.at_ms += TEXT_GRACE_MS + ANSWER_GRACE_MS
        await run(store, "young", b"young" * 1000)
        await store.blobs.put(digest_of(b"fresh" * 1000), b"fresh" * 1000)

        expected = Removed(runs=1, turns=2, texts=2, text_bytes=3000 + 8000, inbox_entries=1)
        assert await store.retention.gc(ended_before_ms=START_MS + 1, dry_run=True) == expected
        assert len(await store.catalogue.entries()) == 3
        assert await store.log.deletion("old") is None

        assert await store.retention.gc(ended_before_ms=START_MS + 1) == expected
        assert [entry.run_id for entry in await store.catalogue.entries()] == ["young", "open"]
        assert await kept(store, b"old" * 1000, b"nobody's" * 1000) == []
        assert len(await kept(store, b"open" * 1000, b"young" * 1000, b"fresh" * 1000)) == 3
        assert [entry.number for entry in await store.inbox.pending(after=0)] == [waiting]
        assert await store.inbox.outcome(heard) is None
        assert await store.log.deletion("old") is not None
        assert await store.retention.gc(ended_before_ms=START_MS + 1) == Removed()

    play(tmp_path, scene)


def test_a_collection_leaves_a_run_that_is_held(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        await run(store, "one")
        assert store.locks.take("one")
        time.at_ms += 1
        assert (await store.retention.gc(ended_before_ms=time.at_ms)).runs == 0
        store.locks.release("one")
        assert (await store.retention.gc(ended_before_ms=time.at_ms)).runs == 1

    play(tmp_path, scene)


def test_a_second_clean_up_is_refused_while_one_goes_on(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        other = EmbeddedStore.open(tmp_path, now_ms=time.now_ms)
        assert other.locks.begin_cleaning()
        with pytest.raises(StoreUnusable, match=r"STORE_BUSY.*another process removes"):
            await store.retention.gc(ended_before_ms=0)
        await other.close()
        await store.retention.gc(ended_before_ms=0)

    play(tmp_path, scene)


def test_texts_of_turns_that_come_during_a_sweep_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look over the turns is held up until another run has begun to use the text."""
    looked, may_go_on = threading.Event(), threading.Event()
    real = retention.Sweep.spare_referred

    def held_up(self: retention.Sweep, *, besides: tuple[int, ...] = ()) -> None:
        real(self, besides=besides)
        if not looked.is_set():
            looked.set()
            assert may_go_on.wait(60)

    monkeypatch.setattr(retention.Sweep, "spare_referred", held_up)

    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "one", b"text" * 1000, b"own" * 1000)
        deletion = asyncio.ensure_future(store.retention.delete("one"))
        assert await asyncio.to_thread(looked.wait, 60)
        await run(store, "two", b"text" * 1000)
        may_go_on.set()
        assert (await deletion).texts == 1
        assert await kept(store, b"text" * 1000, b"own" * 1000) == [b"text" * 1000]

    play(tmp_path, scene)


def test_runs_go_on_while_many_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_TURNS_AT_ONCE", 7)
    monkeypatch.setattr(retention, "_TEXTS_AT_ONCE", 3)

    async def scene(store: EmbeddedStore, time: Time) -> None:
        for number in range(30):
            await run(store, f"old{number}", b"%d" % number * 2000)
        time.at_ms += TEXT_GRACE_MS + 1
        collection = asyncio.ensure_future(store.retention.gc(ended_before_ms=time.at_ms))
        appended = 0
        while not collection.done():
            await journal_of(store).append("going", b"%d" % appended, after=appended - 1)
            appended += 1
        removed = await collection
        assert (removed.runs, removed.texts) == (30, 30)
        assert await store.journal.read("going") == [b"%d" % number for number in range(appended)]

    play(tmp_path, scene)


def test_the_file_becomes_smaller_when_nobody_else_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "remit.db"

    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "one", bytes(2_000_000))
        other = EmbeddedStore.open(tmp_path)
        await store.retention.delete("two")
        await store.retention.gc(ended_before_ms=0)
        assert path.stat().st_size > 2_000_000
        await other.close()
        await store.retention.delete("one")
        assert path.stat().st_size < 200_000

    play(tmp_path, scene)


def test_a_file_that_cannot_be_made_smaller_is_told_to_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        with caplog.at_level(logging.WARNING):
            connection = sqlite3.connect(tmp_path / "remit.db")
            connection.close()
            store.retention.shrink(connection)
        assert "was not made smaller" in caplog.text

    play(tmp_path, scene)


def test_a_clean_up_of_a_damaged_store_says_so(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        store._connection.execute("DROP TABLE heads")
        await journal_of(store).append("run", b"turn", after=-1)
        with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
            await store.retention.delete("run")
        assert await store.journal.read("run") == [b"turn"]

    play(tmp_path, scene)


def test_an_inbox_that_nobody_reads_is_not_filled_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "UNHEARD_MAX", 3)

    async def scene(store: EmbeddedStore, _: Time) -> None:
        numbers = [await store.inbox.put("run", b"x") for _ in range(3)]
        with pytest.raises(StoreUnusable, match="STORE_BUSY"):
            await store.inbox.put("run", b"x")
        await store.inbox.put("other", b"x")
        await store.inbox.settle(numbers[0], "", "")
        await store.inbox.put("run", b"x")

    play(tmp_path, scene)


def test_the_first_word_about_an_entry_stays(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        number = await store.inbox.put("run", b"x")
        await store.inbox.settle(number, "", "")
        await store.inbox.settle(number, "RUN_ENDED", "too late")
        assert await store.inbox.outcome(number) == ("", "")

    play(tmp_path, scene)


async def family(store: EmbeddedStore, *, parent_ending: str = "", child_ending: str = "SUCCESS") -> None:
    """A run with a child and a grandchild, each with a text of its own."""
    above = ""
    for run_id, ending in (("a", parent_ending), ("a.1.2", child_ending), ("a.1.2.1.2", child_ending)):
        await store.blobs.put(digest_of(run_id.encode() * 1000), run_id.encode() * 1000)
        listing = RunListing(1, parent_id=above)
        await journal_of(store).append(run_id, turn(run_id.encode() * 1000), after=-1, listing=listing)
        await journal_of(store).append(
            run_id, last_turn(START_MS, Ending(ending) if ending else None), after=0, barrier=Barrier(ending)
        )
        above = run_id


def test_a_run_is_deleted_with_all_beneath_it_and_their_texts(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        await family(store)
        await run(store, "a2")
        removed = await store.retention.delete("a")
        assert (removed.runs, removed.turns, removed.texts, removed.text_bytes) == (
            3,
            6,
            3,
            1000 * len("aa.1.2a.1.2.1.2"),
        )
        assert [entry.run_id for entry in await store.catalogue.entries()] == ["a2"]
        for run_id in ("a", "a.1.2", "a.1.2.1.2"):
            assert await store.log.deletion(run_id) is not None
            assert store.locks.take(run_id)

    play(tmp_path, scene)


@pytest.mark.parametrize("held", ["a", "a.1.2", "a.1.2.1.2"])
def test_nothing_of_a_family_is_deleted_while_one_of_it_is_driven(tmp_path: Path, held: str) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        await family(store)
        other = EmbeddedStore.open(tmp_path, now_ms=time.now_ms)
        assert other.locks.take(held)
        with pytest.raises(StoreUnusable, match=rf"STORE_BUSY.*run {held} is being driven"):
            await store.retention.delete("a")
        assert len(await store.catalogue.entries()) == 3
        assert await store.log.deletion("a.1.2.1.2") is None
        await other.close()
        assert (await store.retention.delete("a")).runs == 3

    play(tmp_path, scene)


def test_a_child_that_begins_while_its_parent_is_taken_is_deleted_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(store: EmbeddedStore, _: Time) -> None:
        await run(store, "a", ending="")
        take, loop = store.locks.take, asyncio.get_running_loop()

        def begin_a_child_first(run_id: str) -> bool:
            if run_id == "a":
                begun = journal_of(store).append("a.1.2", turn(), after=-1, listing=RunListing(1, parent_id="a"))
                asyncio.run_coroutine_threadsafe(begun, loop).result()
            return take(run_id)

        monkeypatch.setattr(store.locks, "take", begin_a_child_first)
        assert (await store.retention.delete("a")).runs == 2

    play(tmp_path, scene)


def test_a_child_whose_parent_is_open_is_neither_collected_nor_deleted(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        await family(store)
        time.at_ms += 1
        # What is beneath a child that has ended is asked for by no reader.
        assert (await store.retention.gc(ended_before_ms=time.at_ms, dry_run=True)).runs == 1
        assert (await store.retention.gc(ended_before_ms=time.at_ms)).runs == 1
        with pytest.raises(RequestRejected, match=r"PARENT_OPEN: run a\.1\.2 was started by run a, which is open"):
            await store.retention.delete("a.1.2")
        assert [entry.run_id for entry in await store.catalogue.entries()] == ["a.1.2", "a"]
        await journal_of(store).append("a", last_turn(START_MS), after=1, barrier=Barrier("SUCCESS"))
        time.at_ms += 1
        assert (await store.retention.gc(ended_before_ms=time.at_ms)).runs == 2

    play(tmp_path, scene)


def test_the_newest_run_of_a_session_and_what_came_from_it_is_not_collected(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore, time: Time) -> None:
        runs = [("s", 0, "s0", ()), ("s", 1, "s1", ()), ("t", 0, "t0", ()), ("", 0, "again", ("s1",))]
        for session_id, ordinal, run_id, lineage in runs:
            listing = RunListing(1, session_id=session_id, ordinal=ordinal, lineage=lineage)
            await journal_of(store).append(
                run_id, last_turn(START_MS), after=-1, listing=listing, barrier=Barrier("TIMEOUT")
            )
        time.at_ms += 1
        assert (await store.retention.gc(ended_before_ms=time.at_ms)).runs == 1
        assert [entry.run_id for entry in await store.catalogue.entries()] == ["again", "t0", "s1"]
        # An operator who deletes it on purpose may.
        assert (await store.retention.delete("t0")).runs == 1

    play(tmp_path, scene)
