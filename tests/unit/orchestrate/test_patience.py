"""The outcome of an effect outlives a long lock and a full disk, as long as its process does."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remit.backend.embedded.disk import writer
from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RemitError
from remit.core.journal.storage import AppendConflict, StoreUnusable
from remit.orchestrate.loop import patience
from remit.orchestrate.loop.patience import insist
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import approval, calls, request, scripted, systems, until
from tests.unit.orchestrate.stage import play

DONE: list[str] = []


@tool(effect="write")
def pay(to: str) -> str:
    """Pay a person, which cannot be done twice."""
    DONE.append(to)
    return f"paid {to}"


REPLIES = (calls("pay", to="eve"), {"text": "done"})


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    DONE.clear()
    monkeypatch.setattr(patience, "PAUSE_S_MIN", 0.005)
    monkeypatch.setattr(patience, "PAUSE_S_MAX", 0.02)


async def asked(system: Any) -> str:
    response = await system.run(request(), scripted(*REPLIES, tools=[pay]))
    assert response.waiting_for is not None
    (packet_id,) = response.waiting_for.packet_ids
    return str(packet_id)


def failing(store: EmbeddedStore, *errors: RemitError, writes: bool = False) -> None:
    """Let the appends that tell of the effect fail so, one after the other; with `writes`, although they are written."""
    append, left = store.journal.append, list(errors)

    async def troubled(run_id: str, data: bytes, after: int, *more: Any) -> None:
        if DONE and left:
            if writes:
                await append(run_id, data, after, *more)
            raise left.pop(0)
        await append(run_id, data, after, *more)

    store.journal.append = troubled  # type: ignore[assignment]


FULL = StoreUnusable("STORE_FULL", "no room")


@pytest.mark.parametrize("code", ["STORE_FULL", "STORE_BUSY", "STORE_READ_ONLY"])
def test_an_outcome_is_kept_until_it_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        failing(store, *(StoreUnusable(code, "not now") for _ in range(5)))
        async with systems(store) as (system,):
            packet_id = await asked(system)
            await system.signal(approval(packet_id))
            response = await system.result(packet_id.partition("/")[0])
            assert response.content == "done"

    with caplog.at_level(logging.WARNING):
        play(story())
    assert DONE == ["eve"]
    kept = [record.message for record in caplog.records if "is kept and tried again" in record.message]
    # The store failed five times; the first append is not the patient one.
    assert len(kept) == 3
    assert code in kept[0]


def test_what_was_written_although_its_writer_was_told_otherwise_is_not_written_twice(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        failing(store, FULL, writes=True)
        async with systems(store) as (system,):
            packet_id = await asked(system)
            await system.signal(approval(packet_id))
            assert (await system.result(packet_id.partition("/")[0])).content == "done"

    play(story())
    assert DONE == ["eve"]


@pytest.mark.parametrize(
    "error",
    [StoreUnusable("STORE_DAMAGED", "no such page"), StoreUnusable("STORE_FULL", "not synced", {"is_final": True})],
)
def test_what_does_not_pass_is_told_at_once(tmp_path: Path, error: StoreUnusable) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        failing(store, error, error)
        async with systems(store) as (system,):
            packet_id = await asked(system)
            await system.signal(approval(packet_id))
            with pytest.raises(StoreUnusable):
                await system.result(packet_id.partition("/")[0])

    play(story())


def test_another_turn_in_its_place_is_a_conflict_as_ever(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.journal.append("run", b"theirs", after=-1)
        with pytest.raises(AppendConflict):
            await patience.append_at_last(store.journal, "run", b"ours", -1, None, None, None, ())
        await patience.append_at_last(store.journal, "run", b"theirs", -1, None, None, None, ())
        await store.close()

    play(story())


def test_nobody_waits_longer_than_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "KEPT_MS_MAX", -1)

    async def full() -> None:
        raise FULL

    with pytest.raises(StoreUnusable, match="no room"):
        asyncio.run(insist(full, "run"))


def test_a_lock_that_is_held_longer_than_the_store_waits_loses_no_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "BUSY_WAIT_MS_MAX", 20)
    rival = sqlite3.connect(":memory:")

    @tool(effect="write")
    async def pay_and_lock(to: str) -> str:
        """Pay a person, and hold the store from then on."""
        DONE.append(to)
        rival.execute("BEGIN IMMEDIATE")
        return f"paid {to}"

    async def story() -> None:
        nonlocal rival
        store = EmbeddedStore.open(tmp_path)
        rival = sqlite3.connect(tmp_path / DATABASE, isolation_level=None)
        async with systems(store) as (system,):
            kit = scripted(calls("pay_and_lock", to="eve"), {"text": "done"}, tools=[pay_and_lock])
            response = await system.run(request(), kit)
            assert response.waiting_for is not None
            await system.signal(approval(response.waiting_for.packet_ids[0]))

            async def was_told() -> bool:
                return caplog.text.count("STORE_BUSY") >= 2

            await until(was_told)
            rival.execute("ROLLBACK")
            assert (await system.result(response.run_id)).content == "done"

    with caplog.at_level(logging.WARNING), closing(rival):
        play(story())
    rival.close()
    assert DONE == ["eve"]
