"""Runs are taken up from snapshots where that is safe, and folded from their first turn on where it is not."""

import asyncio
import logging
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import FeedbackGiven
from remit.core.journal.storage import Snapshot, StoreUnusable
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import UNCHARGED, Dimension, budget_of
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, SystemResponse
from remit.kernel.fold.snapshot import snapshot_of, state_from
from remit.kernel.state import questions
from remit.observe.linked_turns import fold, read_history
from remit.orchestrate.facade import System
from remit.orchestrate.loop import run_snapshots as keeping
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.run_snapshots import SNAPSHOT_TURNS_MIN, is_due, keep_if_due
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.loop.signatures import signed_snapshots
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit, Terms
from tests import warm
from tests.unit.orchestrate.house import (
    STORES,
    approval,
    calls,
    keep,
    look,
    request,
    scripted,
    store_of,
    systems,
    unaudited,
    until,
)
from tests.unit.orchestrate.stage import Stage, WatchedJournal, play

ROOT = Path(__file__).parents[3]
# No process here takes a tenth of it; it only bounds a test that would hang.
WAIT_S_MAX = 60


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every run that rests be kept."""
    monkeypatch.setattr(keeping, "SNAPSHOT_TURNS_MIN", 1)
    monkeypatch.setattr(keeping, "SNAPSHOT_NEW_SHARE", 1_000)


def asking() -> Kit:
    """A run with it looks twice, rests until a person approves, and ends."""
    replies = [calls("look", at="a"), calls("look", at="b"), calls("keep", text="x"), {"text": "kept"}]
    return scripted(*replies, tools=[look, keep])


async def rested(system: System) -> SystemResponse:
    """A run that waits for a person, with a snapshot of where it rests."""
    response = await system.run(request(), asking())
    assert response.waiting_for is not None
    assert await system.store.snapshots.latest(response.run_id) is not None
    return response


async def loaded(store: Store, run_id: str) -> Live:
    """A run as another process would load it."""
    stage = Stage(journal=store.journal)
    runner = Runner(
        journal=store.journal,
        blobs=store.blobs,
        clock=stage.clock,
        dispatch=stage.dispatch,
        snapshots=signed_snapshots(store.snapshots, store.key),
    )
    live = await runner.load(run_id)
    assert live.state == fold(read_history(run_id, await store.journal.read(run_id)))
    return live


async def finished(system: System, response: SystemResponse) -> str | None:
    """What a run says once its question is approved."""
    assert response.waiting_for is not None
    await system.signal(approval(response.waiting_for.packet_ids[0]), kit=asking())
    return (await system.result(response.run_id)).content


def test_a_snapshot_is_due_when_the_run_has_grown_enough() -> None:
    assert not is_due(SNAPSHOT_TURNS_MIN - 1, 0)
    assert is_due(SNAPSHOT_TURNS_MIN, 0)
    assert not is_due(1_000, 1_000)
    assert not is_due(1_000 + SNAPSHOT_TURNS_MIN, 1_000)
    assert is_due(1_334, 1_000)


def test_what_is_written_for_snapshots_grows_no_faster_than_the_run() -> None:
    kept, written = 0, 0
    for turns in range(100_000):
        assert turns - kept <= max(SNAPSHOT_TURNS_MIN, turns / 4 + 1)
        if is_due(turns, kept):
            kept, written = turns, written + turns
            assert written <= 4 * turns


@pytest.mark.parametrize("kind", STORES)
def test_a_long_run_is_kept_when_it_rests_and_only_later_turns_are_folded(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of(kind, tmp_path)
        async with unaudited(store) as (system,):
            rounds = [calls("look", at=f"{number}") for number in range(130)]
            kit = scripted(*rounds, calls("keep", text="x"), {"text": "kept"}, tools=[look, keep])
            wordy = replace(request(), hints=ExecutionHints(max_iterations=200))
            caps = [0 if dimension in UNCHARGED else 10**9 for dimension in Dimension]
            response = await system.run(wordy, kit, Terms(Boundary("long", budget=budget_of(caps))))
            kept = await store.snapshots.latest(response.run_id)
            assert kept is not None
            assert kept.seq > SNAPSHOT_TURNS_MIN
            await system._hub.note(response.run_id, FeedbackGiven("ada", "hurry", 10))
            live = await loaded(store, response.run_id)
            assert live.snapshot_seq == kept.seq
            assert live.state.seq == kept.seq + 1
            assert response.waiting_for is not None
            await system.signal(approval(response.waiting_for.packet_ids[0]))
            assert (await system.result(response.run_id)).content == "kept"
            # Too little has happened for another one.
            assert await store.snapshots.latest(response.run_id) == kept

    play(story())


def test_a_short_run_is_not_kept() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            response = await system.run(request(), asking())
            assert await store.snapshots.latest(response.run_id) is None

    play(story())


@pytest.mark.usefixtures("eager")
def test_a_run_that_is_taken_up_from_a_snapshot_reads_no_earlier_turn() -> None:
    async def story() -> None:
        store, reads = MemoryStore(), list[int]()
        async with systems(store) as (system,):
            response = await rested(system)

            async def note(run_id: str, after: int) -> None:
                reads.append(after)

            kept = await store.snapshots.latest(response.run_id)
            assert kept is not None
            watched = WatchedJournal(before_read=note)
            watched.kept = store.journal
            system._runner.journal = watched
            assert await finished(system, response) == "kept"
            assert min(reads) == kept.seq - 1

    play(story())


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", STORES)
def test_a_run_without_its_snapshot_goes_on_as_with_it(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of(kind, tmp_path)
        async with systems(store) as (system,):
            response = await rested(system)
            with_it = await loaded(store, response.run_id)
            if isinstance(store, MemoryStore):
                store.snapshots._kept.clear()
            else:
                with closing(sqlite3.connect(tmp_path / "remit.db")) as connection, connection:
                    connection.execute("DELETE FROM snapshots")
            without_it = await loaded(store, response.run_id)
            assert without_it.snapshot_seq == -1
            assert without_it.state == with_it.state
            assert await finished(system, response) == "kept"

    play(story())


def _richer(snapshot: Snapshot) -> Snapshot:
    """The snapshot of a run that may spend more than it may."""
    state = state_from(snapshot.data)
    assert state is not None
    state.spending.left[Dimension.TOOL_CALLS] += 1_000
    data = snapshot_of(state)
    assert data is not None
    return replace(snapshot, data=data)


CHANGES: Sequence[Callable[[Snapshot], Snapshot]] = (
    lambda kept: replace(kept, seq=kept.seq - 1),
    lambda kept: replace(kept, seq=kept.seq + 1),
    lambda kept: replace(kept, seq=-1),
    lambda kept: replace(kept, head=bytes(32)),
    lambda kept: replace(kept, data=b""),
    lambda kept: replace(kept, data=bytes([kept.data[0] ^ 1]) + kept.data[1:]),
    lambda kept: replace(kept, data=kept.data[:-1]),
)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_that_does_not_belong_to_its_turn_is_ignored(change: Callable[[Snapshot], Snapshot]) -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            response = await rested(system)
            store.snapshots._kept[response.run_id] = change(store.snapshots._kept[response.run_id])
            assert (await loaded(store, response.run_id)).snapshot_seq == -1
            assert await finished(system, response) == "kept"

    play(story())


@pytest.mark.usefixtures("eager")
def test_a_snapshot_of_another_run_is_ignored_wherever_it_stands() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            first, second = await rested(system), await rested(system)
            other = store.snapshots._kept[first.run_id]
            mine = store.snapshots._kept[second.run_id]
            for forged in (other, replace(other, run_id=second.run_id), replace(mine, data=other.data)):
                store.snapshots._kept[second.run_id] = forged
                assert (await loaded(store, second.run_id)).snapshot_seq == -1
            assert await finished(system, second) == "kept"

    play(story())


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("column", ["seq", "head", "data", "richer data", "signature"])
def test_a_snapshot_that_was_changed_in_the_store_is_not_believed(
    column: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        async with systems(store) as (system,):
            response = await rested(system)
            kept = await store.snapshots.latest(response.run_id)
            assert kept is not None
            value = {
                "seq": kept.seq - 1,
                "head": bytes(32),
                "data": kept.data[:-1] + bytes([kept.data[-1] ^ 1]),
                "richer data": _richer(kept).data,
                "signature": bytes(64),
            }[column]
            with closing(sqlite3.connect(tmp_path / "remit.db")) as connection, connection:
                connection.execute(f"UPDATE snapshots SET {column.rpartition(' ')[2]} = ?", (value,))
            assert (await loaded(store, response.run_id)).snapshot_seq == -1
            assert await finished(system, response) == "kept"
            assert (await system.archive.verify(response.run_id)).ok

    with caplog.at_level(logging.WARNING):
        play(story())
    assert "not signed by this deployment" in caplog.text


@pytest.mark.usefixtures("eager")
def test_a_run_whose_kept_turn_was_changed_is_refused_as_without_a_snapshot() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with unaudited(store) as (system,):
            response = await rested(system)
            turns = store.journal._runs[response.run_id]
            turns[2], turns[3] = turns[3], turns[2]
            # What came before the snapshot is not read; that it was changed is for verify to find.
            runner = system._runner
            assert (await runner.load(response.run_id)).snapshot_seq == len(turns) - 1
            turns[-1] = turns[-2]
            with pytest.raises(InvariantBroken, match="JOURNAL_CHAIN_BROKEN"):
                await runner.load(response.run_id)

    play(story())


async def _no_room(run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
    raise StoreUnusable("STORE_FULL", "no room")


async def _no_page(run_id: str) -> Snapshot | None:
    raise StoreUnusable("STORE_DAMAGED", "no such page")


@pytest.mark.usefixtures("eager")
def test_snapshots_that_cannot_be_written_or_read_fail_no_run(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        store = MemoryStore()
        store.snapshots.keep, store.snapshots.latest = _no_room, _no_page  # type: ignore[method-assign]
        async with systems(store) as (system,):
            response = await system.run(request(), asking())
            assert await finished(system, response) == "kept"

    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.run_snapshots"):
        play(story())
    assert "was kept: STORE_FULL" in caplog.text
    assert "cannot be used: STORE_DAMAGED" in caplog.text


@pytest.mark.usefixtures("eager")
def test_a_state_that_is_too_large_or_cannot_be_written_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            response = await system.run(request(), asking())
            live = await system._runner.load(response.run_id)
            store.snapshots._kept.clear()
            live.snapshot_seq = -1
            live.state.talk.prompt_tokens = 2**64
            await keep_if_due(live, store.snapshots)
            live.state.talk.prompt_tokens = 0
            with monkeypatch.context() as small:
                small.setattr(keeping, "SNAPSHOT_BYTES_MAX", 100)
                await keep_if_due(live, store.snapshots)
            assert await store.snapshots.latest(response.run_id) is None
            await keep_if_due(live, store.snapshots)
            assert live.snapshot_seq == live.state.seq
            await keep_if_due(live, store.snapshots)

    play(story())


@pytest.mark.usefixtures("eager")
def test_a_person_who_speaks_while_a_snapshot_is_written_is_heard_before_the_driver_leaves() -> None:
    async def story() -> None:
        store, speakers = MemoryStore(), list[asyncio.Task[object]]()
        keep_truly = store.snapshots.keep
        async with systems(store) as (system,):

            async def slow_keep(run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
                if not speakers:
                    packet = f"{run_id}/{next(questions(system._hub.drivers[run_id].live.state)).id}"
                    speakers.append(asyncio.create_task(system.signal(approval(packet))))
                    driver = system._hub.drivers[run_id]
                    await until(lambda: asyncio.sleep(0, driver.speaking > 0 or driver.live.state.people.asking == 0))
                await keep_truly(run_id, seq, head, data, signature)

            store.snapshots.keep = slow_keep  # type: ignore[method-assign]
            replies = [calls("keep", text="x"), {"text": "kept"}]
            response = await system.run(request(), scripted(*replies, tools=[keep]))
            await speakers[0]
            assert response.content == "kept"

    play(story())


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from remit.assemble import system_on
from remit.backend.embedded.store import EmbeddedStore
from remit.orchestrate.loop import run_snapshots as snapshots
from tests.unit.orchestrate.house import request
from tests.unit.orchestrate.test_run_snapshots import asking

snapshots.SNAPSHOT_TURNS_MIN = 1

async def whole():
    store = EmbeddedStore.open(Path(sys.argv[1]))
    keep_truly = store.snapshots.keep

    async def keep_and_die(*where):
        if sys.argv[2] == "after":
            await keep_truly(*where)
        os.kill(os.getpid(), signal.SIGKILL)

    store.snapshots.keep = keep_and_die
    await system_on(store).run(request(), asking())

asyncio.run(whole())
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_goes_on_after_a_kill_between_its_turn_and_its_snapshot_and_after_both(when: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), when]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = warm.run(command, env=environment, timeout=WAIT_S_MAX, check=False)
    assert ended.returncode == -signal.SIGKILL

    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        async with systems(store) as (system,):
            (entry,) = await store.catalogue.entries(waiting_only=True)
            kept = await store.snapshots.latest(entry.run_id)
            assert (kept is not None) == (when == "after")
            live = await loaded(store, entry.run_id)
            assert live.snapshot_seq == (live.state.seq if kept is not None else -1)
            assert await finished(system, await system.result(entry.run_id)) == "kept"
            assert (await system.archive.verify(entry.run_id)).ok

    play(story())
