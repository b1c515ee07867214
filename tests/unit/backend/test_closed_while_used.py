"""A store is not closed while a thread uses what it has open; a later caller is told STORE_CLOSED and opens nothing."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from remit.backend.embedded.disk.locks import FileLocks
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RemitError
from remit.core.journal.storage import START, RunListing, StoreUnusable, Topic
from remit.core.record import digest_of

PATIENCE_S = 20


def closed(store: EmbeddedStore) -> threading.Thread:
    """A thread that closes a store."""
    thread = threading.Thread(target=store.let_go, daemon=True)
    thread.start()
    return thread


class Held:
    """A connection that is about to be asked, when its caller is held up."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.asked, self.may_go_on = threading.Event(), threading.Event()

    def execute(self, query: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        """Ask, later."""
        self.asked.set()
        self.may_go_on.wait(PATIENCE_S)
        return self._connection.execute(query, values)

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


def test_a_store_that_is_closed_while_a_thread_reads_waits_until_it_has_read(tmp_path: Path) -> None:
    store, found = EmbeddedStore.open(tmp_path), list[object]()
    held = store._reader._connection = Held(store._reader._connection)  # type: ignore[assignment]
    reader = threading.Thread(target=lambda: found.extend(store._reader.rows("SELECT 42")), daemon=True)
    reader.start()
    assert held.asked.wait(PATIENCE_S)
    closing = closed(store)
    closing.join(0.2)
    assert closing.is_alive(), "it was closed under its reader"
    with pytest.raises(StoreUnusable, match="STORE_CLOSED"):
        store._reader.rows("SELECT 1")
    held.may_go_on.set()
    for thread in (reader, closing):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert found == [(42,)]


def test_a_store_that_is_closed_while_runs_are_removed_waits_until_they_are(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path)
    with store.retention.cleaning() as connection:
        closing = closed(store)
        closing.join(0.2)
        assert closing.is_alive(), "its locks were let go under those who clean"
        assert connection.execute("SELECT 1").fetchone() == (1,)
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    with pytest.raises(StoreUnusable, match="STORE_CLOSED"), store.retention.cleaning():
        pass


def test_what_is_given_to_a_store_while_it_closes_is_written_or_refused_and_nobody_waits_for_ever(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        kept = asyncio.create_task(store.journal.append("kept", b"a", START, listing=RunListing(1)))
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        while not closing.done():
            await asyncio.sleep(0)
            for late in (
                store.journal.append("late", b"b", START, listing=RunListing(1)),
                store.blobs.put(digest_of(b"c"), b"c"),
                store.inbox.put("kept", b"d"),
            ):
                with pytest.raises(RemitError, match="STORE_CLOSED"):
                    await late
        await closing
        assert await kept == 0
        again = EmbeddedStore.open(tmp_path)
        assert [entry.run_id for entry in await again.catalogue.entries()] == ["kept"]
        await again.close()

    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def test_a_caller_that_waits_for_a_write_whose_closer_gave_up_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        waiting = asyncio.create_task(store.inbox.put("run", b"a"))
        await asyncio.sleep(0)
        closing = asyncio.create_task(store._writer.close())
        await asyncio.sleep(0)
        if not closing.done():
            closing.cancel()
        await asyncio.wait([waiting, closing])
        assert waiting.exception() is None or "STORE_CLOSED" in str(waiting.exception())
        await store.close()

    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def test_a_closed_store_takes_no_lease_and_opens_no_socket_that_its_process_would_keep(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.close()
        for late in (store.leases.take("run"), store.leases.is_held("run")):
            with pytest.raises(StoreUnusable, match="STORE_CLOSED"):
                await late
        store.bell.listen(Topic.POST, lambda _: None)()
        store.bell.ring(Topic.POST)
        assert store.bell._opened is None
        assert FileLocks(tmp_path).take("run")
        assert FileLocks(tmp_path).is_alone()

    asyncio.run(story())
