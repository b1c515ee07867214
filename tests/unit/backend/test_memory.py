"""Journal and blobs in memory: what the conformance suite does not ask for."""

import asyncio

import pytest
from typing_extensions import override

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.journal.storage import AppendConflict, BlobMissing, RunEntry, RunListing


def test_runs_are_listed_in_the_order_they_started() -> None:
    async def scene() -> None:
        journal = MemoryJournal()
        for run_id in ("b", "a", "c"):
            await journal.append(run_id, b"turn", after=-1)
        assert await journal.names() == ["b", "a", "c"]

    asyncio.run(scene())


def test_a_run_whose_first_append_was_refused_is_not_listed() -> None:
    async def scene() -> None:
        journal = MemoryJournal()
        with pytest.raises(AppendConflict):
            await journal.append("run", b"turn", after=7)
        assert await journal.names() == []

    asyncio.run(scene())


def test_a_conflict_names_the_run() -> None:
    async def scene() -> None:
        journal = MemoryJournal()
        await journal.append("run", b"turn", after=-1)
        with pytest.raises(AppendConflict) as caught:
            await journal.append("run", b"turn", after=-1)
        assert caught.value.details == {"run_id": "run"}

    asyncio.run(scene())


def test_a_missing_blob_is_named_by_its_digest() -> None:
    with pytest.raises(BlobMissing) as caught:
        asyncio.run(MemoryBlobs().get(b"\x0f\xf0"))
    assert caught.value.details == {"digest": "0ff0"}


def test_the_runs_of_a_session_are_found_without_looking_at_any_other_run() -> None:
    class Unread(MemoryJournal):
        @override
        async def entries(self, **_: object) -> list[RunEntry]:
            raise AssertionError("every run of the store was looked at")

    async def scene() -> None:
        journal = Unread()
        for number in (1, 0):
            await journal.append(f"run {number}", b"turn", -1, None, RunListing(1, session_id="s", ordinal=number))
        await journal.append("other", b"turn", -1, None, RunListing(1, session_id="t"))
        assert [entry.run_id for entry in await journal.session("s")] == ["run 0", "run 1"]

    asyncio.run(scene())


def test_a_removed_run_leaves_its_place_in_its_session_and_the_last_one_the_session() -> None:
    async def scene() -> None:
        journal = MemoryJournal()
        for number in (0, 1):
            await journal.append(f"run {number}", b"turn", -1, None, RunListing(1, session_id="s", ordinal=number))
        journal.remove("run 0")
        assert [entry.run_id for entry in await journal.session("s")] == ["run 1"]
        journal.remove("run 1")
        assert list(await journal.session("s")) == []

    asyncio.run(scene())
